"""Workflow files that can be used: the format, the plan they give, the published schema, the examples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from aeon.domain.errors import ConfigError, PlanError
from aeon.files.located_yaml import LocatedYaml
from aeon.files.resources import resource_root
from aeon.plan.workflow.load import load_workflow
from aeon.plan.workflow.models import workflow_json_schema
from aeon.plan.workflow.references import resolve_arguments
from aeon.tools.builtin.calculator import calculator
from aeon.tools.builtin.files import file_tools

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples" / "workflows").glob("*/workflow.yaml"))
FULL = """
$schema: workflow.json
goal: the goal
task: the task
inputs: {doc: a document}
steps:
  - id: last
    description: Sum up ${inputs.doc}
    depends_on: [first, first]
    provides: [summary]
    handoff: the gist
    agent: llm
  - id: first
    description: costs $${5}
    tool: calculator
    arguments: {expression: "1 + 1"}
"""


def written(folder: Path, text: str, name: str = "my.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_workflow_becomes_a_plan_in_topological_order(tmp_path: Path) -> None:
    plan = load_workflow(written(tmp_path, FULL)).plan()
    assert (plan.goal, plan.task) == ("the goal", "the task")
    first, last = plan.steps
    assert (first.step_id, first.tool, first.agent, first.arguments) == (
        "first",
        "calculator",
        None,
        {"expression": "1 + 1"},
    )
    assert (last.step_id, last.agent, last.dependencies, last.provides) == (
        "last",
        "llm",
        ("first",),
        ("summary",),
    )
    assert last.handoff_to_next == "the gist"
    assert [step.status for step in plan.steps] == ["pending", "pending"]
    assert [(step.step_index, step.total_steps) for step in plan.steps] == [(1, 2), (2, 2)]


def test_inputs_are_filled_into_descriptions_when_given(tmp_path: Path) -> None:
    workflow = load_workflow(written(tmp_path, FULL))
    assert workflow.plan().steps[1].description == "Sum up ${inputs.doc}"
    filled = workflow.plan(inputs={"doc": "a ${steps.x.output} story"})
    assert [step.description for step in filled.steps] == [
        "costs ${5}",
        "Sum up a ${steps.x.output} story",
    ]
    with pytest.raises(PlanError, match="there is no input `doc`"):
        workflow.plan(inputs={})


@pytest.mark.parametrize(
    ("text", "given", "task"),
    [
        ("goal: g\ntask: t\n", "command line", "command line"),
        ("goal: g\ntask: t\n", None, "t"),
        ("goal: g\n", None, "g"),
    ],
)
def test_the_task_is_what_is_given_or_what_the_file_says_or_the_goal(
    tmp_path: Path, text: str, given: str | None, task: str
) -> None:
    workflow = load_workflow(
        written(tmp_path, text + "steps: [{id: a, description: b, agent: llm}]")
    )
    assert workflow.plan(given).task == task


def test_json_is_read_like_yaml_tabs_and_pairs_of_surrogates_included(tmp_path: Path) -> None:
    text = '{\n\t"goal": "\\ud83d\\ude00",\n\t"steps": [\n\t\t{"id":"a","description":"b","agent":"llm"}]}'
    assert load_workflow(written(tmp_path, text, "my.json")).plan().goal == "\U0001f600"


def test_the_inputs_it_needs_are_those_declared_and_those_named(tmp_path: Path) -> None:
    arguments = "{x: ['${inputs.a} $${inputs.c}']}"
    text = f"goal: g\nsteps: [{{id: a, description: 'see ${{inputs.b}}', tool: t, arguments: {arguments}}}]"
    assert load_workflow(written(tmp_path, text)).input_names == ("b", "a")
    assert load_workflow(written(tmp_path, FULL)).input_names == ("doc",)


def test_a_step_with_neither_tool_nor_agent_keeps_both_open(tmp_path: Path) -> None:
    workflow = load_workflow(written(tmp_path, "goal: g\nsteps: [{id: a, description: b}]"))
    assert (workflow.plan().steps[0].tool, workflow.plan().steps[0].agent) == (None, None)
    assert ["neither" in warning.message for warning in workflow.warnings] == [True]


def test_merge_keys_and_aliases_are_followed(tmp_path: Path) -> None:
    text = """
goal: g
steps:
  - &base {id: a, description: b, agent: llm, provides: &made [x]}
  - {<<: *base, id: c}
  - {id: d, description: e, agent: llm, provides: *made}
"""
    plan = load_workflow(written(tmp_path, text)).plan()
    assert [(step.step_id, step.description, step.provides) for step in plan.steps] == [
        ("a", "b", ("x",)),
        ("c", "b", ("x",)),
        ("d", "e", ("x",)),
    ]


def test_values_are_those_of_yaml_1_2(tmp_path: Path) -> None:
    arguments = "{a: yes, b: 12:30, c: 010, d: 1e3, e: 0x1F, f: 2020-01-01, g: ~, h: true, i: '.inf', j: 0o17, k: -1.5}"
    text = f"goal: g\nsteps: [{{id: a, description: b, tool: t, arguments: {arguments}}}]"
    assert load_workflow(written(tmp_path, text)).plan().steps[0].arguments == {
        "a": "yes",
        "b": "12:30",
        "c": 10,
        "d": 1000.0,
        "e": 31,
        "f": "2020-01-01",
        "g": None,
        "h": True,
        "i": ".inf",
        "j": 15,
        "k": -1.5,
    }


def test_the_published_schema_is_that_of_the_model() -> None:
    published = json.loads(
        (resource_root() / "schemas" / "workflow.json").read_text(encoding="utf-8")
    )
    assert published == workflow_json_schema()
    Draft202012Validator.check_schema(published)


def test_every_key_of_the_published_schema_is_described() -> None:
    schema = workflow_json_schema()
    for properties in (schema["properties"], schema["$defs"]["WorkflowStep"]["properties"]):
        assert all(described.get("description") for described in properties.values())


@pytest.mark.parametrize(
    "change", [{"tusk": 1}, {"goal": ""}, {"steps": []}, {"steps": [{"id": "a"}]}, {"task": 5}]
)
def test_schema_and_loader_refuse_the_same(tmp_path: Path, change: dict[str, object]) -> None:
    value = {"goal": "g", "steps": [{"id": "a", "description": "b"}], **change}
    assert not Draft202012Validator(workflow_json_schema()).is_valid(value)
    with pytest.raises(ConfigError):
        load_workflow(written(tmp_path, json.dumps(value), "my.json"))


def test_there_are_four_examples() -> None:
    assert [path.parent.name for path in EXAMPLES] == [
        "data-question",
        "design",
        "document-review",
        "regions",
    ]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_an_example_is_fine_by_loader_and_schema_and_names_its_command(path: Path) -> None:
    workflow = load_workflow(path, tool_names=["read_file", "calculator"], one_final_step=True)
    assert [warning.message for warning in workflow.warnings] == []
    assert Draft202012Validator(workflow_json_schema()).is_valid(LocatedYaml(path).value)
    text = path.read_text(encoding="utf-8")
    schema = text.splitlines()[0].removeprefix("# yaml-language-server: $schema=")
    assert (path.parent / schema).resolve() == ROOT / "schemas" / "workflow.json"
    assert f"python -m aeon plan_file={path.relative_to(ROOT)}" in text
    for name in workflow.input_names:
        assert f"inputs.{name}=" in text or f"input_files.{name}=" in text
    for word in text.split():
        if word.startswith("input_files."):
            assert (ROOT / word.partition("=")[2]).is_file()


def test_the_figures_of_the_data_question_come_out_of_its_tools() -> None:
    (path,) = [path for path in EXAMPLES if path.parent.name == "data-question"]
    tools = {t.name: t for t in (calculator, *file_tools(path.parent / "data", 10_000))}
    outputs: dict[str, object] = {}
    for step in load_workflow(path).plan().steps:
        if step.tool:
            arguments = resolve_arguments(
                step.arguments or {}, {"file": "revenue.json", "target": "15"}, outputs
            )
            outputs[step.step_id] = tools[step.tool].invoke(arguments)
    figures = {name: outputs[name] for name in ("north", "south", "west", "all")}
    assert figures == {"north": 16.1, "south": 5.0, "west": 26.0, "all": 12.9}
