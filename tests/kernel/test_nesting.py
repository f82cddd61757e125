"""Subplans: how deep they may nest, and where their goal, level and maker are told (FR-009, FR-083)."""

from __future__ import annotations

from aeon.adaptive.heuristics import AdaptiveDepth
from aeon.convergence.engine import ConvergenceEngine
from aeon.domain import events
from aeon.domain.plan import Subplan
from aeon.kernel.orchestrator import Orchestrator
from aeon.plan.recursive import RecursivePlanner
from aeon.validation.semantic import SemanticValidator
from tests.kernel.build import advisories, run
from tests.plan.builders import plan_of, step
from tests.refinement.build import Calls, accepted, refine
from tests.support.scripted_model import (
    ScriptedModel,
    action,
    blocked,
    clear,
    issue,
    plan,
    planned,
    refinement,
    report,
    unfinished,
)

DECOMPOSE = refinement(action("SUBPLAN_CREATE", "a"))


def nesting(**answers) -> ScriptedModel:
    """A model that decomposes a step before anything runs, and its first substep once that is BLOCKED."""
    return ScriptedModel(
        plan=plan("a"),
        semantic_validation=[report(issue("i1", "a")), report()],
        refinement=[DECOMPOSE, refinement(action("SUBPLAN_CREATE", "a.x")), refinement()],
        subplan={"subplan_goal": "the leaves, then the water", "substeps": [planned("x")]},
        step=lambda r: blocked() if r.site.step_id == "a.x" else clear("done"),
        convergence=unfinished(),
        **answers,
    )


def test_the_published_planner_alone_marks_what_nests_too_deep_for_a_person():
    model = nesting()
    depth, validator = AdaptiveDepth(model), SemanticValidator(model)
    planner = RecursivePlanner(model, None, 1)
    outcome = Orchestrator(model, ConvergenceEngine(model), validator, planner, depth).run(
        "make tea"
    )
    assert outcome.state.manual_intervention == ("a.x",)
    assert model.calls.count("subplan") == 1
    assert outcome.state.plan.step("a.x").manual_intervention
    assert "level 2 is deeper" in advisories(outcome, "refused_action")[0]


class Shallow(RecursivePlanner):
    """Says by an error of its own, as the interface has it, that it nests no deeper."""

    def create_subplan(self, parent_step, parent_plan, current_depth):
        return super().create_subplan(parent_step, parent_plan, 6)


def test_a_planner_that_refuses_the_depth_itself_has_it_marked_too():
    model = ScriptedModel(refinement=DECOMPOSE)
    refined = refine(model, plan_of(step("a")), planner=Shallow(model), budget=Calls())
    assert accepted(refined) == []
    assert refined.handed_over == ("a",)


def test_goal_level_and_maker_of_a_subplan_are_in_history_events_and_the_substeps_prompts():
    seen: list[events.Recorded] = []
    model = nesting()
    outcome = run(model, seen=seen)
    (told,) = outcome.history.passes[0].refinement.subplans
    assert (told.parent_step_id, told.subplan_goal) == ("a", "the leaves, then the water")
    assert (told.depth_level, told.created_by) == (1, "recursive_planner")
    assert [each.depth_level for each in outcome.state.plan.subplans] == [1, 2]
    refined = [r.event for r in seen if isinstance(r.event, events.Refined)]
    assert refined[0].refinement.subplans == (told,)
    prompts = dict(
        zip([c for c in model.calls if c.startswith("step")], model.prompts("step"), strict=True)
    )
    child, grandchild = prompts["step:a.x"], prompts["step:a.x.x"]
    assert "the leaves, then the water" in child
    assert "subplan of step a (level 1, made by recursive_planner)" in child
    assert "subplan of step a.x (level 2, made by recursive_planner)" in grandchild


def test_a_step_that_no_subplan_made_is_told_of_none():
    model = ScriptedModel()
    run(model)
    assert "belongs to the subplan" not in model.prompts("step")[0]


class Maker(RecursivePlanner):
    def create_subplan(self, parent_step, parent_plan, current_depth):
        made = super().create_subplan(parent_step, parent_plan, current_depth)
        return Subplan(**{**made.model_dump(), "created_by": "a planner of one's own"})


def test_a_maker_of_its_own_is_told():
    model = ScriptedModel(
        refinement=DECOMPOSE, subplan={"subplan_goal": "in detail", "substeps": [planned("x")]}
    )
    refined = refine(model, plan_of(step("a")), planner=Maker(model))
    assert refined.plan.subplans[0].created_by == "a planner of one's own"
