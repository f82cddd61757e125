"""Which of two answers is better, asked blind and in both orders."""

from __future__ import annotations

import pytest

from aeon.convergence.comparison import Candidate, Comparer
from aeon.domain.assessment import Preference, Preferred, settle_comparison
from aeon.supervisor.structured import StructuredCaller
from tests.support.scripted_model import ScriptedModel

EARLIER = Candidate("Tea.")
LATER = Candidate("Tea, and how long it draws.")


def verdict(better: Preference) -> dict[str, str | None]:
    return {"checked": None, "explanation": f"It is {better}.", "better": better}


@pytest.mark.parametrize(
    ("later_second", "later_first", "outcome"),
    [
        ("second", "first", "better"),
        ("first", "second", "worse"),
        ("first", "first", "as_good"),
        ("second", "second", "as_good"),
        ("neither", "neither", "as_good"),
        ("second", "neither", "as_good"),
        ("neither", "second", "as_good"),
    ],
)
def test_only_judgements_that_agree_in_both_orders_decide(
    later_second: Preference, later_first: Preference, outcome: str
) -> None:
    settled = settle_comparison(Preferred(better=later_second), Preferred(better=later_first))
    assert settled.outcome == outcome


def test_both_orders_are_asked_of_the_grader() -> None:
    model = ScriptedModel(comparison=[verdict("second"), verdict("first")])
    comparer = Comparer(StructuredCaller(model))
    later_second, later_first = comparer.questions("make tea", EARLIER, LATER)
    compared = settle_comparison(later_second(), later_first())
    assert compared.outcome == "better"
    assert compared.explanations == (
        "(first: the answer before; second: the changed answer) It is second.",
        "(first: the changed answer; second: the answer before) It is first.",
    )
    assert [request.role for request in model.requests] == ["grader", "grader"]
    first, second = model.prompts("comparison")
    assert first.index("Tea.") < first.index("draws")
    assert second.index("draws") < second.index("Tea.")


def test_the_grader_learns_the_task_and_what_checks_found_and_nothing_of_the_making() -> None:
    model = ScriptedModel()
    checked = Candidate("Tea.", [{"name": "is_hot", "passed": False, "feedback": "It is cold."}])
    Comparer(StructuredCaller(model)).prefer("make tea", checked, LATER)
    (request,) = model.requests
    shown = request.messages[1].content
    assert "make tea" in shown
    assert "It is cold." in shown
    for word in ("earlier", "later", "score", "threshold", "refine"):
        assert word not in shown
