"""References in a workflow: `${inputs.NAME}` and `${steps.ID.output.KEY}` name a value and nothing
else. `$${` is a literal `${`. The first `.output` ends the id; a path of keys or 0-based positions
into the output may follow."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

from aeon.domain.errors import PlanError
from aeon.domain.values import JsonMapping, JsonObject, Value
from aeon.files.text import Place, format_place

_REFERENCE = re.compile(r"\$\$\{|\$\{([^{}]*)\}|\$\{")
_NAME = re.compile(
    r"inputs\.(?P<input>.+)|steps\.(?P<step>.+?)\.output(\.(?P<path>.+))?", re.DOTALL
)
_SHOWN = 8


class Reference(Value):
    """The target of one `${...}`: an input, or the output of a step or, by `path`, a part of it."""

    text: str
    kind: Literal["input", "step"]
    name: str
    path: tuple[str, ...] = ()


class CutOutput(Value):
    """Replaces an output that the setting `limit` cut to `kept` characters; references to it are
    refused."""

    characters: int
    kept: int
    limit: str = "tools.max_output_characters"


class BadReference(ValueError):
    """A `${...}` that is no valid reference; the message says what is allowed."""


def find_texts(value: object, place: Place = ()) -> Iterator[tuple[Place, str]]:
    """Yield the texts of a JSON value with their places; keys are not included."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from find_texts(item, (*place, key if isinstance(key, int) else str(key)))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from find_texts(item, (*place, index))


def change_texts(value: object, change: Callable[[Place, str], Any], place: Place = ()) -> Any:
    """Return a JSON value with every text in it changed; `change` gets its place too."""
    if isinstance(value, str):
        return change(place, value)
    if isinstance(value, Mapping):
        return {key: change_texts(item, change, (*place, str(key))) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [change_texts(item, change, (*place, index)) for index, item in enumerate(value)]
    return value


def references(value: object, item: str = "") -> Iterator[Reference | BadReference]:
    """Yield every reference, or its error, in the texts of a JSON value, except those to the `item`
    of a list."""
    for _, text in find_texts(value):
        for match in _REFERENCE.finditer(text):
            if match[0] != "$${" and _find_item_path(match, item) is None:
                yield _parse(match)


def fill_item(value: object, name: str, item: Any) -> Any:
    """Replace the references to an item of a list, `${name}` and `${name.key}`, in a JSON value.
    References in inserted text are not resolved. Raises PlanError."""

    def fill(_: Place, text: str) -> Any:
        match = _REFERENCE.fullmatch(text)
        if match and _find_item_path(match, name) is not None:
            found = _look_up_item(match, name, item)
            # An item is data: what looks like a reference in it is none.
            return change_texts(found, lambda _, inner: escape_references(inner))
        return _REFERENCE.sub(insert, text)

    def insert(match: re.Match[str]) -> str:
        if _find_item_path(match, name) is None:
            return match[0]
        found = _look_up_item(match, name, item)
        text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
        return escape_references(text)

    return change_texts(value, fill)


def _find_item_path(match: re.Match[str], name: str) -> tuple[str, ...] | None:
    """Return the path of a reference into the item `name`; None for another reference."""
    if not name or match[1] is None:
        return None
    first, *path = match[1].split(".")
    return tuple(path) if first == name else None


def _look_up_item(match: re.Match[str], name: str, item: Any) -> Any:
    return follow_path(name, item, _find_item_path(match, name) or (), match[0])


def resolve_text(text: str, inputs: JsonMapping) -> str:
    """Insert the inputs into a description and unescape `$${`. Raises PlanError for a reference
    without a value."""
    return _fill(text, inputs, None)


def resolve_arguments(
    arguments: JsonMapping, inputs: JsonMapping, outputs: JsonMapping
) -> JsonObject:
    """Replace every reference in a tool's arguments by its value (Sprint 1 FR-056); a reference
    that is the whole text keeps its type. Raises PlanError naming every reference that cannot be
    resolved."""
    problems: list[str] = []

    def resolve(place: Place, text: str) -> Any:
        match = _REFERENCE.fullmatch(text)
        try:
            if match and match[1] is not None:
                return _look_up(match, inputs, outputs)
            return _fill(text, inputs, outputs)
        except PlanError as error:
            problems.append(f"{format_place(place)}: {error.message}")

    resolved: JsonObject = change_texts(arguments, resolve, ("arguments",))
    if problems:
        raise PlanError("; ".join(problems))
    return resolved


def escape_references(text: str, keep: Callable[[Reference], bool] = lambda _: False) -> str:
    """Escape every `${` of a text, except in references to `keep`, so that the text is read back
    unchanged."""

    def literal(match: re.Match[str]) -> str:
        found = None if match[0] == "$${" else _parse(match)
        if isinstance(found, Reference) and keep(found):
            return match[0]
        return match[0].replace("${", "$${")

    return _REFERENCE.sub(literal, text)


def _parse(match: re.Match[str]) -> Reference | BadReference:
    text = match[0]
    inside = match[1]
    if inside is None:
        return BadReference(
            "`${` begins a reference without a closing `}`; write `$${` for a literal `${`"
        )
    named = _NAME.fullmatch(inside)
    if named is None:
        allowed = "`${inputs.NAME}` or `${steps.ID.output}`, or `$${` for a literal `${`"
        return BadReference(f"`{text}` names nothing: write {allowed}")
    if named["input"]:
        return Reference(text=text, kind="input", name=named["input"])
    path = tuple(named["path"].split(".")) if named["path"] else ()
    return Reference(text=text, kind="step", name=named["step"], path=path)


def _fill(text: str, inputs: JsonMapping, outputs: JsonMapping | None) -> str:
    def value(match: re.Match[str]) -> str:
        found = "${" if match[0] == "$${" else _look_up(match, inputs, outputs)
        return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)

    return _REFERENCE.sub(value, text)


def _look_up(match: re.Match[str], inputs: JsonMapping, outputs: JsonMapping | None) -> Any:
    found = _parse(match)
    if isinstance(found, BadReference):
        raise PlanError(str(found))
    if found.kind == "step" and outputs is None:
        raise PlanError(f"`{found.text}`: outputs of steps can be named in arguments only")
    values = (inputs if found.kind == "input" else outputs) or {}
    if found.name not in values:
        missing = f"there is no input `{found.name}` (there are: {_list_names(inputs)})"
        missing = missing if found.kind == "input" else f"step `{found.name}` has no output"
        raise PlanError(f"`{found.text}`: {missing}")
    return follow_path(found.name, values[found.name], found.path, found.text)


def follow_path(name: str, value: Any, path: Sequence[str], reference: str) -> Any:
    """Return the part at `path` of the value of the input or step `name`. Raises PlanError if there
    is none."""
    if isinstance(value, CutOutput):
        cut = (
            f"({value.characters} characters, {value.limit}={value.kept}): raise the "
            "limit to refer to it"
        )
        raise PlanError(f"`{reference}`: the output of step {name} was cut {cut}")
    for part in path:
        value = _part_of(value, part, reference)
    return value


def _part_of(value: object, part: str, reference: str) -> Any:
    within = "a text that is no JSON"
    with suppress(ValueError, RecursionError):
        value = json.loads(value) if isinstance(value, str) else value
        within = f"`{json.dumps(value)}`"
    if isinstance(value, Mapping):
        if part in value:
            return value[part]
        within = f"an object (it has: {_list_names(value)})"
    if isinstance(value, list | tuple):
        if part.isdecimal() and int(part) < len(value):
            return value[int(part)]
        within = f"a list of {len(value)}"
    raise PlanError(f"`{reference}`: there is no `{part}` in {within}")


def _list_names(names: Collection[str]) -> str:
    return ", ".join([*list(names)[:_SHOWN], *(["..."] if len(names) > _SHOWN else [])]) or "none"
