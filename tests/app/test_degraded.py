"""What a run did without, in its result: missing tools, servers that did not start, reviews that could not be had."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon, ConfigError
from aeon.app.record import find_degraded
from aeon.domain.errors import RequestRefused, Truncated
from aeon.domain.history import Advisory, RunState
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.request import LLMRequest
from aeon.domain.result import RunResult
from aeon.report.ending import headline, tone
from aeon.tools.registry import ToolRegistry
from aeon.tools.settings import ToolSettings
from tests.kernel.test_patience import changing
from tests.support.scripted_model import (
    ScriptedModel,
    blocked,
    clear,
    issue,
    modify,
    plan,
    planned,
    refinement,
    report,
)

NOT_A_SERVER = f"tools.mcp.servers.clock.command=[{sys.executable},--version]"
SLOW_TO_FAIL = "tools.mcp.servers.clock.start_timeout_seconds=10"
SUM = planned("add", tool="calculator", arguments='{"expression": "5 + 10"}')


def run(model: ScriptedModel, *overrides: str) -> RunResult:
    with Aeon.from_config(["store=off", *overrides], adapter=model, environ={}) as aeon:
        return aeon.run("what is 5 + 10?")


def workflow(folder: Path, tool: str) -> str:
    path = folder / "plan.yaml"
    path.write_text(f"goal: the sum\nsteps:\n- {{id: add, description: add, tool: {tool}}}\n")
    return f"plan_file={path}"


@pytest.mark.parametrize("mode", ["core", "adaptive"])
def test_a_step_that_the_model_did_instead_of_its_tool_is_named_with_what_registers_it(
    mode: str,
) -> None:
    result = run(ScriptedModel(plan=plan(SUM)), f"mode={mode}")
    (found,) = result.degraded
    assert (found.kind, found.step, found.overrides) == ("tool_missing", "add", ("tools=builtin",))
    assert found.message == "Tool 'calculator' not found in registry: the model did the step"
    assert found.remedy == "Register it: tools=builtin"
    assert (result.exit_status, tone(result)) == (0, "warn")
    assert "; 1 of 1 step was done by the model instead of its tool" in headline(result)


def test_a_step_from_which_refinement_took_the_missing_tool_is_named_too(tmp_path: Path) -> None:
    model = ScriptedModel(
        semantic_validation=[report(issue("i1", "add")), report()],
        refinement=[refinement(modify("add", addresses_issues=["i1"])), refinement()],
    )
    result = run(model, workflow(tmp_path, "calculator"))
    (step,) = result.history.passes[-1].steps
    (found,) = result.degraded
    assert (step.tool, found.step, found.overrides) == (None, "add", ("tools=builtin",))
    assert found.message == "Tool 'calculator' not found in registry: the model did the step"
    assert (result.exit_status, tone(result)) == (0, "warn")


def test_a_step_that_the_model_could_not_do_without_its_tool_is_named_with_what_registers_it() -> (
    None
):
    result = run(ScriptedModel(plan=plan(SUM), step=blocked()), "mode=core")
    (found,) = result.degraded
    assert (found.step, found.overrides) == ("add", ("tools=builtin",))
    assert found.message.endswith("not found in registry: the model could not do the step")


def test_a_run_with_all_its_tools_is_not_degraded() -> None:
    result = run(ScriptedModel(plan=plan(SUM)), "tools=builtin")
    assert (result.degraded, tone(result)) == ((), "good")


@pytest.mark.parametrize(
    ("tool", "given", "overrides"),
    [
        ("echo", (), ("tools=builtin",)),
        ("memory_read", (), ("tools=builtin",)),
        ("read_file", (), ("tools=builtin", "tools.builtin.root=DIR")),
        ("http_get", ("tools=builtin",), ("tools.builtin.allowed_hosts=[HOST]",)),
        (
            "echo",
            ("tools=builtin", "tools.builtin.only=[calculator]"),
            ("tools.builtin.only=null",),
        ),
        ("echo", ("tools=mcp",), ("tools=[builtin,mcp]",)),
        ("prices", (), ("tools.functions.prices=MODULE:FUNCTION",)),
    ],
)
def test_what_registers_a_tool_depends_on_the_tool_and_on_what_is_configured(
    tool: str, given: tuple[str, ...], overrides: tuple[str, ...]
) -> None:
    model = ScriptedModel(plan=plan(planned("a", tool=tool)))
    (found,) = run(model, "mode=core", *given).degraded
    assert found.overrides == overrides


@pytest.mark.slow
def test_a_server_that_did_not_start_is_named_though_no_step_asked_for_its_tools() -> None:
    result = run(ScriptedModel(), "tools=mcp", NOT_A_SERVER, SLOW_TO_FAIL)
    (found,) = result.degraded
    assert (found.kind, found.step) == ("server_down", None)
    assert found.message.startswith("The MCP server 'clock' did not start: ")
    assert "tools.mcp.servers.clock" in found.remedy
    assert tone(result) == "warn"
    assert "; 1 MCP server did not start" in headline(result)


@pytest.mark.slow
def test_a_step_whose_server_is_down_is_told_to_start_the_server() -> None:
    model = ScriptedModel(plan=plan(planned("now", tool="clock.now")))
    found = {one.kind: one for one in run(model, "mode=core", "tools=mcp", NOT_A_SERVER).degraded}
    assert found.keys() == {"tool_missing", "server_down"}
    assert found["tool_missing"].overrides == ()
    assert found["tool_missing"].remedy.startswith("Start that server")


def test_a_review_that_could_not_be_had_is_named() -> None:
    lost = Truncated("cut off")
    model = ScriptedModel(semantic_validation=[lost, report()])
    result = run(model, "provider.retry.attempts=1")
    (found,) = result.degraded
    assert (result.termination_reason, found.kind) == ("converged", "review_lost")
    assert "Pass 0 lacks a review" in found.message
    assert "; 1 review or assessment could not be had" in headline(result)


def test_changed_answers_that_could_not_be_compared_are_named() -> None:
    scripted = changing(0.5, comparison=RequestRefused("no", status=400))
    result = run(scripted, "refinement.accept=not_worse", "convergence.patience=1")
    assert [one.kind for one in result.degraded] == ["comparison_lost"]
    assert result.degraded[0].message == "Pass 2 lacks a comparison of answers: no"
    assert "store.retry_unusable=all" in result.degraded[0].remedy
    assert "; 1 comparison could not be had" in headline(result)


@pytest.mark.parametrize(
    ("replaced_by", "count"), [(None, 1), ("of_model", 1), ("of_tool", 0), ("gone", 0)]
)
def test_a_step_that_another_tool_does_in_its_place_does_not_count(
    replaced_by: str | None, count: int
) -> None:
    steps = (
        PlanStep(
            step_id="add", description="d", tool="sums", status="complete", replaced_by=replaced_by
        ),
        PlanStep(step_id="of_model", description="d", agent="llm", status="complete"),
        PlanStep(step_id="of_tool", description="d", tool="calculator", status="complete"),
    )
    advisories = [
        Advisory(kind=kind, message=message, pass_number=1, step_id="add")
        for kind, message in (
            ("unknown_tool", "Step add: Tool 'sums' not found in registry"),
            ("fallback_step", "m"),
        )
    ]
    state = RunState(plan=Plan(goal="g", steps=steps), advisories=tuple(advisories))
    assert len(find_degraded(state, ToolSettings(), ToolRegistry())) == count


@pytest.mark.parametrize("mode", ["core", "adaptive"])
def test_a_plan_of_a_person_with_a_missing_tool_is_refused_before_any_call_if_asked_for(
    mode: str, tmp_path: Path
) -> None:
    model = ScriptedModel()
    with pytest.raises(ConfigError, match=r"step add: Tool 'calculator' not found") as refused:
        run(model, workflow(tmp_path, "calculator"), f"mode={mode}", "tools.missing=fail")
    assert "tools=builtin" in refused.value.hint
    assert model.calls == []


@pytest.mark.slow
def test_a_server_that_did_not_start_is_refused_before_any_call_if_asked_for() -> None:
    model = ScriptedModel()
    with pytest.raises(ConfigError, match="MCP server 'clock' did not start"):
        run(model, "tools=mcp", NOT_A_SERVER, SLOW_TO_FAIL, "tools.missing=fail")
    assert model.calls == []


def test_a_plan_of_the_model_with_a_missing_tool_has_a_failed_step_if_asked_for() -> None:
    model = ScriptedModel(plan=plan(SUM))
    result = run(model, "mode=core", "tools.missing=fail")
    (step,) = result.history.passes[-1].steps
    assert (step.status, result.termination_reason) == ("failed", "step_failed")
    assert "not found in registry, and tools.missing=fail" in step.errors[-1]
    assert [one.kind for one in result.degraded] == ["tool_missing"]
    assert model.calls == ["plan"]


@pytest.mark.parametrize(
    ("roles", "is_self_judged"),
    [((), True), (("roles.grader.model=other",), False)],
)
def test_a_run_says_whether_a_model_that_worked_also_judged(
    roles: tuple[str, ...], is_self_judged: bool
) -> None:
    class Named(ScriptedModel):
        def complete(self, request: Any) -> Any:
            answer = super().complete(request)
            return type(answer)(
                text=answer.text, usage=answer.usage, model=request.parameters.model
            )

    result = run(Named(), "provider.model=one", *roles)
    assert result.self_judged is is_self_judged
    assert headline(result).endswith("judged by the model that did the work.") is is_self_judged


def test_a_simulated_run_has_no_judge_to_speak_of() -> None:
    with Aeon.from_config(["provider=simulated", "store=off"], environ={}) as aeon:
        assert not aeon.run("plan a move").self_judged


def test_a_step_that_was_cut_short_in_its_look_ups_is_named_with_what_allows_more() -> None:
    def step(request: LLMRequest) -> Any:
        if "tool_calls" not in request.schema["properties"]:
            return clear("what there is")
        arguments = f'{{"expression": "1 + {len(request.messages)}"}}'
        return {"tool_calls": [{"tool": "calculator", "arguments": arguments}], "answer": None}

    model = ScriptedModel(plan=plan("add"), step=step)
    keys = ("tools=builtin", "execution.step_tools=all", "execution.max_tool_rounds=2")
    result = run(model, *keys)
    (found,) = result.degraded
    assert (found.kind, found.step) == ("tools_ended", "add")
    assert found.overrides == ("execution.max_tool_rounds=4",)
    assert "finished after 2 rounds of tool calls" in found.message
    assert (result.exit_status, tone(result)) == (0, "warn")
    assert "; 1 of 1 step was finished while tools were still asked for" in headline(result)
