"""Profiles: inferred once, stable, updated only on all signals (FR-026 to FR-035, FR-084, FR-094)."""

from __future__ import annotations

import itertools

import pytest

from aeon.adaptive.heuristics import AdaptiveDepth, complexity_mismatch, mismatch_signals
from aeon.domain.errors import ServerFailed
from aeon.domain.profile import TaskProfile
from aeon.domain.report import ValidationIssue
from tests.support.scripted_model import ScriptedModel, profile


def issue(number: int = 1, kind: str = "specificity", severity: str = "HIGH") -> ValidationIssue:
    return ValidationIssue(issue_id=f"i{number}", type=kind, severity=severity, description="vague")


def test_every_dimension_but_the_version_is_the_models():
    answer = profile(4, information_sufficiency=0.25, ambiguity_level=0.75, expected_step_count=9)
    made = AdaptiveDepth(ScriptedModel(task_profile=answer)).infer_task_profile("make tea")
    assert made == TaskProfile(profile_version=1, **answer)


def test_the_same_task_and_context_are_profiled_once():
    model = ScriptedModel(task_profile=[profile(2), profile(5)])
    adaptive = AdaptiveDepth(model)
    first = adaptive.infer_task_profile("make tea", {"cups": 2, "hot": True})
    again = adaptive.infer_task_profile("make tea", {"hot": True, "cups": 2})
    assert again == first
    assert model.calls == ["task_profile"]


@pytest.mark.parametrize(
    ("task", "context"), [("make coffee", None), ("make tea", {"cups": 2}), ("make tea ", None)]
)
def test_another_task_or_context_is_profiled_anew(task, context):
    model = ScriptedModel(task_profile=[profile(2), profile(5)])
    adaptive = AdaptiveDepth(model)
    adaptive.infer_task_profile("make tea")
    assert adaptive.infer_task_profile(task, context).reasoning_depth == 5


def test_a_profile_that_failed_is_not_remembered():
    model = ScriptedModel(task_profile=[ServerFailed("500"), profile(2)])
    adaptive = AdaptiveDepth(model)
    with pytest.raises(ServerFailed):
        adaptive.infer_task_profile("make tea")
    assert adaptive.infer_task_profile("make tea").reasoning_depth == 2


def test_task_and_context_are_shown_to_the_model():
    model = ScriptedModel()
    AdaptiveDepth(model).infer_task_profile("make <tea>", {"guests": ["Ada", "Bob"]})
    (prompt,) = model.prompts("task_profile")
    assert "make <tea>" in prompt
    assert '{"guests":["Ada","Bob"]}' in prompt


@pytest.mark.parametrize(
    ("failed", "issues", "blocked"), list(itertools.product([True, False], repeat=3))
)
def test_only_all_three_signals_together_are_a_mismatch(failed: bool, issues: bool, blocked: bool):
    states = ["CLEAR", "BLOCKED"] if blocked else ["CLEAR", "PARTIALLY_CLEAR"]
    assert complexity_mismatch(failed, [issue()] if issues else [], states) is (
        failed and issues and blocked
    )


def test_the_updated_profile_has_the_next_version_and_its_reason_is_the_models():
    model = ScriptedModel(task_profile=profile(5))
    current = TaskProfile(profile_version=3, **profile(2))
    updated = AdaptiveDepth(model).update_task_profile(
        current, True, [issue()], ["BLOCKED"], "make tea"
    )
    assert (updated.profile_version, updated.reasoning_depth, updated.raw_inference) == (
        4,
        5,
        "depth 5",
    )
    assert current.profile_version == 3


def test_an_update_may_find_the_task_simpler():
    model = ScriptedModel(task_profile=profile(1))
    current = TaskProfile(profile_version=1, **profile(5))
    updated = AdaptiveDepth(model).update_task_profile(
        current, True, [issue()], ["BLOCKED"], "make tea"
    )
    assert updated.reasoning_depth == 1


def test_an_update_is_not_answered_from_memory():
    model = ScriptedModel(task_profile=[profile(2), profile(3), profile(4)])
    adaptive = AdaptiveDepth(model)
    current = adaptive.infer_task_profile("make tea")
    for depth in (3, 4):
        current = adaptive.update_task_profile(current, True, [issue()], ["BLOCKED"], "make tea")
        assert current.reasoning_depth == depth


def test_signals_are_counts_and_codes_and_no_judgement():
    issues = [issue(1), issue(2, "relevance", "LOW"), issue(3)]
    assert mismatch_signals(issues, ["CLEAR", "BLOCKED", "BLOCKED"], ["incomplete"]) == {
        "issue_count": 3,
        "issues_by_type": {"relevance": 1, "specificity": 2},
        "issues_by_severity": {"HIGH": 2, "LOW": 1},
        "convergence_reason_codes": ["incomplete"],
        "clarity_states": {"BLOCKED": 2, "CLEAR": 1},
    }


def test_the_update_is_told_of_the_signals_and_of_the_profile_so_far():
    model = ScriptedModel(task_profile=profile(5))
    current = TaskProfile(profile_version=7, **profile(2))
    AdaptiveDepth(model).update_task_profile(
        current, True, [issue()], ["BLOCKED"], "make tea", reason_codes=["incomplete", "own"]
    )
    (prompt,) = model.prompts("task_profile")
    for said in (
        '"issue_count":1',
        '{"HIGH":1}',
        '{"BLOCKED":1}',
        '["incomplete","own"]',
        '"reasoning_depth":2',
    ):
        assert said in prompt
    assert "profile_version" not in prompt
