"""Servers that go while a child of theirs still holds their pipes."""

from __future__ import annotations

import time

import pytest

from aeon.tools.mcp import ToolFailed
from tests.support.timing import SOON
from tests.tools.mcp_fixtures import Open, named, open_tools, own

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
