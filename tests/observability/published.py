"""The published JSON Schemas (Draft 2020-12) of what a run writes, in `schemas/artefacts/`.

They follow from the models: after a change, `python -m tests.observability.published` writes them anew.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal, Union, get_type_hints

from pydantic import TypeAdapter, create_model
from pydantic.json_schema import GenerateJsonSchema

from aeon.domain.events import CallAnswered, Event
from aeon.domain.history import ExecutionHistory, ExecutionPass
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.result import RunResult
from aeon.domain.values import Value
from aeon.files.resources import resource_root
from aeon.interaction.models import AnswerList, QuestionList
from aeon.observability.cycle_log import CycleRecord
from aeon.observability.event_log import LINE_FIELDS, NAMES, event_types
from aeon.observability.plan_delta import PlanChange, StepsDifference

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_ABOUT = {
    "result": "result.json: what a run gave back. Its history is in history.json.",
    "history": "history.json: everything a run did, pass by pass, a plan once and then what changed.",
    "events": "A line of events.jsonl: something that happened in a run.",
    "questions": "questions.json: what a run has left to a person who answers later.",
    "answers": "answers.json: what was answered.",
    "cycles": "A line of cycles.jsonl: an LLM cycle of a run, a tool step that took none, or the plan of a batch.",
}
_WRITTEN_PASS = f"""{ExecutionPass.__doc__}

    A `plan_state` or `steps` with `kind` "delta" is written as its difference from the plan written last before it:
    the latest `plan_state`, with the steps of the latest `steps` of that kind after it.
    """


class _AsWritten(GenerateJsonSchema):
    """Schemas of what is written: every field is required, and defaults are omitted."""

    def field_is_required(self, field: Any, total: bool) -> bool:
        return total

    def default_schema(self, schema: Any) -> dict[str, Any]:
        return self.generate_inner(schema["schema"])

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def line_model(kind: type[Event]) -> type[Value]:
    """The model of an event's line: its number and time, its name, and its fields but those that are left out."""
    hints = get_type_hints(kind)
    fields: dict[str, Any] = {
        "sequence": int,
        "part": int,
        "time": str,
        "event": Literal[NAMES[kind]],
        "run_id": str,
    }
    fields |= {name: hints[name] for name in LINE_FIELDS[kind]} | (
        {"characters": int} if kind is CallAnswered else {}
    )
    required: dict[str, Any] = {name: (of_type, ...) for name, of_type in fields.items()}
    return create_model(kind.__name__, __base__=Value, __doc__=kind.__doc__, **required)


def build_schemas() -> dict[str, dict[str, Any]]:
    """The schema of each artefact, by the stem of its file in `schemas/artefacts/`."""
    plan_state, steps = (
        (Plan | PlanChange | None, ...),
        (tuple[PlanStep, ...] | StepsDifference, ...),
    )
    written = _derived(ExecutionPass, _WRITTEN_PASS, plan_state=plan_state, steps=steps)
    models = {
        "result": _derived(RunResult, RunResult.__doc__ or "", leave_out={"history"}),
        "history": _derived(
            ExecutionHistory, ExecutionHistory.__doc__ or "", passes=(tuple[written, ...], ...)
        ),  # type: ignore[valid-type]
        "events": Union[tuple(line_model(kind) for kind in event_types())],  # noqa: UP007
        "cycles": CycleRecord,
        "questions": QuestionList,
        "answers": AnswerList,
    }
    return {
        name: {
            "$schema": _DIALECT,
            **TypeAdapter(model).json_schema(mode="serialization", schema_generator=_AsWritten),
            "description": _ABOUT[name],
        }
        for name, model in models.items()
    }


def _derived(
    model: type[Value], description: str, *, leave_out: Collection[str] = (), **fields: Any
) -> Any:
    types = {
        name: (field.annotation, field)
        for name, field in model.model_fields.items()
        if name not in leave_out
    }
    return create_model(model.__name__, __base__=Value, __doc__=description, **{**types, **fields})


def write(directory: Path) -> None:
    """Write every published schema to a directory, as `<name>.json`."""
    for name, schema in build_schemas().items():
        text = json.dumps(schema, ensure_ascii=False, indent=2)
        (directory / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    write(resource_root() / "schemas" / "artefacts")
