import re

from hypothesis import given
from hypothesis import strategies as st

from aeon.tools.mcp_names import tool_name, unmatched, wanted
from aeon.tools.mcp_settings import McpServer

SERVER = McpServer(command=("x",))


def test_a_tool_is_named_after_its_server() -> None:
    assert tool_name("time", "convert_time") == "time.convert_time"


def test_an_empty_prefix_leaves_the_name_as_it_is() -> None:
    assert tool_name("", "convert_time") == "convert_time"


@given(st.text(alphabet="abcXYZ019_.-", max_size=32), st.text(max_size=300))
def test_every_name_is_one_that_the_registry_takes(prefix: str, name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", tool_name(prefix, name))


def test_long_names_that_differ_at_the_end_stay_different() -> None:
    assert tool_name("p", "x" * 100 + "a") != tool_name("p", "x" * 100 + "b")
    assert tool_name("p", "x" * 62) == "p." + "x" * 62


def test_all_tools_are_wanted_unless_it_is_said_otherwise() -> None:
    assert wanted("anything", SERVER)


def test_allow_narrows_and_deny_wins() -> None:
    server = McpServer(command=("x",), allow=("read_*", "list"), deny=("read_secret",))
    assert [name for name in ("read_a", "read_secret", "list", "lists") if wanted(name, server)] == ["read_a", "list"]


def test_patterns_tell_upper_from_lower_case() -> None:
    assert not wanted("READ", McpServer(command=("x",), allow=("read",)))


def test_a_pattern_that_matches_nothing_is_found() -> None:
    assert unmatched(["read", "write"], ["re*", "wrote", "*"]) == ("wrote",)
    assert unmatched([], ["*"]) == ()
