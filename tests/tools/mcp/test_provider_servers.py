"""Against servers that other people wrote: PyPI's mcp-server-time, npm's @modelcontextprotocol/server-everything."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aeon.tools.invoke import ToolInvoker
from aeon.tools.mcp.provider import McpTools, ToolFailed
from aeon.tools.registry import ToolRegistry
from tests.tools.mcp.mcp_fixtures import Open, free_port, named, open_tools, served

__all__ = ["open_tools", "served"]

EVERYTHING = (
    Path(__file__).parents[2]
    / "mcp/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
)
NODE = shutil.which("node") or "node"

needs_everything = pytest.mark.skipif(
    shutil.which("node") is None or not EVERYTHING.is_file(),
    reason="needs node, and npm's packages of tests/mcp, which `make test-slow` installs where there is npm",
)


@pytest.mark.slow
def test_the_time_server_tells_and_converts_the_time(open_tools: Open) -> None:
    tools = open_tools(
        clock={"command": [sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC"]}
    )
    assert sorted(named(tools)) == ["clock.convert_time", "clock.get_current_time"]
    assert tools.problems() == ()
    invoker = ToolInvoker(ToolRegistry(tools.tools()))
    told = invoker.invoke("clock.get_current_time", {"timezone": "Asia/Tokyo"})
    assert told.error is None
    assert told.output["timezone"] == "Asia/Tokyo"
    converted = invoker.invoke(
        "clock.convert_time",
        {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"},
    )
    assert "T21:00:00+09:00" in converted.text
    assert invoker.invoke("clock.convert_time", {}).error_kind == "invalid_arguments"
    with pytest.raises(ToolFailed, match="Invalid timezone"):
        named(tools)["clock.get_current_time"].invoke({"timezone": "Nowhere/Land"})


def everything_works(tools: McpTools) -> None:
    by_name = named(tools)
    assert len(by_name) >= 12
    assert tools.problems() == ()
    assert by_name["all.echo"].invoke({"message": "hello"}) == "Echo: hello"
    assert "5" in by_name["all.get-sum"].invoke({"a": 2, "b": 3})
    weather = by_name["all.get-structured-content"].invoke({"location": "New York"})
    assert set(weather) == {"temperature", "conditions", "humidity"}
    assert "[image image/png, " in by_name["all.get-tiny-image"].invoke({})
    assert "[link to resource demo://resource" in by_name["all.get-resource-links"].invoke(
        {"count": 2}
    )
    assert "[resource demo://resource" in by_name["all.get-resource-reference"].invoke(
        {"resourceType": "Text", "resourceId": 1}
    )
    done: Any = by_name["all.trigger-long-running-operation"].invoke({"duration": 1, "steps": 2})
    assert "completed" in done
    with pytest.raises(ToolFailed, match="message"):
        by_name["all.echo"].invoke({})
    assert by_name["all.echo"].invoke({"message": "still there"}) == "Echo: still there"


@pytest.mark.slow
@needs_everything
def test_the_everything_server_works_over_stdio(open_tools: Open) -> None:
    everything_works(open_tools(all={"command": [NODE, str(EVERYTHING)], "args": ["stdio"]}))


@pytest.mark.slow
@needs_everything
def test_the_everything_server_works_over_streamable_http_and_is_found_again(
    open_tools: Open, served: Callable[..., subprocess.Popen[bytes]]
) -> None:
    port = free_port()
    command = (NODE, str(EVERYTHING), "streamableHttp")
    server = served(port, *command, PORT=str(port))
    tools = open_tools(all={"url": f"http://127.0.0.1:{port}/mcp"})
    everything_works(tools)
    server.kill()
    server.wait()
    served(port, *command, PORT=str(port))
    echo = named(tools)["all.echo"].invoke
    # Over HTTP nothing tells that the server has forgotten the session, but the first call that it turns away.
    assert echo({"message": "again"}) == "Echo: again"
