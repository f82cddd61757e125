"""What is kept of rows that run on other nodes. Nothing here needs Ray."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from aeon.batch.ray.answers import Answers, write_entry
from aeon.batch.records import Running
from aeon.domain.errors import ArtefactError
from aeon.domain.values import OwnObject
from aeon.store.opening import open_source
from tests.store.entries import entry


def opened(folder: Path) -> Answers:
    answers = Answers(folder)
    answers.open()
    return answers


def put(answers: Answers, name: str, attempt: int, text: str, origin: str | None = None) -> bool:
    one = entry(text=text)
    return answers.put(name, attempt, one.request.key, write_entry(one), origin)


def test_what_a_killed_batch_was_answered_is_a_run_to_go_on_with(tmp_path: Path) -> None:
    folder = tmp_path / "out.running"
    answers = opened(folder)
    assert put(answers, "seven", 0, "one", "{}")
    answers._file.close()  # as a kill leaves it
    with closing(opened(folder)):
        directory, cut_off = Running(folder).directories("seven")
        assert (directory, cut_off) == (folder / "seven-1", folder / "seven-0")
        with closing(open_source(folder / "seven-0")) as source:
            found = source.get(entry(text="one").request.key)
            assert found is not None
            assert found.answer["text"] == "one"
    assert not (tmp_path / "out.answers").exists()


def test_a_store_of_ones_own_gets_what_a_killed_batch_was_answered(tmp_path: Path) -> None:
    backend = OwnObject(factory="tests.support.dict_store:DictStore")
    answers = Answers(tmp_path / "out.running", backend)
    answers.open()
    assert put(answers, "seven", 0, "one", "{}")
    answers.begin_again("seven", 1)
    answers.close()
    directory = tmp_path / "out.running" / "seven-0"
    assert not (directory / "store.sqlite").exists()
    with closing(open_source(directory, backend)) as source:
        assert source.get(entry(text="one").request.key) is not None


def test_an_attempt_that_was_given_up_can_keep_nothing_more(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "out.running")) as answers:
        assert put(answers, "a", 0, "one", "{}")
        answers.begin_again("a", 1)
        assert not put(answers, "a", 0, "two")
        assert put(answers, "a", 1, "two", "{}")
        answers.forget("a")
    assert [path.name for path in tmp_path.iterdir()] == ["out.running"]


def test_answers_of_rows_that_go_on_are_left_and_those_of_rows_that_are_over_are_not(
    tmp_path: Path,
) -> None:
    with closing(opened(tmp_path / "out.running")) as answers:
        for name in ("a", "12"):
            put(answers, name, 0, "one", "{}")
        answers.forget("a")
    with closing(sqlite3.connect(tmp_path / "out.answers")) as file:
        assert file.execute("SELECT DISTINCT row FROM answers").fetchall() == [("12",)]


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out.answers").write_text("no database " * 100)
    with pytest.raises(ArtefactError, match=r"out\.answers cannot be written"):
        opened(tmp_path / "out.running")
