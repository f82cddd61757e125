"""`events.jsonl`: the events of a run, one line each."""

from __future__ import annotations

from pathlib import Path

from aeon.domain.events import Recorded
from aeon.files.jsonl import JsonLines
from aeon.observability.serialize import event_line


class EventLog:
    """A subscriber that writes each event to `path` as it happens.

    A line is `{"sequence", "part", "time", "event", ...}`: the event's number, its time (ISO 8601, UTC), its name in
    snake case and its fields. Sorted by (`sequence`, `part`) the lines of a run depend on its answers alone. Prompts,
    answers and repeated plans are not in it (`cycles.jsonl` and `history.json` hold them), so it grows linearly with
    the run.

    Raises:
        ArtefactError: the file cannot be opened or written.
    """

    def __init__(self, path: Path) -> None:
        self._lines = JsonLines(path)

    def __call__(self, recorded: Recorded) -> None:
        """Write one event."""
        self._lines.write(event_line(recorded))

    def close(self) -> None:
        """Close the file; events that come later are dropped."""
        self._lines.close()
