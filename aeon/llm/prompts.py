"""Prompt templates: where each is found, how it is rendered, and what is checked before a run begins.

A set is a folder of `<call>.system.j2` and `<call>.user.j2`. What a set does not have comes from `default`, and what a
person's folder does not have comes from the packaged one, file by file; `{% include %}` and `{% import %}` do the same.
A line that holds only a `{% tag %}` leaves no line behind (`trim_blocks`, `lstrip_blocks`; `+%}` keeps the line's end).
Templates are code of the person who runs Aeon; tasks, inputs, model text and tool results only ever enter as values.
"""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from jinja2 import Template, TemplateSyntaxError
from jinja2.exceptions import TemplateNotFound, TemplatesNotFound
from jinja2.loaders import split_template_path

from aeon.domain.errors import PromptError
from aeon.domain.request import CallName, Message
from aeon.files.resources import digest_of_files, find_meant, resource_root
from aeon.llm.rendering import make_environment, to_json
from aeon.llm.template_names import NamingLoader, TemplateNames, no_template

Part = Literal["system", "user"]
PARTS: tuple[Part, ...] = get_args(Part)
CALLS: tuple[CallName, ...] = get_args(CallName)


class PromptLibrary:
    """The templates of one prompt set, compiled once; safe to use from many threads.

    `directory` is a person's folder of prompt sets, looked in before the packaged one (`prompts.dir`, `prompts.set`).
    Raises PromptError when the folder, or the set, is nowhere to be found.
    """

    def __init__(self, directory: Path | None = None, prompt_set: str = "default") -> None:
        self._own = directory
        self._folders = _prompt_folders(directory, prompt_set)
        self._loader = NamingLoader([str(folder) for folder in self._folders])
        self._environment = make_environment(self._loader)
        self._templates: dict[CallName, tuple[Template, Template]] = {}
        self._schema_texts: dict[int, tuple[Mapping[str, Any], str]] = {}
        self._schema_prompts: dict[tuple[str, str, bool], str] = {}

    def render(self, call: CallName, variables: Mapping[str, Any]) -> tuple[Message, Message]:
        """The system and the user message of a call. PromptError, with file and line, when it cannot be rendered."""
        templates = self._templates.get(call) or self._templates.setdefault(call, self._compiled(call))
        try:
            system, user = (template.render(variables) for template in templates)
        except Exception as error:  # whatever fails in a template, the person needs its file and line
            raise self._broken(error) from error
        return Message("system", system), Message("user", user)

    def text(self, name: str, variables: Mapping[str, Any]) -> str:
        """Another template than a call's, rendered. PromptError, with file and line, when it cannot be rendered."""
        try:
            return self._template(name).render(variables)
        except PromptError:
            raise
        except Exception as error:
            raise self._broken(error) from error

    def schema_prompt(self, call: CallName, schema: Mapping[str, Any], messages: Sequence[Message]) -> str:
        """The words that give a model the schema of its answer; few where its messages hold the schema already."""
        text = self._schema_text(schema)
        key = call, text, any(text in message.content for message in messages)
        if key not in self._schema_prompts:
            self._schema_prompts[key] = self.text("_schema.j2", {"call": call, "schema": schema, "shown": key[2]})
        return self._schema_prompts[key]

    def _schema_text(self, schema: Mapping[str, Any]) -> str:
        """The schema as JSON; written once for each schema object, since the same ones are sent with every call."""
        written = self._schema_texts.get(id(schema))
        if written is None or written[0] is not schema:
            written = self._schema_texts[id(schema)] = schema, to_json(schema)
        return written[1]

    def files(self, call: CallName) -> dict[str, Path]:
        """The file that each part (`system`, `user`) of a call comes from."""
        return {part: self._path(f"{call}.{part}.j2") for part in PARTS}

    def responsible(self, call: CallName) -> Path:
        """The file to look at when the user prompt of a call lacks something: the call's template where it is a
        person's own, else the first of their own that it includes."""
        own = self._own
        name = f"{call}.user.j2"
        paths = [self._path(name), *(self._path(part) for part in sorted(self._reachable(name)))]
        return next((path for path in paths if own is not None and path.is_relative_to(own)), paths[0])

    def check(self, contexts: Mapping[CallName, Mapping[str, Any]]) -> None:
        """Compile and dry-render the templates of the calls in `contexts`, each with its call's example variables.

        Raises PromptError naming every variable that a call does not have, with file, line and the nearest one it has;
        every file in a person's folder that is named for no call; else the first template that cannot be rendered.
        """
        problems = list(self._misnamed())
        for call, context in contexts.items():
            for template in self._templates.setdefault(call, self._compiled(call)):
                problems += self._undeclared(str(template.name), frozenset(context))
        if problems:
            raise PromptError("\n".join(dict.fromkeys(problems)))
        for call, context in contexts.items():
            self.render(call, context)

    def digest(self) -> str:
        """SHA-256, hex, over every template that a call of this set is rendered from, includes too."""
        names: set[str] = set()
        for call in CALLS:
            for part in PARTS:
                names |= self._reachable(f"{call}.{part}.j2")
        names |= self._reachable("_schema.j2") | self._reachable("_context.j2")
        return digest_of_files({name: self._path(name) for name in names})

    def _path(self, name: str) -> Path:
        found = self._found(name)
        if found is not None:
            return found
        places = ", ".join(shown_path(folder) for folder in self._folders)
        raise PromptError(f"there is no template {name}: looked in {places}")

    def _found(self, name: str) -> Path | None:
        """Where Jinja would load it from: below the folders, never outside them; None when it is nowhere."""
        try:
            pieces = split_template_path(name)
        except TemplateNotFound:
            return None
        return next((path for folder in self._folders if (path := folder.joinpath(*pieces)).is_file()), None)

    def _compiled(self, call: CallName) -> tuple[Template, Template]:
        return self._template(f"{call}.system.j2"), self._template(f"{call}.user.j2")

    def _template(self, name: str) -> Template:
        try:
            return self._environment.get_template(name)
        except TemplateNotFound:
            places = ", ".join(shown_path(folder) for folder in self._folders)
            raise PromptError(f"there is no template {name}: looked in {places}") from None
        except UnicodeDecodeError as error:
            raise PromptError(f"{shown_path(self._path(name))}: not valid UTF-8 at byte {error.start}") from error
        except OSError as error:
            raise PromptError(f"{shown_path(self._path(name))}: cannot be read: {error.strerror}") from error
        except TemplateSyntaxError as error:
            raise self._broken(error) from error

    def _broken(self, error: Exception) -> PromptError:
        """The error with the template's file and line; of nested templates, the innermost."""
        if isinstance(error, TemplateSyntaxError):
            return PromptError(
                f"{shown_path(Path(error.filename or error.name or ''))}:{error.lineno}: {error.message}"
            )
        message = str(error)
        if isinstance(error, TemplateNotFound):
            names = error.templates if isinstance(error, TemplatesNotFound) else [error.name]
            message = no_template([str(name) for name in names])
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            if any(Path(frame.filename).is_relative_to(folder) for folder in self._folders):
                return PromptError(f"{shown_path(Path(frame.filename))}:{frame.lineno}: {message}")
        return PromptError(message)

    def _named_in(self, name: str) -> TemplateNames:
        if name not in self._loader.names:
            self._template(name)
        return self._loader.names[name]

    def _reachable(self, name: str) -> set[str]:
        """A template and everything it refers to; everything there is, where it names a template only at run time."""
        found, waiting = set[str](), [name]
        while waiting:
            current = waiting.pop()
            if current in found or self._found(current) is None:
                continue
            found.add(current)
            named = self._named_in(current)
            waiting += [name for reference in named.references for name in reference.names]
            waiting += self._environment.list_templates() if named.is_dynamic else []
        return found

    def _undeclared(self, name: str, known: frozenset[str], seen: frozenset[str] = frozenset()) -> Iterator[str]:
        named, where = self._named_in(name), shown_path(self._path(name))
        known |= {*self._environment.globals, *named.assigned}
        for variable, line in named.required.items():
            if variable in known:
                continue
            near = difflib.get_close_matches(variable, known, n=1)
            yield f"{where}:{line}: no variable {variable!r} here" + (f"; did you mean {near[0]!r}?" if near else "")
        for reference in named.references:
            found = next((choice for choice in reference.names if self._found(choice) is not None), None)
            if found is not None and found not in seen | {name}:
                yield from self._undeclared(found, known, seen | {name})
            elif found is None and not reference.is_optional:
                yield f"{where}:{reference.line}: {no_template(reference.names)}"

    def _misnamed(self) -> Iterator[str]:
        """Files in the person's folders that no call would ever use."""
        for folder in self._folders:
            if self._own is None or not folder.is_relative_to(self._own):
                continue
            for path in sorted([*folder.glob("*.system.j2"), *folder.glob("*.user.j2")]):
                call = path.name.split(".")[0]
                if call not in CALLS:
                    near = (difflib.get_close_matches(call, CALLS, n=1) or CALLS)[0]
                    where = shown_path(path)
                    yield f"{where}: there is no call {call!r}; did you mean {near!r}? Calls: {', '.join(CALLS)}"


@cache
def packaged_prompts() -> PromptLibrary:
    """The packaged default set, made once per process."""
    return PromptLibrary()


def shown_path(path: Path) -> str:
    """The path as a person would type it from here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _prompt_folders(directory: Path | None, prompt_set: str) -> tuple[Path, ...]:
    """The folders that hold templates of a set, the person's own before the packaged ones.

    Raises PromptError when the person's folder is missing, holds no set, or neither the chosen set nor `default`.
    """
    if directory is not None and not directory.is_dir():
        raise PromptError(f"there is no prompts folder {directory}", hint="Set prompts.dir to a folder of prompt sets.")
    if directory is not None and not _sets(directory):
        raise _no_sets(directory)
    roots = [root for root in (directory, resource_root() / "prompts") if root is not None]
    sets = sorted({path.name for root in roots if root.is_dir() for path in root.iterdir() if path.is_dir()})
    if prompt_set not in sets and prompt_set != "default":
        raise PromptError(f"there is no prompt set {prompt_set!r}; there are: {', '.join(sets)}")
    if directory is not None and not {prompt_set, "default"} & set(own := _sets(directory)):
        raise PromptError(
            f"prompts.dir={directory}: it has no prompt set {prompt_set!r}, so nothing of it would be used",
            hint=f"Choose one that it has: prompts.set={own[0]}.",
        )
    candidates = dict.fromkeys((root / name) for root in roots for name in (prompt_set, "default"))
    return tuple(folder for folder in candidates if folder.is_dir())


def _sets(folder: Path) -> list[str]:
    """The prompt sets in a folder: its folders that hold templates."""
    return sorted({template.parent.name for template in folder.glob("*/*.j2")})


def _no_sets(directory: Path) -> PromptError:
    meant = find_meant(directory, "prompts", lambda place: bool(_sets(place)))
    return PromptError(
        f"prompts.dir={directory}: it holds no prompt set (a folder of *.j2 files)",
        hint=f"Did you mean prompts.dir={meant}?" if meant else "`aeon init DIR` copies the packaged set.",
    )
