import pytest

from aeon.domain import events as e
from aeon.domain.errors import ArtefactError
from aeon.observability.sinks import BestEffortJournal
from tests.observability.support import realistic_run


class FullFrom:
    """A journal on a disk that is full from some event on; `closing` too, if it has something left to write."""

    def __init__(self, number: int, *, closing: bool = False) -> None:
        self.noted: list[e.Recorded] = []
        self.attempts, self.closed = 0, 0
        self._number, self._closing = number, closing

    def __call__(self, recorded: e.Recorded) -> None:
        self.attempts += 1
        if self.attempts >= self._number:
            raise ArtefactError("events.jsonl cannot be written: No space left on device")
        self.noted.append(recorded)

    def close(self) -> None:
        self.closed += 1
        if self._closing:
            raise ArtefactError("events.jsonl cannot be written: No space left on device")


def test_a_journal_that_cannot_be_written_is_given_up_and_that_is_told_once() -> None:
    told: list[str] = []
    journal = FullFrom(3, closing=True)
    kept = BestEffortJournal(journal, told.append)
    for recorded in realistic_run():
        kept(recorded)
    kept.close()
    assert (len(journal.noted), journal.attempts, journal.closed) == (2, 3, 1)
    assert len(told) == 1
    assert "No space left" in told[0]


def test_a_journal_that_fails_only_when_it_is_closed_is_told_too() -> None:
    told: list[str] = []
    BestEffortJournal(FullFrom(99, closing=True), told.append).close()
    assert len(told) == 1


def test_a_defect_of_a_journal_is_not_hidden() -> None:
    class Broken(FullFrom):
        def __call__(self, recorded: e.Recorded) -> None:
            raise ValueError("defect")

    with pytest.raises(ValueError, match="defect"):
        BestEffortJournal(Broken(99), lambda _: None)(realistic_run()[0])
