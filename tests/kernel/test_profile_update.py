"""The planner informs depth: what it has had to do is told when the task is profiled anew (FR-033, SC-013)."""

from __future__ import annotations

import json
import re

import pytest

from aeon.domain.errors import Truncated
from tests.kernel.build import run
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
    profile,
    refinement,
    report,
    unfinished,
)


def demanding() -> ScriptedModel:
    """A plan decomposed, with a change refused and a question raised before a step is BLOCKED."""
    question = {"question": "Which tea?", "assumption": "Green.", "step_id": None}
    return ScriptedModel(
        task_profile=[profile(2), profile(4)],
        plan=plan("a", planned("b", "a")),
        subplan={"subplan_goal": "in detail", "substeps": [planned("x")]},
        semantic_validation=[report(), report(), report(issue("i1", severity="HIGH")), report()],
        refinement=[
            refinement(action("SUBPLAN_CREATE", "a"), modify("nowhere"), questions=[question]),
            refinement(modify("a.x"), declined={"i1": "clear now"}),
            refinement(),
        ],
        step=[blocked(), *[clear("done")] * 3],
        convergence=[unfinished(), assessment()],
    )


def test_the_update_is_told_of_refinements_refusals_subplans_and_questions():
    model = demanding()
    outcome = run(model)
    assert len(outcome.history.profile_transitions) == 1
    first, update = model.prompts("task_profile")
    assert "planning" not in first
    observed = json.loads(texts_in(update, "observed")[0])
    assert observed["planning"] == {
        "refinements": 2,
        "refinements_by_step": {"a": 1, "nowhere": 1, "a.x": 1},
        "refused_actions": [
            {"action": "MODIFY nowhere", "reason": "there is no step 'nowhere' in the plan"}
        ],
        "subplans": [{"step_id": "a", "level": 1}],
        "questions": ["Which tea?"],
        "left_to_a_person": [],
    }


def test_what_a_depth_rests_on_is_said():
    outcome = run(demanding())
    first, second = (outcome.history.passes[number].adaptive_depth for number in (1, 2))
    assert first.heuristics_used == ("task_profile", "ttl_table")
    assert second.heuristics_used == (
        "task_profile_update",
        "convergence_failure",
        "validation_issues",
        "blocked_steps",
        "planning",
        "ttl_table",
    )
    assert first.uncertainty_score is None


def test_a_default_profile_is_no_inferred_one():
    outcome = run(ScriptedModel(task_profile=Truncated("cut off")))
    assert outcome.state.depth.heuristics_used == ("default_profile", "ttl_table")


def test_no_limit_of_a_refusal_reaches_the_prompt():
    model = ScriptedModel(
        task_profile=[profile(2), profile(4)],
        step=[blocked(), clear("done")],
        refinement=[
            refinement(modify("only"), *[action("ADD", None, planned(name)) for name in "bcdefghi"])
        ],
        semantic_validation=[report(), report(issue("i1", severity="LOW")), report()],
        convergence=[unfinished(), assessment()],
    )
    run(model, max_steps=7)
    update = model.prompts("task_profile")[1]
    assert "more steps than execution.max_steps allows" in update
    assert "7" not in re.findall(r'"planning":(.*)', update)[0]


USED = 8
"""What the run below has used with its update: plan, review, step, review, assessment, refinement, its review, profile."""


@pytest.mark.parametrize(
    ("limit", "least", "expected"),
    [(100, 3, 18), (100, 10, 18), (100, 11, USED + 11), (100, 20, USED + 20), (15, 20, 15)],
)
def test_a_changed_profile_gets_by_the_table_but_at_least_so_many_more(
    limit: int, least: int, expected: int
):
    """RULES 6: min(limit, max(table, used + least)). The table gives a task of depth 1 18 cycles."""
    model = ScriptedModel(
        task_profile=[profile(5), profile(1)],
        semantic_validation=[report(), report(issue()), report()],
        step=[blocked(), clear("done")],
        refinement=refinement(modify("only")),
        convergence=[unfinished(), assessment()],
    )
    outcome = run(model, ttl=limit, least_after_update=least)
    (transition,) = outcome.history.profile_transitions
    assert transition.ttl_after == expected
    assert outcome.history.passes[2].ttl_remaining == expected - USED
