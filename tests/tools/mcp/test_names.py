import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon.tools.mcp.names import find_owner, find_unmatched_patterns, is_selected, tool_name
from aeon.tools.settings import McpServer

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
    assert is_selected("anything", SERVER)


def test_allow_narrows_and_deny_wins() -> None:
    server = McpServer(command=("x",), allow=("read_*", "list"), deny=("read_secret",))
    assert [
        name for name in ("read_a", "read_secret", "list", "lists") if is_selected(name, server)
    ] == [
        "read_a",
        "list",
    ]


def test_patterns_tell_upper_from_lower_case() -> None:
    assert not is_selected("READ", McpServer(command=("x",), allow=("read",)))


def test_a_pattern_that_matches_nothing_is_found() -> None:
    assert find_unmatched_patterns(["read", "write"], ["re*", "wrote", "*"]) == ("wrote",)
    assert find_unmatched_patterns([], ["*"]) == ()


def servers(**options: dict[str, object]) -> dict[str, McpServer]:
    return {
        name: McpServer.model_validate({"command": "x", **more}) for name, more in options.items()
    }


@pytest.mark.parametrize("name", ["git.log", "git_log", "git-log", "git.a.b"])
def test_a_name_is_of_the_server_whose_prefix_it_begins_with_however_joined(name: str) -> None:
    assert find_owner(name, servers(other={}, git={})) == "git"


@pytest.mark.parametrize("name", ["git", "gitlog", "log", "Git.log", "", "git/log"])
def test_other_names_are_of_no_server(name: str) -> None:
    assert find_owner(name, servers(git={})) is None


def test_of_two_prefixes_the_longer_one_is_meant() -> None:
    both = servers(git={}, git_hub={})
    assert [find_owner(name, both) for name in ("git_log", "git_hub.log", "git_hub_log", "git_hubs")] == [
        "git", "git_hub", "git_hub", "git",
    ]  # fmt: skip


def test_what_the_server_would_not_be_asked_for_is_of_nobody() -> None:
    narrow = servers(git={"allow": ["read_*"], "deny": ["read_secret"]})
    assert [
        find_owner(name, narrow) for name in ("git.read_it", "git.read_secret", "git.push")
    ] == ["git", None, None]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"prefix": "my.fs"}, ("my.fs.x", "my.fs.read_it")),
        ({"prefix": ""}, ()),
        ({"prefix": "", "allow": ["*"]}, ()),
        ({"prefix": "", "allow": ["x", "read_*"]}, ("x", "read_it")),
        ({"prefix": "", "allow": ["x", "read_*"], "deny": ["x"]}, ("read_it",)),
    ],
)
def test_another_prefix_or_none_is_looked_for_instead(
    options: dict[str, object], names: tuple[str, ...]
) -> None:
    candidates = ("fs.x", "my.fs.x", "my.fs.read_it", "x", "read_it")
    assert tuple(name for name in candidates if find_owner(name, servers(fs=options))) == names
