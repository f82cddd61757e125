"""What prompts show of a memory."""

from __future__ import annotations

from aeon.memory.run_memory import ShownMemory, cut_entries

ENTRIES = {"note": "milk", "count": 2, "step/a/output": "all"}


def test_everything_is_shown_by_key_but_the_results_of_steps() -> None:
    shown = [{"key": "count", "value": 2}, {"key": "note", "value": "milk"}]
    assert ShownMemory(lambda: ENTRIES).variables() == {"memory": shown, "memory_left_out": 0}


def test_entries_that_are_given_are_shown_instead_of_those_there_are() -> None:
    given = ShownMemory(lambda: ENTRIES).variables({"b": 1, "step/b/output": "x"})
    assert given == {"memory": [{"key": "b", "value": 1}], "memory_left_out": 0}
    assert ShownMemory(lambda: ENTRIES).variables({}) == ShownMemory().variables()


def test_what_does_not_fit_is_cut_and_counted() -> None:
    entries = {"a": "xxxx", "b": [1, 2, 3], "c": "y", "d": "z"}
    assert cut_entries(entries, 100) == (
        [{"key": key, "value": value} for key, value in entries.items()],
        0,
    )
    beginning = {"key": "b", "value": "[1,", "characters_left_out": 4}
    assert cut_entries(entries, 9) == ([{"key": "a", "value": "xxxx"}, beginning], 2)
    assert cut_entries(entries, 5) == ([{"key": "a", "value": "xxxx"}], 3)
    assert cut_entries(entries, 0) == ([], 4)
