"""Prompt templates: where each is found, how it is rendered, and what is checked before a run
begins.

Files that a set lacks come from `default`; files that your folder lacks come from the packaged
prompts. Tasks and outputs enter templates only as values.
"""

from __future__ import annotations

import difflib
import itertools
import json
import os
import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import asdict, is_dataclass
from functools import cache, lru_cache, partial
from html import escape
from pathlib import Path
from types import CodeType
from typing import Any, get_args

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template, Undefined, meta, nodes
from jinja2.exceptions import TemplateNotFound, TemplateSyntaxError
from jinja2.ext import Extension
from jinja2.filters import do_format
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import BaseModel

from aeon.domain.errors import PromptError
from aeon.domain.request import CallName, Message
from aeon.domain.values import JsonMapping
from aeon.files.fences import name_fence
from aeon.files.pinned import read_file
from aeon.files.resources import digest_of_files, find_meant, resource_root
from aeon.files.shortage import raise_shortage
from aeon.llm import template_work
from aeon.llm.compiled import CompiledTemplates
from aeon.llm.template_work import (
    FILTERS,
    MOST_CHARACTERS,
    STEPS_OF_A_CALL,
    CountedWork,
    TooMuchWork,
    add_characters,
    add_steps,
    begin_rendering,
    check_characters,
    check_filled,
    check_method,
    check_shown,
)
from aeon.schema.json_schema import once_per_schema

PARTS = ("system", "user")
_PART_END = f"<part end {os.urandom(16).hex()}>"
"""Marks the end of a part in rendered text until it is removed. No data can contain it."""
_BESIDE_CALLS = (
    *("_schema.j2", "_context.j2"),
    *("_functions.j2", "_tool_result.j2", "_ask_again.j2"),
)
_MOST_REMEMBERED = 2_000
_MOST_EXPONENT = 1_000
# the bits of a number of 4,000 digits, about the most that Python turns into text
_MOST_BITS = 13_287
_WIDE = re.compile(r"\d{4}|\*")
_UNBOUNDED = frozenset({"ljust", "rjust", "center", "zfill", "expandtabs", "translate"})
_UNBOUNDED_FILTERS = ("center", "urlize", "wordwrap", "xmlattr")
CALLS: tuple[CallName, ...] = get_args(CallName)
_OF_A_LOOP = frozenset({"first", "last", "index", "index0", "length"})
_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def fence(value: object, label: str, **attributes: Any) -> str:
    """Put data between tags that it cannot close, on lines of its own: `<label-CODE attr="..">` and
    `</label-CODE>`.

    CODE is twelve letters of the data's SHA-256, so that no author of the data can predict it, and
    equal data make equal text. None becomes empty text, other values that are not text become JSON;
    attributes that are None are left out. Raises ValueError for a label that is no valid tag name.
    """
    text = value if isinstance(value, str) else "" if value is None else to_json(value)
    text = remove_part_ends(text)  # what a template puts inside a fence ends no part
    given = tuple([(name, str(each)) for name, each in attributes.items() if each is not None])
    # A run's short texts, such as its steps and their outputs, appear in most of its prompts.
    make = _remember_fence if len(text) <= _MOST_REMEMBERED else _make_fence
    return make(text, label, given)


def _make_fence(text: str, label: str, attributes: tuple[tuple[str, str], ...]) -> str:
    if not _LABEL.fullmatch(label):
        raise ValueError(f"{label!r} cannot be the label of a fence")
    tag = name_fence(label, text)
    given = "".join([f' {name}="{_attribute(value)}"' for name, value in attributes])
    return f"<{tag}{given}>\n{text}\n</{tag}>"


_remember_fence = lru_cache(maxsize=2048)(_make_fence)


def _attribute(value: str) -> str:
    return escape(value).replace("\n", "&#10;").replace("\r", "&#13;")


def to_json(value: object) -> str:
    """Return compact JSON on one line, in the value's own order, not escaped. Accepts models,
    dataclasses, sets and paths too."""
    return _ENCODER.encode(value)


def to_json_lines(value: Any) -> str:
    """Return JSON with each item of a list, or member of a mapping, on its own line; lists in a
    mapping likewise."""
    if isinstance(value, Mapping):
        members = [
            f"{to_json(str(name))}:{_write_member(member)}" for name, member in value.items()
        ]
        return "{\n" + ",\n".join(members) + "\n}" if members else "{}"
    items = ",\n".join(to_json(item) for item in value)
    return f"[\n{items}\n]" if items else "[]"


def _write_member(member: object) -> str:
    return to_json_lines(member) if isinstance(member, list | tuple) else to_json(member)


def _plain(value: object) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Path | Undefined):
        return str(value)
    raise TypeError(f"a {type(value).__name__} cannot be rendered as JSON")


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain)


def _check_operation(operator: str, left: object, right: object) -> None:
    """Raise ValueError or TooMuchWork for an operation that would take too much time or memory."""
    sizes = [len(each) for each in (left, right) if isinstance(each, str | list | tuple)]
    numbers = [each for each in (left, right) if isinstance(each, int)]
    match operator:
        case "*" if sizes:
            _check_repeated(sum(sizes) * max(numbers, default=0))
        case "+" if sizes:
            add_characters(sum(sizes))
        case "%" if isinstance(left, str):
            _check_widths(left)
            check_filled(left, _list_filled(right))
        case "*" | "**":
            _check_numbers(operator, numbers)


def _check_numbers(operator: str, numbers: Sequence[int]) -> None:
    if operator == "**" and max(map(abs, numbers), default=0) > _MOST_EXPONENT:
        raise ValueError(f"numbers in a power are at most {_MOST_EXPONENT:,}")
    if sum(number.bit_length() for number in numbers) > _MOST_BITS:
        raise ValueError("a product has at most 4,000 digits")


def _check_repeated(size: int) -> None:
    if size > MOST_CHARACTERS:
        raise ValueError(f"a repeated text or list has more than {MOST_CHARACTERS:,} characters")
    add_characters(size)


def _check_widths(text: str) -> None:
    if _WIDE.search(text):
        raise ValueError("a width in a format is a number of at most three digits")


def _list_filled(values: object) -> Iterable[Any]:
    """Return the values that `text % values` inserts."""
    if isinstance(values, Mapping):
        return values.values()
    return values if isinstance(values, tuple) else (values,)


def _fill(text: str, work: Callable[..., str], *values: Any, **named: Any) -> str:
    given = (*values, named)
    check_filled(text, [inner for each in given for inner in _list_filled(each)])
    return work(*values, **named)


def _format(text: str, *values: Any, **named: Any) -> str:
    _check_widths(text)
    check_filled(text, (*values, *named.values()))
    return do_format(text, *values, **named)


def _fence(value: object, label: str, **attributes: Any) -> str:
    if not attributes:
        return fence(value, label)
    return fence(value, label, **check_shown(attributes))


def _join(pieces: Iterable[str]) -> str:
    """Join the pieces of a rendered template. Raises TooMuchWork."""
    joined = []
    size = 0
    for piece in pieces:
        size += len(piece)
        check_characters(size)
        joined.append(piece)
    return "".join(joined)


class _PartEnd(Extension):
    """The tag `{% part_end %}`: the text before it may begin later prompts too."""

    tags = {"part_end"}  # noqa: RUF012 - as Jinja declares it

    def parse(self, parser: Parser) -> nodes.Node:
        """Parse the tag, which has no arguments."""
        line = next(parser.stream).lineno
        return nodes.Output([nodes.EnvironmentAttribute("part_end")], lineno=line)


class _PromptEnvironment(ImmutableSandboxedEnvironment):
    part_end = _PART_END  # of this process alone, so it stands in no compiled template
    concat = staticmethod(_join)
    intercepted_binops = frozenset({"*", "**", "%", "+"})

    def call_binop(self, context: Context, operator: str, left: object, right: object) -> Any:
        _check_operation(operator, left, right)
        return super().call_binop(context, operator, left, right)

    def call_filter(self, name: str, value: object, *args: Any, **kwargs: Any) -> Any:
        """Call a filter that another filter names, such as `map`."""
        made = super().call_filter(name, check_shown(value), *args, **kwargs)
        add_characters(len(made) if isinstance(made, str) else 0)
        return made

    def call(self, __context: Context, __obj: object, *args: Any, **kwargs: Any) -> Any:
        add_steps(STEPS_OF_A_CALL)
        check_method(__obj, args)
        return super().call(__context, __obj, *args, **kwargs)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        work = super().wrap_str_format(value)
        if work is not None:
            _check_widths(value.__self__)
            return partial(_fill, value.__self__, work)
        return work

    def is_safe_attribute(self, obj: object, attr: str, value: object) -> bool:
        # These methods make text of any length.
        is_unbounded = isinstance(obj, str) and attr in _UNBOUNDED
        return not is_unbounded and super().is_safe_attribute(obj, attr, value)

    def getattr(self, obj: object, attribute: str) -> Any:
        # Templates mostly access members of JSON mappings; the usual lookup raises an exception
        # first.
        if type(obj) is dict and attribute in obj and not hasattr(dict, attribute):
            return obj[attribute]
        if type(obj) is LoopContext and attribute in _OF_A_LOOP:
            return getattr(obj, attribute)
        return super().getattr(obj, attribute)

    def make_globals(self, d: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        # A plain dict, because each rendered file starts with a copy.
        return {**self.globals, **(d or {})}


ENVIRONMENT: Environment = _PromptEnvironment(
    undefined=StrictUndefined,
    auto_reload=False,
    finalize=check_shown,
    extensions=[_PartEnd],
    keep_trailing_newline=True,
    trim_blocks=True,
    lstrip_blocks=True,
    autoescape=False,
)
"""Sandboxed; its templates render equal values to equal text. Each library has its own overlay."""
ENVIRONMENT.filters.update(FILTERS)
ENVIRONMENT.filters.update(fence=_fence, json=to_json, json_lines=to_json_lines, format=_format)
# What is random would make another prompt of equal values, which no store could answer.
ENVIRONMENT.globals.pop("lipsum")
for _name in ("random", *_UNBOUNDED_FILTERS):
    ENVIRONMENT.filters.pop(_name)


_schema_json = once_per_schema(to_json)
_COMPILED = CompiledTemplates(__file__, template_work.__file__)
_INCLUDED = re.compile(r'\{%-? *include "([^"]+)"')


class PromptLibrary:
    """The templates of one prompt set, compiled once; thread-safe. `directory` is your folder of
    prompt sets, searched first. Raises PromptError if it contains none."""

    def __init__(self, directory: Path | None = None, prompt_set: str = "default") -> None:
        self._own = directory
        self._folders = _prompt_folders(directory, prompt_set)
        self._loader = _Loader(self._folders, counts=directory is not None)
        # Without a bound: the templates of one set are few, and each is used in every run.
        self._environment = ENVIRONMENT.overlay(loader=self._loader, cache_size=-1)
        self._schema_prompts: dict[tuple[CallName, str, bool], str] = {}

    def render(self, call: CallName, variables: JsonMapping) -> tuple[Message, Message]:
        """Render the system and the user message of a call. Raises PromptError with file and
        line."""
        system, user = (self._render(f"{call}.{part}.j2", variables) for part in PARTS)
        return Message("system", *_find_part_ends(system)), Message("user", *_find_part_ends(user))

    def text(self, name: str, variables: JsonMapping) -> str:
        """Render any template. Raises PromptError with file and line."""
        return remove_part_ends(self.part(name, variables))

    def part(self, name: str, variables: JsonMapping) -> str:
        """Render a part of a prompt, with the marks of its own `{% part_end %}`. Raises
        PromptError."""
        return self._render(name, variables)

    def _render(self, name: str, variables: JsonMapping) -> str:
        template = self._template(name)
        begin_rendering()
        try:
            return template.render(variables)
        except TooMuchWork as error:
            raise PromptError(f"{show_path(Path(template.filename or ''))}: {error}") from None
        except Exception as error:
            # Whatever fails in a template, the person needs its file and line.
            raise self._explain_error(error) from error

    def schema_prompt(
        self, call: CallName, schema: JsonMapping, messages: Sequence[Message]
    ) -> str:
        """Return the text that gives a model the schema of its answer; short if its messages
        contain the schema already."""
        text = _schema_json(schema)
        key = call, text, any(text in message.content for message in messages)
        if key not in self._schema_prompts:
            self._schema_prompts[key] = self.text(
                "_schema.j2", {"call": call, "schema": schema, "shown": key[2]}
            )
        return self._schema_prompts[key]

    def files(self, call: CallName) -> dict[str, Path]:
        """Return the file of each part (`system`, `user`) of a call."""
        return {part: self._path(f"{call}.{part}.j2") for part in PARTS}

    def file_to_correct(self, call: CallName) -> Path:
        """Return the file to correct if a call's user message is wrong: one of your own if there is
        one, since the packaged ones are right; of several, the template itself before its includes.
        """
        name = f"{call}.user.j2"
        included = sorted(self._reachable([name]) - {name})
        files = [self._path(part) for part in (name, *included)]
        own = [file for file in files if self._own and file.is_relative_to(self._own)]
        return own[0] if own else files[0]

    def check(self, contexts: Mapping[CallName, JsonMapping]) -> None:
        """Compile and dry-render the templates of the calls in `contexts` with each call's example
        variables. Raises PromptError, with file and line, for unknown variables and for files that
        belong to no call."""
        problems = [
            f"{show_path(path)}: this belongs to no call; there are: {', '.join(CALLS)}"
            for path in self._own_files()
            if path.name.split(".")[0] not in CALLS
        ]
        for call, part in itertools.product(contexts, PARTS):
            problems += self._problems(f"{call}.{part}.j2", contexts[call])
        if problems:
            raise PromptError("\n".join(dict.fromkeys(problems)))
        # Only rendering finds what is missing inside of a value.
        for call, variables in contexts.items():
            self.render(call, variables)

    def _own_files(self) -> list[Path]:
        own = [folder for folder in self._folders if self._own and folder.is_relative_to(self._own)]
        return sorted(
            path for folder in own for part in PARTS for path in folder.glob(f"*.{part}.j2")
        )

    def digest(self) -> str:
        """Return the SHA-256 (hex) over every template that calls of this set use, includes too."""
        return self._digest(*CALLS, others=_BESIDE_CALLS)

    def digest_call(self, call: CallName) -> str:
        """Return the SHA-256 (hex) over the templates of one call, includes too."""
        return self._digest(call)

    def _digest(self, *calls: CallName, others: Sequence[str] = ()) -> str:
        names = [f"{call}.{part}.j2" for call in calls for part in PARTS]
        reachable = self._reachable([*names, *others])
        return digest_of_files({name: self._path(name) for name in reachable})

    def _template(self, name: str) -> Template:
        try:
            return self._environment.get_template(name)
        except TemplateNotFound as error:
            raise PromptError(self._explain_missing(name)) from error
        except (OSError, UnicodeDecodeError) as error:
            problem = f"{name}: cannot be read"
            raise_shortage(problem, error)
            raise PromptError(f"{problem}: {error}") from error
        except TemplateSyntaxError as error:
            raise self._explain_error(error) from error

    def _path(self, name: str) -> Path:
        for folder in self._folders:
            if (folder / name).is_file():
                return folder / name
        raise PromptError(self._explain_missing(name))

    def _explain_missing(self, name: object) -> str:
        return f"there is no template {name}: looked in {', '.join(map(show_path, self._folders))}"

    def _explain_error(self, error: Exception) -> PromptError:
        """Return the error with the template's file and line; in nested templates, the
        innermost."""
        if isinstance(error, TemplateSyntaxError):
            where = show_path(Path(error.filename or ""))
            return PromptError(f"{where}:{error.lineno}: {error.message}")
        is_missing = isinstance(error, TemplateNotFound)
        message = self._explain_missing(error) if is_missing else str(error)
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            if any(Path(frame.filename).is_relative_to(folder) for folder in self._folders):
                return PromptError(f"{show_path(Path(frame.filename))}:{frame.lineno}: {message}")
        return PromptError(message)

    def _reachable(self, names: Iterable[str]) -> set[str]:
        found = set[str]()
        waiting = list(names)
        known = set(self._environment.list_templates())
        while waiting:
            name = waiting.pop()
            if name in known - found:
                found.add(name)
                for reference in self._find_references(name):
                    # A name known only at rendering may be that of any template.
                    waiting += known if reference is None else [reference]
        return found

    def _find_references(self, name: str) -> Iterable[str | None]:
        """Return the templates that one includes; None for a name known only at rendering."""
        if self._own is None:
            # They are named in plain words, and to parse all of a set takes a twentieth of a start.
            return _INCLUDED.findall(_read_text(self._path(name)))
        return meta.find_referenced_templates(self._parse(name))

    def _parse(self, name: str) -> nodes.Template:
        self._template(name)  # which says what is wrong with it
        path = self._path(name)
        return _parse(_read_text(path), name, str(path), self._own is not None)

    def _problems(self, name: str, variables: JsonMapping) -> Iterator[str]:
        trees = {part: self._parse(part) for part in sorted(self._reachable([name]))}
        assigned = {
            n.name
            for tree in trees.values()
            for n in tree.find_all(nodes.Name)
            if n.ctx in ("store", "param")
        }
        known = {*variables, *assigned}
        for part, tree in trees.items():
            where = show_path(self._path(part))
            for variable, line in _find_required(tree).items():
                if variable not in known:
                    near = difflib.get_close_matches(variable, known, n=1)
                    hint = f"; did you mean {near[0]!r}?" if near else ""
                    yield f"{where}:{line}: no variable {variable!r} here{hint}"


class _Loader(FileSystemLoader):
    """Compiles each text once per process, and the packaged ones only once in all. With `counts`, for
    your own templates, loops and filters count their steps."""

    def __init__(self, folders: Sequence[Path], *, counts: bool) -> None:
        super().__init__(folders)
        self._counts = counts

    def load(
        self, environment: Environment, name: str, globals: MutableMapping[str, Any] | None = None
    ) -> Template:
        _, filename, is_current = self.get_source(environment, name)
        code = _compile(_read_text(Path(filename)), name, filename, self._counts)
        return environment.template_class.from_code(environment, code, globals or {}, is_current)


def _read_text(path: Path) -> str:
    return read_file(path).decode("utf-8")


@lru_cache(maxsize=512)
def _parse(text: str, name: str, filename: str, counts: bool) -> nodes.Template:
    tree = ENVIRONMENT.parse(text, name, filename)
    return CountedWork().visit(tree) if counts else tree


@lru_cache(maxsize=512)
def _compile(text: str, name: str, filename: str, counts: bool) -> CodeType:
    if counts:
        return ENVIRONMENT.compile(_parse(text, name, filename, counts), name, filename)
    bucket = _COMPILED.get_bucket(ENVIRONMENT, name, filename, text)
    if bucket.code is None:
        bucket.code = ENVIRONMENT.compile(_parse(text, name, filename, counts), name, filename)
        _COMPILED.set_bucket(bucket)
    return bucket.code


@lru_cache(maxsize=512)
def _find_required(tree: nodes.Template) -> dict[str, int]:
    """Return the variables that a template needs, with the line of their first use."""
    undeclared = meta.find_undeclared_variables(tree)
    return {
        used.name: used.lineno
        for used in reversed(list(tree.find_all(nodes.Name)))
        if used.name in undeclared
    }


def remove_part_ends(part: str) -> str:
    """Return a rendered part without the marks of `{% part_end %}`."""
    return part.replace(_PART_END, "")


def _find_part_ends(rendered: str) -> tuple[str, tuple[int, ...]]:
    """Return the text without the marks of `{% part_end %}`, and the marks' positions."""
    *parts, rest = rendered.split(_PART_END)
    if not parts:
        return rendered, ()
    ends = filter(None, itertools.accumulate(map(len, parts)))
    return "".join([*parts, rest]), tuple(dict.fromkeys(ends))


@cache
def load_packaged_prompts() -> PromptLibrary:
    """Return the packaged default set, created once per process."""
    return PromptLibrary()


def show_path(path: Path) -> str:
    """Return the path relative to the current folder if it is inside it."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _prompt_folders(directory: Path | None, prompt_set: str) -> tuple[Path, ...]:
    packaged = resource_root() / "prompts"
    own = [] if directory is None else _own_sets(directory)
    # Your folder, if it has no default set, serves its own sets only.
    sets = sorted({*own, *_sets(packaged)}) if not own or "default" in own else own
    if prompt_set not in sets:
        raise PromptError(f"there is no prompt set {prompt_set!r}; there are: {', '.join(sets)}")
    roots = [packaged] if directory is None else [directory, packaged]
    folders = dict.fromkeys(root / name for root in roots for name in (prompt_set, "default"))
    return tuple(folder for folder in folders if folder.is_dir())


def _own_sets(directory: Path) -> list[str]:
    own = _sets(directory)
    if own:
        return own
    meant = find_meant(directory, "prompts", lambda place: bool(_sets(place)))
    copied = "`aeon init DIR` copies the packaged set to DIR/prompts."
    raise PromptError(
        f"prompts.dir={directory}: it contains no prompt set (a folder of *.j2 files)",
        hint=f"Did you mean prompts.dir={meant}?" if meant else copied,
    )


def _sets(folder: Path) -> list[str]:
    return sorted({template.parent.name for template in folder.glob("*/*.j2")})
