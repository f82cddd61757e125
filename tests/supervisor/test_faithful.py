"""A repair of planned steps brings in no tool that its original did not name (FR-032)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aeon.domain.errors import ValidationError
from aeon.domain.plan import PlanStep
from aeon.plan.recursive import RecursivePlanner
from aeon.supervisor.faithful import find_foreign_tools
from aeon.tools.registry import ToolRegistry
from tests.plan.builders import plan_of, step
from tests.support.scripted_model import ScriptedModel, action, add, plan, planned, refinement
from tests.tools.builders import a_tool

SUM = planned("a", tool="calculator", arguments='{"expression": "5 + 10"}')
ORIGINAL = {
    "goal": "add",
    "steps": [{**SUM, "dependencies": None}, {"description": "no id", "tool": None}],
}


def places(original: Any, repaired: Any, call: Any = "plan") -> list[str]:
    text = original if isinstance(original, str) else json.dumps(original)
    return [error.pointer for error in find_foreign_tools(call, text, repaired)]


def repaired(*steps: Any, goal: str = "add") -> dict[str, Any]:
    return {**plan(*steps), "goal": goal}


@pytest.mark.parametrize(
    "answer",
    [
        repaired(SUM, planned("b", description="no id")),
        repaired({**SUM, "tool": None, "arguments": None}),
        repaired("c", "d", goal="sum"),
        repaired("a", planned("b", tool="calculator")),
    ],
)
def test_the_tools_of_the_original_or_none_may_stay(answer: Any) -> None:
    assert places(ORIGINAL, answer) == []


@pytest.mark.parametrize(
    ("answer", "where"),
    [
        (repaired({**SUM, "tool": "danger"}), ["/steps/0/tool"]),
        (repaired(SUM, planned("b", tool="danger")), ["/steps/1/tool"]),
        (repaired(planned("wipe", tool="danger"), "x", goal="other"), ["/steps/0/tool"]),
    ],
)
def test_a_tool_that_the_original_does_not_name_is_named_with_its_place(
    answer: Any, where: list[str]
) -> None:
    assert places(ORIGINAL, answer) == where


@pytest.mark.parametrize(
    "fields",
    [
        {"step_id": "danger"},
        {"description": "danger"},
        {"provides": ["danger"]},
        {"arguments": {"text": "danger"}},
    ],
)
def test_a_tools_name_in_another_field_of_the_original_names_no_tool(fields: Any) -> None:
    original = {"goal": "danger", "steps": [{**planned("a"), **fields}]}
    step_id = original["steps"][0]["step_id"]
    assert places(original, repaired(planned(step_id, tool="danger"))) == ["/steps/0/tool"]


def test_a_tool_under_a_field_of_a_wrong_name_is_named_all_the_same() -> None:
    original = {"goal": "add", "steps": [{"step_id": "a", "tool_name": "echo"}]}
    assert places(original, repaired(planned("a", tool="echo"))) == []


CUT = '{"goal": "add", "steps": [{"step_id": "a", "description": "danger", "tool": %s, "arguments": "{'


SAYS = '{"goal": "add", "steps": [{"step_id": "wipe", "description": "%s", "tool": null, "arguments": "{'


@pytest.mark.parametrize(
    "original",
    [
        CUT % '"calculator"',
        "{'goal': 'add', 'steps': [{'step_id': 'a', 'tool': 'calculator'}]}",
        json.dumps(CUT % '"calculator"'),
        'steps:\n- step_id: a\n  tool: "calculator"\n',
        'steps:\n  - tool: "calculator"\n    step_id: a\n',
        """{"steps": [{"description": "don't say "tool": "danger"", "tool": "calculator", """,
        """{goal: 'add', steps: [{tool: 'calculator', description: 'it's"}""",
        """Here is it. It's short:\n```json\n{"steps": [{"tool": "calculator",\n""",
        '{"steps": [{"description": "a {brace, and: a colon", "tool": "calculator"',
        json.dumps(CUT % '"calculator"')[:-20],
        json.dumps([{"step_id": "a", "tool": "calculator"}]),
    ],
)
def test_an_original_that_is_no_plan_names_the_tools_in_its_tool_fields(original: str) -> None:
    assert places(original, repaired(SUM)) == []


@pytest.mark.parametrize(
    "original",
    [
        CUT % "null",
        CUT % '"dang',
        CUT % '"dangerous"',
        SAYS % "use tool: 'danger'",
        SAYS % 'use \\"tool\\": \\"danger\\" here',
        SAYS % "{'tool': 'danger'}",
        SAYS % "a, 'tool': 'danger'",
        SAYS % 'use "tool": "danger" here',
        SAYS % "a\ntool: 'danger'\n",
        json.dumps(SAYS % "use tool: 'danger'"),
        """{'steps': [{'description': 'say "tool": "danger"', 'tool': 'cal""",
        "steps:\n- description: |\n    tool: 'danger'\n",
        "steps:\n- description: use tool: 'danger'\n",
        "steps:\n- description: one\n    tool: 'danger'\n",
        'First use the "danger" tool.',
        '{"tool": null, "description": "danger"',
        '{"toolbox": "danger", "no_tool": "danger", ',
        json.dumps([{"step_id": "wipe", "tool": None}]),
    ],
)
def test_an_original_that_is_no_plan_names_no_other_tool(original: str) -> None:
    assert places(original, repaired(planned("wipe", tool="danger"))) == ["/steps/0/tool"]


def test_steps_of_subplans_and_refinements_are_held_too() -> None:
    subplan = {
        "subplan_goal": "g",
        "substeps": [{"step_id": "x", "description": "do x", "tool": None}],
    }
    other = {"subplan_goal": "h", "substeps": [planned("x", tool="danger"), planned("y")]}
    assert places(subplan, other, call="subplan") == ["/substeps/0/tool"]
    more = refinement(action("ADD", None, planned("x", tool="danger")), add("y"))
    found = places(refinement(add("x")), more, call="refinement")
    assert found == ["/actions/0/new_step/tool"]
    assert (
        places(
            refinement(action("ADD", None, planned("x", tool="echo"))),
            refinement(action("ADD", None, planned("x", tool="echo"))),
            call="refinement",
        )
        == []
    )


def test_every_step_that_an_action_holds_is_held_whatever_its_field_is_called() -> None:
    """A new kind of action, whose steps stand elsewhere, is held without a word here."""
    split = {
        **action("SPLIT", "x"),
        "parts": [planned("a"), {**planned("b", tool="danger"), "inner": {"tool": "worse"}}],
    }
    found = places(refinement(add("x")), refinement(split), call="refinement")
    assert found == ["/actions/0/parts/1/tool", "/actions/0/parts/1/inner/tool"]


def registry(called: list[str]) -> ToolRegistry:
    return ToolRegistry([a_tool(lambda _: called.append("danger"), name="danger")])


def test_a_plan_whose_repair_brings_in_a_tool_is_not_made() -> None:
    evil = {**plan(planned("wipe", tool="danger", arguments="{}")), "goal": "something else"}
    model = ScriptedModel(
        plan={"goal": "add", "steps": [{"step_id": "a", "description": "add"}]}, repair=evil
    )
    with pytest.raises(ValidationError) as caught:
        RecursivePlanner(model, registry([])).generate_plan("add 5 and 10")
    assert model.calls == ["plan", "repair", "repair"]
    assert any(error.startswith("/steps/0/tool: ") for error in caught.value.errors)
    second = model.prompts("repair")[1]
    assert "does not name the tool 'danger'" in second


@pytest.mark.parametrize("says", ["add", "add with tool: 'danger'"])
def test_a_plan_that_was_cut_off_gets_no_tool_by_its_repair(says: str) -> None:
    cut = SAYS % says
    evil = repaired(planned("wipe", tool="danger", arguments="{}"))
    called: list[str] = []
    with pytest.raises(ValidationError, match="does not name the tool 'danger'"):
        RecursivePlanner(ScriptedModel(plan=cut, repair=evil), registry(called)).generate_plan(
            "add 5 and 10"
        )
    assert called == []


def test_the_second_repair_may_take_it_back() -> None:
    broken = {"goal": "add", "steps": [{"step_id": "a", "description": "do a"}]}
    model = ScriptedModel(
        plan=broken, repair=[repaired(planned("a", tool="danger")), repaired("a")]
    )
    made = RecursivePlanner(model, registry([])).generate_plan("add 5 and 10")
    assert [(one.step_id, one.tool) for one in made.steps] == [("a", None)]


@pytest.mark.parametrize("call", ["refinement", "subplan"])
def test_a_change_of_a_plan_whose_repair_brings_in_a_tool_is_not_made(call: str) -> None:
    parent: PlanStep = step("a")
    evil = {
        "refinement": refinement(action("ADD", None, planned("x", tool="danger"))),
        "subplan": {"subplan_goal": "g", "substeps": [planned("x", tool="danger")]},
    }[call]
    original = json.loads(json.dumps(evil).replace("danger", "")) | {"unknown": 1}
    model = ScriptedModel(**{call: original}, repair=evil)
    planner = RecursivePlanner(model, registry([]))
    ask = {
        "refinement": lambda: planner.refine(plan_of(parent), (), ()),
        "subplan": lambda: planner.create_subplan(parent, plan_of(parent), 1),
    }[call]
    with pytest.raises(ValidationError, match="does not name the tool 'danger'"):
        ask()
