"""Answers of the planner, read into plans."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aeon.domain.report import ValidationIssue
from aeon.llm.exchange import InvalidAnswer, check_answer
from aeon.llm.schemas import load_packaged_schemas
from aeon.plan.wire import parse_plan, parse_refinement, parse_subplan
from tests.plan import builders
from tests.support.scripted_model import action, add, modify, plan, planned, refinement

ISSUES = [
    ValidationIssue(issue_id=i, type="specificity", severity="HIGH", description="vague")
    for i in ("i1", "i2")
]


def parsed(
    *steps: Any, task: str = "make tea", max_steps: int = 100, one_final_step: bool = False
) -> Any:
    return parse_plan(plan(*steps), task, max_steps=max_steps, one_final_step=one_final_step)


def errors(call: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidAnswer) as raised:
        call()
    return [(error.pointer, error.message) for error in raised.value.errors]


def test_the_task_is_the_persons_and_the_goal_the_planners():
    made = parsed("a", task="make $tea\n")
    assert (made.task, made.goal) == ("make $tea\n", "the goal")


def test_steps_are_numbered_pending_and_without_results():
    first, second = parsed("a", planned("b", "a")).steps
    assert [(s.step_index, s.total_steps, s.status) for s in (first, second)] == [
        (1, 2, "pending"),
        (2, 2, "pending"),
    ]
    assert (first.incoming_context, first.step_output, first.clarity_state) == ("", None, None)
    assert second.dependencies == ("a",)


def test_no_tool_means_the_model_and_a_tool_means_the_tool():
    none, kettle = parsed("a", planned("b", tool="kettle", arguments='{"cups": 2}')).steps
    assert (none.tool, none.agent, none.arguments) == (None, "llm", None)
    assert (kettle.tool, kettle.agent, kettle.arguments) == ("kettle", None, {"cups": 2})


@pytest.mark.parametrize("text", ["", "  ", None])
def test_no_arguments_are_none(text: str | None):
    assert parsed(planned("a", tool="kettle", arguments=text)).steps[0].arguments is None


def test_a_dependency_named_twice_counts_once():
    assert parsed("a", planned("b", "a", "a")).steps[1].dependencies == ("a",)


@pytest.mark.parametrize(
    ("steps", "pointer", "words"),
    [
        (["a", "a"], "/steps/1/step_id", "unique"),
        ([planned("a", "b")], "/steps/0/dependencies/0", "'b', which is not a step"),
        ([planned("a", "b"), planned("b", "a")], "/steps/0/dependencies", "loop"),
        ([planned("a", "a")], "/steps/0/dependencies/0", "itself"),
        ([planned(" ")], "/steps/0/step_id", "blank"),
        ([planned("")], "/steps/0/step_id", "at least 1 character"),
        ([planned("a", description="")], "/steps/0/description", "at least 1 character"),
        ([planned("a", description=" \n")], "/steps/0/description", "no description"),
        (
            [planned("a", tool="kettle", arguments="{cups: 2}")],
            "/steps/0/arguments",
            "JSON text of an object",
        ),
        (
            [planned("a", tool="kettle", arguments="[2]")],
            "/steps/0/arguments",
            "JSON text of an object",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_place(steps: list[Any], pointer: str, words: str):
    (found, *_) = errors(lambda: parsed(*steps))
    assert found[0] == pointer
    assert words in found[1]


def test_everything_that_is_wrong_with_the_structure_is_named_at_once():
    found = errors(lambda: parsed("a", "a", planned("b", "gone"), planned("c", "c")))
    assert [pointer for pointer, _ in found] == [
        "/steps/1/step_id",
        "/steps/2/dependencies/0",
        "/steps/3/dependencies/0",
    ]


def test_a_plan_has_no_more_steps_than_allowed():
    assert len(parsed("a", "b", max_steps=2).steps) == 2
    ((pointer, message),) = errors(lambda: parsed("a", "b", "c", max_steps=2))
    assert pointer == "/steps"
    assert "3 steps, at most 2" in message


def test_a_plan_ten_times_too_large_is_refused_without_a_look_at_its_steps():
    with pytest.raises(InvalidAnswer) as raised:
        parsed(*["never read"] * 31, max_steps=3)
    assert str(raised.value) == (
        "/steps: there are 31 steps, at most 30 are read: give the most important ones"
    )


def test_very_many_questions_are_refused():
    many = {**refinement(), "questions": ["never read"] * 1_001}
    with pytest.raises(InvalidAnswer, match="/questions: there are 1,001 questions, at most 1,000"):
        parse_refinement(many, ())


def test_one_final_step_is_asked_for_only_where_the_answer_has_a_schema():
    assert len(parsed("a", "b").steps) == 2
    assert len(parsed("a", planned("b", "a"), one_final_step=True).steps) == 2
    ((_, message),) = errors(lambda: parsed("a", "b", one_final_step=True))
    assert "exactly one" in message


def test_a_subplan_is_of_its_parent_and_level():
    answer = {"subplan_goal": "in detail", "substeps": [planned("x"), planned("y", "x")]}
    made = parse_subplan(answer, builders.step("b"), 3)
    assert (made.parent_step_id, made.subplan_goal, made.depth_level) == ("b", "in detail", 3)
    assert [step.dependencies for step in made.substeps] == [(), ("x",)]


@pytest.mark.parametrize(
    ("substeps", "pointer"),
    [
        ([planned("x", "a")], "/substeps/0/dependencies/0"),
        ([planned("x"), planned("x")], "/substeps/1/step_id"),
        ([planned("x", "y"), planned("y", "x")], "/substeps/0/dependencies"),
        ([planned("x", description="")], "/substeps/0/description"),
    ],
)
def test_what_is_wrong_with_a_subplan_is_pointed_to_where_it_stands(
    substeps: list[Any], pointer: str
):
    found = errors(
        lambda: parse_subplan(
            {"subplan_goal": "in detail", "substeps": substeps}, builders.step("b"), 1
        )
    )
    assert found[0][0] == pointer


def test_actions_and_questions_are_read():
    answer = refinement(
        modify("b", addresses_issues=["i1"], overrides_issues=["i2"], inconsistency_detected=True),
        questions=[{"question": "Which?", "assumption": "Green.", "step_id": "b"}],
    )
    made = parse_refinement(answer, ISSUES)
    (change,) = made.actions
    assert (change.action_type, change.target_step_id, change.new_step.step_id) == (
        "MODIFY",
        "b",
        "b",
    )
    assert change.semantic_validation_input == (ISSUES[0],)
    assert change.overrides_issues == ("i2",)
    assert change.inconsistency_detected
    assert (
        made.questions[0].question,
        made.questions[0].assumption,
        made.questions[0].step_id,
    ) == (
        "Which?",
        "Green.",
        "b",
    )


def test_what_an_action_does_not_use_is_left_out():
    answer = refinement(
        action("ADD", "b", planned("new")),
        action("REMOVE", "b", planned("b")),
        action("SUBPLAN_CREATE", "c", planned("c")),
        action("STEP_MARK_INVALID", "d", planned("d")),
    )
    made = parse_refinement(answer, ())
    assert [(a.target_step_id, a.new_step is not None) for a in made.actions] == [
        (None, True),
        ("b", False),
        ("c", False),
        ("d", False),
    ]
    assert [a.fragment for a in made.actions] == ["new", "b", "c", "d"]


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (action("MODIFY", None, planned("a")), "MODIFY needs target_step_id"),
        (action("MODIFY", "a"), "MODIFY needs new_step"),
        (action("ADD"), "ADD needs new_step"),
        (action("REPLACE", "a"), "REPLACE needs new_step"),
        (action("REMOVE"), "REMOVE needs target_step_id"),
        (action("SUBPLAN_CREATE", ""), "SUBPLAN_CREATE needs target_step_id"),
        (action("STEP_MARK_INVALID"), "STEP_MARK_INVALID needs target_step_id"),
    ],
)
def test_an_action_without_what_its_type_needs_is_no_answer(broken: dict[str, Any], words: str):
    ((pointer, message),) = errors(
        lambda: parse_refinement(refinement(add("good"), broken), ISSUES)
    )
    assert pointer.startswith("/actions/1")
    assert words in message


def test_an_issue_that_does_not_exist_is_answered_by_nothing_and_overridden_by_nothing():
    (made,) = parse_refinement(
        refinement(add("new", addresses_issues=["i7"], overrides_issues=["i7"])), ISSUES
    ).actions
    assert (made.semantic_validation_input, made.overrides_issues) == ((), ())


def test_a_broken_new_step_is_pointed_to_in_its_action():
    ((pointer, _),) = errors(lambda: parse_refinement(refinement(add("good"), add("")), ()))
    assert pointer == "/actions/1/new_step/step_id"


@pytest.mark.parametrize(
    ("answer", "pointer"),
    [
        (refinement(add("new", justification="")), "/actions/0/justification"),
        (
            refinement(questions=[{"question": "", "assumption": "Green.", "step_id": None}]),
            "/questions/0/question",
        ),
    ],
)
def test_empty_words_are_pointed_to_where_they_stand(answer: Any, pointer: str):
    local = load_packaged_schemas().local("refinement")
    found = errors(
        lambda: check_answer(json.dumps(answer), local, lambda value: parse_refinement(value, ()))
    )
    assert [place for place, _ in found] == [pointer]
