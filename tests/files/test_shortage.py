"""Memory, threads, files, disk: what is missing is said, and what helps."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

import pytest

from aeon.domain.errors import StoreFailed
from aeon.files.shortage import Shortage, find_shortage
from aeon.llm.prompts import PromptLibrary
from aeon.llm.schemas import read_schema
from tests.kernel.build import run
from tests.support.scripted_model import ScriptedModel


@pytest.mark.parametrize(
    ("error", "message", "remedy"),
    [
        (MemoryError(), "not enough memory", "ulimit -v"),
        (ImportError("x.so: failed to map segment"), "not enough memory", "ulimit -v"),
        (RuntimeError("can't start new thread"), "no more threads", "ulimit -u"),
        (OSError(errno.EMFILE, "Too many open files"), "too many files are open", "ulimit -n"),
        (OSError(errno.ENOSPC, "No space left"), "no space is left", "Free space"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_shortage_is_told_with_its_remedy(
    error: BaseException, message: str, remedy: str
) -> None:
    wrapped = StoreFailed("cannot be opened")
    wrapped.__cause__ = error
    for one in (error, wrapped):
        found = find_shortage(one)
        assert found is not None
        assert message in found.message
        assert remedy in found.hint


def test_a_full_disk_is_found_behind_an_error_of_sqlite(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "small.sqlite")
    connection.execute("PRAGMA max_page_count = 2")
    connection.execute("CREATE TABLE t (x)")
    with pytest.raises(sqlite3.OperationalError) as raised:
        connection.execute("INSERT INTO t VALUES (zeroblob(100000))")
    connection.close()
    found = find_shortage(raised.value)
    assert found is not None
    assert "no space is left" in found.message


@pytest.mark.parametrize("error", [None, ValueError("no"), OSError(errno.ENOENT, "no file")])
def test_what_is_no_shortage_is_none(error: BaseException | None) -> None:
    assert find_shortage(error) is None


def test_too_many_open_files_are_told_with_their_remedy_while_a_call_is_loaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(path: Path) -> bytes:
        raise OSError(errno.EMFILE, "Too many open files", str(path))

    for place in ("schemas", "prompts"):
        monkeypatch.setattr(f"aeon.llm.{place}.read_file", fail)
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "plan.system.j2").write_text("x")
    loaders = (
        lambda: read_schema(tmp_path / "x.json"),
        lambda: PromptLibrary(tmp_path, "mine").check({"plan": {}}),
    )
    for load in loaders:
        with pytest.raises(Shortage, match="cannot be read: too many files are open") as raised:
            load()
        assert "ulimit -n" in raised.value.hint


def test_a_run_that_ends_by_a_shortage_is_no_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    def starve(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("aeon.execution.threads.Workers.submit", starve)
    outcome = run(ScriptedModel())
    assert outcome.error is not None
    assert outcome.error.type == "Shortage"
    assert "ulimit -u" in outcome.error.hint
