"""What a repaired step is asked for, and how it is read: a registered tool or none, and nothing else changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aeon.domain.errors import ValidationError
from aeon.domain.plan import PlanStep
from aeon.llm.exchange import InvalidAnswer
from aeon.llm.extract import ExtractError, read_json
from aeon.schema.violations import FieldError


class NoToolFits(ValidationError):
    """The supervisor found that none of the registered tools does what a step describes."""


def choose_tool(step: PlanStep, answer: Mapping[str, Any], names: Sequence[str]) -> PlanStep:
    """The step with the tool of an answer: never one that is not registered, never another meaning (FR-032, FR-066)."""
    if answer["tool"] is None:
        raise NoToolFits(f"no registered tool does what step {step.step_id} describes")
    if answer["tool"] not in names:
        raise InvalidAnswer([FieldError("/tool", f"there is no tool {answer['tool']!r}; there are {', '.join(names)}")])
    arguments = read_arguments(answer["arguments"], "/arguments")
    return step.model_copy(update={"tool": answer["tool"], "arguments": arguments})


def read_arguments(text: str | None, pointer: str) -> dict[str, Any] | None:
    """The arguments of a tool, which answers give as JSON text; None for none. Raises InvalidAnswer at the pointer."""
    if text is None or not text.strip():
        return None
    try:
        arguments = read_json(text)
    except ExtractError as error:
        raise InvalidAnswer([FieldError(pointer, f"must be JSON text of an object, or null: {error}")]) from error
    if not isinstance(arguments, dict):
        raise InvalidAnswer([FieldError(pointer, "must be JSON text of an object, or null")])
    return arguments
