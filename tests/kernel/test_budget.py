"""The budget: what is charged, when it ends, and what is given back (RULES 2; FR-006, FR-062 to FR-064)."""

from __future__ import annotations

import pytest

from aeon.adaptive.heuristics import AdaptiveDepth
from aeon.domain.errors import Truncated
from aeon.domain.events import CycleStarted
from aeon.execution.event_stream import EventStream
from aeon.execution.forecast import batch_size
from aeon.kernel.budget import TTLExpired
from aeon.kernel.control import RunControl
from aeon.kernel.run import OpenRun
from aeon.kernel.settings import RunOptions
from aeon.llm.stack.limits import LimitSettings
from tests.kernel.build import phases, run, statuses
from tests.support.scripted_model import (
    ScriptedModel,
    assessment,
    blocked,
    clear,
    issue,
    modify,
    plan,
    planned,
    profile,
    refinement,
    report,
    unfinished,
)

TWO_LAYERS = plan("a", planned("b", "a"))


def opened(allocated: int) -> OpenRun:
    run = OpenRun(EventStream(), RunControl(), RunOptions())
    run.update(ttl_allocated=allocated)
    return run


def test_a_charge_takes_one_and_an_empty_budget_takes_none():
    run = opened(1)
    run.charge(1)
    assert (run.state.ttl_remaining, run.state.ttl_used) == (0, 1)
    with pytest.raises(TTLExpired):
        run.charge(1)


def test_a_call_of_several_cycles_is_charged_as_one_or_not_at_all():
    run = opened(4)
    run.charge(3)
    assert (run.state.ttl_remaining, run.state.ttl_used) == (1, 3)
    with pytest.raises(TTLExpired):
        run.charge(3)


def test_a_batch_leaves_the_cycles_of_an_assessment_by_several_judges():
    assert batch_size(10, assessment_cycles=3) == 6


@pytest.mark.parametrize(("remaining", "size"), [(1, 1), (2, 1), (3, 1), (4, 2), (10, 8)])
def test_a_batch_leaves_two_cycles_to_evaluate_it(remaining, size):
    assert batch_size(remaining) == size


def test_every_structured_call_costs_one_cycle_but_the_first_profile():
    model = ScriptedModel(plan=TWO_LAYERS, convergence=[unfinished(), assessment()])
    seen = []
    outcome = run(model, seen=seen)
    cycles = [r.event.site.cycle for r in seen if isinstance(r.event, CycleStarted)]
    assert cycles == [0, *range(1, len(model.requests))]
    assert outcome.state.ttl_used == len(model.requests) - 1
    remaining = [r.event.ttl_remaining for r in seen if isinstance(r.event, CycleStarted)]
    assert remaining[0] is None
    assert remaining[1:] == [outcome.state.ttl_allocated - used for used in cycles[1:]]


def test_repairs_are_part_of_their_cycle():
    good = unfinished()
    model = ScriptedModel(convergence=["not json", assessment()], repair=[good])
    outcome = run(model)
    used = outcome.state.ttl_used
    assert model.calls.count("repair") == 1
    assert used == len([c for c in model.calls if c != "repair"]) - 1


def test_expiry_after_an_assessment_is_at_the_phase_boundary_and_completes_the_pass():
    # plan, validate, refine, a, validate, converge
    outcome = run(ScriptedModel(plan=TWO_LAYERS, convergence=unfinished(0.4)), ttl=6)
    response = outcome.ttl_expiration
    assert (
        outcome.termination_reason
        == response.termination_reason
        == response.result_type
        == "ttl_expired"
    )
    assert response.converged is False
    assert response.expiration_point == "phase_boundary"
    assert response.latest_pass_result == {
        "pass_number": 1,
        "answer": "output of a",
        "outputs": {"a": "output of a"},
    }
    assert response.partial_result is None
    metadata = response.ttl_expired_metadata
    assert (metadata.completeness_score, metadata.coherence_score, metadata.pass_number) == (
        0.4,
        1.0,
        1,
    )
    assert metadata.reason_codes == ("incomplete",)
    assert outcome.history.passes[1].complete
    assert outcome.answer == "output of a"


@pytest.mark.parametrize("ttl", [4, 5])
def test_expiry_before_any_assessment_is_mid_phase_with_a_partial_result_and_no_scores(ttl):
    outcome = run(ScriptedModel(plan=TWO_LAYERS, convergence=unfinished()), ttl=ttl)
    response = outcome.ttl_expiration
    assert response.expiration_point == "mid_phase"
    assert response.latest_pass_result is None
    assert response.partial_result == {
        "pass_number": 1,
        "answer": "output of a",
        "outputs": {"a": "output of a"},
        "incomplete_steps": ["b"],
    }
    assert response.ttl_expired_metadata.completeness_score is None
    assert not outcome.history.passes[1].complete
    assert phases(outcome, 1)[-1] == "EVALUATE abandoned"


@pytest.mark.parametrize("ttl", [1, 2])
def test_expiry_before_execution_gives_an_empty_partial_result(ttl):
    outcome = run(ScriptedModel(plan=TWO_LAYERS), ttl=ttl)
    assert outcome.ttl_expiration.expiration_point == "mid_phase"
    assert outcome.ttl_expiration.partial_result["outputs"] == {}
    assert outcome.answer == ""
    assert statuses(outcome) == {"a": "pending", "b": "pending"}


def test_a_budget_of_just_the_planning_expires_before_the_first_pass():
    outcome = run(ScriptedModel(plan=TWO_LAYERS), ttl=3)
    assert outcome.ttl_expiration.expiration_point == "mid_phase"
    assert [p.pass_number for p in outcome.history.passes] == [0]


def test_expiry_in_a_later_pass_gives_back_the_latest_completed_one():
    # 6 cycles to the end of pass 1, then b; the evaluation of pass 2 is not affordable
    outcome = run(ScriptedModel(plan=TWO_LAYERS, convergence=unfinished(0.4)), ttl=7)
    response = outcome.ttl_expiration
    assert response.expiration_point == "mid_phase"
    assert response.latest_pass_result["pass_number"] == 1
    assert response.partial_result is None
    assert outcome.answer == "output of a"
    assert statuses(outcome)["b"] == "complete"


def test_steps_beyond_the_budget_stay_pending_and_are_marked_incomplete():
    # 3 for planning, 2 kept for evaluation: one step of three can start
    outcome = run(
        ScriptedModel(plan=plan("a", "b", "c"), semantic_validation=[report(), Truncated("x")]),
        ttl=5,
    )
    assert statuses(outcome) == {"a": "complete", "b": "pending", "c": "pending"}
    incomplete = [step.step_id for step in outcome.state.plan.steps if step.incomplete]
    assert incomplete == ["b", "c"]
    assert outcome.ttl_expiration.partial_result["incomplete_steps"] == incomplete


def test_an_unaffordable_fragment_validation_refuses_the_changes():
    # plan, validate, a, validate, converge, refine: nothing is left to validate the change
    model = ScriptedModel(
        plan=plan("a"),
        step=blocked(),
        refinement=[refinement(modify("a"))],
        convergence=unfinished(0.4),
    )
    outcome = run(model, ttl=6)
    (refused,) = outcome.state.refused
    assert refused.reason == "the change could not be validated: the budget does not allow it"
    assert refused.for_budget
    assert statuses(outcome) == {"a": "invalid"}
    assert_expired_after_pass_1(outcome)


def test_a_last_unit_spent_on_a_refinement_that_changes_nothing_expires_the_budget():
    model = ScriptedModel(plan=plan("a"), step=blocked(), convergence=unfinished(0.4))
    outcome = run(model, ttl=6)
    assert outcome.history.passes[1].refinement.accepted == ()
    assert_expired_after_pass_1(outcome)


def assert_expired_after_pass_1(outcome):
    assert outcome.termination_reason == "ttl_expired"
    assert outcome.state.ttl_remaining == 0
    response = outcome.ttl_expiration
    assert response.expiration_point == "phase_boundary"
    assert response.latest_pass_result["pass_number"] == 1
    metadata = response.ttl_expired_metadata
    assert (metadata.completeness_score, metadata.pass_number) == (0.4, 1)


def test_a_spent_budget_comes_before_the_last_pass_allowed():
    outcome = run(
        ScriptedModel(convergence=unfinished(0.4)), ttl=5, limits=LimitSettings(max_passes=1)
    )
    assert_expired_after_pass_1(outcome)


def test_one_unit_more_and_the_same_run_is_stalled():
    model = ScriptedModel(plan=plan("a"), step=blocked(), convergence=unfinished())
    outcome = run(model, ttl=7)
    assert (outcome.termination_reason, outcome.ttl_expiration) == ("stalled", None)


@pytest.mark.parametrize(("ttl", "updates"), [(9, 0), (10, 1)])
def test_an_unaffordable_profile_update_is_not_made(ttl, updates):
    # 3 for planning, a, b, validate, converge, refine and validate the change: 9
    model = ScriptedModel(
        plan=plan("a", "b"),
        step=lambda r: blocked() if r.site.step_id == "a" else clear("done"),
        semantic_validation=[report(), report(issue()), report()],
        refinement=[refinement(), refinement(modify("a"))],
        convergence=unfinished(),
    )
    outcome = run(model, ttl=ttl)
    assert model.calls.count("task_profile") == 1 + updates
    assert outcome.termination_reason == "ttl_expired"


def test_the_scores_are_those_of_the_latest_assessed_pass():
    model = ScriptedModel(
        plan=TWO_LAYERS,
        convergence=[unfinished(0.4), Truncated("503")],
        semantic_validation=report(),
    )
    # 6 cycles to the end of pass 1, then b, validate, a convergence that is not available, and one unit is left
    outcome = run(model, ttl=10)
    assert outcome.history.final_convergence.reason_codes == ("evaluation_unavailable",)
    response = outcome.ttl_expiration
    assert response.latest_pass_result["pass_number"] == 2
    metadata = response.ttl_expired_metadata
    assert (metadata.completeness_score, metadata.pass_number) == (0.4, 1)


@pytest.mark.parametrize(
    "limits",
    [
        {"ttl": 20},
        {"ttl_limit": 20},
        {"limits": LimitSettings(max_llm_calls=20)},
        {"ttl": 50, "ttl_limit": 20, "limits": LimitSettings(max_llm_calls=70)},
    ],
)
def test_the_least_of_all_limits_holds_for_every_allocation(limits):
    model = ScriptedModel(
        task_profile=[profile(1), profile(5)],
        semantic_validation=[report(), report(issue()), report()],
        step=[blocked(), clear("done")],
        refinement=[refinement(modify("only"))],
        convergence=[unfinished(), assessment()],
    )
    (transition,) = run(model, **{"ttl": 100, **limits}).history.profile_transitions
    assert (transition.ttl_before, transition.ttl_after) == (18, 20)
    deepest = run(ScriptedModel(task_profile=profile(5)), **{"ttl": 100, **limits})
    assert deepest.state.ttl_allocated == 20


@pytest.mark.parametrize(
    "options", [{"ttl_limit": 5}, {"ttl": 5}, {"limits": LimitSettings(max_llm_calls=5)}]
)
def test_core_mode_keeps_to_the_limit_too(options):
    outcome = run(ScriptedModel(plan=plan("a")), mode="core", base_ttl=25, **options)
    assert outcome.state.ttl_allocated == 5


def test_steps_that_the_budget_never_reached_are_marked_incomplete():
    outcome = run(ScriptedModel(plan=TWO_LAYERS), ttl=3)
    assert outcome.ttl_expiration.partial_result["incomplete_steps"] == ["a"]


def test_a_subplan_may_name_what_its_parent_depends_on():
    substeps = {"subplan_goal": "prepare", "substeps": [planned("x", "a")]}
    decompose = {**modify("b"), "action_type": "SUBPLAN_CREATE", "new_step": None}
    model = ScriptedModel(
        plan=TWO_LAYERS, refinement=[refinement(decompose), refinement()], subplan=substeps
    )
    outcome = run(model)
    assert outcome.state.plan.step("b.x").dependencies == ("a",)


def test_a_budget_of_nothing_ends_the_run_and_is_no_defect(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(AdaptiveDepth, "allocate_ttl", lambda *_: 0)
    outcome = run(ScriptedModel(task_profile=profile()))
    assert (outcome.termination_reason, outcome.error) == ("ttl_expired", None)
