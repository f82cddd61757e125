"""The typed inputs of workflow files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon
from aeon.domain.errors import ConfigError
from aeon.plan.workflow.inputs import describe_input, make_input_schema
from aeon.plan.workflow.load import inspect_workflow, load_workflow
from tests.support.scripted_model import ScriptedModel
from tests.tools.builders import a_tool

TYPED = """\
goal: g
inputs:
  file: The file's name
  target: {type: number, default: 10, minimum: 0, description: In per cent}
  regions: {type: array, items: {type: string}}
  strict: {type: [boolean, "null"], default: null}
  note: {type: [string, "null"], default: none}
steps:
  - {id: a, description: "See ${inputs.file} for ${inputs.target}", tool: probe, arguments: {n: "${inputs.target}", all: "${inputs.regions}", at: "${inputs.regions} of ${inputs.file}"}}
"""


def written(folder: Path, text: str = TYPED) -> Path:
    path = folder / "plan.yaml"
    path.write_text(text)
    return path


def test_values_have_the_types_that_are_declared(tmp_path: Path) -> None:
    workflow = load_workflow(written(tmp_path))
    texts = {"file": "7", "target": "12.5", "regions": '["north"]', "note": "true"}
    assert workflow.read_inputs(workflow.complete_inputs(texts)) == {
        "file": "7",
        "target": 12.5,
        "regions": ["north"],
        "strict": None,
        "note": "true",
    }


def test_what_has_a_default_need_not_be_given(tmp_path: Path) -> None:
    workflow = load_workflow(written(tmp_path))
    assert workflow.input_names == ("file", "target", "regions", "strict", "note")
    assert workflow.needed_inputs == ("file", "regions")
    completed = workflow.complete_inputs({"file": "f", "regions": "[]"})
    assert completed == {
        "file": "f",
        "regions": "[]",
        "target": "10",
        "strict": "null",
        "note": "none",
    }


def test_all_inputs_make_one_schema(tmp_path: Path) -> None:
    schema = make_input_schema(load_workflow(written(tmp_path)).content.inputs)
    assert schema["required"] == ["file", "regions"]
    assert schema["properties"]["file"] == {"type": "string", "description": "The file's name"}
    assert schema["properties"]["target"]["default"] == 10


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"target": "ten"}, 'inputs.target: must be number, as JSON, not "ten"'),
        ({"target": "NaN"}, "inputs.target: must be number, as JSON"),
        ({"target": "-1"}, "inputs.target: -1 is less than the minimum of 0"),
        ({"target": '"10"'}, "inputs.target: '10' is not of type 'number'"),
        ({"regions": "north"}, "inputs.regions: must be array, as JSON"),
        ({"regions": "[1]"}, "inputs.regions: /0: 1 is not of type 'string'"),
        ({"regions": "[1]", "target": "-1"}, "inputs.regions: .*; inputs.target: "),
    ],
)
def test_what_does_not_fit_is_refused_before_the_first_call(
    tmp_path: Path, given: dict[str, str], problem: str
) -> None:
    model = ScriptedModel()
    inputs = {"file": "f", "regions": "[]", **given}
    with (
        Aeon.from_config([f"plan_file={written(tmp_path)}"], environ={}, adapter=model) as aeon,
        pytest.raises(ConfigError, match=problem),
    ):
        aeon.run(inputs=inputs, directory=tmp_path / "one")
    assert model.calls == []
    assert not (tmp_path / "one").exists()


def test_a_tool_is_given_values_and_the_model_texts(tmp_path: Path) -> None:
    seen: list[Any] = []
    tool = a_tool(lambda given: seen.append(dict(given)) or "done", name="probe")
    overrides = [f"plan_file={written(tmp_path)}", "mode=core"]
    with Aeon.from_config(overrides, environ={}, adapter=ScriptedModel(), tools=[tool]) as aeon:
        result = aeon.run(inputs={"file": "f.csv", "regions": '["n", "s"]'})
    assert seen == [{"n": 10, "all": ["n", "s"], "at": '["n", "s"] of f.csv'}]
    assert result.history.passes[-1].steps[0].description == "See f.csv for 10"


def test_a_run_that_is_resumed_has_the_defaults_that_it_was_begun_with(tmp_path: Path) -> None:
    seen: list[Any] = []
    tool = a_tool(lambda given: seen.append(given["n"]) or "done", name="probe")
    path = written(tmp_path)
    overrides = [f"plan_file={path}", "mode=core", "store.mode=record"]
    with Aeon.from_config(overrides, environ={}, adapter=ScriptedModel(), tools=[tool]) as aeon:
        aeon.run(inputs={"file": "f", "regions": "[]"}, directory=tmp_path / "one")
    path.write_text(TYPED.replace("default: 10", "default: 20"))
    with Aeon.from_config(
        [f"resume={tmp_path / 'one'}"], environ={}, adapter=ScriptedModel(), tools=[tool]
    ) as aeon:
        aeon.run(directory=tmp_path / "two")
    assert seen == [10]


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ("{type: numbr}", "this is no JSON Schema"),
        ("{type: number, default: ten}", "its default does not fit: 'ten' is not of type 'number'"),
        ("{minimum: x}", "this is no JSON Schema"),
    ],
)
def test_a_schema_that_is_none_is_named_with_its_line(
    tmp_path: Path, declared: str, problem: str
) -> None:
    text = f"goal: g\ninputs:\n  n: {declared}\nsteps: [{{id: a, description: b, agent: llm}}]"
    workflow, problems = inspect_workflow(written(tmp_path, text))
    assert workflow is None
    assert [(one.line, one.column) for one in problems] == [(3, 3)]
    assert f"inputs.n: {problem}" in problems[0].message


def test_what_is_given_is_checked_with_the_file(tmp_path: Path) -> None:
    given = {"file": "f", "regions": "[]", "target": "ten"}
    _, problems = inspect_workflow(written(tmp_path), input_names=given.keys(), texts=given)
    assert [one.message for one in problems] == [
        'inputs.target: must be number, as JSON, not "ten"'
    ]


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ("a few words", "n"),
        ({"type": "number", "default": 10}, "n (number, by default 10)"),
        ({"type": ["string", "null"]}, "n (string or null)"),
        ({"default": "x"}, 'n (by default "x")'),
    ],
)
def test_an_input_is_described(declared: Any, words: str) -> None:
    assert describe_input("n", declared) == words
