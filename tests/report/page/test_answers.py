"""Answers pass by pass: what changed, where the answer is from, and the pass that was better."""

from __future__ import annotations

import pytest

from aeon.domain.result import AnswerPoint, PassesBought
from aeon.report.diff import compare_texts
from aeon.report.page.answers import (
    find_better_pass,
    find_final_pass,
    view_answers,
    view_first_and_last,
)
from tests.report.diagnosis.builders import a_pass, a_run, assessed


def test_the_first_answer_is_whole_and_later_ones_are_what_changed() -> None:
    run = a_run(
        a_pass(0, answer=" "),
        a_pass(1, answer="Sun & sea."),
        a_pass(2, answer="Sun and sea."),
        a_pass(3, answer="Sun & sea."),
        answer="Sun & sea.",
    )
    first, second, third = view_answers(run.result)
    assert (first.number, first.text, first.is_final) == (1, "Sun &amp; sea.", False)
    assert second.text == "Sun <del>&amp; </del><ins>and </ins>sea."
    assert (second.since, second.removed, second.added) == (1, 1, 1)
    assert (third.same_as, third.text, third.is_final) == (1, "", True)


def test_passes_in_a_row_with_one_answer_are_one() -> None:
    texts = [" ", "A", "A", "A", "B", "A", "A"]
    passes = [a_pass(number, answer=text) for number, text in enumerate(texts)]
    views = view_answers(a_run(*passes, answer="A").result)
    shown = [(one.passes, one.since, one.same_as, one.is_final) for one in views]
    assert shown == [
        ((1, 2, 3), None, None, False),
        ((4,), 3, None, False),
        ((5, 6), None, 1, True),
    ]


def test_lines_far_from_a_change_are_left_out() -> None:
    before = "".join(f"line {number}\n" for number in range(20))
    after = before.replace("line 10\n", "line ten\n")
    assert list(compare_texts(before, after)) == [
        ("same", ""),
        ("gap", "8 lines unchanged"),
        ("same", "line 8\nline 9\n"),
        ("same", "line "),
        ("del", "10\n"),
        ("ins", "ten\n"),
        ("same", "line 11\nline 12\n"),
        ("gap", "7 lines unchanged"),
        ("same", ""),
    ]


def test_texts_that_are_too_long_are_not_compared() -> None:
    (old, _), (new, text) = compare_texts("x" * 150_000, "y" * 150_000)
    assert (old, new) == ("del", "ins")
    assert len(text) < 100_010


def test_the_answer_is_from_the_latest_pass_that_has_its_text() -> None:
    run = a_run(a_pass(1, answer="A"), a_pass(2, answer="A"), a_pass(3, answer="B"), answer="A")
    assert find_final_pass(run.result) == 2
    assert find_final_pass(a_run(a_pass(1), answer="Other").result) is None
    assert find_final_pass(a_run(a_pass(1, answer=" "), answer=" ").result) is None


LOW, HIGH = assessed(0.7), assessed(0.8)


@pytest.mark.parametrize(
    ("best", "passes", "better"),
    [
        (1, (HIGH, LOW), (1, "completeness 0.80 against 0.70")),
        (2, (LOW, HIGH), None),
        (1, (assessed(0.719), LOW), None),
        (1, (assessed(0.8, coherence=0.5), LOW), None),
        (None, (HIGH, LOW), None),
    ],
)
def test_a_pass_was_better_where_it_is_above_in_a_score_and_below_in_none(
    best: int | None, passes: tuple[object, ...], better: tuple[int, str] | None
) -> None:
    made = [a_pass(number, judged) for number, judged in enumerate(passes, 1)]  # type: ignore[arg-type]
    run = a_run(*made, answer="answer 2", patterns={"best_pass": best})
    assert find_better_pass(run.result, run.patterns) == better


def test_no_pass_is_better_with_the_same_answer() -> None:
    run = a_run(
        a_pass(1, HIGH, answer="A"),
        a_pass(2, LOW, answer="A"),
        answer="A",
        patterns={"best_pass": 1},
    )
    assert find_better_pass(run.result, run.patterns) is None


def test_the_first_answer_stands_beside_the_given_one_with_what_went_and_came() -> None:
    run = a_run(
        a_pass(0, answer="Sun & sea."),
        a_pass(1, answer="Sun, sea."),
        a_pass(2, answer="Sun and sea."),
        answer="Sun and sea.",
    )
    point = AnswerPoint(pass_number=0, tokens=1, cost=None, seconds=1.0, checks=None, scores={})
    bought = PassesBought(
        first=point,
        last=point.model_copy(update={"pass_number": 2}),
        later_passes=2,
        later_share=0.5,
        changed=0.3,
        comparisons={},
        last_gain=None,
    )
    result = run.result.model_copy(update={"bought": bought})
    assert view_first_and_last(result) == ("Sun <del>&amp; </del>sea.", "Sun <ins>and </ins>sea.")
    same = result.model_copy(update={"bought": bought.model_copy(update={"changed": 0.0})})
    assert view_first_and_last(same) is None
    assert view_first_and_last(run.result) is None
