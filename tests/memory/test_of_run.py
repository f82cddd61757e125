"""A memory as one run sees it."""

from __future__ import annotations

from typing import Any

import pytest

from aeon.memory.run_memory import GuardedMemory, InMemory, RunMemory

HELD = {"guest": "Ada", "step/a/output": "of an earlier run"}


def test_what_was_there_is_seen_but_no_steps_of_an_earlier_run() -> None:
    memory = RunMemory(InMemory(), HELD)
    assert memory.search("") == memory.notes() == {"guest": "Ada"}
    assert memory.read("step/a/output") is None
    assert memory.search("step/") == memory.search("st") == {}


def test_what_the_run_writes_is_seen_and_kept() -> None:
    kept = InMemory()
    memory = RunMemory(kept, HELD)
    memory.write("step/a/output", "of this run")
    memory.write("guest", "Grace")
    assert memory.read("step/a/output") == "of this run"
    assert memory.notes() == {"guest": "Grace"}
    assert list(memory.search("")) == ["guest", "step/a/output"]
    assert kept.search("") == memory.search("")


def test_what_others_write_meanwhile_is_not_seen() -> None:
    shared = InMemory()
    memory = RunMemory(shared, shared.search(""))
    shared.write("guest", "Grace")
    assert memory.notes() == {}


def test_a_memory_that_fails_loses_the_run_nothing() -> None:
    class Broken(InMemory):
        def write(self, key: str, value: object) -> None:
            raise OSError("disk full")

    memory = RunMemory(Broken())
    with pytest.raises(OSError, match="disk full"):
        memory.write("guest", "Ada")
    assert memory.read("guest") == "Ada"


def test_handoffs_are_given_by_step() -> None:
    memory = RunMemory()
    memory.write("step/a/output", "the output")
    memory.write("step/a/handoff", "mind the units")
    memory.write("step/b/c/handoff", "the last part is open")
    memory.write("step/d/handoff", None)
    assert memory.handoffs() == {"a": "mind the units", "b/c": "the last part is open"}


@pytest.mark.parametrize("found", [7, ["a"], {1: "a"}])
def test_a_search_that_gives_no_entries_is_reported_and_finds_nothing(found: Any) -> None:
    class Careless(InMemory):
        def search(self, prefix: str) -> Any:
            return found

    reported: list[str] = []
    assert GuardedMemory(Careless(), reported.append).search("") == {}
    assert "memory could not be searched: search returned" in reported[0]
