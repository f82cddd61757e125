"""Who of those that sent requests in batches still waits for them."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aeon.llm.openai.batches import journal as batches_journal
from aeon.llm.openai.batches.journal import BatchJournal

HERE = socket.gethostname()
TOLD = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="the system tells little of its processes"
)


@pytest.fixture
def other() -> Iterator[subprocess.Popen[str]]:
    """Another process, which has said who it is as an owner."""
    code = "from aeon.llm.openai.batches import journal as j; print(j._ME, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as it:
        yield it
        it.kill()


def is_free(tmp_path: Path, owner: str) -> bool:
    """Whether a request of an owner can be taken over."""
    journal = BatchJournal(tmp_path / "batches.sqlite", "place")
    journal.forget(["id"])
    journal.begin("round", [("id", "digest")])
    journal._file.execute("UPDATE requests SET owner = ?", (owner,))
    found = journal.claim("digest")
    journal.close()
    return found is not None


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_what_a_process_waits_for_is_its_own(tmp_path: Path, other: subprocess.Popen[str]) -> None:
    assert not is_free(tmp_path, said(other))


@TOLD
def test_what_a_killed_process_waited_for_is_free_before_its_parent_has_looked(
    tmp_path: Path, other: subprocess.Popen[str]
) -> None:
    owner = said(other)
    other.kill()
    os.waitid(
        os.P_PID, other.pid, os.WEXITED | os.WNOWAIT
    )  # dead, and still in the table of processes
    assert is_free(tmp_path, owner)


@TOLD
def test_the_next_process_of_the_same_number_is_another(
    tmp_path: Path, other: subprocess.Popen[str]
) -> None:
    host, pid, begun, rest = said(other).split(":")
    machine, _, ticks = begun.rpartition(" ")
    for earlier in (f"{machine} {int(ticks) - 1}", f"before-the-restart {ticks}"):
        assert is_free(tmp_path, ":".join((host, pid, earlier, rest)))


@pytest.mark.parametrize(
    "owner",
    ["", "x", f"{HERE}:1:x", f"elsewhere:{os.getppid()}:x:y", f"{HERE}:{os.getpid()}:x:y"],
    ids=["nobody", "no number", "no beginning", "elsewhere", "another beginning"],
)
def test_nobody_waits_on_another_machine_or_where_an_owner_cannot_be_read(
    tmp_path: Path, owner: str
) -> None:
    assert is_free(tmp_path, owner)


def test_a_process_of_somebody_else_is_alive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(pid: int, signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    begun = batches_journal._read_begin(os.getppid())
    assert not is_free(tmp_path, f"{HERE}:{os.getppid()}:{begun}:x")


def test_the_end_of_a_round_forgets_what_no_other_waits_for(
    tmp_path: Path, other: subprocess.Popen[str]
) -> None:
    journal = BatchJournal(tmp_path / "batches.sqlite", "place")
    journal.begin("round", [("mine", "a"), ("theirs", "b"), ("nobody's", "c")])
    journal._file.execute("UPDATE requests SET owner = ? WHERE id = 'theirs'", (said(other),))
    journal.release(["nobody's"])
    journal.end("round")
    assert journal._file.execute("SELECT id FROM requests").fetchall() == [("theirs",)]
    journal.close()
