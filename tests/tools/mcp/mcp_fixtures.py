"""MCP servers for the tests: how they are started, and what processes they leave."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from aeon.tools.mcp.provider import McpTools
from aeon.tools.registry import Tool
from aeon.tools.settings import McpSettings

SERVER = Path(__file__).parents[2] / "support" / "mcp_server.py"
Open = Callable[..., McpTools]


def own(*options: str, **more: Any) -> dict[str, Any]:
    """The configuration of the misbehaving server over stdio."""
    return {"command": [sys.executable, str(SERVER), *options], **more}


def named(tools: McpTools) -> dict[str, Tool]:
    return {tool.name: tool for tool in tools.tools()}


def descendants() -> set[int]:
    """The processes that this one has started, and theirs."""
    return {process.pid for process in psutil.Process().children(recursive=True)}


def gone(pids: set[int]) -> bool:
    """Whether all of the processes have ended, or end shortly."""
    return eventually(lambda: not any(map(psutil.pid_exists, pids)))


def eventually(holds: Callable[[], bool], seconds: float = 30) -> bool:
    """Whether something holds, or does so shortly."""
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.02)
    return holds()


@pytest.fixture
def open_tools() -> Iterator[Open]:
    """Opens McpTools over `servers`; afterwards closes them, and no process may be left."""
    opened: list[McpTools] = []
    before = descendants()

    def open_them(
        environ: Mapping[str, str] | None = None, **servers: Mapping[str, Any]
    ) -> McpTools:
        tools = McpTools(McpSettings.model_validate({"servers": servers}), environ or {})
        opened.append(tools)
        return tools

    yield open_them
    started = descendants() - before
    for tools in opened:
        tools.close()
    assert gone(started)


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def served() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts programs that listen on a port and waits until they do; afterwards ends them."""
    running: list[subprocess.Popen[bytes]] = []

    def serve(port: int, *command: str, **environ: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            command,
            env={**os.environ, **environ},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        running.append(process)
        _wait_for(port, process)
        return process

    yield serve
    for process in running:
        process.kill()
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise AssertionError(
        f"{process.args!r} does not listen on {port}; exit status {process.returncode}"
    )
