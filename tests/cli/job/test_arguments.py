"""What a bare word on the command line is answered with."""

from __future__ import annotations

import pytest

from tests.cli.conftest import RunAeon


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["hello"], 'If it is the task: task="hello"'),
        (["costs $5"], "If it is the task: task='costs $5'"),
        (["name", "three", "rivers", "mode=core"], 'If it is the task: task="name three rivers"'),
        (["task=name", "three", "rivers"], 'quote it: task="name three rivers"'),
        (["task=name", "three", "rivers", "mode=core"], 'quote it: task="name three rivers"'),
        (["task=x", "limits.max_passes", "=", "3"], "No blanks around =: limits.max_passes=3"),
        (["task=x", "limits.max_passes", "=3"], "No blanks around =: limits.max_passes=3"),
        (["task=x", "limits.max_passes=", "3"], "No blanks around =: limits.max_passes=3"),
        (["task", "=", "name"], 'No blanks around =: task="name"'),
        (["task=x", "mode=core", "rivers"], "A task is given already; to set a key, write key=value."),
        (["doctr"], "Did you mean `aeon doctor`?"),
    ],
)
def test_a_bare_word_is_answered_with_what_was_most_likely_meant(
    aeon: RunAeon, arguments: list[str], hint: str
) -> None:
    ended = aeon(*arguments)
    assert ended.status == 2
    assert hint in ended.err


@pytest.mark.parametrize("empty", ["resume=", "resume= "])
def test_an_empty_resume_is_said_to_be_empty(aeon: RunAeon, empty: str) -> None:
    ended = aeon(empty)
    assert ended.status == 2
    assert "resume= is empty" in ended.err
    assert "no task is given" not in ended.err
