"""What a repair of planned steps must not add: a tool that is not registered, or that the original
did not name. Compared as structure, word for word; the meaning of the rest of an answer is not
judged (FR-032, FR-066)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from aeon.domain.errors import ValidationError
from aeon.domain.plan import PlanStep
from aeon.domain.values import JsonMapping, JsonObject
from aeon.llm.exchange import InvalidAnswer
from aeon.llm.extract import ExtractError, extract_json, read_json
from aeon.schema.validators import FieldError
from aeon.supervisor.broken_json import find_values

LISTS: Mapping[str, str] = {"plan": "steps", "subplan": "substeps", "refinement": "actions"}
"""The calls whose answers plan steps, with the field that lists them."""

# The content of these fields is never a tool's name.
_OTHER_FIELDS = frozenset(
    {
        "goal",
        "subplan_goal",
        "step_id",
        "description",
        "dependencies",
        "provides",
        "handoff_to_next",
        "arguments",
    }
    | {
        "justification",
        "target_step_id",
        "addresses_issues",
        "overrides_issues",
        "declined_issues",
        "questions",
    }
)


def find_foreign_tools(call: str, original: str, repaired: JsonMapping) -> tuple[FieldError, ...]:
    """Return errors for the steps of a repaired answer whose tool the original does not name in a
    field that could contain one. If the original is not JSON, tools are named by the quoted values
    of `tool` fields."""
    try:
        found = extract_json(original)
    except ExtractError:
        found = None
    is_read = isinstance(found, Mapping | list)
    named = set(_texts(found)) if is_read else find_values(original, "tool")
    foreign = []
    for pointer, tool in _tools(repaired.get(LISTS[call]), f"/{LISTS[call]}"):
        if tool not in named:
            message = (
                f"the original does not name the tool {tool!r} here; a repair adds "
                "none: null, or the one it had"
            )
            foreign.append(FieldError(pointer, message))
    return tuple(foreign)


def _tools(value: object, pointer: str) -> Iterator[tuple[str, str]]:
    """Yield every tool that a value names, anywhere in it where a step may be, and the place of its
    name."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _tools(item, f"{pointer}/{index}")
    elif isinstance(value, Mapping):
        for name, item in value.items():
            if name == "tool" and isinstance(item, str) and item:
                yield f"{pointer}/tool", item
            elif name not in _OTHER_FIELDS:
                yield from _tools(item, f"{pointer}/{name}")


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value.strip()
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            if name not in _OTHER_FIELDS:
                yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


class NoToolFits(ValidationError):
    """The supervisor found no registered tool that does what a step describes."""

    is_answered = True


def choose_tool(step: PlanStep, answer: JsonMapping, names: Sequence[str]) -> PlanStep:
    """Return the step with the tool of an answer: never an unregistered one, never another meaning
    (FR-032, FR-066)."""
    if answer["tool"] is None:
        raise NoToolFits(f"no registered tool does what step {step.step_id} describes")
    if answer["tool"] not in names:
        raise InvalidAnswer(
            [
                FieldError(
                    "/tool", f"there is no tool {answer['tool']!r}; there are {', '.join(names)}"
                )
            ]
        )
    arguments = read_arguments(answer["arguments"], "/arguments")
    return step.model_copy(update={"tool": answer["tool"], "arguments": arguments})


def read_arguments(text: str | None, pointer: str) -> JsonObject | None:
    """Parse the arguments of a tool, which answers give as JSON text; None for none. Raises
    InvalidAnswer at the pointer."""
    if text is None or not text.strip():
        return None
    try:
        arguments = read_json(text)
    except ExtractError as error:
        raise InvalidAnswer(
            [FieldError(pointer, f"must be JSON text of an object, or null: {error}")]
        ) from error
    if not isinstance(arguments, dict):
        raise InvalidAnswer([FieldError(pointer, "must be JSON text of an object, or null")])
    return arguments
