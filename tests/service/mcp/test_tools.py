"""The tools of the server, of plan files."""

from __future__ import annotations

from pathlib import Path

import pytest

from aeon.domain.errors import ConfigError
from aeon.service.mcp.tools import RUN_TASK, Order, list_tools
from tests.service.mcp.clients import write_plans

TYPED = """\
goal: Describe a place
task: What is it like there?
inputs:
  place: The name of the place
  words: {type: integer, minimum: 1, default: 20, description: How many words}
  tags: {type: array, items: {type: string}}
steps:
  - {id: answer, description: "${inputs.place} in ${inputs.words} words", agent: llm}
"""


def test_without_a_folder_there_is_one_tool():
    tools = list_tools(None)
    assert list(tools) == [RUN_TASK]
    assert tools[RUN_TASK].input_schema["required"] == ["task"]
    assert tools[RUN_TASK].list_overrides() == ()


def test_a_plan_file_is_a_tool_whose_inputs_are_its_arguments(tmp_path: Path):
    folder = write_plans(tmp_path / "plans", {"describe.yaml": TYPED, "notes.md": "not a plan"})
    tools = list_tools(folder)
    assert list(tools) == [RUN_TASK, "describe"]
    tool = tools["describe"]
    assert tool.title == "Describe a place"
    assert tool.description == "Describe a place\n\nWhat is it like there?"
    schema = tool.input_schema
    assert schema["properties"]["place"] == {
        "type": "string",
        "description": "The name of the place",
    }
    assert schema["properties"]["words"]["minimum"] == 1
    assert schema["required"] == ["place", "tags"]
    assert schema["additionalProperties"] is False


def test_inputs_that_are_used_and_not_declared_are_texts(tmp_path: Path):
    text = "goal: g\nsteps:\n  - {id: a, description: 'for ${inputs.reader}', agent: llm}\n"
    tool = list_tools(write_plans(tmp_path / "plans", {"greet.yaml": text}))["greet"]
    assert tool.input_schema["required"] == ["reader"]
    assert tool.read_order({"reader": "Ann"}).inputs == {"reader": "Ann"}


def test_values_become_the_texts_that_a_plan_reads(tmp_path: Path):
    tool = list_tools(write_plans(tmp_path / "plans", {"describe.yaml": TYPED}))["describe"]
    given = {"place": "5", "words": 5, "tags": ["a", "b"]}
    assert tool.read_order(given) == Order(None, {"place": "5", "words": "5", "tags": '["a", "b"]'})


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("bad.yaml", "goal: g\nsteps: []\n", "bad.yaml:2:8: error"),
        ("bad.yaml", "goal: [", "bad.yaml"),
        ("two words.yaml", TYPED, "two words.yaml names no tool"),
        ("run_task.yaml", TYPED, "there is a tool run_task already"),
        ("notes.md", "", "there is no plan file in it"),
    ],
)
def test_what_names_no_tool_is_refused_with_its_file(
    tmp_path: Path, name: str, text: str, problem: str
):
    folder = write_plans(tmp_path / "plans", {name: text})
    (folder / "notes.txt").touch()
    with pytest.raises(ConfigError) as refused:
        list_tools(folder)
    assert problem in refused.value.message


def test_two_files_of_one_name_are_refused(tmp_path: Path):
    folder = write_plans(tmp_path / "plans", {"a.yaml": TYPED, "a.yml": TYPED})
    with pytest.raises(ConfigError, match=r"a\.yml: there is a tool a already"):
        list_tools(folder)


def test_hidden_files_are_no_tools(tmp_path: Path):
    folder = write_plans(tmp_path / "plans", {"describe.yaml": TYPED, ".old.yaml": TYPED})
    (folder / "._describe.yaml").write_bytes(b"\x00\x05\x16\x07\xff")
    assert list(list_tools(folder)) == [RUN_TASK, "describe"]
