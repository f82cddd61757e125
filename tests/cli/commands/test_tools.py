"""`aeon tools`: what steps may use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aeon.cli.commands.tools import describe_tool
from tests.cli.conftest import RunAeon
from tests.tools.builders import a_tool


def test_without_tools_it_is_said_where_there_are_some(aeon: RunAeon) -> None:
    ended = aeon("tools")
    assert (ended.status, ended.err) == (0, "")
    assert (
        ended.out
        == "There are no tools. tools=builtin adds some; `aeon docs tools` explains how to add others.\n"
    )


def test_each_tool_is_listed_with_its_schemas_examples_and_conditions(aeon: RunAeon) -> None:
    ended = aeon("tools", "tools=builtin", "+tools.approval={echo: never}")
    blocks = ended.out.split("\n\n")
    names = [block.splitlines()[0] for block in blocks]
    assert names == [
        "echo",
        "calculator",
        "current_time",
        "memory_read",
        "memory_search",
        "memory_write",
    ]
    assert "approval: never" in blocks[0]
    assert "approval" not in blocks[1]
    for block in blocks:
        lines = dict(
            map(str.strip, line[2:].split("  ", 1))
            for line in block.splitlines()
            if line.count("  ") > 1
        )
        assert json.loads(lines["input"])["type"] == "object"
        assert json.loads(lines["output"])
        assert "for example" in lines


def test_for_machines_it_is_what_a_model_is_told(aeon: RunAeon, tmp_path: Path) -> None:
    (tmp_path / "own_tools_of_the_test.py").write_text(
        'def price(article: str) -> float:\n    """Tell the price."""\n    return 1.0\n'
    )
    ended = aeon(
        "tools", "--json", "tools=builtin", "tools.functions.cost=own_tools_of_the_test:price"
    )
    tools = {tool["name"]: tool for tool in json.loads(ended.out)}
    assert tools["cost"]["description"] == "Tell the price."
    assert {"name", "description", "input_schema", "output_schema", "examples"} <= set(
        tools["calculator"]
    )


def test_for_machines_it_is_the_conditions_too(aeon: RunAeon) -> None:
    ended = aeon("tools", "--json", "tools=builtin", "tools.approval.current_time=ask")
    tools = {tool["name"]: tool for tool in json.loads(ended.out)}
    said = [
        {key: tools[name][key] for key in ("side_effects", "pure", "approval")}
        for name in ("echo", "current_time")
    ]
    assert said == [
        {"side_effects": False, "pure": True, "approval": "always"},
        {"side_effects": False, "pure": False, "approval": "ask"},
    ]
    assert json.loads(aeon("tools", "--json").out) == []


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("tools.functions.x=nowhere_at_all:x", "cannot be imported"),
        ("tools.functions.x=json:dumps", "tool 'x'"),
        ("tools.functions.x=json", "package.module:function"),
        ("tools.timeout_seconds=-1", "timeout_seconds"),
    ],
)
def test_tools_that_cannot_be_had_end_with_2(aeon: RunAeon, override: str, said: str) -> None:
    ended = aeon("tools", override)
    assert (ended.status, ended.out) == (2, "")
    assert said in ended.err


def test_help_is_given(aeon: RunAeon) -> None:
    ended = aeon("tools", "--help")
    assert ended.status == 0
    assert ended.out.startswith("usage: aeon tools")


def test_a_servers_words_cannot_steer_the_terminal() -> None:
    hostile = "\x1b[31mred\x1b[0m \x9b2J\u202e"
    tool = a_tool(inputs={"type": "object", "description": hostile})
    text = describe_tool(
        type(tool)(tool.name, hostile, tool.input_schema, {}, tool.invoke), "always"
    )
    assert "red" in text
    assert not [ch for ch in text if not ch.isprintable() and ch != "\n"]
