import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from aeon.domain.errors import ConfigError, RateLimited, StopRequested, StoreFailed, StoreMiss
from aeon.domain.request import Usage
from aeon.store.models import Entry, StoreRequest
from aeon.store.opening import check_store, open_session, open_source
from aeon.store.session import Session
from aeon.store.settings import StoreSettings
from aeon.store.sqlite_store import SqliteStore
from tests.store.entries import asked, entry

Opened = Callable[..., Session]


@pytest.fixture
def opened() -> Iterator[Opened]:
    """Sessions that are closed with the test."""
    sessions: list[Session] = []

    def open_one(mode: str, directory: Path | None = None, **more: Any) -> Session:
        given = {name: more.pop(name) for name in ("parents", "warn") if name in more}
        session = open_session(StoreSettings(mode=mode, **more), directory=directory, **given)
        sessions.append(session)
        return session

    yield open_one
    for session in sessions:
        session.close()


class Model:
    """Counts what it is asked."""

    def __init__(self, *texts: str) -> None:
        self.texts, self.asked = list(texts or ["an answer"]), 0

    def __call__(self) -> dict[str, Any]:
        self.asked += 1
        text = self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]
        return {
            "text": text,
            "model": "m",
            "usage": {"input_tokens": 10, "output_tokens": 2, "requests": 1},
        }


def never() -> dict[str, Any]:
    raise AssertionError("it was asked")


def kept(path: Path) -> list[Entry]:
    source = open_source(path)
    try:
        return list(source.entries())
    finally:
        source.close()


def texts(path: Path) -> list[str]:
    return [answer.answer["text"] for answer in kept(path)]


def test_an_answer_is_kept_in_the_directory_of_the_run_before_it_is_used(
    tmp_path: Path, opened: Opened
) -> None:
    session = opened("record", tmp_path)
    assert session.answer(asked(), Model())["text"] == "an answer"
    assert texts(tmp_path) == ["an answer"]
    assert session.saved == {}


def test_who_keeps_answers_elsewhere_is_given_each_before_it_is_used_and_may_end_the_run(
    tmp_path: Path,
) -> None:
    given: list[Entry] = []

    def keep(entry: Entry, _: StoreFailed | None) -> None:
        given.append(entry)
        if len(given) == 2:
            raise StopRequested("nobody wants it")

    session = open_session(StoreSettings(mode="record"), directory=tmp_path, keep=keep)
    with closing(session):
        session.answer(asked(), Model())
        assert [entry.answer["text"] for entry in given] == texts(tmp_path) == ["an answer"]
        with pytest.raises(StopRequested):
            session.answer(asked(call="step"), Model())


def test_recording_looks_nothing_up_in_what_it_records_to(tmp_path: Path, opened: Opened) -> None:
    model = Model()
    for _ in range(2):
        opened("record", tmp_path).answer(asked(), model)
    assert model.asked == 2


def test_without_a_directory_answers_are_kept_where_the_path_says_or_nowhere(
    tmp_path: Path, opened: Opened
) -> None:
    opened("record", path=tmp_path / "mine.sqlite").answer(asked(), Model())
    opened("record").answer(asked(), Model())
    assert texts(tmp_path / "mine.sqlite") == ["an answer"]
    assert [file.name for file in tmp_path.iterdir() if file.suffix == ".sqlite"] == ["mine.sqlite"]


def test_what_fails_is_not_kept(tmp_path: Path, opened: Opened) -> None:
    def failing() -> dict[str, Any]:
        raise RateLimited("slow down")

    session = opened("record", tmp_path)
    with pytest.raises(RateLimited):
        session.answer(asked(), failing)
    assert kept(tmp_path) == []


def test_what_reaches_a_replay_alone_is_asked_again_by_a_resumed_run(
    tmp_path: Path, opened: Opened
) -> None:
    model = Model("failed", "whole")

    def of_its_moment(answer: dict[str, Any]) -> Any:
        return "replay" if answer["text"] == "failed" else "anywhere"

    opened("record", tmp_path / "a").answer(asked(), model, policy=of_its_moment)
    replayed = opened("replay", path=tmp_path / "a").answer(asked(), never, policy=of_its_moment)
    parent = open_source(tmp_path / "a")
    resumed = opened("record", tmp_path / "b", parents=[parent]).answer(
        asked(), model, policy=of_its_moment
    )
    assert (replayed["text"], resumed["text"]) == ("failed", "whole")
    assert texts(tmp_path / "b") == ["whole"]
    parent.close()


def test_off_keeps_nothing_and_asks_every_time(tmp_path: Path, opened: Opened) -> None:
    session, model = opened("off", tmp_path), Model()
    for _ in range(2):
        session.answer(asked(), model)
    assert model.asked == 2
    assert list(tmp_path.iterdir()) == []


def test_what_the_parent_was_told_is_not_asked_again_and_is_counted(
    tmp_path: Path, opened: Opened
) -> None:
    opened("record", tmp_path / "a").answer(asked(), Model())
    parent = open_source(tmp_path / "a")
    session = opened("record", tmp_path / "b", parents=[parent])
    assert session.answer(asked(), never)["text"] == "an answer"
    assert session.answer(asked("new"), Model("new"))["text"] == "new"
    usage = Usage(input_tokens=10, output_tokens=2, requests=1)
    assert (session.saved, session.saved_usage) == ({"model": 1}, {"m": usage})
    parent.close()


def test_what_came_from_a_parent_is_kept_with_its_time_so_that_the_parent_may_go(
    tmp_path: Path, opened: Opened
) -> None:
    store = SqliteStore(tmp_path / "store.sqlite")
    store.put(entry())
    opened("record", tmp_path / "b", parents=[store]).answer(asked(), never)
    store.close()
    assert kept(tmp_path / "b") == [entry()]


def test_a_parent_answers_only_what_was_asked_at_the_same_place(
    tmp_path: Path, opened: Opened
) -> None:
    store = SqliteStore(tmp_path / "store.sqlite")
    store.put(entry())
    model = Model()
    opened("record", tmp_path / "b", parents=[store]).answer(asked(pass_number=2), model)
    assert model.asked == 1
    store.close()


def test_equal_requests_from_one_place_are_told_apart_by_their_number(
    tmp_path: Path, opened: Opened
) -> None:
    session, model = opened("record", tmp_path), Model("first", "second", "third")
    assert [session.answer(asked(), model)["text"] for _ in range(3)] == [
        "first",
        "second",
        "third",
    ]
    replayed = opened("replay", path=tmp_path)
    assert [replayed.answer(asked(), never)["text"] for _ in range(3)] == [
        "first",
        "second",
        "third",
    ]
    with pytest.raises(StoreMiss, match=r"equal request number 4"):
        replayed.answer(asked(), never)


def test_equal_requests_of_steps_at_the_same_time_never_swap(
    tmp_path: Path, opened: Opened
) -> None:
    names = [f"s{number}" for number in range(12)]

    def together(session: Session, ask: Callable[[str], dict[str, Any]]) -> dict[str, str]:
        found: dict[str, str] = {}
        start = threading.Barrier(len(names))

        def one(name: str) -> None:
            start.wait()
            found[name] = session.answer(asked("the same", step=name), lambda: ask(name))["text"]

        threads = [threading.Thread(target=one, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    expected = {name: f"of {name}" for name in names}
    assert together(opened("record", tmp_path), lambda name: {"text": f"of {name}"}) == expected
    assert together(opened("replay", path=tmp_path), lambda _: never()) == expected


def test_a_cache_answers_whatever_place_asks_and_whichever_run(
    tmp_path: Path, opened: Opened
) -> None:
    shared, model = tmp_path / "shared.sqlite", Model()
    opened("cache", tmp_path / "a", path=shared).answer(asked(), model)
    session = opened("cache", tmp_path / "b", path=shared)
    answers = [session.answer(asked(pass_number=n, step=f"s{n}"), never)["text"] for n in range(3)]
    assert answers == ["an answer"] * 3
    assert model.asked == 1
    assert session.saved["model"] == 3
    assert len(kept(tmp_path / "b")) == 3
    assert len(kept(shared)) == 1


def test_a_cache_prefers_the_answer_of_the_same_place(tmp_path: Path, opened: Opened) -> None:
    store = SqliteStore(tmp_path / "shared.sqlite")
    for number in (1, 2):
        store.put(entry(text=f"in pass {number}", pass_number=number))
    store.close()
    session = opened("cache", path=tmp_path / "shared.sqlite")
    assert session.answer(asked(pass_number=2), never)["text"] == "in pass 2"
    assert session.answer(asked(pass_number=3), never)["text"] == "in pass 1"


@pytest.mark.parametrize("kind", ["tool", "person"])
def test_a_cache_asks_tools_and_people_again_but_a_resumed_run_does_not(
    tmp_path: Path, opened: Opened, kind: Any
) -> None:
    shared, tool = tmp_path / "shared.sqlite", Model()
    for name in "ab":
        opened("cache", tmp_path / name, path=shared).answer(asked(kind=kind), tool)
    assert tool.asked == 2
    assert kept(shared) == []
    parent = open_source(tmp_path / "b")
    resumed = opened("cache", tmp_path / "c", path=shared, parents=[parent])
    assert resumed.answer(asked(kind=kind), never)["text"] == "an answer"
    assert resumed.saved == {kind: 1}
    parent.close()


def test_a_cache_neither_gives_nor_keeps_what_is_of_one_run_alone(
    tmp_path: Path, opened: Opened
) -> None:
    shared, model = tmp_path / "shared.sqlite", Model("cut off", "whole")

    def whole(answer: dict[str, Any]) -> Any:
        return "anywhere" if answer["text"] == "whole" else "here"

    for directory in ("a", "b", "c"):
        opened("cache", tmp_path / directory, path=shared).answer(asked(), model, policy=whole)
    assert model.asked == 2
    assert [texts(tmp_path / name) for name in ("a", "b", "c")] == [
        ["cut off"],
        ["whole"],
        ["whole"],
    ]
    assert texts(shared) == ["whole"]


def test_the_shared_store_is_in_the_working_directory_when_no_path_is_given(
    tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    opened("cache").answer(asked(), Model())
    assert texts(tmp_path / ".aeon" / "store.sqlite") == ["an answer"]


def test_a_replay_asks_nothing_and_changes_nothing(tmp_path: Path, opened: Opened) -> None:
    opened("record", tmp_path).answer(asked(), Model())
    replayed = opened("replay", tmp_path / "b", path=tmp_path)
    assert replayed.replays
    assert replayed.answer(asked(), never)["text"] == "an answer"
    assert not (tmp_path / "b").exists()
    with pytest.raises(StoreMiss):
        replayed.answer(asked("what nobody asked"), never)


def test_a_replay_needs_something_to_replay(tmp_path: Path, opened: Opened) -> None:
    with pytest.raises(StoreFailed, match="does not say what to replay"):
        opened("replay")
    for path, said in (
        (None, "does not say what to replay"),
        (tmp_path, r"holds no store\.sqlite"),
        (tmp_path / "gone.aeon", r"holds no gone\.aeon"),
    ):
        with pytest.raises(ConfigError, match=said) as raised:
            check_store(StoreSettings(mode="replay", path=path))
        assert raised.value.hint


@pytest.mark.parametrize("name", ["notes.sqlite", "recording.aeon"])
def test_a_shared_store_that_is_none_is_refused_before_anything_is_made(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text("no database at all, but a text of some length\n" * 30)
    with pytest.raises(ConfigError, match="not a database"):
        check_store(StoreSettings(mode="cache", path=tmp_path / name))
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_the_shared_store_of_no_path_is_checked_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check_store(StoreSettings(mode="cache"))
    Path(".aeon/store.sqlite").write_text("no database at all, but a text of some length\n" * 30)
    with pytest.raises(ConfigError, match="not a database"):
        check_store(StoreSettings(mode="cache"))


def test_a_shared_store_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be opened") as raised:
        check_store(StoreSettings(mode="cache", path=tmp_path / "file" / "store.sqlite"))
    assert "writable" in raised.value.hint


def test_a_shared_store_that_somebody_keeps_locked_is_waited_for_and_then_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aeon.store.sqlite_store.BUSY_SECONDS", 0.2)
    settings = StoreSettings(mode="cache", path=tmp_path / "shared.sqlite")
    check_store(settings)
    other = sqlite3.connect(tmp_path / "shared.sqlite", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(ConfigError, match="locked") as raised:
        check_store(settings)
    assert "another program" in raised.value.hint
    other.close()


@pytest.mark.parametrize("path", ["a", "a/store.sqlite"])
def test_a_recorded_run_is_no_shared_store(tmp_path: Path, opened: Opened, path: str) -> None:
    opened("record", tmp_path / "a").answer(asked(), Model())
    (tmp_path / "a" / "run.json").write_text("{}")
    with pytest.raises(ConfigError, match="is a recorded run") as raised:
        check_store(StoreSettings(mode="cache", path=tmp_path / path))
    assert "resume=" in raised.value.hint


@pytest.mark.parametrize(
    "usage", [{"input_tokens": "x"}, True, [1], {"requests": None}, {"output_tokens": 1.5}]
)
def test_usage_that_is_none_is_told_as_a_store_that_cannot_be_read(
    tmp_path: Path, opened: Opened, usage: object
) -> None:
    store = SqliteStore(tmp_path / "store.sqlite")
    store.put(entry().model_copy(update={"answer": {"text": "an answer", "usage": usage}}))
    store.close()
    with pytest.raises(StoreFailed, match="cannot be read: usage"):
        opened("replay", path=tmp_path).answer(asked(), never)


def test_a_store_without_a_run_can_be_a_shared_one_by_its_directory(
    tmp_path: Path, opened: Opened
) -> None:
    opened("record", tmp_path / "a").answer(asked(), Model())
    assert (
        opened("cache", path=tmp_path / "a").answer(asked(pass_number=7), never)["text"]
        == "an answer"
    )


def test_by_order_a_replay_answers_what_is_asked_otherwise_and_counts_it(
    tmp_path: Path, opened: Opened
) -> None:
    recording = opened("record", tmp_path)
    for name in ("a", "b", "c"):
        recording.answer(asked(f"do {name}", step=name), Model(f"of {name}"))
    session = opened("replay", path=tmp_path, match="order")
    said = [
        session.answer(question, never)["text"]
        for question in (
            asked("do b well", step="b"),
            asked("do a", step="a"),
            asked("do something new", step="new"),
        )
    ]
    assert said == ["of b", "of a", "of c"]
    assert session.differing == 2
    with pytest.raises(StoreMiss):
        session.answer(asked(step="d"), never)


class Failing(SqliteStore):
    """A store on a disk that fails when it is told to."""

    broken = False

    def put(self, entry: Entry) -> None:
        if self.broken:
            raise StoreFailed("the disk is full")
        super().put(entry)

    def get(self, key: str) -> Entry | None:
        if self.broken:
            raise StoreFailed("the disk is gone")
        return super().get(key)


def test_an_answer_that_cannot_be_kept_ends_the_run(
    tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aeon.store.sqlite_store.SqliteStore", Failing)
    session = opened("record", tmp_path)
    session.answer(asked("before"), Model())
    monkeypatch.setattr(Failing, "broken", True)
    with pytest.raises(StoreFailed, match=r"disk is full: the run stops.*store\.on_error=go_on"):
        session.answer(asked("then"), Model())
    assert texts(tmp_path) == ["an answer"]


def test_a_run_folder_that_is_gone_ends_the_run(tmp_path: Path, opened: Opened) -> None:
    session = opened("record", tmp_path / "run")
    session.answer(asked("before"), Model())
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(StoreFailed, match=r"store\.sqlite cannot be written: it is gone"):
        session.answer(asked("then"), Model())


def test_an_answer_that_cannot_be_kept_is_used_if_that_is_wanted_and_that_is_said_once(
    tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aeon.store.sqlite_store.SqliteStore", Failing)
    said: list[str] = []
    session = opened("record", tmp_path, warn=said.append, on_error="go_on")
    session.answer(asked("before"), Model())
    monkeypatch.setattr(Failing, "broken", True)
    for number in range(3):
        assert session.answer(asked(str(number)), Model("paid for"))["text"] == "paid for"
    monkeypatch.setattr(Failing, "broken", False)
    session.answer(asked("after"), Model())
    assert said == ["the disk is full; answers may have to be paid for again; the run continues"]
    assert texts(tmp_path) == ["an answer", "an answer"]


def test_who_keeps_answers_is_told_which_the_runs_own_store_could_not_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aeon.store.sqlite_store.SqliteStore", Failing)
    said: list[str] = []

    def keep(entry: Entry, failure: StoreFailed | None) -> None:
        said.append(f"{entry.request.path.call}: {failure}")

    with closing(
        open_session(StoreSettings(mode="record"), directory=tmp_path, keep=keep, warn=said.append)
    ) as session:
        session.answer(asked(call="plan"), Model())
        monkeypatch.setattr(Failing, "broken", True)
        session.answer(asked(call="step"), Model())
    assert said == ["plan: None", "step: the disk is full"]


def test_a_shared_store_that_cannot_be_read_is_left_alone_and_that_is_said_once(
    tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aeon.store.sqlite_store.SqliteStore", Failing)
    said: list[str] = []
    session = opened("cache", path=tmp_path / "shared.sqlite", warn=said.append)
    monkeypatch.setattr(Failing, "broken", True)
    assert [session.answer(asked(str(n)), Model("paid for"))["text"] for n in range(3)] == [
        "paid for"
    ] * 3
    assert said[0].startswith("the disk is gone; this store answers nothing more")
    assert len(said) == 2


def test_a_parent_that_cannot_be_read_ends_the_run_rather_than_pay_again(
    tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = Failing(tmp_path / "store.sqlite")
    monkeypatch.setattr(Failing, "broken", True)
    with pytest.raises(StoreFailed, match="the disk is gone"):
        opened("record", tmp_path / "b", parents=[parent]).answer(asked(), never)
    parent.close()


def test_what_cannot_be_opened_is_told_before_anything_is_asked(
    tmp_path: Path, opened: Opened
) -> None:
    (tmp_path / "store.sqlite").write_text("no database at all, but a text of some length\n" * 30)
    with pytest.raises(StoreFailed, match="not a database"):
        opened("record", tmp_path)
    with pytest.raises(StoreFailed, match="not a database"):
        opened("cache", tmp_path, path=tmp_path / "shared.sqlite")


def test_an_answer_that_comes_after_the_run_is_given_to_whoever_asked_and_not_kept(
    tmp_path: Path, opened: Opened
) -> None:
    said: list[str] = []
    session = opened("record", tmp_path, warn=said.append)
    session.close()
    assert session.answer(asked(), Model())["text"] == "an answer"
    assert said == []


def test_a_request_is_the_same_whatever_the_order_of_its_keys() -> None:
    one = StoreRequest(
        kind="tool", path=asked().path, body={"name": "t", "arguments": {"a": 1, "b": 2}}
    )
    other = StoreRequest(
        kind="tool", path=asked().path, body={"arguments": {"b": 2, "a": 1}, "name": "t"}
    )
    assert (one.key, one.content) == (other.key, other.content)
