"""A custom supervisor: its repairs must satisfy the same schema and tools as every repair."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeVar

from aeon.domain import events
from aeon.domain.errors import ComponentFailed
from aeon.domain.refinement import RepairRecord
from aeon.domain.request import LLMRequest
from aeon.domain.values import JsonMapping
from aeon.llm.exchange import InvalidAnswer, check_answer
from aeon.schema.validators import FieldError, SchemaValidator
from aeon.supervisor.contract import Contract

T = TypeVar("T")
REPAIR_JSON = Contract("supervisor", "repair_json", (dict, list, str))
_SHOWN = 3


class Repairs(Protocol):
    """Repairs JSON. It also gets `errors`, `call`, `tools` and `context` if it names them."""

    def repair_json(self, malformed: str, schema: JsonMapping) -> Any:
        """Return the value that `malformed` was meant to be, or its JSON text. Raises
        ValidationError if that is impossible."""


def repair_with(
    supervisor: Repairs,
    request: LLMRequest,
    validator: SchemaValidator,
    read: Callable[[Any], T],
    errors: Sequence[FieldError],
    emit: events.Emit,
) -> T:
    """Repair an answer with a custom supervisor, using the variables of the repair request. Raises
    ComponentFailed for a value that is invalid by the schema, and Aeon's own errors that the
    supervisor raises."""
    about = request.variables
    site = request.site
    is_repaired = False
    try:
        value = REPAIR_JSON.call(
            supervisor,
            about["original"],
            request.schema,
            errors=errors,
            call=about["call"],
            tools=about["tools"],
            context=about["context"],
        )
        text = (
            value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        )
        repaired = check_answer(text, validator, read)
        is_repaired = True
        return repaired
    except InvalidAnswer as invalid:
        shown = "; ".join(map(str, invalid.errors[:_SHOWN]))
        name = f"supervisor: {type(supervisor).__name__}.repair_json"
        raise ComponentFailed(
            f"{name} returned a value that is invalid by the schema: {shown}"
        ) from invalid
    finally:
        outcome: Literal["repaired", "unrecoverable"] = (
            "repaired" if is_repaired else "unrecoverable"
        )
        record = RepairRecord(
            call=about["call"],
            cycle=site.cycle,
            pass_number=site.pass_number,
            step_id=site.step_id,
            errors=tuple(map(str, errors)),
            attempts=1,
            outcome=outcome,
        )
        emit(events.RepairFinished(site=site, record=record), site)
