"""References in a workflow: `${inputs.NAME}` and `${steps.ID.output.KEY}`. Pure functions.

They name a value and nothing else: there is no expression, no default, no function. `$${` is a literal `${`. An id or a
name may hold any character but braces; of `${steps.a.output.b}`, `.output` ends the id and a path into the output may
follow, its parts keys of objects or, from 0, places in lists.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from aeon.domain.errors import PlanError
from aeon.domain.values import Value

_REFERENCE = re.compile(r"\$\$\{|\$\{([^{}]*)\}|\$\{")
_END_OF_ID = re.compile(r"\.output(?=\.|$)")
_SHOWN = 8
_LONGEST, _SHOWN_OF_LONG = 1000, 60


class Reference(Value):
    """What one `${...}` names: an input, or the output of a step or, by `path`, a part of it."""

    text: str
    kind: Literal["input", "step"]
    name: str
    path: tuple[str, ...] = ()


class CutOutput(Value):
    """Stands for the output of a step that was truncated; a reference to the output, or a part of it, is refused.

    `characters` is the length of the output, `kept` the number of characters left, `limit` the name of the setting.
    """

    characters: int
    kept: int
    limit: str = "tools.max_output_characters"


class BadReference(ValueError):
    """A `${...}` that is no valid reference; the message says what is allowed."""


class Found(NamedTuple):
    """A reference, or the error in it, and the text that contains it."""

    reference: Reference | BadReference
    within: str


def references(value: Any, step_ids: Collection[str] = ()) -> Iterator[Found]:
    """Find every reference in a text, or in the texts of a JSON value; keys are not searched.

    `step_ids` are the ids there are: they settle where the id ends in `${steps.a.output.output}`.
    """
    if isinstance(value, str):
        for match in _REFERENCE.finditer(value):
            if match[0] != "$${":
                yield Found(_parse(match, step_ids), value)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from references(item, step_ids)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from references(item, step_ids)


def resolve_text(text: str, inputs: Mapping[str, str]) -> str:
    """Insert the inputs into a description and unescape `$${`. Raises PlanError for a reference without a value."""
    return _fill(text, inputs, None)


def resolve_arguments(
    arguments: Mapping[str, Any], inputs: Mapping[str, str], outputs: Mapping[str, Any]
) -> dict[str, Any]:
    """Replace every reference in the arguments of a tool by its value (Sprint 1 FR-056).

    `outputs` are JSON values by step id: a tool's result, or the text that a model gave. A reference that is the whole
    text keeps the type of what it names; one inside a text becomes text, JSON where it is none. A path leads into
    objects and lists, and into a text that is JSON. For an output that was cut there is a `CutOutput`, which is refused
    rather than handed on as if it were the whole. Raises PlanError naming everything that cannot be resolved.
    """
    problems: list[str] = []
    resolved = {key: _resolve(item, inputs, outputs, f"arguments.{key}", problems) for key, item in arguments.items()}
    if problems:
        raise PlanError("; ".join(problems))
    return resolved


def escape_references(
    text: str, keep: Callable[[Reference], bool] = lambda _: False, step_ids: Collection[str] = ()
) -> str:
    """Escape every `${` of a text, except in the references to `keep`, so that the text is read back unchanged."""

    def literal(match: re.Match[str]) -> str:
        found = None if match[0] == "$${" else _parse(match, step_ids)
        return match[0] if isinstance(found, Reference) and keep(found) else match[0].replace("${", "$${")

    return _REFERENCE.sub(literal, text)


def _parse(match: re.Match[str], step_ids: Collection[str]) -> Reference | BadReference:
    text, inside = match[0], match[1]
    if len(text) > _LONGEST:
        return BadReference(f"`{text[:_SHOWN_OF_LONG]}...` is too long: a reference has at most {_LONGEST} characters")
    if inside is None:
        return BadReference("`${` begins a reference that no `}` ends; write `$${` for a literal `${`")
    kind, _, rest = inside.partition(".")
    if kind == "inputs" and rest:
        return Reference(text=text, kind="input", name=rest)
    if kind == "steps" and (split := _split_path(rest, step_ids)):
        name, path = split
        return Reference(text=text, kind="step", name=name, path=path)
    return BadReference(
        f"`{text}` names nothing: write `${{inputs.NAME}}` or `${{steps.ID.output}}`, or `$${{` for a literal `${{`"
    )


def _split_path(rest: str, step_ids: Collection[str]) -> tuple[str, tuple[str, ...]] | None:
    """Step id and path of `ID.output.PATH`; the longest known id, else the shortest that it could be."""
    ways = [(rest[: end.start()], rest[end.end() :]) for end in _END_OF_ID.finditer(rest) if end.start()]
    if not ways:
        return None
    name, path = next((way for way in reversed(ways) if way[0] in step_ids), ways[0])
    parts = tuple(path[1:].split(".")) if path else ()
    return None if "" in parts else (name, parts)


def _resolve(value: Any, inputs: Mapping[str, str], outputs: Mapping[str, Any], at: str, problems: list[str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _resolve(item, inputs, outputs, f"{at}.{key}", problems) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_resolve(item, inputs, outputs, f"{at}[{i}]", problems) for i, item in enumerate(value, start=1)]
    if not isinstance(value, str):
        return value
    try:
        match = _REFERENCE.fullmatch(value)
        return _look_up(match, inputs, outputs) if match and match[1] is not None else _fill(value, inputs, outputs)
    except PlanError as error:
        problems.append(f"{at}: {error.message}")
        return None


def _fill(text: str, inputs: Mapping[str, str], outputs: Mapping[str, Any] | None) -> str:
    return _REFERENCE.sub(lambda m: "${" if m[0] == "$${" else _to_text(_look_up(m, inputs, outputs)), text)


def _look_up(match: re.Match[str], inputs: Mapping[str, str], outputs: Mapping[str, Any] | None) -> Any:
    found = _parse(match, outputs or ())
    if isinstance(found, BadReference):
        raise PlanError(str(found))
    if found.kind == "input":
        if found.name not in inputs:
            raise PlanError(f"`{found.text}`: there is no input `{found.name}` (there are: {_list_names(inputs)})")
        return inputs[found.name]
    if outputs is None:
        raise PlanError(f"`{found.text}`: outputs of steps can be named in arguments only")
    if found.name not in outputs:
        raise PlanError(f"`{found.text}`: step `{found.name}` has no output")
    return _follow_path(_require_whole(outputs[found.name], found), found)


def _require_whole(value: Any, reference: Reference) -> Any:
    if isinstance(value, CutOutput):
        raise PlanError(
            f"`{reference.text}`: the output of step {reference.name} was cut "
            f"({value.characters} characters, {value.limit}={value.kept}): raise the limit to refer to it"
        )
    return value


def _follow_path(value: Any, reference: Reference) -> Any:
    for part in reference.path:
        value = _from_json(value)
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list | tuple) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            raise PlanError(f"`{reference.text}`: there is no `{part}` in {_describe(value)}")
    return value


def _from_json(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _describe(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"an object (it has: {_list_names(value)})"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    return "a text that is no JSON" if isinstance(value, str) else f"`{json.dumps(value)}`"


def _list_names(names: Collection[str]) -> str:
    shown = ", ".join(list(names)[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    return shown or "none"


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
