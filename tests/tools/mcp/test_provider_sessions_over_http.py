"""HTTP servers with sessions, which they forget when they are started anew."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from aeon.tools.mcp.provider import ToolFailed
from aeon.tools.mcp.session import MAX_MESSAGE_BYTES
from tests.tools.mcp.mcp_fixtures import Open, named, open_tools
from tests.tools.mcp.session_server import SessionServer

__all__ = ["open_tools"]


@pytest.mark.slow
@pytest.mark.parametrize("status", [404, 400])
def test_a_call_to_a_server_that_forgot_the_session_is_made_once_more(
    open_tools: Open, status: int
) -> None:
    with SessionServer(unknown=status) as server:
        count = named(open_tools(web={"url": server.url}))["web.count"]
        assert count.invoke({}) == "1"
        server.sessions.clear()
        assert count.invoke({}) == "2"
        assert (server.calls, server.refused, len(server.sessions)) == (2, 1, 1)


@pytest.mark.slow
def test_calls_that_are_turned_away_at_the_same_time_share_the_new_session(
    open_tools: Open,
) -> None:
    with SessionServer() as server:
        count = named(open_tools(web={"url": server.url, "max_restarts": 1}))["web.count"]
        server.sessions.clear()
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: count.invoke({}), range(8)))
        assert sorted(answers) == sorted(str(number) for number in range(1, 9))
        assert len(server.sessions) == 1


@pytest.mark.slow
def test_a_call_that_was_carried_out_and_failed_is_not_made_again(open_tools: Open) -> None:
    with SessionServer() as server:
        count = named(open_tools(web={"url": server.url}))["web.count"]
        server.failing = True
        with pytest.raises(ToolFailed, match="it broke"):
            count.invoke({})
        assert server.calls == 1


@pytest.mark.slow
def test_a_new_session_counts_as_a_restart_and_there_is_a_limit_to_them(open_tools: Open) -> None:
    with SessionServer() as server:
        count = named(open_tools(web={"url": server.url, "max_restarts": 0}))["web.count"]
        server.sessions.clear()
        with pytest.raises(ToolFailed, match=r"max_restarts \(0\) is used up"):
            count.invoke({})
        assert server.calls == 0


@pytest.mark.slow
@pytest.mark.parametrize("compresses", [False, True])
def test_an_answer_without_end_is_not_read_and_the_server_can_be_used_again(
    open_tools: Open, compresses: bool
) -> None:
    with SessionServer() as server:
        count = named(open_tools(web={"url": server.url}))["web.count"]
        server.padding, server.compresses = 20 * MAX_MESSAGE_BYTES, compresses
        message = (
            "compressed its answer" if compresses else f"more than {MAX_MESSAGE_BYTES:,} bytes"
        )
        with pytest.raises(ToolFailed, match=message):
            count.invoke({})
        assert server.sent < 10 * MAX_MESSAGE_BYTES
        server.padding, server.compresses = 0, False
        assert count.invoke({}) == "2"
