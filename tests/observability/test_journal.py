from contextlib import closing
from pathlib import Path

import pytest

from aeon.domain.errors import ArtefactError
from aeon.files.jsonl import JsonLines
from aeon.observability.event_log import EventLog
from tests.observability.support import realistic_run


def test_a_journal_that_cannot_be_written_is_given_up_and_that_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, attempts, kept = [], [], JsonLines.write

    def write(self: JsonLines, value: dict[str, object]) -> None:
        attempts.append(value)
        if len(attempts) == 3:
            raise ArtefactError("events.jsonl cannot be written: No space left on device")
        kept(self, value)

    monkeypatch.setattr(JsonLines, "write", write)
    journal = EventLog(tmp_path / "events.jsonl", told.append)
    for recorded in realistic_run():
        journal(recorded)
    journal.close()
    assert len(attempts) == 3
    assert len((tmp_path / "events.jsonl").read_bytes().splitlines()) == 2
    assert len(told) == 1
    assert "No space left" in told[0]


def test_a_defect_of_a_journal_is_not_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(self: JsonLines, value: dict[str, object]) -> None:
        raise ValueError("defect")

    monkeypatch.setattr(JsonLines, "write", write)
    with (
        closing(EventLog(tmp_path / "events.jsonl", print)) as journal,
        pytest.raises(ValueError, match="defect"),
    ):
        journal(realistic_run()[0])
