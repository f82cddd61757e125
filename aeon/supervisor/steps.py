"""What a repaired step is asked for, and how it is read: a registered tool or none, and nothing else changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aeon.domain.errors import ValidationError
from aeon.domain.plan import PlanStep
from aeon.llm.exchange import InvalidAnswer
from aeon.llm.extract import ExtractError, read_json
from aeon.schema.violations import FieldError


def choose_tool(step: PlanStep, answer: Mapping[str, Any], names: Sequence[str]) -> PlanStep:
    """The step with the tool of an answer: never one that is not registered, never another meaning (FR-032, FR-066)."""
    if answer["tool"] is None:
        raise NoToolFits(f"no registered tool does what step {step.step_id} describes")
    if answer["tool"] not in names:
        raise InvalidAnswer([FieldError("/tool", f"there is no tool {answer['tool']!r}; there are {', '.join(names)}")])
    text = answer["arguments"] or ""
    try:
        arguments = read_json(text) if text.strip() else None
    except ExtractError as error:
        raise InvalidAnswer([FieldError("/arguments", f"must be JSON text of an object, or null: {error}")]) from error
    if arguments is not None and not isinstance(arguments, dict):
        raise InvalidAnswer([FieldError("/arguments", "must be JSON text of an object, or null")])
    return step.model_copy(update={"tool": answer["tool"], "arguments": arguments})


class NoToolFits(ValidationError):
    """The supervisor found that none of the registered tools does what a step describes."""
