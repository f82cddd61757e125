"""Carrying out one step, each way there is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from aeon.domain.errors import ServerFailed
from aeon.domain.history import StepResult
from aeon.domain.plan import Plan, PlanStep
from aeon.execution.outcome import find_outage
from aeon.execution.worker import Situation, StepWorker, Worked
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import ApprovalRequest, Tool, ToolRegistry
from aeon.tools.settings import ToolSettings
from tests.support.scripted_model import ScriptedModel, blocked, clear
from tests.tools.builders import a_tool

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NONE_FITS = {"step_id": "a", "description": "d", "tool": None, "arguments": None}


def echo(name: str = "echo") -> Tool:
    return a_tool(lambda given: given["text"], name=name, inputs=TEXT, outputs={"type": "string"})


def fixed(name: str = "echo", arguments: str | None = '{"text": "hi"}') -> dict[str, Any]:
    return {"step_id": "a", "description": "d", "tool": name, "arguments": arguments}


def step(**fields: Any) -> PlanStep:
    return PlanStep(step_id="a", description="do a", status="running", **fields)


def work(
    worker: StepWorker,
    one: PlanStep,
    results: Mapping[str, StepResult] | None = None,
    **situation: Any,
) -> Worked:
    return worker.work(
        one, Situation(Plan(goal="the goal", steps=(one,), task="tea"), results or {}, **situation)
    )


def made(model: ScriptedModel, *tools: Tool, **options: Any) -> StepWorker:
    return StepWorker(model, registry=ToolRegistry(tools), **options)


def test_a_tool_with_arguments_is_called_and_no_model_is() -> None:
    model = ScriptedModel()
    worked = work(made(model, echo()), step(tool="echo", arguments={"text": "hi"}))
    assert (worked.step.status, worked.step.step_output) == ("complete", "hi")
    assert worked.result.tool_result is not None
    assert worked.result.tool_result["output"] == "hi"
    assert model.calls == []


def test_a_step_for_the_model_gets_the_models_output() -> None:
    model = ScriptedModel(step=clear("done", handoff="mind the milk"))
    worked = work(made(model), step(agent="llm"))
    assert (worked.step.status, worked.result.step_output, worked.result.handoff) == (
        "complete",
        "done",
        "mind the milk",
    )


@pytest.mark.parametrize("ttl_remaining", [None, 5])
def test_the_only_step_of_a_plan_is_described_once(ttl_remaining: int | None) -> None:
    model = ScriptedModel()
    only = step(agent="llm")
    situation = Situation(Plan(goal="do a", steps=(only,)), ttl_remaining=ttl_remaining)
    made(model).work(only, situation)
    [prompt] = model.prompts("step")
    assert prompt.count("do a") == 1
    assert "Your goal for this step" in prompt


def test_of_tool_and_agent_the_tool_wins() -> None:
    model = ScriptedModel()
    assert (
        work(
            made(model, echo()), step(tool="echo", agent="llm", arguments={"text": "hi"})
        ).step.step_output
        == "hi"
    )
    assert model.calls == []


@pytest.mark.parametrize(
    ("fields", "cost"),
    [
        ({"agent": "llm"}, 1),
        ({}, 1),
        ({"tool": "echo", "arguments": {"text": "hi"}}, 0),
        ({"tool": "echo"}, 1),
        ({"tool": "echo", "arguments": {"text": 7}}, 1),
        ({"tool": "gone", "arguments": {}}, 1),
    ],
)
def test_only_a_tool_with_valid_arguments_of_its_own_costs_nothing(
    fields: dict[str, Any], cost: int
) -> None:
    assert made(ScriptedModel(), echo()).cost(step(**fields), Plan(goal="g", steps=()), {}) == cost


def test_references_are_filled_in_for_a_persons_plan_and_only_there() -> None:
    results = {"x": StepResult(step_id="x", step_output='{"n": 1}')}
    one = step(tool="echo", arguments={"text": "${steps.x.output.n} of ${inputs.who}"})
    assert (
        work(made(ScriptedModel(), echo(), inputs={"who": "Ada"}), one, results).step.step_output
        == "1 of Ada"
    )
    untouched = work(made(ScriptedModel(), echo()), one, results).step.step_output
    assert untouched == "${steps.x.output.n} of ${inputs.who}"


def test_a_whole_reference_keeps_the_type_of_a_tools_result() -> None:
    number = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}
    double = a_tool(lambda given: given["n"] * 2, name="double", inputs=number)
    tool_result = {"output": 21, "tool": "t", "arguments": {}}
    results = {"x": StepResult(step_id="x", step_output="21", tool_result=tool_result)}
    worker = made(ScriptedModel(), double, inputs={})
    assert (
        work(
            worker, step(tool="double", arguments={"n": "${steps.x.output}"}), results
        ).step.step_output
        == "42"
    )


@pytest.mark.parametrize(
    "results",
    [{}, {"x": StepResult(step_id="x", error="broke", tool_result={"output": None, "tool": "t"})}],
)
def test_a_reference_to_nothing_fails_the_step_for_free(results: dict[str, StepResult]) -> None:
    model = ScriptedModel()
    worker, one = (
        made(model, echo(), inputs={}),
        step(tool="echo", arguments={"text": "${steps.x.output}"}),
    )
    assert worker.cost(one, Plan(goal="g", steps=()), results) == 0
    worked = work(worker, one, results, free=True)
    assert worked.step.status == "failed"
    assert "step `x` has no output" in worked.step.errors[-1]
    assert model.calls == []


def test_arguments_are_asked_for_with_the_tools_own_schema_on_the_wire() -> None:
    model = ScriptedModel(tool_arguments={"text": "asked"})
    assert work(made(model, echo()), step(tool="echo"), ttl_remaining=4).step.step_output == "asked"
    (request,) = model.requests
    assert (request.call, request.role) == ("tool_arguments", "worker")
    assert request.schema["properties"] == TEXT["properties"]
    (prompt,) = model.prompts("tool_arguments")
    assert '"name":"echo"' in prompt
    assert "LLM cycles left after this one: 4." in prompt


def test_invalid_arguments_are_repaired_and_then_used() -> None:
    model = ScriptedModel(repair={"text": "7"})
    worked = work(made(model, echo()), step(tool="echo", arguments={"text": 7}))
    assert worked.step.step_output == "7"
    (prompt,) = model.prompts("repair")
    assert "/text" in prompt
    assert '"name":"echo"' in prompt


def test_arguments_that_cannot_be_repaired_fail_the_step() -> None:
    called: list[Any] = []
    tool = a_tool(called.append, name="echo", inputs=TEXT)
    model = ScriptedModel(repair={"text": 8})
    worked = work(made(model, tool), step(tool="echo", arguments={"text": 7}))
    assert worked.step.status == "failed"
    assert model.calls == ["repair", "repair"]
    assert called == []


def test_a_missing_tool_is_repaired_to_one_that_exists() -> None:
    model = ScriptedModel(repair=fixed())
    worked = work(made(model, echo()), step(tool="ecko", arguments={"text": "old"}))
    assert (worked.step.tool, worked.step.arguments, worked.step.step_output) == (
        "echo",
        {"text": "old"},
        "old",
    )
    assert worked.step.errors == ("Tool 'ecko' not found in registry",)
    assert [kind for kind, _ in worked.remarks] == ["unknown_tool", "repaired_step"]
    assert worked.step.description == "do a"


def test_a_missing_tool_that_nothing_replaces_is_done_by_the_model() -> None:
    model = ScriptedModel(repair=NONE_FITS, step=clear("by hand"))
    worked = work(made(model, echo()), step(tool="ecko"))
    assert (worked.step.status, worked.step.step_output) == ("complete", "by hand")
    assert [kind for kind, _ in worked.remarks] == ["unknown_tool", "fallback_step"]
    assert model.calls == ["repair", "step:None"]
    assert "do a" in model.prompts("step")[0]


def test_without_any_tool_there_is_nothing_to_repair_a_step_to() -> None:
    model = ScriptedModel(step=clear("by hand"))
    assert work(made(model), step(tool="ecko")).step.step_output == "by hand"
    assert model.calls == ["step:None"]


def test_a_step_with_neither_tool_nor_agent_takes_the_same_way() -> None:
    model = ScriptedModel(repair=fixed())
    worked = work(made(model, echo()), step())
    assert worked.step.step_output == "hi"
    assert worked.step.errors == ("The step names neither a tool nor agent: llm",)


def test_a_repaired_step_without_arguments_has_them_asked_for() -> None:
    model = ScriptedModel(repair=fixed(arguments=None), tool_arguments={"text": "asked"})
    assert work(made(model, echo()), step(tool="ecko")).step.step_output == "asked"
    assert model.calls == ["repair", "tool_arguments"]


def test_a_tool_that_goes_while_its_arguments_are_asked_for_is_a_missing_one() -> None:
    registry = ToolRegistry([echo(), echo("other")])

    def leave(_: Any) -> dict[str, Any]:
        registry.unregister("echo")
        return {"text": "late"}

    model = ScriptedModel(tool_arguments=leave, repair=fixed("other"))
    worked = work(StepWorker(model, registry=registry), step(tool="echo"))
    assert (worked.step.tool, worked.step.step_output) == ("other", "hi")


def test_a_tool_may_unregister_itself() -> None:
    registry = ToolRegistry()

    def leave(given: Mapping[str, Any]) -> str:
        registry.unregister("once")
        return str(given["text"])

    registry.register(a_tool(leave, name="once", inputs=TEXT))
    model = ScriptedModel(step=clear("by hand"))
    worker, one = StepWorker(model, registry=registry), step(tool="once", arguments={"text": "hi"})
    assert work(worker, one).step.step_output == "hi"
    assert work(worker, one).step.step_output == "by hand"


@pytest.mark.parametrize("gone", [True, False])
def test_a_step_that_nobody_paid_for_asks_no_model(gone: bool) -> None:
    model = ScriptedModel()
    worker = made(model) if gone else made(model, echo())
    assert work(worker, step(tool="echo", arguments={"text": 7}), free=True).step.status == "failed"
    assert model.calls == []


def test_a_tool_that_fails_fails_the_step_with_what_it_said() -> None:
    def fails(_: Mapping[str, Any]) -> str:
        raise RuntimeError("closed on Sundays")

    worked = work(
        made(ScriptedModel(), a_tool(fails, name="shop")), step(tool="shop", arguments={})
    )
    assert worked.step.status == "failed"
    assert worked.result.error == "Tool 'shop': RuntimeError: closed on Sundays"
    assert worked.result.tool_result is not None
    assert worked.result.tool_result["error_kind"] == "raised"


def test_an_output_that_is_not_as_the_tool_promised_fails_the_step_and_is_kept() -> None:
    liar = a_tool(lambda _: "three", name="count", outputs={"type": "integer"})
    worked = work(made(ScriptedModel(), liar), step(tool="count", arguments={}))
    assert worked.step.status == "failed"
    assert worked.result.tool_result is not None
    assert worked.result.tool_result["output"] == "three"
    assert "output schema" in (worked.result.error or "")


def test_a_blocked_worker_leaves_the_step_invalid() -> None:
    worked = work(made(ScriptedModel(step=blocked())), step(agent="llm"))
    assert (worked.step.status, worked.step.clarity_state) == ("invalid", "BLOCKED")


@pytest.mark.parametrize("tool", [None, "echo"])
def test_a_provider_that_is_down_fails_the_step_and_is_told(tool: str | None) -> None:
    down = ServerFailed("503", status=503)
    model = ScriptedModel(step=down, tool_arguments=down)
    worked = work(made(model, echo()), step(tool=tool, agent=None if tool else "llm"))
    assert worked.step.status == "failed"
    assert find_outage(worked.error) is down


def test_arguments_that_were_repaired_are_told_before_and_after() -> None:
    model = ScriptedModel(repair={"text": "mended"})
    worked = work(made(model, echo()), step(tool="echo", arguments={"txt": "mended"}))
    ((kind, said),) = worked.remarks
    assert kind == "repaired_arguments"
    assert '{"txt": "mended"} -> {"text": "mended"}' in said


DEAD = "the MCP server 'dead' did not start"


@pytest.mark.parametrize(
    ("answer", "output", "kinds"),
    [
        (fixed(), "hi", ["unknown_tool", "repaired_step"]),
        (NONE_FITS, "by hand", ["unknown_tool", "fallback_step"]),
    ],
)
def test_a_tool_of_a_server_that_did_not_start_goes_the_way_of_a_missing_one(
    answer: dict[str, Any], output: str, kinds: list[str]
) -> None:
    registry = ToolRegistry([echo()])
    registry.explain_missing_with(lambda name: DEAD if name == "dead.x" else None)
    worker = StepWorker(ScriptedModel(repair=answer, step=clear("by hand")), registry=registry)
    gone = step(tool="dead.x")
    assert worker.cost(gone, Plan(goal="g", steps=()), {}) == 1
    worked = work(worker, gone)
    assert (worked.step.status, worked.step.step_output) == ("complete", output)
    assert worked.step.errors == (f"Tool 'dead.x': {DEAD}",)
    assert [kind for kind, _ in worked.remarks] == kinds


def test_arguments_that_the_new_tool_refuses_give_way_to_those_of_the_repair() -> None:
    model = ScriptedModel(repair=fixed(arguments='{"text": "of the repair"}'))
    worked = work(made(model, echo()), step(tool="ecko", arguments={"wrong": 1}))
    assert (worked.step.arguments, worked.step.step_output) == (
        {"text": "of the repair"},
        "of the repair",
    )
    assert model.calls == ["repair"]


def test_arguments_that_the_new_tool_refuses_stay_to_be_repaired_where_the_repair_gave_none() -> (
    None
):
    model = ScriptedModel(repair=[fixed(arguments=None), {"text": "mended"}])
    worked = work(made(model, echo()), step(tool="ecko", arguments={"wrong": 1}))
    assert worked.step.step_output == "mended"
    assert model.calls == ["repair", "repair"]


def test_whoever_approves_a_tool_is_told_which_step_asks() -> None:
    asked: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> bool:
        asked.append(request)
        return True

    registry = ToolRegistry([echo()])
    invoker = ToolInvoker(registry, ToolSettings(approval={"*": "ask"}), approve=approve)
    worker = StepWorker(ScriptedModel(), registry=registry, invoker=invoker)
    work(worker, step(tool="echo", arguments={"text": "hi"}))
    invoker.invoke("echo", {"text": "hi"})
    assert [(request.step and request.step.step_id, request.tool.name) for request in asked] == [
        ("a", "echo"),
        (None, "echo"),
    ]
