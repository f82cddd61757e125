"""The server held to what others wrote: the clients of the TypeScript SDK, old and new, its library for tasks, and the
conformance suite of the protocol. `make test-mcp` installs them; they need npm."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.mcp.clients import PLANS, command_line, write_plans
from tests.service.mcp.test_http import serve
from tests.support.openai_server import Failure, OpenAIServer
from tests.support.scripted_model import assessment, profile, refinement, report

NODE = os.environ.get("AEON_TEST_NODE", "")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        not NODE, reason="AEON_TEST_NODE names no folder with the packages: run make test-mcp"
    ),
]

ASKING = ("provider=simulated", "tools=builtin", "tools.approval={calculator: ask}")
TOOLS = """\
import time

def sleep(seconds: float) -> str:
    \"\"\"Wait.\"\"\"
    time.sleep(seconds)
    return "awake"

def allowed(number: int) -> int:
    \"\"\"Give the number back.\"\"\"
    return number
"""
FUNCTIONS = "tools.functions={sleep: 'waiting:sleep', allowed: 'waiting:allowed'}"


def plan(*steps: str, **inputs: str) -> str:
    declared = "".join(
        f"  {name}: {{type: {kind}, default: {default}}}\n"
        for name, (kind, default) in {name: text.split() for name, text in inputs.items()}.items()
    )
    head = f"goal: g\ninputs:\n{declared}" if inputs else "goal: g\n"
    return head + "steps:\n" + "".join(f"  - {{{step}}}\n" for step in steps)


ONE = "id: one, description: d, tool: allowed, arguments: {number: 1}"
AT_ONCE = "id: quick, description: d, tool: sleep, arguments: {seconds: 0}"
LATER = f"{ONE.replace('one', 'two')}, depends_on: [one]"
FAILS = plan("id: fails, description: d, agent: llm")
FIXTURES = {
    "greet.yaml": plan(AT_ONCE, name="string World"),
    "test_simple_text.yaml": plan(AT_ONCE),
    "test_tool_with_progress.yaml": plan(AT_ONCE),
    "test_error_handling.yaml": FAILS,
    "slow_compute.yaml": plan(
        'id: wait, description: d, tool: sleep, arguments: {seconds: "${inputs.seconds}"}',
        seconds="number 1",
        label="string none",
    ),
    "failing_job.yaml": FAILS,
    "confirm_delete.yaml": plan(ONE, filename="string x"),
    "multi_input.yaml": plan(ONE, ONE.replace("one", "two")),
    "test_input_required_result_elicitation.yaml": plan(ONE),
    "test_input_required_result_request_state.yaml": plan(ONE),
    "test_input_required_result_tampered_state.yaml": plan(ONE),
    "test_input_required_result_capabilities.yaml": plan(ONE),
    "test_input_required_result_multi_round.yaml": plan(ONE, LATER),
}
"""The tools that the conformance suite calls, as far as a plan can be one."""


def run_node(folder: Path, *words: str) -> str:
    node = f"{NODE}/node_modules/node/bin/node"
    ended = subprocess.run([node, *words], cwd=folder, capture_output=True, text=True, timeout=240)
    assert ended.returncode == 0, ended.stdout[-8_000:] + ended.stderr[-4_000:]
    return ended.stdout


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The address of a server with the plans of the tests."""
    plans = write_plans(tmp_path / "plans", PLANS)
    with serve(tmp_path, *ASKING, f"mcp.plans={plans}") as (address, _):
        yield address


def check_client(given: dict[str, Any]) -> None:
    assert given["tools"] == ["run_task", "by_hand", "describe", "sum"]
    assert "42" in given["sum"]["content"][0]["text"]
    assert "A line." in given["line"]["content"][0]["text"]
    assert given["refused"]["isError"]
    assert given["page"] == "text/html"
    assert len(given["asked"]) == 2
    assert given["progress"]


@pytest.mark.parametrize("era", ["handshake", "modern"])
def test_clients_in_typescript_over_http(tmp_path: Path, address: str, era: str):
    check_client(json.loads(run_node(tmp_path, f"{NODE}/client.mjs", era, address)))


@pytest.mark.parametrize("era", ["handshake", "modern"])
def test_clients_in_typescript_over_standard_streams(tmp_path: Path, era: str):
    plans = write_plans(tmp_path / "plans", PLANS)
    line = command_line(tmp_path, *ASKING, f"mcp.plans={plans}")
    given = run_node(tmp_path, f"{NODE}/client.mjs", era, line.command, *line.args)
    check_client(json.loads(given))


def test_the_library_for_tasks_in_typescript(tmp_path: Path, address: str):
    given = json.loads(run_node(tmp_path, f"{NODE}/tasks.mjs", address))
    assert given["kind"] == "task"
    assert given["asked"] == 1
    assert given["sent"][0] == "tools/call"
    assert {"tasks/get", "tasks/update"} <= set(given["sent"])
    assert "42" in given["result"]["content"][0]["text"]


@pytest.mark.parametrize("version", [(), ("--spec-version", "2026-07-28")])
def test_the_conformance_suite(
    tmp_path: Path, openai_server: OpenAIServer, version: tuple[str, ...]
):
    """Each scenario by the version of the protocol that it was written for, and all that can be by the newest."""
    openai_server.script = {
        "task_profile": profile(),
        "semantic_validation": report(),
        "refinement": refinement(),
        "convergence": assessment(),
        "step": Failure(401),
    }
    (tmp_path / "waiting.py").write_text(TOOLS)
    overrides = (
        *openai_server.overrides,
        "provider.require_key=false",
        FUNCTIONS,
        "tools.approval={allowed: ask}",
        "tools.timeout_seconds=70",
        "execution.grace_seconds=0.1",
        "mcp.parallel=16",
        f"mcp.plans={write_plans(tmp_path / 'plans', FIXTURES)}",
    )
    suite = f"{NODE}/node_modules/@modelcontextprotocol/conformance/dist/index.js"
    known = Path(__file__).with_name("node") / "known.yml"
    with serve(tmp_path, *overrides) as (address, _):
        asked = ("server", "--url", address, "--suite", "all", *version)
        kept = ("--expected-failures", str(known), "-o", str(tmp_path / "results"))
        run_node(tmp_path, suite, *asked, *kept)
