"""Tools given from Python, and the whole loop of thought, tool and thought over the wire."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import aeon
from aeon import Aeon, ConfigError, tool
from aeon.files.jsonl import read_lines
from aeon.kernel.control import RunControl
from tests.support.fences import texts_in
from tests.support.fixtures import StartServer
from tests.support.scripted_model import ScriptedModel, clear, plan, planned
from tests.tools.builders import a_tool

KEY = {"OPENAI_API_KEY": "k"}
OFFLINE = ("provider=simulated", "mode=core")


@tool(examples=[{"left": 5, "right": 10}])
def add(left: int, right: int) -> int:
    """Add two numbers."""
    return left + right


def mine(tmp_path: Path, text: str) -> str:
    (tmp_path / "mine.yaml").write_text(text)
    return f"plan_file={tmp_path / 'mine.yaml'}"


def test_the_decorator_and_the_tool_are_public() -> None:
    assert isinstance(add, aeon.Tool)
    assert {"tool", "Tool"} <= set(aeon.__all__)
    assert all(getattr(aeon, name) is not None for name in aeon.__all__)


def test_a_tool_given_to_aeon_is_used_by_its_plans(tmp_path: Path) -> None:
    text = "goal: g\nsteps:\n  - {id: sum, description: d, tool: add, arguments: {left: 5, right: 10}}\n"
    with Aeon.from_config((*OFFLINE, mine(tmp_path, text)), environ={}, tools=[add]) as made:
        assert made.warnings == ()
        result = made.run()
    assert result.answer.splitlines()[-1] == "15"
    assert result.exit_status == 0


def test_own_tools_stand_beside_the_configured_ones() -> None:
    settings = Aeon.from_config((*OFFLINE, "tools=builtin"), environ={}).settings
    with Aeon(settings, {}, tools=[add]) as made:
        assert made._process.registry.names() == ("echo", "calculator", "current_time", "add")


@pytest.mark.parametrize("name", ["calculator", "memory_read"])
def test_a_name_that_is_taken_is_refused_before_anything_runs(name: str) -> None:
    with pytest.raises(ConfigError, match=f"'{name}' is registered already"):
        Aeon.from_config((*OFFLINE, "tools=builtin"), environ={}, tools=[a_tool(name=name)])


def test_a_malformed_schema_is_refused_with_its_path() -> None:
    with pytest.raises(ConfigError, match=r"tool 'probe': input_schema.*properties"):
        Aeon.from_config(
            OFFLINE, environ={}, tools=[a_tool(inputs={"type": "object", "properties": 7})]
        )


def test_a_process_that_cannot_be_made_closes_its_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[bool] = []
    monkeypatch.setattr("aeon.tools.registry.ToolRegistry.close", lambda self: closed.append(True))
    with pytest.raises(ConfigError):
        Aeon.from_config((*OFFLINE, "tools=builtin"), environ={}, tools=[add, add])
    assert closed


def test_a_stop_ends_core_mode_with_130_and_what_there_is() -> None:
    control = RunControl()

    @tool
    def stop() -> str:
        """Ask for the end."""
        control.request_stop()
        return "stopped"

    made = Aeon.from_config(OFFLINE, environ={}, tools=[stop])
    steps = plan("a", planned("b", tool="stop", arguments="{}"), "c")
    made._process = replace(made._process, adapter=ScriptedModel(plan=steps))
    result = made.run("tea", control=control)
    assert (result.termination_reason, result.exit_status) == ("interrupted", 130)
    assert [step.status for step in result.history.passes[-1].steps] == [
        "complete",
        "complete",
        "pending",
    ]


def test_thought_tool_thought_over_the_wire(start_server: StartServer, tmp_path: Path) -> None:
    steps = plan(planned("sum", tool="add"), planned("say", "sum"))
    script = {"plan": steps, "tool_arguments": {"left": 5, "right": 10}, "step": clear("It is 15.")}
    server = start_server(script)
    overrides = ("provider=openai", f"provider.base_url={server.url}", "mode=core")
    with Aeon.from_config(overrides, environ=KEY, tools=[add]) as made:
        result = made.run("calculate the sum of 5 and 10", directory=tmp_path / "out")
    assert (result.exit_status, result.answer) == (0, "It is 15.")
    assert server.names == ["plan", "tool_arguments", "step"]
    assert server.refused == []
    (asked,) = server.of("tool_arguments")
    assert set(asked.schema["properties"]) == {"left", "right"}
    assert '"name":"add"' in server.of("plan")[0].system + server.of("plan")[0].user
    assert '"left":5' in server.of("plan")[0].system + server.of("plan")[0].user
    assert texts_in(server.of("step")[0].user, "output") == ["15"]
    line = next(
        line for line in read_lines(tmp_path / "out" / "cycles.jsonl") if line["step_id"] == "sum"
    )
    assert [(call["tool"], call["output"]) for call in line["tool_calls"]] == [("add", 15)]


def test_a_missing_tool_is_repaired_over_the_wire_with_an_enum_of_what_exists(
    start_server: StartServer,
) -> None:
    def repaired(request: Any) -> dict[str, Any]:
        assert request.strict
        return {
            "step_id": "sum",
            "description": "d",
            "tool": "add",
            "arguments": '{"left": 1, "right": 2}',
        }

    server = start_server({"plan": plan(planned("sum", tool="addition")), "repair": repaired})
    overrides = ("provider=openai", f"provider.base_url={server.url}", "mode=core")
    with Aeon.from_config(overrides, environ=KEY, tools=[add]) as made:
        result = made.run("calculate")
    assert server.refused == []
    assert (result.exit_status, result.answer) == (0, "3")
    assert '["add"]' in json.dumps(server.of("repair")[0].schema)
