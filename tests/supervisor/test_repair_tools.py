"""Tool calls, steps and plans that the supervisor puts right, and what it may not do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aeon.domain.errors import ValidationError
from aeon.domain.plan import Plan, PlanStep
from aeon.llm.exchange import InvalidAnswer
from aeon.llm.schemas import load_packaged_schemas
from aeon.plan.wire import parse_plan
from aeon.schema.validators import FieldError
from aeon.supervisor.faithful import NoToolFits, choose_tool
from aeon.supervisor.repair import Supervisor
from aeon.tools.registry import Tool, ToolRegistry
from tests.support.scripted_model import ScriptedModel, plan, planned
from tests.tools.builders import a_tool

PRICE = {
    "type": "object",
    "properties": {"article": {"type": "string"}, "pieces": {"type": "integer", "minimum": 1}},
    "required": ["article"],
    "additionalProperties": False,
}


def price() -> Tool:
    return a_tool(name="price", inputs=PRICE, examples=[{"article": "A-100", "pieces": 12}])


def registry() -> ToolRegistry:
    return ToolRegistry([price(), a_tool(name="clock", examples=[{"zone": "UTC"}])])


def lost(**fields: Any) -> PlanStep:
    return PlanStep(
        step_id="buy",
        description="find the price",
        **{"tool": "prices", "errors": ("no such",), **fields},
    )


def answer(tool: str | None = "price", arguments: str | None = None) -> dict[str, Any]:
    return {"step_id": "buy", "description": "find the price", "tool": tool, "arguments": arguments}


def test_arguments_come_back_as_the_tools_schema_wants_them() -> None:
    model = ScriptedModel(repair={"article": "A-1", "pieces": 2})
    errors = [FieldError("/pieces", "'two' is not of type 'integer'")]
    repaired = Supervisor(model).repair_tool_call(
        price(), {"article": "A-1", "pieces": "two"}, errors=errors
    )
    assert repaired == {"article": "A-1", "pieces": 2}
    (prompt,) = model.prompts("repair")
    for shown in (
        '{"article": "A-1", "pieces": "two"}',
        "/pieces: 'two' is not of type 'integer'",
        "A-100",
    ):
        assert shown in prompt


def test_arguments_that_are_right_ask_nothing() -> None:
    model = ScriptedModel()
    assert Supervisor(model).repair_tool_call(price(), {"article": "A-1"}) == {"article": "A-1"}
    assert model.calls == []


def test_arguments_that_stay_wrong_are_unrecoverable_after_two_attempts() -> None:
    model = ScriptedModel(repair={"pieces": 0})
    with pytest.raises(ValidationError) as caught:
        Supervisor(model).repair_tool_call(price(), {})
    assert model.calls == ["repair", "repair"]
    assert len(caught.value.errors) >= 2


def test_a_step_gets_a_registered_tool_and_keeps_everything_else() -> None:
    model = ScriptedModel(
        repair=answer(arguments='{"article": "A-1"}') | {"description": "buy the shop"}
    )
    before = lost(dependencies=("x",), provides=("y",), handoff_to_next="h")
    after = Supervisor(model).repair_step(before, "the goal", registry())
    assert (after.tool, after.arguments) == ("price", {"article": "A-1"})
    assert after == before.model_copy(update={"tool": "price", "arguments": {"article": "A-1"}})


def test_a_step_repair_is_shown_every_tool_with_schemas_and_examples_the_step_and_the_goal() -> (
    None
):
    model = ScriptedModel(repair=answer())
    Supervisor(model).repair_step(
        lost(arguments={"article": "A-1"}), "stay under budget", registry()
    )
    (prompt,), (request,) = model.prompts("repair"), model.requests
    for described in registry().describe():
        assert json.dumps(described, separators=(",", ":")) in prompt
    for shown in (
        "stay under budget",
        "find the price",
        "/tool: no such",
        "A-100",
        "choose the tool that does",
    ):
        assert shown in prompt
    assert request.role == "repairer"
    assert request.schema["properties"]["tool"]["anyOf"][0]["enum"] == ["price", "clock"]


@pytest.mark.parametrize("fields", [{"errors": ()}, {"errors": (), "tool": None}])
def test_a_step_without_errors_of_its_own_is_repaired_too(fields: dict[str, Any]) -> None:
    model = ScriptedModel(repair=answer())
    assert Supervisor(model).repair_step(lost(**fields), "g", registry()).tool == "price"


def test_when_no_tool_fits_it_says_so_at_once() -> None:
    model = ScriptedModel(repair=answer(None))
    with pytest.raises(NoToolFits):
        Supervisor(model).repair_step(lost(), "g", registry())
    assert model.calls == ["repair"]


@pytest.mark.parametrize(
    "malformed",
    [answer("prices"), answer(arguments="[1]"), answer(arguments="{"), {"tool": "price"}],
)
def test_a_tool_that_does_not_exist_or_arguments_that_are_none_never_get_through(
    malformed: dict[str, Any],
) -> None:
    model = ScriptedModel(repair=malformed)
    with pytest.raises(ValidationError):
        Supervisor(model).repair_step(lost(), "g", registry())
    assert model.calls == ["repair", "repair"]


def test_the_second_attempt_may_succeed() -> None:
    model = ScriptedModel(repair=[answer("prices"), answer("clock")])
    assert Supervisor(model).repair_step(lost(), "g", registry()).tool == "clock"


def test_blank_arguments_are_none() -> None:
    assert choose_tool(lost(), answer(arguments=" "), ["price"]).arguments is None


def test_names_are_held_locally_too() -> None:
    with pytest.raises(InvalidAnswer, match="there is no tool 'x'"):
        choose_tool(lost(), answer("x"), ["price"])
    wire = load_packaged_schemas().wire("tool_choice", tools=["price"])
    assert wire.strict
    assert wire.schema["required"] == ["step_id", "description", "tool", "arguments"]


def test_a_plan_with_a_cycle_is_put_right() -> None:
    def parsed(value: Any) -> Plan:
        return parse_plan(value, "tea", max_steps=10, one_final_step=False)

    circular = json.dumps(plan(planned("a", "b"), planned("b", "a")))
    model = ScriptedModel(repair=plan(planned("a"), planned("b", "a")))
    made = Supervisor(model).repair_plan(
        circular, parsed, tools=registry().describe(), names=registry().names()
    )
    assert [step.step_id for step in made.steps] == ["a", "b"]
    (prompt,), (request,) = model.prompts("repair"), model.requests
    assert "loop" in prompt
    assert '"name":"clock"' in prompt
    assert '"enum": ["price", "clock"]' in json.dumps(request.schema)
