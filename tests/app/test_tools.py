import sys
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon
from aeon.app.tools import build, build_run_registry
from aeon.config.load import compose
from aeon.domain.errors import ConfigError
from aeon.memory.run_memory import InMemory
from aeon.tools.function import tool
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import ToolRegistry
from aeon.tools.settings import BuiltinSettings, McpServer, McpSettings, ToolSettings
from tests.tools.mcp.mcp_fixtures import own

ALWAYS = ("echo", "calculator", "current_time")


def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello {name}"


@tool(side_effects=True)
def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


NOT_A_TOOL = 3
HERE = "tests.app.test_tools"


def names(**builtin: Any) -> tuple[str, ...]:
    return build(ToolSettings(builtin=BuiltinSettings(**builtin)), {}).names()


def test_without_settings_there_are_no_tools() -> None:
    assert build(ToolSettings(), {}).names() == ()


def test_tools_that_reach_outside_exist_only_where_they_were_allowed_to(tmp_path: Path) -> None:
    assert names() == ALWAYS
    assert names(root=tmp_path) == (*ALWAYS, "read_file", "list_files")
    assert names(allowed_hosts=("example.com",)) == (*ALWAYS, "http_get")


def test_only_some_can_be_offered(tmp_path: Path) -> None:
    assert names(root=tmp_path, only=("read_file", "echo", "memory_read")) == ("echo", "read_file")


def test_a_folder_that_does_not_exist_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"tools\.builtin\.root=.*no such folder"):
        names(root=tmp_path / "missing")


@pytest.mark.parametrize(
    "host", ["", "http://a", "a/b", "u@a", "a b", "*.example.com", "a?b", "a#b"]
)
def test_what_is_no_host_cannot_be_allowed(host: str) -> None:
    with pytest.raises(ConfigError, match=r"tools\.builtin\.allowed_hosts"):
        compose(["tools=builtin", f"tools.builtin.allowed_hosts=['{host}']"])


def test_functions_of_ones_own_are_registered_by_configuration() -> None:
    settings = compose(
        ["tools=builtin", f"tools.functions.hi={HERE}:greet", f"tools.functions.loud={HERE}:shout"]
    )
    registry = build(settings.tools, {})
    assert registry.names() == (*ALWAYS, "hi", "loud")
    assert ToolInvoker(registry).invoke("hi", {"name": "Ada"}).output == "Hello Ada"
    loud = registry.get("loud")
    assert loud is not None
    assert loud.side_effects


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("greet", "write package.module:function"),
        (f"{HERE}:", "write package.module:function"),
        (f"{HERE}:missing", "cannot be imported: AttributeError"),
        ("no_such_module_here:x", "cannot be imported: ModuleNotFoundError"),
        (f"{HERE}:NOT_A_TOOL", "neither a tool nor a function"),
        ("os.path:join", "no type hint"),
    ],
)
def test_a_function_that_cannot_be_had_is_a_configuration_error(reference: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        build(ToolSettings(functions={"mine": reference}), {})


def test_a_function_is_found_in_the_folder_the_program_is_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_tools_of_a_person.py").write_text(
        'def one() -> int:\n    """One."""\n    return 1\n'
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    registry = build(ToolSettings(functions={"one": "own_tools_of_a_person:one"}), {})
    assert ToolInvoker(registry).invoke("one", {}).output == 1


def test_a_name_given_twice_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="'echo' is registered already"):
        build(ToolSettings(builtin=BuiltinSettings(), functions={"echo": f"{HERE}:greet"}), {})


def test_a_run_reads_and_searches_its_own_memory() -> None:
    memory = InMemory()
    memory.write("step/s1/output", {"n": 1})
    process = build(ToolSettings(builtin=BuiltinSettings()), {})
    calls = ToolInvoker(build_run_registry(process, memory))
    assert calls.invoke("memory_read", {"key": "step/s1/output"}).output == {
        "found": True,
        "value": {"n": 1},
    }
    assert calls.invoke("memory_read", {"key": "step/s2/output"}).output == {
        "found": False,
        "value": None,
    }
    assert calls.invoke("memory_search", {"prefix": "step/"}).output == {"step/s1/output": {"n": 1}}
    assert process.names() == ALWAYS


@pytest.mark.parametrize(
    ("builtin", "offered"),
    [
        (None, ()),
        (BuiltinSettings(), ("memory_read", "memory_search", "memory_write")),
        (BuiltinSettings(only=("echo",)), ()),
    ],
)
def test_memory_tools_come_with_the_built_in_ones(
    builtin: BuiltinSettings | None, offered: tuple[str, ...]
) -> None:
    settings = ToolSettings(builtin=builtin)
    run = build_run_registry(build(settings, {}), InMemory(), settings=settings)
    assert tuple(name for name in run.names() if name.startswith("memory")) == offered


def test_every_built_in_example_is_as_its_schema_says_and_every_description_says_something(
    tmp_path: Path,
) -> None:
    settings = ToolSettings(builtin=BuiltinSettings(root=tmp_path, allowed_hosts=("example.com",)))
    for made in build_run_registry(build(settings, {}), InMemory()).list():
        assert made.examples
        assert made.description.endswith(".")
        assert made.side_effects == (made.name == "memory_write")


@pytest.mark.parametrize(
    ("overrides", "builtin"),
    [
        (["tools=none"], False),
        (["tools=builtin"], True),
        (["tools=[builtin]"], True),
        (["tools=[none,builtin]"], True),
        (["tools=[builtin,none]"], True),
    ],
)
def test_tools_are_chosen_one_or_several_at_once(overrides: list[str], builtin: bool) -> None:
    settings = compose(
        [*overrides, "tools.timeout_seconds=7", "tools.approval={calc*: ask, *: never}"]
    ).tools
    assert (settings.builtin is not None) == builtin
    assert settings.timeout_seconds == 7
    assert list(settings.approval.items()) == [("calc*", "ask"), ("*", "never")]


def test_a_server_that_does_not_start_is_reported_and_stops_nothing() -> None:
    server = McpServer(command=("no-such-command-anywhere",), start_timeout_seconds=5)
    settings = ToolSettings(builtin=BuiltinSettings(), mcp=McpSettings(servers={"gone": server}))
    said: list[str] = []
    registry = build(settings, {}, report=said.append)
    registry.close()
    assert registry.names() == ALWAYS
    assert len(said) == 1
    assert "'gone'" in said[0]


def with_servers(**servers: dict[str, Any]) -> ToolRegistry:
    """The tools of a process with these servers; they are closed already, since only their names are looked at."""
    settings = ToolSettings(mcp=McpSettings.model_validate({"servers": servers}))
    registry = build(settings, {}, report=lambda _: None)
    registry.close()
    return registry


@pytest.mark.slow
@pytest.mark.parametrize("memory_tools", [(), ("pid",)])
def test_a_tool_of_a_server_named_as_another_one_is_left_out(
    memory_tools: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aeon.app.tools.MEMORY_TOOLS", memory_tools)
    said: list[str] = []
    servers = McpSettings.model_validate({"servers": {"alive": own(prefix="")}})
    functions = {} if memory_tools else {"pid": f"{HERE}:greet"}
    settings = ToolSettings(builtin=BuiltinSettings(only=()), mcp=servers, functions=functions)
    registry = build(settings, {}, report=said.append)
    registry.close()
    assert [text for text in said if "'pid' is left out: another tool has that name" in text]
    assert "add" in registry.names()
    assert registry.names().count("pid") == len(functions)


GONE = {"command": ["no-such-command-anywhere"], "start_timeout_seconds": 5}


@pytest.mark.slow
def test_the_tools_of_a_server_that_did_not_start_are_known_to_be_unavailable() -> None:
    registry = with_servers(dead=GONE, alive=own())
    run = build_run_registry(registry, InMemory())
    reason = run.unavailable("dead.x")
    assert reason is not None
    assert reason.startswith("the MCP server 'dead' did not start: ")
    assert "no-such-command-anywhere" in reason
    present = next(name for name in run.names() if name.startswith("alive."))
    assert run.unavailable("dead_x") == reason
    assert [run.unavailable(name) for name in (present, "alive.missing", "other.x", "x")] == [
        None
    ] * 4


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("read_fil", "no tool is named 'read_fil'; there are echo, calculator"),
        ("db_*", r"no tool is named 'db_\*'"),
    ],
)
def test_tools_of_steps_that_there_are_not_are_refused(pattern: str, words: str) -> None:
    overrides = ["provider=simulated", "tools=builtin", f"execution.step_tools=['{pattern}']"]
    with pytest.raises(ConfigError, match=words):
        Aeon.from_config(overrides, environ={})


def test_all_tools_of_none_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"no tool is named '\*'; there are no tools"):
        Aeon.from_config(["provider=simulated", "execution.step_tools=all"], environ={})
