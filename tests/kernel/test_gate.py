"""A changed answer is accepted unless a blind comparison finds it worse."""

from __future__ import annotations

from typing import Any

from aeon.domain import events
from aeon.domain.assessment import ComparedWithEarlier, ConvergenceSettings
from aeon.domain.errors import RequestRefused
from aeon.domain.history import Outcome
from aeon.domain.request import LLMRequest
from aeon.plan.settings import RefinementSettings
from tests.kernel.build import advisories, run
from tests.kernel.test_patience import changing
from tests.support.scripted_model import ScriptedModel, assessment

NOT_WORSE = RefinementSettings(accept="not_worse", max_attempts_total=50)


def preferring(*order: str) -> Any:
    """A grader that prefers the answer which stands earlier in `order`, wherever it is shown."""

    def compare(request: LLMRequest) -> dict[str, Any]:
        shown = request.messages[1].content
        best = next(text for text in order if text in shown)
        better = "first" if shown.index(best) < shown.index("The second answer") else "second"
        return {"checked": None, "explanation": f"{best} is right.", "better": better}

    return compare


def gated(model: ScriptedModel, **options: Any) -> Outcome:
    return run(model, **{"ttl": 60, "refinement": NOT_WORSE, **options})


def outcomes(outcome: Outcome) -> list[ComparedWithEarlier | None]:
    compared = [one.evaluation_results.comparison for one in outcome.history.passes[1:]]
    return [one.outcome if one else None for one in compared]


def test_the_first_answer_is_compared_with_nothing() -> None:
    model = changing(1.0)
    assert gated(model).termination_reason == "converged"
    assert "comparison" not in model.calls


def test_a_better_answer_is_accepted_and_judged() -> None:
    model = changing(0.5, 1.0, comparison=preferring("answer 2"))
    outcome = gated(model)
    assert outcomes(outcome) == [None, "better"]
    assert (outcome.termination_reason, outcome.answer) == ("converged", "answer 2")


def test_as_good_an_answer_is_accepted() -> None:
    outcome = gated(changing(0.5, 1.0))
    assert outcomes(outcome) == [None, "as_good"]
    assert outcome.answer == "answer 2"


def test_a_worse_answer_is_set_back_with_its_plan_and_not_judged() -> None:
    model = changing(0.5, 1.0, comparison=preferring("answer 1"))
    outcome = gated(model, convergence=ConvergenceSettings(patience=1))
    assert outcomes(outcome) == [None, "worse"]
    assert outcome.answer == "answer 1"
    assert [step.step_id for step in outcome.state.plan.steps] == ["draft1"]
    assert outcome.termination_reason == "plateau"
    assert model.calls.count("convergence") == 1


def test_the_record_has_what_was_tried_and_why_it_was_not_accepted() -> None:
    model = changing(0.5, comparison=preferring("answer 1"))
    outcome = gated(model, convergence=ConvergenceSettings(patience=1))
    record = outcome.history.passes[2]
    comparison = record.evaluation_results.comparison
    assert comparison is not None
    assert comparison.later == "answer 2"
    assert comparison.explanations == (
        "(first: the answer before; second: the changed answer) answer 1 is right.",
        "(first: the changed answer; second: the answer before) answer 1 is right.",
    )
    assert record.answer == "answer 1"
    assert advisories(outcome, "set_back")


def test_the_planner_is_told_what_was_taken_back() -> None:
    model = changing(0.5, comparison=preferring("answer 1"))
    gated(model, convergence=ConvergenceSettings(patience=2))
    later = model.prompts("refinement")[-1]
    assert "it was taken back" in later
    assert "REPLACE draft1" in later
    assert "It was to do: do draft2" in later
    assert "(first: the answer before; second: the changed answer) answer 1 is right." in later


def test_memory_holds_again_what_it_held() -> None:
    model = changing(0.5, comparison=preferring("answer 1"))
    outcome = gated(model, convergence=ConvergenceSettings(patience=1))
    assert outcome.state.results["draft1"].step_output == "answer 1"
    assert "draft2" not in outcome.state.results


ALWAYS_FIRST = {"checked": None, "explanation": "The first.", "better": "first"}


def comparison_samples(model: ScriptedModel) -> list[int]:
    return [one.sample for one in model.requests if one.call == "comparison"]


def test_judgements_that_contradict_each_other_twice_accept() -> None:
    model = changing(0.5, 1.0, comparison=ALWAYS_FIRST)
    assert outcomes(gated(model)) == [None, "as_good"]
    assert comparison_samples(model) == [0, 0, 1, 1]


def test_where_comparisons_decide_nothing_a_score_that_rises_is_a_gain() -> None:
    model = changing(0.3, 0.5, 0.7, 1.0, comparison=ALWAYS_FIRST)
    outcome = gated(model, convergence=ConvergenceSettings(patience=2))
    assert outcomes(outcome) == [None, "as_good", "as_good", "as_good"]
    assert outcome.termination_reason == "converged"


def test_judgements_that_contradict_each_other_are_asked_again_and_the_second_pair_counts() -> None:
    careful = preferring("answer 1")

    def compare(request: LLMRequest) -> dict[str, Any]:
        return careful(request) if request.sample else ALWAYS_FIRST

    model = changing(0.5, comparison=compare)
    outcome = gated(model, convergence=ConvergenceSettings(patience=1))
    assert outcomes(outcome) == [None, "worse"]
    assert outcome.answer == "answer 1"


def test_a_pair_that_calls_both_answers_as_good_is_not_asked_again() -> None:
    neither = {"checked": None, "explanation": "The same.", "better": "neither"}
    model = changing(0.5, 1.0, comparison=neither)
    assert outcomes(gated(model)) == [None, "as_good"]
    assert comparison_samples(model) == [0, 0]


def test_a_second_pair_that_cannot_be_had_accepts_nothing() -> None:
    def compare(request: LLMRequest) -> dict[str, Any]:
        if request.sample:
            raise RequestRefused("no", status=400)
        return ALWAYS_FIRST

    model = changing(0.5, comparison=compare)
    outcome = gated(model, convergence=ConvergenceSettings(patience=1))
    assert outcomes(outcome) == [None, "unknown"]


def test_a_second_pair_that_cannot_be_paid_leaves_the_first() -> None:
    # Eight cycles up to the second step, two for one pair, two for the evaluation.
    model = changing(0.5, 1.0, comparison=ALWAYS_FIRST)
    outcome = gated(model, ttl=12)
    assert outcomes(outcome) == [None, "as_good"]
    assert outcome.answer == "answer 2"
    assert comparison_samples(model) == [0, 0]


def test_a_comparison_that_cannot_be_had_accepts_nothing() -> None:
    model = changing(0.5, comparison=RequestRefused("no", status=400))
    outcome = gated(model, convergence=ConvergenceSettings(patience=1))
    assert outcomes(outcome) == [None, "unknown"]
    assert outcome.answer == "answer 1"
    assert advisories(outcome, "set_back")


def test_a_comparison_that_cannot_be_paid_accepts_nothing() -> None:
    # Plan and review, then step, review, assessment and refinement, then the second step.
    outcome = gated(changing(0.5), ttl=8)
    assert outcome.answer == "answer 1"
    assert outcome.termination_reason == "ttl_expired"


def test_the_comparison_is_an_event() -> None:
    seen: list[events.Recorded] = []
    gated(changing(0.5, 1.0), seen=seen)
    (compared,) = [one.event for one in seen if isinstance(one.event, events.AnswerCompared)]
    assert (compared.pass_number, compared.comparison.outcome) == (2, "as_good")


def test_without_the_gate_nothing_is_compared() -> None:
    model = changing(0.5, 1.0)
    run(model, ttl=60)
    assert "comparison" not in model.calls


def test_a_close_judgement_is_made_again_and_the_median_counts() -> None:
    model = changing(0.94, 0.97, 0.93)
    outcome = run(model, ttl=60, convergence=ConvergenceSettings(margin=0.02, patience=1))
    first = outcome.history.passes[1].evaluation_results.convergence
    assert first is not None
    assert first.scores.completeness_score == 0.94
    assert first.spread["completeness"] == 0.04
    samples = [one.sample for one in model.requests if one.call == "convergence"]
    assert samples[:3] == [0, 1, 2]


def test_a_rival_answer_is_compared_with_that_of_a_single_call() -> None:
    model = ScriptedModel(comparison=preferring("Another answer."))
    outcome = run(model, mode="single", base_ttl=25, rival="Another answer.")
    assert outcomes(outcome) == ["better"]
    assert model.calls == ["direct", "comparison", "comparison"]
    assert outcome.answer == "The whole answer."


def test_an_answer_that_was_accepted_and_not_judged_is_not_compared_again() -> None:
    model = changing(comparison=preferring("answer 2"))
    model._answers["convergence"] = [assessment(0.5), "no JSON", assessment(1.0)]
    outcome = gated(model, convergence=ConvergenceSettings(max_unavailable=3))
    asked = [prompt for prompt in model.prompts("comparison") if "answer 1" in prompt]
    assert len(asked) == 2
    assert outcomes(outcome)[:2] == [None, "better"]
