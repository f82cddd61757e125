"""The planner: what it asks, and what it makes of the answer (FR-009 to FR-016, FR-083, FR-086)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aeon.domain.assessment import UNAVAILABLE
from aeon.domain.errors import PlanError, ValidationError
from aeon.domain.plan import FollowUpQuestion, PlanStep
from aeon.domain.report import ValidationIssue
from aeon.domain.request import LLMRequest
from aeon.plan.recursive import RecursivePlanner
from aeon.plan.triggers import Trigger
from aeon.tools.registry import Tool, ToolRegistry
from tests.contract.components import ANSWERS, an_issue
from tests.plan.builders import blocked, done, failed, plan_of, step
from tests.support.fences import texts_in
from tests.support.scripted_model import ScriptedModel, add, plan, planned, refinement

ANSWER = {"type": "object", "properties": {"cups": {"type": "integer"}}, "required": ["cups"]}


def registry() -> ToolRegistry:
    anything = {"type": "object"}
    return ToolRegistry([Tool("kettle", "Boils water.", anything, anything, lambda: {})])


def test_a_plan_is_asked_for_in_one_call_with_task_and_context():
    model = ScriptedModel(plan=plan("a"))
    RecursivePlanner(model).generate_plan("make tea", {"guests": 2})
    assert model.calls == ["plan"]
    assert '{"guests":2}' in model.prompts("plan")[0]


def test_without_context_none_is_spoken_of():
    model = ScriptedModel(plan=plan("a"))
    RecursivePlanner(model).generate_plan("make tea")
    assert texts_in(model.prompts("plan")[0], "context") == []


@pytest.mark.parametrize(
    "broken",
    [plan(), plan("a", "a"), plan(planned("a", "b")), plan(planned("a", "b"), planned("b", "a"))],
)
def test_a_plan_that_cannot_be_a_plan_goes_to_repair(broken):
    model = ScriptedModel(plan=broken, repair=json.dumps(plan("a", planned("b", "a"))))
    made = RecursivePlanner(model).generate_plan("make tea")
    assert model.calls == ["plan", "repair"]
    assert [s.step_id for s in made.steps] == ["a", "b"]


def test_a_plan_longer_than_allowed_cannot_be_made():
    model = ScriptedModel(plan=plan("a", "b", "c"), repair=json.dumps(plan("a", "b", "c")))
    with pytest.raises(ValidationError, match="3 steps, at most 2"):
        RecursivePlanner(model, max_steps=2).generate_plan("make tea")


@pytest.mark.parametrize("call", ["plan", "refinement", "subplan"])
def test_on_the_wire_a_tool_is_one_of_those_that_exist_or_null(call: str):
    forms = []
    for tools in (None, registry()):
        model = ScriptedModel(**{**ANSWERS, "refinement": refinement()})
        planner = RecursivePlanner(model, tools)
        {
            "plan": lambda p=planner: p.generate_plan("make tea"),
            "refinement": lambda p=planner: p.refine(plan_of(step("a")), (), ()),
            "subplan": lambda p=planner: p.create_subplan(step("a"), plan_of(step("a")), 1),
        }[call]()
        forms.append(model.requests[0].schema["$defs"]["step"])
    assert not {"tool", "arguments"} & forms[0]["properties"].keys()
    assert not {"tool", "arguments"} & set(forms[0]["required"])
    assert forms[1]["properties"]["tool"].pop("description")
    assert forms[1]["properties"]["tool"] == {
        "anyOf": [{"type": "string", "enum": ["kettle"]}, {"type": "null"}]
    }
    assert {"tool", "arguments"} < set(forms[1]["required"])


def untooled(step_id: str) -> dict[str, Any]:
    return {
        name: value for name, value in planned(step_id).items() if name not in ("tool", "arguments")
    }


def test_where_there_are_no_tools_a_step_without_the_field_is_one_for_the_model():
    model = ScriptedModel(plan={"goal": "g", "steps": [untooled("a")]})
    (made,) = RecursivePlanner(model).generate_plan("make tea").steps
    assert (made.tool, made.agent, made.arguments) == (None, "llm", None)
    assert model.calls == ["plan"]


def test_where_there_are_tools_the_field_is_asked_for_again():
    model = ScriptedModel(
        plan={"goal": "g", "steps": [untooled("a")]}, repair=json.dumps(plan("a"))
    )
    RecursivePlanner(model, registry()).generate_plan("make tea")
    assert model.calls == ["plan", "repair"]


def test_a_repair_is_asked_for_what_its_call_was_asked_for():
    model = ScriptedModel(
        plan={"goal": "g"}, repair=json.dumps({"goal": "g", "steps": [untooled("a")]})
    )
    RecursivePlanner(model).generate_plan("make tea")
    first, repair = model.requests
    assert repair.schema == first.schema


def test_a_refinement_is_asked_for_issues_and_subplans_only_where_there_may_be_some():
    def sent(*issues: ValidationIssue, depth: int = 5) -> LLMRequest:
        model = ScriptedModel()
        RecursivePlanner(model, None, depth).refine(plan_of(blocked("a")), issues, ())
        return model.requests[0]

    def form(*issues: ValidationIssue, depth: int = 5) -> dict[str, Any]:
        asked = sent(*issues, depth=depth).schema["properties"]
        return asked["actions"]["items"]["properties"]

    of_issues = {"addresses_issues", "overrides_issues"}
    assert of_issues <= form(an_issue()).keys()
    assert not of_issues & form().keys()
    assert "SUBPLAN_CREATE" in form()["action_type"]["enum"]
    assert "SUBPLAN_CREATE" not in form(depth=0)["action_type"]["enum"]
    assert not any("SUBPLAN_CREATE" in message.content for message in sent(depth=0).messages)
    assert sum(message.content.count("SUBPLAN_CREATE") for message in sent().messages) == 2


def test_an_unknown_tool_is_no_reason_to_repair():
    model = ScriptedModel(plan=plan(planned("a", tool="samovar")))
    assert RecursivePlanner(model, registry()).generate_plan("make tea").steps[0].tool == "samovar"
    assert model.calls == ["plan"]


def test_an_answer_schema_is_shown_and_holds_the_plan_to_one_final_step():
    model = ScriptedModel(plan=plan("a", "b"), repair=json.dumps(plan("a", planned("b", "a"))))
    RecursivePlanner(model, answer_schema=ANSWER).generate_plan("make tea")
    assert model.calls == ["plan", "repair"]
    assert '"cups"' in model.prompts("plan")[0]


def test_refinement_is_told_its_reasons_issues_plan_and_what_is_closed():
    model = ScriptedModel(
        refinement=refinement(
            add("x"), questions=[{"question": "Which?", "assumption": "Green.", "step_id": None}]
        )
    )
    issues = [
        ValidationIssue(
            issue_id="i7", type="relevance", severity="LOW", description="beside the point"
        )
    ]
    triggers = [Trigger(kind="blocked_step", about="b", detail="how hot?")]
    made = RecursivePlanner(model).refine(
        plan_of(done("a"), blocked("b"), step("c")), issues, triggers, ["a"], ["c"]
    )
    (prompt,) = model.prompts("refinement")
    for said in (
        "i7",
        "beside the point",
        "how hot?",
        "output of a",
        "half of b",
        "left to a person",
    ):
        assert said in prompt
    assert [a.fragment for a in made.actions] == ["x"]
    assert made.questions == (FollowUpQuestion(question="Which?", assumption="Green."),)


def test_the_interfaces_refinement_makes_reasons_of_what_it_is_given():
    model = ScriptedModel(refinement=refinement())
    issues = [
        ValidationIssue(
            issue_id="i7", type="relevance", severity="LOW", description="beside the point"
        )
    ]
    codes = ["incomplete", "own_criterion"]
    assert (
        RecursivePlanner(model).refine_plan(plan_of(blocked("b")), issues, codes, ["b"], []) == []
    )
    (prompt,) = model.prompts("refinement")
    for said in ("i7", "blocked_step", "completeness", "own_criterion"):
        assert said in prompt


def test_a_subplan_is_told_of_the_step_the_plan_and_an_earlier_attempt():
    model = ScriptedModel(subplan=ANSWERS["subplan"])
    before = plan_of(done("a"), blocked("b", "a"))
    RecursivePlanner(model).create_subplan(before.step("b"), before, 2)
    (prompt,) = model.prompts("subplan")
    for said in ("do b", "output of a", "half of b"):
        assert prompt.count(said) == 1
    assert 'Decompose the step "b". It was tried before' in prompt


@pytest.mark.parametrize(("depth", "level"), [(-3, 1), (0, 1), (1, 1), (4, 4)])
def test_the_first_level_is_one(depth: int, level: int):
    model = ScriptedModel(subplan=ANSWERS["subplan"])
    assert (
        RecursivePlanner(model).create_subplan(step("a"), plan_of(step("a")), depth).depth_level
        == level
    )
    assert model.calls == ["subplan"]


def test_five_levels_are_the_most_whatever_is_allowed():
    model = ScriptedModel(subplan=ANSWERS["subplan"])
    with pytest.raises(PlanError, match="level 6"):
        RecursivePlanner(model, max_nesting_depth=9).create_subplan(
            step("a"), plan_of(step("a")), 6
        )
    assert model.calls == []


def refine_for(*triggers: Trigger, **options: Any) -> str:
    """The prompt of a refinement for these reasons, with an assessment."""
    model = ScriptedModel(refinement=refinement())
    RecursivePlanner(model).refine(
        plan_of(done("a")), (), triggers, ["a"], assessment=UNAVAILABLE, **options
    )
    (prompt,) = model.prompts("refinement")
    return prompt


def test_a_fault_that_the_assessment_names_is_shown_once() -> None:
    fault = Trigger(kind="blocking_issue", about="the answer", detail="The sum is wrong.")
    assert refine_for(fault).count("The sum is wrong.") == 1
    assert UNAVAILABLE.explanation not in refine_for(fault)
    assert UNAVAILABLE.explanation in refine_for(Trigger(kind="blocked_step", about="a"))


def test_before_anything_is_carried_out_only_what_applies_is_said() -> None:
    model = ScriptedModel(refinement=refinement())
    RecursivePlanner(model).refine(plan_of(step("a")), (), ())
    (prompt,) = model.prompts("refinement")
    assert "Nothing has been carried out yet" in prompt
    assert "complete and failed steps" not in prompt
    assert "complete and failed steps" in refine_for()


@pytest.mark.parametrize(
    ("last", "is_advised"),
    [
        (step("b", "a"), (False, False)),
        (blocked("b", "a"), (True, False)),
        (done("b", "a"), (False, True)),
    ],
)
def test_advice_on_a_blocked_step_and_on_a_whole_answer_is_given_where_there_is_one(
    last: PlanStep, is_advised: tuple[bool, bool]
) -> None:
    model = ScriptedModel(refinement=refinement())
    RecursivePlanner(model).refine(plan_of(done("a"), last), (), (), ["a"])
    (prompt,) = model.prompts("refinement")
    assert ("A BLOCKED step waits" in prompt, "ADD a new final step" in prompt) == is_advised


@pytest.mark.parametrize(("first", "is_forbidden"), [(done("a"), False), (failed("a"), True)])
def test_depending_on_a_failed_step_is_forbidden_where_there_is_one(
    first: PlanStep, is_forbidden: bool
) -> None:
    model = ScriptedModel(refinement=refinement())
    RecursivePlanner(model).refine(plan_of(first, step("b")), (), (), ["a"])
    (prompt,) = model.prompts("refinement")
    assert ("Never depend on a failed or invalid step." in prompt) == is_forbidden
