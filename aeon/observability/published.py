"""The published JSON Schemas (Draft 2020-12) of what a run writes, in `schemas/artefacts/`.

They follow from the models: after a change, `python -m aeon.observability.published` writes them anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Union

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from aeon.domain.result import RunResult
from aeon.files.resources import resource_root
from aeon.observability.cycle_record import CycleRecord
from aeon.observability.event_log import event_types, line_model
from aeon.observability.history_file import HistoryFile, derived_model

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_ABOUT = {
    "result": "result.json: what a run gave back. Its history is in history.json.",
    "history": "history.json: everything a run did, pass by pass, a plan once and then what changed.",
    "events": "A line of events.jsonl: something that happened in a run.",
    "cycles": "A line of cycles.jsonl: an LLM cycle of a run, a tool step that took none, or the plan of a batch.",
}


class _AsWritten(GenerateJsonSchema):
    """Schemas of what is written: every field is required, and defaults are omitted."""

    def field_is_required(self, field: Any, total: bool) -> bool:  # noqa: ARG002
        return total

    def default_schema(self, schema: Any) -> dict[str, Any]:
        return self.generate_inner(schema["schema"])

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False


def build_schemas() -> dict[str, dict[str, Any]]:
    """The schema of each artefact, by the stem of its file in `schemas/artefacts/`."""
    lines = [line_model(kind) for kind in event_types()]
    schemas = {
        "result": _schema(derived_model(RunResult, RunResult.__doc__ or "", leave_out={"history"})),
        "history": _schema(HistoryFile),
        "events": _schema(Union[tuple(lines)]),  # noqa: UP007
        "cycles": _schema(CycleRecord),
    }
    return {name: {"$schema": _DIALECT, **schema, "description": _ABOUT[name]} for name, schema in schemas.items()}


def write(directory: Path) -> None:
    """Write every published schema to a directory, as `<name>.json`."""
    for name, schema in build_schemas().items():
        (directory / f"{name}.json").write_text(text(schema), encoding="utf-8")


def text(schema: dict[str, Any]) -> str:
    """A schema as the text of its file."""
    return json.dumps(schema, ensure_ascii=False, indent=2) + "\n"


def _schema(kind: Any) -> dict[str, Any]:
    return TypeAdapter(kind).json_schema(mode="serialization", schema_generator=_AsWritten)


if __name__ == "__main__":
    write(resource_root() / "schemas" / "artefacts")
