"""What the passes bought, in one honest sentence."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon
from aeon.domain.errors import RequestRefused
from aeon.domain.request import LLMRequest
from aeon.domain.result import AnswerPoint, PassesBought
from aeon.report.bought import describe_bought
from aeon.report.diff import measure_change
from tests.kernel.test_patience import changing
from tests.support.scripted_model import ScriptedModel, assessment, clear, plan, planned, profile


def point(pass_number: int, checks: str | None = None, score: float | None = None) -> AnswerPoint:
    scores = {} if score is None else {"completeness": score, "coherence": 1.0}
    return AnswerPoint(pass_number=pass_number, checks=checks, scores=scores)


def bought(first: AnswerPoint, last: AnswerPoint, **fields: Any) -> PassesBought:
    given = {"later_passes": 3, "later_share": 0.61, "changed": 0.14, "last_gain": 4}
    given["last_judged"] = first.pass_number + int(fields.get("later_passes", 3))
    return PassesBought(first=first, last=last, **{**given, **fields})


@pytest.mark.parametrize(
    ("of", "sentence"),
    [
        (
            bought(point(1), point(1), later_passes=0, later_share=0.0, changed=0.0, last_gain=1),
            "The first whole answer, of pass 1, was the last.",
        ),
        (
            bought(point(1, "2 of 3", 0.8), point(4, "3 of 3", 0.95)),
            "What came after the evaluation of pass 1 took 61% of the tokens; the answer changed by 14%; "
            "checks 2 of 3, then 3 of 3; least score 0.80, then 0.95.",
        ),
        (
            bought(point(1), point(2), later_passes=1, changed=0.0, last_gain=2),
            "What came after the evaluation of pass 1 took 61% of the tokens; the answer stayed.",
        ),
        (
            bought(point(1), point(1), last_gain=1, comparisons={"worse": 2}),
            "What came after the evaluation of pass 1 took 61% of the tokens; the answer is still that of pass 1; "
            "2 changed answers were found worse, and set back; nothing was gained after pass 1.",
        ),
        (
            bought(point(1), point(3), comparisons={"better": 1, "unknown": 1}, last_gain=3),
            "What came after the evaluation of pass 1 took 61% of the tokens; "
            "the answer is that of pass 3, and changed by 14%; "
            "1 changed answer was found better; "
            "1 changed answer could not be compared, and was set back; "
            "nothing was gained after pass 3.",
        ),
        (
            bought(point(1, score=0.8), point(3), last_gain=1, last_judged=1),
            "What came after the evaluation of pass 1 took 61% of the tokens; "
            "the answer is that of pass 3, and changed by 14%; no pass after pass 1 was judged.",
        ),
        (
            bought(point(1, score=0.8), point(3), last_gain=1, last_judged=2),
            "What came after the evaluation of pass 1 took 61% of the tokens; "
            "the answer is that of pass 3, and changed by 14%; "
            "nothing was gained after pass 1; no pass after pass 2 was judged.",
        ),
        (
            bought(point(1, "2 of 3"), point(4, score=0.9), last_gain=None, last_judged=None),
            "What came after the evaluation of pass 1 took 61% of the tokens; the answer changed by 14%.",
        ),
    ],
)
def test_the_sentence_names_what_was_measured_and_nothing_else(
    of: PassesBought, sentence: str
) -> None:
    assert describe_bought(of) == sentence


@pytest.mark.parametrize(
    ("before", "after", "share"),
    [
        ("a b c d", "a b c d", 0.0),
        ("a b c d", "a b c e", 0.25),
        ("a b", "c d", 1.0),
        ("", "a", 1.0),
    ],
)
def test_the_change_of_an_answer_is_the_share_of_words_that_went_or_came(
    before: str, after: str, share: float
) -> None:
    assert measure_change(before, after) == share


def run(model: ScriptedModel, *overrides: str) -> Any:
    with Aeon.from_config(overrides, adapter=model, environ={}) as aeon:
        return aeon.run("make tea")


def test_a_result_has_the_first_whole_answer_beside_the_last() -> None:
    result = run(changing(0.5, 1.0))
    first, last = result.bought.first, result.bought.last
    assert (first.pass_number, last.pass_number) == (1, 2)
    assert first.scores["completeness"] == 0.5
    assert last.scores["completeness"] == 1.0
    assert result.bought.later_passes == 1
    assert result.bought.changed == 0.5
    assert first.seconds <= last.seconds
    assert result.bought.last_gain == 2


def test_the_refinement_of_a_pass_is_paid_for_the_next_one() -> None:
    result = run(changing(0.5, 1.0))
    refinement_and_its_review = 2 * 15
    until_then = result.usage.by_pass[0].total_tokens + result.usage.by_pass[1].total_tokens
    assert result.bought.first.tokens == until_then - refinement_and_its_review
    assert result.bought.last.tokens == result.usage.total.total_tokens
    share = 1 - result.bought.first.tokens / result.usage.total.total_tokens
    assert result.bought.later_share == pytest.approx(share)


def test_passes_before_the_first_whole_answer_are_its_cost() -> None:
    chain = plan("a", planned("b", "a"))
    model = ScriptedModel(plan=chain, step=clear("done"))
    result = run(model, "convergence.when=plan_done")
    assert result.bought.first.pass_number == 2
    assert result.bought.later_passes == 0


def test_of_passes_that_nobody_judged_it_is_not_said_that_they_gained_nothing() -> None:
    model = changing(0.5)
    model._answers["convergence"] = [assessment(0.5), *[RequestRefused("no", status=400)] * 2]
    result = run(model)
    assert result.termination_reason == "failed"
    assert (result.bought.last_gain, result.bought.last_judged) == (1, 1)
    sentence = describe_bought(result.bought)
    assert "no pass after pass 1 was judged." in sentence
    assert "gained" not in sentence


def test_the_seconds_begin_with_the_run() -> None:
    def infer(_: LLMRequest) -> dict[str, Any]:
        time.sleep(0.3)
        return profile()

    assert run(ScriptedModel(task_profile=infer)).bought.first.seconds > 0.3


def test_an_answer_that_is_not_whole_has_bought_nothing_yet() -> None:
    chain = plan("a", planned("b", "a"))
    assert run(ScriptedModel(plan=chain, step=clear("done"))).bought is None


def test_one_whole_answer_is_one_row_of_the_page(tmp_path: Path) -> None:
    with Aeon.from_config(["provider=simulated", "mode=auto"], environ={}) as aeon:
        result = aeon.run("name a river", directory=tmp_path / "run")
    assert result.bought is not None
    assert result.bought.first.pass_number == result.bought.last.pass_number
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "<td>the first, and given</td>" in page
    assert "<td>the one given</td>" not in page
