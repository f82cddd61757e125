"""`events.jsonl`: the events of a run, one line each."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from aeon.domain import events
from aeon.domain.errors import ArtefactError
from aeon.domain.events import (
    CallAnswered,
    CycleStarted,
    Event,
    Recorded,
    Refined,
    RunFinished,
    RunStarted,
    StepUnfolded,
)
from aeon.domain.values import JsonObject
from aeon.files.jsonl import JsonLines

LEFT_OUT: dict[type[Event], frozenset[str]] = {
    CycleStarted: frozenset({"plan"}),
    CallAnswered: frozenset({"request", "text"}),
    Refined: frozenset({"plan"}),
    StepUnfolded: frozenset({"plan"}),
    RunFinished: frozenset({"answer"}),
}


def event_types() -> tuple[type[Event], ...]:
    """Return every kind of event, in the order in which `aeon.domain.events` defines them."""
    named = (value for value in vars(events).values() if isinstance(value, type))
    return tuple(kind for kind in named if issubclass(kind, Event) and kind is not Event)


def event_name(kind: type[Event]) -> str:
    """Return the name of an event in a line: `PassStarted` becomes `pass_started`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


NAMES = {kind: event_name(kind) for kind in event_types()}
LINE_FIELDS = {
    kind: tuple(
        field.name for field in dataclasses.fields(kind) if field.name not in LEFT_OUT.get(kind, ())
    )
    for kind in event_types()
}


def event_line(recorded: Recorded, run_id: str) -> JsonObject:
    """Convert an event of a run to the JSON object of its line. A step's `incoming_context`, which
    repeats other steps' outputs, becomes null, so that the file grows with the run and not with its
    square."""
    event = recorded.event
    line: JsonObject = {
        "sequence": recorded.sequence,
        "part": recorded.part,
        "time": recorded.time,
        "event": NAMES[type(event)],
        "run_id": run_id,
    }
    for name in LINE_FIELDS[type(event)]:
        value = getattr(event, name)
        if isinstance(value, BaseModel):
            line[name] = value.model_dump(mode="json", warnings="none")
        else:
            line[name] = to_jsonable_python(value)
    if isinstance(event, CallAnswered):
        line["characters"] = len(event.text)
    _drop_contexts(line)
    return line


def _drop_contexts(value: Any) -> None:
    if type(value) is dict:
        if "incoming_context" in value and "step_index" in value:
            value["incoming_context"] = None
        value = value.values()
    for item in value:
        if type(item) in (dict, list):
            _drop_contexts(item)


class Journal:
    """A file of lines that never fails a run: after the first error it writes nothing more and
    calls `warn`. Raises ArtefactError if the file cannot be opened."""

    def __init__(self, path: Path, warn: Callable[[str], None]) -> None:
        self._lines = JsonLines(path)
        self._warn = warn
        self._failed = False

    def write(self, line: JsonObject) -> None:
        """Write a line, unless an earlier one failed."""
        try:
            if not self._failed:
                self._lines.write(line)
        except ArtefactError as error:
            self._failed = True
            self._warn(f"{error.message}; this journal ends here, the run does not")

    def close(self) -> None:
        """Close the file; later lines are dropped."""
        self._lines.close()


class EventLog(Journal):
    """A subscriber that writes each event as it happens, without prompts, answers and repeated
    plans. Sorted by (`sequence`, `part`), the lines of a run depend only on its answers."""

    _run_id = ""

    def __call__(self, recorded: Recorded) -> None:
        """Write one event."""
        if isinstance(recorded.event, RunStarted):
            self._run_id = recorded.event.run_id
        self.write(event_line(recorded, self._run_id))
