"""Tools' arguments that are not as their schemas say, and tools that go while they are dealt with."""

from __future__ import annotations

from typing import Any

import pytest

from aeon.execution.worker import StepWorker
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import ToolRegistry
from tests.execution.test_worker import echo, fixed, made, step, work
from tests.support.scripted_model import ScriptedModel, clear
from tests.tools.builders import a_tool


def test_the_plan_says_the_arguments_that_were_used() -> None:
    model = ScriptedModel(repair={"text": "7"})
    worked = work(made(model, echo()), step(tool="echo", arguments={"text": 7}))
    assert worked.result.tool_result is not None
    assert worked.step.arguments == worked.result.tool_result["arguments"] == {"text": "7"}


def test_a_repair_of_arguments_is_shown_all_tools_and_which_of_them_is_called() -> None:
    model = ScriptedModel(repair={"text": "7"})
    worker = made(model, echo(), a_tool(name="clock", examples=[{"zone": "UTC"}]))
    work(worker, step(tool="echo", arguments={"text": 7}))
    (prompt,) = model.prompts("repair")
    for said in (
        '"name":"echo"',
        '"name":"clock"',
        '{"zone":"UTC"}',
        '{"tool":"echo"}',
        "named further down",
    ):
        assert said in prompt


def test_a_repair_of_arguments_that_were_asked_for_is_shown_all_tools() -> None:
    model = ScriptedModel(tool_arguments={"text": 7}, repair={"text": "7"})
    work(made(model, echo(), a_tool(name="clock")), step(tool="echo"))
    (prompt,) = model.prompts("repair")
    assert '"name":"clock"' in prompt


def test_a_tool_that_a_repair_put_in_place_and_that_vanishes_fails_the_step() -> None:
    registry = ToolRegistry([echo("second")])

    class Vanishing(ToolInvoker):
        def invoke(self, name: str, arguments: Any) -> Any:
            registry.unregister(name)
            return super().invoke(name, arguments)

    model = ScriptedModel(repair=fixed("second"), step=clear("by hand"))
    worker = StepWorker(model, registry=registry, invoker=Vanishing(registry))
    worked = work(worker, step(tool="first"))
    assert worked.step.status == "failed"
    assert [kind for kind, _ in worked.remarks] == ["unknown_tool", "repaired_step"]
    assert "'second'" in worked.step.errors[-1]


def test_what_was_done_to_the_arguments_is_told_even_if_the_tool_vanishes() -> None:
    registry = ToolRegistry([echo()])

    class Vanishing(ToolInvoker):
        def invoke(self, name: str, arguments: Any) -> Any:
            registry.unregister(name)
            return super().invoke(name, arguments)

    model = ScriptedModel(repair={"text": "7"}, step=clear("by hand"))
    worker = StepWorker(model, registry=registry, invoker=Vanishing(registry))
    worked = work(worker, step(tool="echo", arguments={"text": 7}))
    assert [kind for kind, _ in worked.remarks] == [
        "repaired_arguments",
        "unknown_tool",
        "fallback_step",
    ]


DRAFT_7_PAIR = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {"p": {"type": "array", "items": [{"type": "string"}, {"type": "number"}]}},
}
DRAFT_4_RANGE = {
    "$schema": "http://json-schema.org/draft-04/schema#",
    "type": "object",
    "properties": {"p": {"type": "number", "minimum": 3, "exclusiveMinimum": True}},
}
ANCHORED = {
    "type": "object",
    "properties": {"p": {"$ref": "#t"}},
    "$defs": {"T": {"$anchor": "t", "type": "string"}},
}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [(DRAFT_7_PAIR, ["x", 2], [1, 2]), (DRAFT_4_RANGE, 4, 3), (ANCHORED, "x", 1)],
)
def test_arguments_of_any_draft_are_asked_for_and_repaired_by_the_tools_own_schema(
    schema: dict[str, Any], good: Any, bad: Any
) -> None:
    own = a_tool(lambda given: given, inputs=schema)
    model = ScriptedModel(tool_arguments={"p": bad}, repair={"p": good})
    worked = work(made(model, own), step(tool="probe"))
    assert (worked.step.status, model.calls) == ("complete", ["tool_arguments", "repair"])
    assert [request.strict for request in model.requests] == [False, False]
    assert all(request.schema.get("$schema") == schema.get("$schema") for request in model.requests)
    model = ScriptedModel(repair={"p": good})
    worked = work(made(model, own), step(tool="probe", arguments={"p": bad}))
    assert (worked.step.status, worked.step.arguments) == ("complete", {"p": good})
