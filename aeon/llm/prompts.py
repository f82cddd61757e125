"""Prompt templates: where each is found, how it is rendered, and what is checked before a run begins.

A set is a folder of `<call>.system.j2` and `<call>.user.j2`. What a set does not have comes from `default`, and what a
person's folder does not have comes from the packaged one, file by file; `{% include %}` and `{% import %}` do the same.
Templates are code of the person who runs Aeon; tasks, inputs, model text and tool results only ever enter as values.
"""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from types import CodeType
from typing import Any, Literal, get_args

from jinja2 import Environment, FileSystemLoader, Template, TemplateNotFound, TemplateSyntaxError, meta, nodes

from aeon.domain.errors import PromptError
from aeon.domain.request import CallName, Message
from aeon.files.resources import digest_of_files, resource_root
from aeon.llm.rendering import ENVIRONMENT, to_json

Part = Literal["system", "user"]
PARTS: tuple[Part, ...] = get_args(Part)
CALLS: tuple[CallName, ...] = get_args(CallName)


class PromptLibrary:
    """The templates of one prompt set, compiled once; safe to use from many threads.

    `directory` is a person's folder of prompt sets, looked in before the packaged one (`prompts.dir`, `prompts.set`).
    Raises PromptError when it holds no set, or the set is nowhere to be found.
    """

    def __init__(self, directory: Path | None = None, prompt_set: str = "default") -> None:
        self._own = directory
        self._folders = _prompt_folders(directory, prompt_set)
        self._loader = _Loader(self._folders)
        self._environment = ENVIRONMENT.overlay(loader=self._loader, cache_size=-1)
        self._schema_texts: dict[int, tuple[Mapping[str, Any], str]] = {}
        self._schema_prompts: dict[tuple[str, str, bool], str] = {}

    def render(self, call: CallName, variables: Mapping[str, Any]) -> tuple[Message, Message]:
        """The system and the user message of a call. PromptError, with file and line, when it cannot be rendered."""
        system, user = (self.text(f"{call}.{part}.j2", variables) for part in PARTS)
        return Message("system", system), Message("user", user)

    def text(self, name: str, variables: Mapping[str, Any]) -> str:
        """Any template, rendered. PromptError, with file and line, when it cannot be rendered."""
        template = self._template(name)
        try:
            return template.render(variables)
        except Exception as error:  # whatever fails in a template, the person needs its file and line
            raise self._broken(error) from error

    def schema_prompt(self, call: CallName, schema: Mapping[str, Any], messages: Sequence[Message]) -> str:
        """The words that give a model the schema of its answer; few where its messages hold the schema already."""
        # By its identity, since the same few schemas are sent with every call; held, so that no other has that.
        _, text = self._schema_texts.get(id(schema)) or self._schema_texts.setdefault(
            id(schema), (schema, to_json(schema))
        )
        key = call, text, any(text in message.content for message in messages)
        if key not in self._schema_prompts:
            self._schema_prompts[key] = self.text("_schema.j2", {"call": call, "schema": schema, "shown": key[2]})
        return self._schema_prompts[key]

    def files(self, call: CallName) -> dict[str, Path]:
        """The file that each part (`system`, `user`) of a call comes from."""
        return {part: self._path(f"{call}.{part}.j2") for part in PARTS}

    def check(self, contexts: Mapping[CallName, Mapping[str, Any]]) -> None:
        """Compile and dry-render the templates of the calls in `contexts`, each with its call's example variables.

        Raises PromptError naming, with file and line, variables that a call does not have, files of the person's that
        are named for no call, and the first template that cannot be rendered.
        """
        problems = list(self._misnamed())
        for call, variables in contexts.items():
            for part in PARTS:
                problems += self._problems(f"{call}.{part}.j2", variables)
        if problems:
            raise PromptError("\n".join(dict.fromkeys(problems)))
        for call, variables in contexts.items():
            self.render(call, variables)

    def digest(self) -> str:
        """SHA-256, hex, over every template that a call of this set is rendered from, includes too."""
        names = [f"{call}.{part}.j2" for call in CALLS for part in PARTS]
        return digest_of_files(
            {name: self._path(name) for name in self._reachable([*names, "_schema.j2", "_context.j2"])}
        )

    def _template(self, name: str) -> Template:
        try:
            return self._environment.get_template(name)
        except (OSError, UnicodeDecodeError) as error:
            message = self._missing(name) if isinstance(error, TemplateNotFound) else f"{name}: cannot be read: {error}"
            raise PromptError(message) from error
        except TemplateSyntaxError as error:
            raise self._broken(error) from error

    def _path(self, name: str) -> Path:
        return Path(self._template(name).filename or "")

    def _missing(self, name: object) -> str:
        return f"there is no template {name}: looked in {', '.join(map(shown_path, self._folders))}"

    def _broken(self, error: Exception) -> PromptError:
        """The error with the template's file and line; of nested templates, the innermost."""
        if isinstance(error, TemplateSyntaxError):
            return PromptError(f"{shown_path(Path(error.filename or ''))}:{error.lineno}: {error.message}")
        message = self._missing(error) if isinstance(error, TemplateNotFound) else str(error)
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            if any(Path(frame.filename).is_relative_to(folder) for folder in self._folders):
                return PromptError(f"{shown_path(Path(frame.filename))}:{frame.lineno}: {message}")
        return PromptError(message)

    def _reachable(self, names: Iterable[str]) -> set[str]:
        """Templates and all that they refer to; everything there is, where one is named only at run time."""
        found, waiting = set[str](), list(names)
        known = set(self._environment.list_templates())
        while waiting:
            name = waiting.pop()
            if name in known - found:
                found.add(name)
                self._template(name)
                for reference in meta.find_referenced_templates(self._loader.trees[name]):
                    waiting += known if reference is None else [reference]
        return found

    def _problems(self, name: str, variables: Mapping[str, Any]) -> Iterator[str]:
        trees = {part: self._loader.trees[part] for part in sorted(self._reachable([name]))}
        assigned = {n.name for tree in trees.values() for n in tree.find_all(nodes.Name) if n.ctx in ("store", "param")}
        known = {*variables, *assigned}
        for part, tree in trees.items():
            where = shown_path(self._path(part))
            for variable, line in _required(tree).items():
                if variable not in known:
                    near = difflib.get_close_matches(variable, known, n=1)
                    hint = f"; did you mean {near[0]!r}?" if near else ""
                    yield f"{where}:{line}: no variable {variable!r} here{hint}"

    def _misnamed(self) -> Iterator[str]:
        """Files in the person's folders that no call would ever use."""
        own = [folder for folder in self._folders if self._own and folder.is_relative_to(self._own)]
        for path in sorted(path for folder in own for part in PARTS for path in folder.glob(f"*.{part}.j2")):
            call = path.name.split(".")[0]
            if call not in CALLS:
                yield f"{shown_path(path)}: there is no call {call!r}; there are: {', '.join(CALLS)}"


class _Loader(FileSystemLoader):
    """Compiles each text once in a process, and keeps what the templates were parsed to."""

    def __init__(self, folders: Sequence[Path]) -> None:
        super().__init__(folders)
        self.trees: dict[str, nodes.Template] = {}

    def load(self, environment: Environment, name: str, globals: MutableMapping[str, Any] | None = None) -> Template:
        text, filename, is_current = self.get_source(environment, name)
        self.trees[name], code = _compile(text, name, filename)
        return environment.template_class.from_code(environment, code, globals or {}, is_current)


@lru_cache(maxsize=512)
def _compile(text: str, name: str, filename: str) -> tuple[nodes.Template, CodeType]:
    tree = ENVIRONMENT.parse(text, name, filename)
    return tree, ENVIRONMENT.compile(tree, name, filename)


@lru_cache(maxsize=512)
def _required(tree: nodes.Template) -> dict[str, int]:
    """The variables that a template must be given, by the line of their first use, but for those whose absence it
    provides for with `is defined` or `default`."""
    guarded = {
        check.node.name
        for check in tree.find_all((nodes.Test, nodes.Filter))
        if check.name in ("defined", "undefined", "default", "d") and isinstance(check.node, nodes.Name)
    }
    lines: dict[str, int] = {}
    for used in tree.find_all(nodes.Name):
        lines.setdefault(used.name, used.lineno)
    return {name: lines.get(name, 1) for name in sorted(meta.find_undeclared_variables(tree) - guarded)}


@cache
def packaged_prompts() -> PromptLibrary:
    """The packaged default set, made once per process."""
    return PromptLibrary()


def shown_path(path: Path) -> str:
    """The path as a person would type it from here."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _prompt_folders(directory: Path | None, prompt_set: str) -> tuple[Path, ...]:
    """The folders that hold templates of a set, the person's own before the packaged ones."""
    packaged = resource_root() / "prompts"
    own = _sets(directory) if directory is not None else []
    if directory is not None and not own:
        raise PromptError(
            f"prompts.dir={directory}: it holds no prompt set (a folder of *.j2 files)",
            hint="`aeon init DIR` copies the packaged set to DIR/prompts.",
        )
    sets = sorted({*own, *_sets(packaged)})
    if prompt_set not in sets:
        raise PromptError(f"there is no prompt set {prompt_set!r}; there are: {', '.join(sets)}")
    if own and not {prompt_set, "default"} & set(own):
        raise PromptError(
            f"prompts.dir={directory}: it has no prompt set {prompt_set!r}, so nothing of it would be used",
            hint=f"Choose one that it has: prompts.set={own[0]}.",
        )
    roots = [packaged] if directory is None else [directory, packaged]
    folders = dict.fromkeys(root / name for root in roots for name in (prompt_set, "default"))
    return tuple(folder for folder in folders if folder.is_dir())


def _sets(folder: Path) -> list[str]:
    """The prompt sets in a folder: its folders that hold templates."""
    return sorted({template.parent.name for template in folder.glob("*/*.j2")})
