"""Servers that go while a child of theirs still holds their pipes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from aeon.tools.mcp.provider import ToolFailed
from tests.support.timing import SOON
from tests.tools.mcp.mcp_fixtures import SERVER, Open, eventually, named, open_tools, own

__all__ = ["open_tools"]


@pytest.mark.slow
def test_a_server_whose_child_outlives_it_is_seen_to_die_and_is_back_for_the_next(open_tools: Open) -> None:
    tools = named(open_tools(own=own("--child", call_timeout_seconds=90)))
    first = tools["own.pid"].invoke({})
    started = time.monotonic()
    with pytest.raises(ToolFailed, match="went away during the call") as caught:
        tools["own.die"].invoke({})
    assert "these are my last words" in str(caught.value)
    assert time.monotonic() - started < SOON
    assert tools["own.pid"].invoke({}) != first


OPENS = """
import sys, time
from aeon.tools.mcp.provider import McpTools
from aeon.tools.settings import McpSettings
script = "trap '' TERM; sleep 600 & exec 4<&0; " + sys.executable + " " + sys.argv[1] + " <&4; sleep 600"
command = ["/bin/sh", "-c", script]
tools = McpTools(McpSettings.model_validate({"servers": {"own": {"command": command}}}), {})
print(len(tools.tools()), flush=True)
time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
def test_servers_are_gone_soon_after_the_program_was_killed() -> None:
    program = subprocess.Popen([sys.executable, "-c", OPENS, str(SERVER)], stdout=subprocess.PIPE)
    assert program.stdout is not None
    assert int(program.stdout.readline()) > 0
    started = psutil.Process(program.pid).children(recursive=True)
    assert started
    os.kill(program.pid, signal.SIGKILL)
    program.communicate()
    assert eventually(lambda: not any(process.is_running() for process in started), seconds=10)
