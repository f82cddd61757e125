"""What a call overrides, by the role that it is made as and the reasoning mode."""

from __future__ import annotations

import pytest

from aeon.domain.request import ReasoningMode, Role
from aeon.llm.roles import GenerationSettings, ReasoningSettings, RoleSettings, parameters_for

REASONING = ReasoningSettings(
    shallow=GenerationSettings(effort="low"),
    balanced=GenerationSettings(effort="medium"),
    deep=GenerationSettings(effort="high"),
)


@pytest.mark.parametrize(
    ("role", "mode", "effort"),
    [
        ("worker", "shallow", "low"),
        ("worker", None, None),
        ("grader", "shallow", "medium"),
        ("grader", "balanced", "medium"),
        ("grader", "deep", "high"),
        ("grader", None, None),
    ],
)
def test_the_graders_effort_does_not_fall_with_the_depth_of_the_task(
    role: Role, mode: ReasoningMode | None, effort: str | None
) -> None:
    assert parameters_for(RoleSettings(), REASONING, role, mode).effort == effort


def test_the_roles_own_effort_wins() -> None:
    roles = RoleSettings(grader=GenerationSettings(effort="minimal"))
    assert parameters_for(roles, REASONING, "grader", "shallow").effort == "minimal"


def test_a_mode_that_sets_no_effort_sets_none_for_the_grader() -> None:
    assert parameters_for(RoleSettings(), ReasoningSettings(), "grader", "shallow").effort is None
