"""How a repair ends: what is recorded of it, and the error of one that did not succeed. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aeon.domain.errors import ValidationError
from aeon.domain.refinement import RepairRecord
from aeon.domain.request import CallSite, Usage
from aeon.schema.violations import ErrorKind, FieldError, kind_of

_HINTS: Mapping[ErrorKind, str] = {
    "form": "Try a more capable model, or a server that enforces strict JSON schemas.",
    "range": "Its form is right and a value is out of its range, which servers and grammars seldom enforce: try a more "
    "capable model; in a schema of your own, let the description say the range too.",
    "content": "Its form is right and its content is not: try a more capable model.",
}


def unrecoverable(call: str, errors: Sequence[FieldError], attempts: int) -> ValidationError:
    """The error for an answer that is not valid after all its repairs."""
    shown = "; ".join(map(str, errors[:3])) + (f"; and {len(errors) - 3} more" if len(errors) > 3 else "")
    return ValidationError(
        f"{call or 'the answer'}: not valid by its schema after {attempts} repair attempts: {shown}",
        errors=tuple(map(str, errors)),
        hint=_HINTS[kind_of(errors)],
    )


def repair_record(
    call: str, site: CallSite, errors: Sequence[FieldError], attempts: int, usage: Usage, repaired: bool
) -> RepairRecord:
    """The record of a repair made at a place of a run; `errors` are those of the original answer."""
    return RepairRecord(
        call=call,
        cycle=site.cycle,
        pass_number=site.pass_number,
        step_id=site.step_id,
        errors=tuple(map(str, errors)),
        attempts=attempts,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        outcome="repaired" if repaired else "unrecoverable",
    )
