import subprocess
import sys
from collections.abc import Callable

import pytest

from aeon.tools.mcp.provider import ToolFailed
from tests.tools.mcp.mcp_fixtures import SERVER, Open, free_port, named, open_tools, served

__all__ = ["open_tools", "served"]

Serve = Callable[..., subprocess.Popen[bytes]]


@pytest.mark.slow
def test_an_http_server_is_used_like_any_other_and_found_again_after_a_restart(
    open_tools: Open, served: Serve
) -> None:
    port = free_port()
    server = served(port, sys.executable, str(SERVER), "--http", str(port))
    tools = named(
        open_tools(
            web={
                "url": f"http://127.0.0.1:{port}/mcp",
                "allow": ["add", "pid", "fail", "hang"],
                "call_timeout_seconds": 1,
            }
        )
    )
    assert tools["web.add"].invoke({"a": 1, "b": 2}) == {"sum": 3}
    with pytest.raises(ToolFailed, match=r"^failed by flag$"):
        tools["web.fail"].invoke({})
    with pytest.raises(ToolFailed, match="no answer within 1 s"):
        tools["web.hang"].invoke({})
    before = tools["web.pid"].invoke({})
    server.kill()
    server.wait()
    with pytest.raises(ToolFailed):
        tools["web.pid"].invoke({})
    served(port, sys.executable, str(SERVER), "--http", str(port))
    assert tools["web.pid"].invoke({}) != before


@pytest.mark.slow
def test_a_bearer_token_comes_from_the_environment(open_tools: Open, served: Serve) -> None:
    port = free_port()
    served(port, sys.executable, str(SERVER), "--http", str(port), "--token", "s3cret")
    url = f"http://127.0.0.1:{port}/mcp"
    tools = open_tools(
        {"TOKEN": "s3cret", "WHOLE": "Bearer s3cret", "WRONG": "guess"},
        bearer={"url": url, "bearer_env": "TOKEN", "allow": ["pid"]},
        header={"url": url, "headers_env": {"Authorization": "WHOLE"}, "allow": ["pid"]},
        wrong={"url": url, "bearer_env": "WRONG"},
    )
    assert list(named(tools)) == ["bearer.pid", "header.pid"]
    (problem,) = tools.problems()
    assert problem.startswith("MCP server 'wrong' is not available")
    assert "guess" not in problem
