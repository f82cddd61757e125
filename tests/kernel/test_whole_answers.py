"""Judged when there is something to judge: `evaluation.when=answer_complete`."""

from __future__ import annotations

from aeon.domain.history import Outcome
from tests.kernel.build import phases, run
from tests.support.scripted_model import ScriptedModel, blocked, clear, plan, planned

CHAIN = plan("a", planned("b", "a"))
SHARED = plan("a", planned("b", "a"), planned("c", "a"), planned("d", "b", "c"))


def whole(model: ScriptedModel) -> Outcome:
    return run(model, ttl=40, evaluates_whole_answers=True)


def after_plan(model: ScriptedModel) -> list[str]:
    calls = model.calls
    return calls[calls.index("step:a") :]


def test_a_pass_whose_answer_is_still_to_come_is_not_judged() -> None:
    model = ScriptedModel(plan=CHAIN, step=clear("done"))
    outcome = whole(model)
    assert after_plan(model) == ["step:a", "step:b", "semantic_validation", "convergence"]
    assert outcome.termination_reason == "converged"
    assert phases(outcome, 1)[:2] == ["EXECUTE", "EVALUATE skipped"]
    first = outcome.history.passes[1].evaluation_results.convergence
    assert first is not None
    assert first.reason_codes == ("answer_awaited",)


def test_outputs_that_several_steps_use_are_reviewed_before_these_work() -> None:
    model = ScriptedModel(plan=SHARED, step=clear("done"))
    whole(model)
    assert after_plan(model) == [
        *("step:a", "semantic_validation", "step:b", "step:c"),
        *("step:d", "semantic_validation", "convergence"),
    ]
    assert "done" in model.prompts("semantic_validation")[1]


def test_a_pass_in_which_something_went_wrong_is_judged() -> None:
    model = ScriptedModel(plan=CHAIN, step=[blocked("a", "no cups"), clear("done")])
    whole(model)
    assert after_plan(model)[:3] == ["step:a", "semantic_validation", "convergence"]


def test_by_default_every_pass_is_judged() -> None:
    model = ScriptedModel(plan=CHAIN, step=clear("done"))
    run(model, ttl=40)
    assert after_plan(model)[:3] == ["step:a", "semantic_validation", "convergence"]


def test_a_pass_that_is_not_judged_uses_no_cycle_for_it() -> None:
    model = ScriptedModel(plan=CHAIN, step=clear("done"))
    outcome = whole(model)
    assert outcome.history.passes[1].ttl_used == 1
