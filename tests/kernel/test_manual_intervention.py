"""What is left to a person does not hold the run: it goes on with the best version there is (FR-065)."""

from __future__ import annotations

import pytest

from aeon.domain.errors import Truncated
from aeon.plan.settings import RefinementSettings
from tests.kernel.build import advisories, phases, run, statuses
from tests.support.fences import texts_in
from tests.support.scripted_model import (
    ScriptedModel,
    action,
    assessment,
    blocked,
    clear,
    issue,
    modify,
    plan,
    planned,
    refinement,
    report,
    unfinished,
)

EVALUATE = ["semantic_validation", "convergence"]
ONCE = RefinementSettings(max_attempts_per_fragment=1)


def step_a(answer):
    return lambda request: answer if request.site.step_id.startswith("a") else clear("b done")


def test_dependents_of_a_blocked_step_that_is_left_to_a_person_run_with_its_output_so_far():
    model = ScriptedModel(
        plan=plan("a", planned("b", "a")),
        step=step_a(blocked("half of a", "which tea?")),
        refinement=[refinement(), *[refinement(modify("a"))] * 4],
        convergence=[*[unfinished()] * 4, assessment()],
    )
    outcome = run(model, ttl=100)
    assert outcome.converged
    assert [c for c in model.calls if c.startswith("step")] == ["step:a"] * 4 + ["step:b"]
    prompt = model.prompts("step")[-1]
    assert "Step a is unfinished and left to a person." in prompt
    assert texts_in(prompt, "reason") == ["which tea?"]
    assert texts_in(prompt, "output") == ["half of a"]
    assert outcome.answer == "b done"
    assert outcome.state.manual_intervention == ("a",)
    assert outcome.history.final_result.metadata["manual_intervention"] == ["a"]
    assert statuses(outcome) == {"a": "invalid", "b": "complete"}


def test_dependents_of_a_failed_step_that_is_left_to_a_person_are_told_that_it_has_no_output():
    model = ScriptedModel(
        plan=plan("a", planned("b", "a")),
        step=step_a(Truncated("too long")),
        refinement=[refinement(modify("a")), refinement(modify("a"))],
        convergence=[unfinished(), assessment()],
    )
    outcome = run(model, refinement=ONCE)
    assert outcome.converged
    prompt = model.prompts("step")[-1]
    assert "Step a is unfinished and left to a person." in prompt
    assert texts_in(prompt, "reason") == ["Truncated: too long"]
    assert "It has no output" in prompt


def test_a_parent_runs_without_a_substep_that_is_left_to_a_person():
    model = ScriptedModel(
        plan=plan("p"),
        subplan={"subplan_goal": "in detail", "substeps": [planned("a")]},
        step=lambda r: blocked() if r.site.step_id == "p.a" else clear("p done"),
        refinement=[
            refinement(action("SUBPLAN_CREATE", "p")),
            refinement(modify("p.a")),
            refinement(modify("p.a")),
        ],
        semantic_validation=[report(issue("i1", "p")), report()],
        convergence=[unfinished(), unfinished(), assessment()],
    )
    outcome = run(model, refinement=ONCE)
    assert outcome.converged
    assert statuses(outcome) == {"p.a": "invalid", "p": "complete"}


def test_the_judges_are_told_what_is_left_to_a_person():
    model = ScriptedModel(
        plan=plan("a", planned("b", "a")),
        step=step_a(blocked()),
        refinement=[refinement(modify("a")), refinement(modify("a"))],
        convergence=[unfinished(), assessment()],
    )
    run(model, refinement=ONCE)
    for call in ("semantic_validation", "convergence"):
        before, after = model.prompts(call)[-2:]
        assert "manual_intervention is left to a person" not in before
        assert "manual_intervention is left to a person" in after
        assert "will be revised" not in after


CONFLICT = report(issue("i1", "a", "CRITICAL", type="consistency"))
CHAIN = plan("a", *(planned(f"s{n}", f"s{n - 1}" if n else "a") for n in range(4)))


@pytest.mark.parametrize("reason", ["neither is wrong", None])
def test_a_contradiction_left_alone_is_marked_for_a_person_and_holds_the_run_no_more(reason):
    answer = refinement(declined={"i1": reason} if reason else {})
    model = ScriptedModel(
        plan=CHAIN,
        semantic_validation=[report(), CONFLICT],
        refinement=[refinement(), answer],
        repair="no JSON",
        convergence=[*[unfinished()] * 4, assessment()],
    )
    outcome = run(model, ttl=100)
    refined = [phases(outcome, number)[-1] for number in range(1, 5)]
    assert refined == ["REFINE", "REFINE", "REFINE", "REFINE skipped"]
    assert outcome.converged
    assert outcome.state.manual_intervention == ("a",)
    (conflict,) = outcome.history.final_result.metadata["conflicts"]
    assert conflict["description"] == "i1 is wrong"
    assert conflict["location"]["step_id"] == "a"
    assert ["i1 is wrong" in message for message in advisories(outcome, "manual_intervention")] == [
        True
    ]


def test_judge_and_planner_are_told_of_a_contradiction_at_no_single_step_that_is_left_to_a_person():
    conflict = issue(
        "i1", None, "CRITICAL", type="consistency", description="the plan is not the task's"
    )
    model = ScriptedModel(
        plan=CHAIN,
        semantic_validation=[report(), report(conflict, issue("i2", "s0"))],
        refinement=[refinement(), refinement(declined={"i1": "it is"})],
        convergence=[*[unfinished()] * 4, assessment()],
    )
    assert run(model, ttl=100).state.manual_intervention == ("the whole",)
    for call, later in (("convergence", 3), ("refinement", 4)):
        shown = ["the plan is not the task's" in prompt for prompt in model.prompts(call)]
        assert shown == [
            call == "convergence" or 0 < number < later for number in range(len(shown))
        ]
    known = [
        "These contradictions are known to the person" in prompt
        for prompt in model.prompts("convergence")
    ]
    assert known == [False, False, False, True, True]


def test_a_contradiction_left_alone_in_the_refinement_that_a_run_ends_with_is_marked_for_a_person():
    declined = refinement(declined={"i1": "neither is wrong"})
    model = ScriptedModel(
        plan=plan("a", "b"),
        semantic_validation=[report(), CONFLICT],
        refinement=[refinement(), declined],
        convergence=unfinished(),
    )
    outcome = run(model, ttl=100)
    assert outcome.termination_reason == "stalled"
    assert model.calls.count("refinement") == 2
    metadata = outcome.history.final_result.metadata
    assert metadata["manual_intervention"] == ["a"]
    assert [conflict["issue_id"] for conflict in metadata["conflicts"]] == ["i1"]


def test_a_contradiction_of_the_whole_is_left_to_a_person_under_no_steps_name():
    model = ScriptedModel(
        plan=CHAIN,
        semantic_validation=[report(), report(issue("i1", None, "CRITICAL", type="consistency"))],
        refinement=[refinement(), refinement(declined={"i1": "neither is wrong"})],
        convergence=[*[unfinished()] * 4, assessment()],
    )
    outcome = run(model, ttl=100)
    assert outcome.converged
    assert [a.step_id for a in outcome.state.advisories if a.kind == "manual_intervention"] == [
        None
    ]


def test_marking_for_a_person_alone_is_no_progress():
    model = ScriptedModel(
        plan=plan("a"), step=blocked(), refinement=refinement(modify("a")), convergence=unfinished()
    )
    outcome = run(model, ttl=100)
    assert outcome.termination_reason == "stalled"
    assert outcome.state.manual_intervention == ("a",)
    assert len(outcome.history.passes) == 5


def test_a_clean_plan_of_one_step_is_refined_without_a_model():
    model = ScriptedModel()
    outcome = run(model)
    assert model.calls == ["task_profile", "plan", *EVALUATE[:1], "step:only", *EVALUATE]
    assert phases(outcome, 0) == ["PLAN", "EVALUATE", "REFINE"]
    assert outcome.history.passes[0].refinement.model_asked is False
    assert outcome.state.ttl_used == 5
