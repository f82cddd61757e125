import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psutil
import pytest

from aeon.app.tools import build
from aeon.domain.errors import ConfigError
from aeon.tools.invoke import ToolInvoker
from aeon.tools.mcp.provider import McpTools, ToolFailed
from aeon.tools.settings import McpSettings, ToolSettings
from tests.support.mcp_server import LISTED
from tests.support.timing import SOON
from tests.tools.mcp.mcp_fixtures import (
    SERVER,
    Open,
    descendants,
    eventually,
    gone,
    named,
    open_tools,
    own,
)

__all__ = ["open_tools"]


@pytest.fixture(scope="module")
def shared() -> Iterator[McpTools]:
    """One session for the tests that harm no server."""
    with closing(McpTools(McpSettings.model_validate({"servers": {"own": own()}}), {})) as tools:
        yield tools


@pytest.mark.slow
def test_all_pages_of_tools_are_listed_in_order(shared: McpTools) -> None:
    tools = named(shared)
    expected = [
        re.sub(r"[^A-Za-z0-9_.-]", "_", f"own.{tool.name}")
        for tool in LISTED
        if tool.name != "malformed"
    ]
    assert list(tools) == expected


def test_a_tool_with_a_malformed_schema_is_left_out_and_said(shared: McpTools) -> None:
    tools = shared
    assert "own.malformed" not in named(tools)
    (problem,) = tools.problems()
    assert "'malformed' is left out" in problem
    assert "#/properties/a/type" in problem


def test_what_the_server_says_of_a_tool_is_taken_over(shared: McpTools) -> None:
    tools = named(shared)
    assert tools["own.fail"].description == "Does fail."
    assert tools["own.pid"].description == "Process"
    assert tools["own.add"].output_schema["required"] == ["sum"]
    assert tools["own.fail"].output_schema == {}


def test_only_what_is_said_to_read_only_has_no_side_effects(shared: McpTools) -> None:
    tools = named(shared)
    assert not tools["own.pid"].side_effects
    assert tools["own.add"].side_effects


def test_structured_content_is_preferred_to_text(shared: McpTools) -> None:
    assert named(shared)["own.add"].invoke({"a": 1, "b": 2}) == {"sum": 3}


def test_texts_are_joined_and_anything_else_is_described(shared: McpTools) -> None:
    tools = named(shared)
    assert tools["own.two_texts"].invoke({}) == "one\ntwo"
    assert tools["own.nothing"].invoke({}) == ""
    assert tools["own.picture"].invoke({}).splitlines() == [
        "look:",
        "[image image/png, 5 bytes]",
        "[audio audio/wav, 5 bytes]",
        "[link to resource file:///a.txt (text/plain), 7 bytes]",
        "[resource memo://1 (text/plain), 8 characters]",
        "remember",
        "[resource memo://2, 5 bytes]",
    ]


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("fail", "^failed by flag$"),
        ("fail_silently", "said nothing about it"),
        ("refuse", "^refused by protocol error$"),
        ("vanished", "^Unknown tool: vanished$"),
    ],
)
def test_every_kind_of_error_is_a_failure_in_the_servers_words(
    shared: McpTools, tool: str, said: str
) -> None:
    tools = named(shared)
    with pytest.raises(ToolFailed, match=said):
        tools[f"own.{tool}"].invoke({})
    assert tools["own.two_texts"].invoke({}) == "one\ntwo"


@pytest.mark.slow
def test_a_call_that_takes_too_long_fails_and_the_server_stays(open_tools: Open) -> None:
    tools = named(open_tools(own=own(call_timeout_seconds=0.2)))
    pid = tools["own.pid"].invoke({})
    with pytest.raises(ToolFailed, match=r"no answer within 0\.2 s"):
        tools["own.hang"].invoke({})
    assert tools["own.pid"].invoke({}) == pid


@pytest.mark.slow
def test_a_server_that_dies_fails_the_call_and_is_back_for_the_next(open_tools: Open) -> None:
    tools = named(open_tools(own=own()))
    pid = tools["own.pid"].invoke({})
    with pytest.raises(
        ToolFailed, match=r"went away during the call.*it wrote: these are my last words"
    ):
        tools["own.die"].invoke({})
    assert tools["own.pid"].invoke({}) != pid
    assert gone({int(pid)})


@pytest.mark.slow
def test_a_server_killed_between_calls_is_not_noticed_by_the_next(open_tools: Open) -> None:
    opened = open_tools(own=own())
    tools = named(opened)
    pid = int(tools["own.pid"].invoke({}))
    connection = opened._sessions["own"]._connection
    assert connection is not None
    os.kill(pid, signal.SIGKILL)
    assert gone({pid})
    assert eventually(lambda: connection.is_lost)
    assert tools["own.two_texts"].invoke({}) == "one\ntwo"


@pytest.mark.slow
def test_a_server_is_restarted_within_limits(open_tools: Open) -> None:
    tools = named(open_tools(own=own(max_restarts=1)))
    for _ in range(2):
        with pytest.raises(ToolFailed, match="went away during the call"):
            tools["own.die"].invoke({})
    with pytest.raises(
        ToolFailed, match=r"not available: it went away, and max_restarts \(1\) is used up"
    ):
        tools["own.two_texts"].invoke({})


@pytest.mark.slow
def test_calls_run_at_the_same_time_and_over_one_process(shared: McpTools) -> None:
    tools = named(shared)
    started = time.monotonic()
    with ThreadPoolExecutor(20) as pool:
        rested = list(pool.map(lambda _: tools["own.nap"].invoke({"seconds": 1.5}), range(20)))
        pids = set(pool.map(lambda _: tools["own.pid"].invoke({}), range(20)))
    assert rested == ["rested"] * 20
    assert time.monotonic() - started < 20 * 1.5
    assert len(pids) == 1


@pytest.mark.slow
def test_a_death_with_many_calls_in_flight_costs_one_restart(open_tools: Open) -> None:
    tools = named(open_tools(own=own(max_restarts=1)))

    def fate(name: str) -> str:
        try:
            return str(tools[name].invoke({"seconds": 30, "naps": 8}))
        except ToolFailed:
            return "failed"

    with ThreadPoolExecutor(9) as pool:
        napping = [pool.submit(fate, "own.nap") for _ in range(8)]
        assert fate("own.die") == "failed"
        assert {each.result() for each in napping} == {"failed"}
        assert set(pool.map(fate, ["own.two_texts"] * 8)) == {"one\ntwo"}


def test_a_large_result_arrives_whole(shared: McpTools) -> None:
    assert len(named(shared)["own.big"].invoke({"size": 5_000_000})) == 5_000_000


@pytest.mark.slow
def test_a_server_that_does_not_start_is_a_problem_and_not_the_end(open_tools: Open) -> None:
    tools = open_tools(
        own=own(allow=["pid"]),
        missing={"command": "no-such-program-anywhere"},
        crashing={"command": ["sh", "-c", "echo it cannot be >&2; exit 1"]},
        silent={"command": ["sleep", "60"], "start_timeout_seconds": 0.3},
        unreachable={"url": "http://127.0.0.1:9/mcp"},
        unset=own(env=["NO_SUCH_VARIABLE_ANYWHERE"]),
    )
    assert list(named(tools)) == ["own.pid"]
    said = dict(
        re.findall(
            r"^MCP server '(\w+)' is not available, and neither are its tools: (.*)$",
            "\n".join(tools.problems()),
            re.M,
        )
    )
    assert list(said) == ["missing", "crashing", "silent", "unreachable", "unset"]
    assert "no-such-program-anywhere" in said["missing"]
    assert said["crashing"].endswith("it wrote: it cannot be")
    assert said["silent"] == "no answer within 0.3 s"
    assert "connection" in said["unreachable"]
    assert said["unset"] == "the environment variable NO_SUCH_VARIABLE_ANYWHERE is not set"


@pytest.mark.slow
def test_a_server_gets_the_variables_that_are_named_and_no_others(
    open_tools: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AEON_TEST_SECRET", "not for it")
    tools = named(open_tools({"WANTED": "for it"}, own=own(env=["WANTED"])))
    assert tools["own.variable"].invoke({"name": "WANTED"}) == "for it"
    assert tools["own.variable"].invoke({"name": "AEON_TEST_SECRET"}) == "(not set)"


def test_nothing_starts_before_the_tools_are_asked_for(open_tools: Open) -> None:
    before = descendants()
    open_tools(own=own())
    assert descendants() == before


def test_no_servers_need_no_thread_and_no_package(open_tools: Open) -> None:
    before = threading.active_count()
    assert open_tools().tools() == ()
    assert threading.active_count() == before


@pytest.mark.slow
def test_two_servers_may_not_have_a_tool_of_one_name(open_tools: Open) -> None:
    tools = open_tools(
        one=own(prefix="x", allow=["pid", "add"]), two=own(prefix="x", allow=["pid"])
    )
    with pytest.raises(
        ConfigError, match=r"'one' and 'two' both have a tool that would be 'x\.pid'"
    ):
        tools.tools()


@pytest.mark.slow
def test_an_allowed_tool_that_does_not_exist_is_said(open_tools: Open) -> None:
    tools = open_tools(own=own(allow=["pid", "pidd"]))
    assert list(named(tools)) == ["own.pid"]
    assert tools.problems() == ("MCP server 'own' has no tool like 'pidd', which `allow` names",)


@pytest.mark.slow
def test_a_list_without_an_end_ends(open_tools: Open) -> None:
    tools = open_tools(own=own("--circle"))
    assert len(named(tools)) == 3


@pytest.mark.slow
def test_what_a_server_prints_disturbs_nobody(
    open_tools: Open, capfd: pytest.CaptureFixture[str]
) -> None:
    tools = named(open_tools(own=own("--chatter")))
    assert tools["own.two_texts"].invoke({}) == "one\ntwo"
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
@pytest.mark.slow
def test_a_frozen_server_is_killed_and_restarted(
    open_tools: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aeon.tools.mcp.session._SIGN_OF_LIFE_SECONDS", 0.2)
    tools = named(open_tools(own=own(call_timeout_seconds=0.5)))
    pid = tools["own.pid"].invoke({})
    with pytest.raises(ToolFailed, match="no answer"):
        tools["own.freeze"].invoke({})
    assert tools["own.pid"].invoke({}) != pid
    assert gone({int(pid)})


@pytest.mark.slow
def test_a_server_that_sends_a_message_without_an_end_is_started_anew(open_tools: Open) -> None:
    tools = named(open_tools(own=own()))
    first = tools["own.pid"].invoke({})
    with pytest.raises(ToolFailed, match="a message of more than 8,000,000 bytes"):
        tools["own.flood"].invoke({})
    assert tools["own.pid"].invoke({}) != first


DEEP = "it sent a message that is nested too deeply to be read"


@pytest.mark.slow
def test_a_server_that_lists_a_schema_nested_too_deeply_says_so_at_once(open_tools: Open) -> None:
    tools = open_tools(own=own("--deep"))
    assert named(tools) == {}
    assert f"MCP server 'own' is not available, and neither are its tools: {DEEP}" in "\n".join(
        tools.problems()
    )


@pytest.mark.slow
def test_a_result_that_is_nested_too_deeply_fails_its_call_and_the_server_is_back(
    open_tools: Open,
) -> None:
    tools = named(open_tools(own=own()))
    with pytest.raises(ToolFailed, match=DEEP):
        tools["own.nest"].invoke({})
    assert tools["own.two_texts"].invoke({}) == "one\ntwo"


@pytest.mark.slow
def test_a_server_whose_child_outlives_it_is_seen_to_die_and_is_back_for_the_next(
    open_tools: Open,
) -> None:
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


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_is_told_that_servers_are_its_parents_and_ends_none() -> None:
    servers = {"servers": {"own": own()}}
    program = f"""
import os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)
from aeon.tools.mcp.provider import McpTools
from aeon.tools.settings import McpSettings
tools = McpTools(McpSettings.model_validate({servers!r}))
call = next(tool for tool in tools.tools() if tool.name == "own.pid").invoke
print(call({{}}), flush=True)
child = os.fork()
if child:
    os.waitpid(child, 0)
    print(call({{}}), flush=True)
else:
    try:
        call({{}})
    except Exception as error:
        print("forked from" in str(error), flush=True)
    tools.close()
    os._exit(0)
"""
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=90)
    assert ended.stderr == ""
    first, said, last = ended.stdout.split()
    assert (first, said) == (last, "True")
    assert gone({int(first)})


@pytest.mark.slow
def test_closing_ends_the_processes_and_their_children(open_tools: Open) -> None:
    before = descendants()
    tools = open_tools(one=own("--child"), two=own())
    call = named(tools)["one.pid"].invoke
    started = descendants() - before
    assert len(started) == 5  # two servers, a gateway each, and a child
    tools.close()
    assert gone(started)
    tools.close()
    with pytest.raises(ToolFailed, match="closed"):
        call({})


@pytest.mark.slow
def test_a_server_that_will_not_go_is_killed(open_tools: Open) -> None:
    before = descendants()
    tools = open_tools(own=own("--stubborn", "--child"))
    tools.tools()
    started = descendants() - before
    tools.close()
    assert gone(started)


@pytest.mark.slow
def test_closing_during_a_call_fails_the_call(open_tools: Open) -> None:
    tools = open_tools(own=own())
    call = named(tools)["own.hang"].invoke
    failures: list[BaseException] = []

    def caught() -> None:
        try:
            call({})
        except ToolFailed as error:
            failures.append(error)

    calling = threading.Thread(target=caught)
    calling.start()
    time.sleep(0.2)
    tools.close()
    calling.join(60)
    assert len(failures) == 1


@pytest.mark.slow
def test_configuration_makes_them_tools_like_any_other() -> None:
    settings = ToolSettings.model_validate(
        {"mcp": {"servers": {"own": own(), "bad": {"command": "no-such-program"}}}}
    )
    reported: list[str] = []
    registry = build(settings, {}, report=reported.append)
    invoker = ToolInvoker(registry, settings)
    assert invoker.invoke("own.add", {"a": 1, "b": 2}).output == {"sum": 3}
    assert invoker.invoke("own.lie", {}).error_kind == "invalid_output"
    failed = invoker.invoke("own.fail", {})
    assert failed.error_kind == "raised"
    assert failed.error is not None
    assert failed.error.endswith("failed by flag")
    assert [problem.split(" is ")[0] for problem in reported] == [
        "MCP server 'own': its tool 'malformed'",
        "MCP server 'bad'",
    ]
    registry.close()
    assert invoker.invoke("own.add", {"a": 1, "b": 2}).error_kind == "raised"


@pytest.mark.slow
@pytest.mark.parametrize("end", ["", "sys.exit(3)", "raise ValueError", "os.kill(os.getpid(), 9)"])
def test_no_server_outlives_the_program(end: str) -> None:
    servers = {"servers": {"own": own()}}
    program = f"""
import os, sys
from aeon.tools.mcp.provider import McpTools
from aeon.tools.settings import McpSettings
tools = {{tool.name: tool for tool in McpTools(McpSettings.model_validate({servers!r})).tools()}}
print(tools["own.pid"].invoke({{}}), flush=True)
{end}
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert gone({int(ended.stdout)})
    assert ("Traceback" in ended.stderr) == (end == "raise ValueError"), ended.stderr
