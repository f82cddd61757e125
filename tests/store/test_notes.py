"""Notes on requests under way: whose they are, and how long they are found."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from aeon.store.lookup import ByKey
from aeon.store.models import Kind
from aeon.store.notes import NOTES, RequestNotes
from aeon.store.session import Session
from aeon.store.sqlite_store import SqliteStore
from tests.store.entries import asked

ABOUT = {"endpoint": "a server"}
NOTE = {"response": "resp_1"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "first.sqlite")) as one:
        yield one


@pytest.fixture
def later(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "later.sqlite")) as one:
        yield one


def see_notes(session: Session, kind: Kind) -> RequestNotes | None:
    """The notes on a request of a kind while it is answered."""
    seen: list[RequestNotes | None] = []

    def ask() -> dict[str, Any]:
        seen.append(NOTES.get())
        return {}

    session.answer(asked(kind=kind), ask)
    return seen[0]


def test_notes_are_taken_on_requests_to_models_alone(store: SqliteStore) -> None:
    session = Session(own=store)
    assert see_notes(session, "model") is not None
    kinds: tuple[Kind, ...] = ("tool", "check", "person", "memory")
    assert [see_notes(session, kind) for kind in kinds] == [None] * len(kinds)


@pytest.mark.parametrize("kind", ["model", "tool"])
def test_what_a_request_asks_without_a_store_takes_no_notes_on_it(
    store: SqliteStore, kind: Kind
) -> None:
    seen: list[RequestNotes | None] = []

    def ask() -> dict[str, Any]:
        seen.append(see_notes(Session(), "model"))
        return {}

    Session(own=store).answer(asked(kind=kind), ask)
    assert seen == [None]


def test_a_note_is_found_until_the_request_writes_its_own(
    store: SqliteStore, later: SqliteStore
) -> None:
    RequestNotes(Session(own=store), asked()).write(ABOUT, NOTE)
    notes = RequestNotes(Session([ByKey(store)], own=later), asked())
    assert (notes.find(ABOUT), notes.find(ABOUT)) == (NOTE, NOTE)
    notes.write(ABOUT, NOTE)
    assert notes.find(ABOUT) is None


def test_a_note_that_a_later_run_withdrew_is_not_found(
    store: SqliteStore, later: SqliteStore
) -> None:
    RequestNotes(Session(own=store), asked()).write(ABOUT, NOTE)
    notes = RequestNotes(Session([ByKey(store)], own=later), asked())
    notes.write(ABOUT, NOTE)
    resumed = Session([ByKey(later), ByKey(store)])
    assert RequestNotes(resumed, asked()).find(ABOUT) == NOTE
    notes.clear()
    assert RequestNotes(resumed, asked()).find(ABOUT) is None
