"""What a bare word on the command line is answered with."""

from __future__ import annotations

import pytest

from tests.cli.conftest import RunAeon


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["hello"], 'task="hello"'),
        (
            ["name", "three", "rivers", "mode=core"],
            'quote all of it, with no blanks around =, as in task="name three rivers"',
        ),
        (["task=name", "three", "rivers"], 'as in task="name three rivers"'),
        (["task=x", "limits.max_passes", "=", "3"], "limits.max_passes: is neither an override"),
        (["doctr"], "Did you mean `aeon doctor`?"),
    ],
)
def test_a_bare_word_is_answered_with_what_was_most_likely_meant(
    aeon: RunAeon, arguments: list[str], hint: str
) -> None:
    ended = aeon(*arguments)
    assert ended.status == 2
    assert hint in ended.err


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        (["doctor", "task"], "aeon ask"),
        (["plan"], "python -m aeon task"),
        (['ttl.base={"}'], "LexerNo"),
    ],
)
def test_no_answer_says_what_does_not_help(aeon: RunAeon, arguments: list[str], wrong: str) -> None:
    ended = aeon(*arguments)
    assert (ended.status, wrong in ended.err) == (2, False)


@pytest.mark.parametrize("empty", ["resume=", "resume= "])
def test_an_empty_resume_is_said_to_be_empty(aeon: RunAeon, empty: str) -> None:
    ended = aeon(empty)
    assert ended.status == 2
    assert "resume= is empty" in ended.err
    assert "no task is given" not in ended.err
