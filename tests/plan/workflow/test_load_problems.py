"""Workflow files that cannot be used: everything that is wrong is said at once, each with its line and column."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from aeon.domain.errors import ConfigError
from aeon.domain.plan import PlanStep
from aeon.plan.workflow.load import inspect_workflow, load_workflow
from tests.support.timing import SOON

HEAD = "goal: g\nsteps:\n"
TOOLS = {
    "calculator": {
        "type": "object",
        "properties": {"expression": {"type": "string"}, "digits": {"type": "integer"}},
        "required": ["expression"],
        "additionalProperties": False,
    },
    "echo": {"type": "object"},
}


def found(
    folder: Path, text: str, name: str = "my.yaml", **options: Any
) -> list[tuple[int, int, str, str]]:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    _, problems = inspect_workflow(path, **options)
    return [(p.line, p.column, p.severity, p.message) for p in problems]


def errors(folder: Path, text: str, **options: Any) -> list[tuple[int, int, str]]:
    return [
        (line, column, said)
        for line, column, kind, said in found(folder, text, **options)
        if kind == "error"
    ]


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("", 1, 1, "must be a mapping"),
        ("- a", 1, 1, "must be a mapping"),
        ("goal: g", 1, 1, "`steps` is missing"),
        ("steps: [{id: a, description: b}]", 1, 1, "`goal` is missing"),
        ("goal: g\nsteps: []", 2, 8, "steps: must not be empty"),
        ("goal: g\nsteps: {a: b}", 2, 8, "steps: must be a list"),
        ("goal: 5\nsteps: [{id: a, description: b}]", 1, 7, 'goal: must be text: quote it if you mean the text "5"'),
        ("goal: true\nsteps: [{id: a, description: b}]", 1, 7, 'if you mean the text "true"'),
        ("goal:\nsteps: [{id: a, description: b}]", 1, 6, "goal: must be text, but nothing is given"),
        ("tusk: g\n" + HEAD + "  - {id: a, description: b}", 1, 1, "tusk: unknown key; did you mean `task`?"),
        (HEAD + "  - {step_id: a, id: a, description: b}", 3, 6, "did you mean `id`? allowed are id, description,"),
        (HEAD + "  - {id: a, description: b, needs: []}", 3, 29, "did you mean `depends_on`?"),
        (HEAD + "  - {id: a, description: b, descripton: c}", 3, 29, "did you mean `description`?"),
        (HEAD + "  - {id: a, description: b, zzz: c}", 3, 29, "zzz: unknown key; allowed are id"),
        (HEAD + "  - {id: a}", 3, 5, "`description` is missing"),
        (HEAD + "  - a", 3, 5, "steps[1]: must be a mapping"),
        (HEAD + "  - {id: a, description: b, agent: gpt}", 3, 36, "agent: must be 'llm' or 'person' (it is 'gpt')"),
        (HEAD + "  - {id: a, description: b, depends_on: c}", 3, 41, "must be a list: [one, other] (it is 'c')"),
        (HEAD + "  - {id: a, description: b, tool: t, arguments: [1]}", 3, 49, "arguments: must be a mapping"),
        (HEAD + "  - {id: a, description: b, tool: t, arguments: {1: 2}}", 3, 50, "a key must be text: quote it"),
        (HEAD + "  - {id: a, description: b, tool: t, arguments: {x: [1, 9e999]}}", 3, 57, "a number that JSON has"),
        (HEAD + "  - {id: a, description: b, tool: t, arguments: {x: [1, .nan]}}", 3, 57, "a number that JSON has"),
        (HEAD + "  - {id: a, description: b, tool: t, arguments: {x: [1, -.inf]}}", 3, 57, "a number that JSON has"),
        (HEAD + "  - {id: a, description: b, tool: t, arguments: {x: !!binary aGk=}}", 3, 53, "2002:binary"),
        (HEAD + '  - {id: a, description: "\\ud800"}', 3, 26, "valid Unicode"),
        (HEAD + "  - {id: ' ', description: b}", 3, 10, "blank step_id"),
        (HEAD + "  - {id: a, description: ' '}", 3, 26, "has no description"),
        (HEAD + "  - {id: a, description: b}\n  - {id: a, description: c}", 4, 10, "step_id 'a' is used by 2 steps"),
        (HEAD + "  - {id: a, description: b, depends_on: [a]}", 3, 42, "depends on itself"),
        (HEAD + "  - {id: first, description: b}\n  - {id: b, description: b, depends_on: [frist]}", 4, 42,
         "did you mean 'first'?"),
        (HEAD + "  - {id: a, description: b, depends_on: [5, c]}", 3, 45, "'c', which is not a step"),
        (HEAD + "  - {id: a, description: b, depends_on: [b]}\n  - {id: b, description: b, depends_on: [a]}", 3, 41,
         "a depends on b, b depends on a"),
        ("goal: g\ngoal: h\nsteps: [{id: a, description: b}]", 2, 1, "is repeated here; it is already on line 1"),
        (HEAD + '  - {id: "\\ud800", description: b, depends_on: ["\\ud800"]}', 3, 10, "valid Unicode"),
        (HEAD + '  - {id: "a\\n\\e[", description: b, depends_on: ["a\\n\\e["]}', 3, 49, r"'a\n\x1b['"),
        (HEAD + "  - id: a\n    description: b\n    id: c", 5, 5, "`id` is repeated here"),
        ("goal: g\n\tsteps: []", 2, 1, "Indent with blanks"),
        ("goal: [", 1, 8, "expected"),
        ("goal: !!python/object/apply:os.system [ls]", 1, 7, "python/object"),
        ("goal: *nowhere", 1, 7, "undefined alias"),
        ("a: &a [*a]", 1, 4, "nested more than"),
        ("goal: a\x07b", 1, 1, "special characters are not allowed"),
        ("goal: g\n--- \ngoal: h", 2, 1, "another document"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_line_and_column(
    tmp_path: Path, text: str, line: int, column: int, said: str
) -> None:
    assert any(
        (ln, col) == (line, column) and said in message
        for ln, col, message in errors(tmp_path, text)
    ), errors(tmp_path, text)


def test_everything_is_said_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = """goal: ""
steps:
  - id: a
    description: see ${inputs.x} and ${oops
    depends_on: [b]
    agent: gpt
  - id: b
    depends_on: [a, c]
    with: {}
"""
    path = tmp_path / "my.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_workflow(path, input_names=[])
    lines = caught.value.message.splitlines()
    assert all(line.startswith(f"{path}:") and ": error: " in line for line in lines)
    assert [int(line.removeprefix(f"{path}:").split(":")[0]) for line in lines] == [
        1,
        4,
        4,
        5,
        6,
        7,
        8,
        9,
    ]
    assert f"aeon check {path}" in caught.value.hint


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("${inputs.dco}", "`inputs` has no 'dco' (did you mean 'doc'?)"),
        ("${steps.x.output}", "there is no step 'x'"),
        ("${steps.reed.output}", "there is no step 'reed' (did you mean 'read'?)"),
        ("${steps.use.output}", "a step cannot use its own output"),
        ("${steps.other.output}", "step 'use' does not depend on 'other'"),
        ("${steps.read}", "names nothing"),
        ("${HOME}", "`$${` for a literal `${`"),
        ("${inputs.doc", "without a closing `}`"),
    ],
)
def test_a_reference_is_checked_before_anything_runs(
    tmp_path: Path, reference: str, said: str
) -> None:
    text = f"""goal: g
inputs: {{doc: a document}}
steps:
  - {{id: read, description: r, agent: llm}}
  - {{id: between, description: r, depends_on: [read], agent: llm}}
  - {{id: other, description: o, agent: llm}}
  - id: use
    description: u
    depends_on: [between]
    tool: echo
    arguments:
      fine: "${{steps.read.output.k}} ${{steps.between.output}} ${{inputs.doc}} $${{x}}"
      wrong: [1, "{reference}"]
"""
    ((line, column, message),) = errors(tmp_path, text)
    assert (line, column) == (13, 18)
    assert message.startswith("steps[4].arguments.wrong[2]: ")
    assert said in message


def test_outputs_are_not_named_in_descriptions(tmp_path: Path) -> None:
    text = (
        HEAD
        + "  - {id: a, description: x}\n  - {id: b, description: '${steps.a.output}', depends_on: [a]}"
    )
    ((line, _, message),) = errors(tmp_path, text)
    assert line == 4
    assert "only in arguments" in message


def test_inputs_that_are_not_given_are_named_where_they_are_declared_or_used(
    tmp_path: Path,
) -> None:
    declared = (
        "goal: g\ninputs:\n  a: A\n  b: B\nsteps: [{id: s, description: '${inputs.a} ${inputs.b}'}]"
    )
    assert errors(tmp_path, declared) == []
    assert errors(tmp_path, declared, input_names=["a", "c"]) == [
        (4, 3, "the input 'b' is not given: inputs.b=\"...\" or input_files.b=path")
    ]
    used = "goal: g\nsteps: [{id: s, description: 'see ${inputs.b}'}]"
    assert errors(tmp_path, used) == []
    assert [(line, column) for line, column, _ in errors(tmp_path, used, input_names=[])] == [
        (2, 30)
    ]


def test_the_inputs_that_a_step_is_shown_must_be_there(tmp_path: Path) -> None:
    shown = "goal: g\nsteps: [{id: s, description: x, agent: llm, inputs: [a, b]}]"
    assert errors(tmp_path, shown) == []
    [(line, _, message)] = errors(tmp_path, shown, input_names=["a"])
    assert line == 2
    assert message == (
        "steps[1].inputs: the input 'b' is not given: inputs.b=\"...\" or input_files.b=path"
    )
    [(_, _, message)] = errors(tmp_path, "inputs: {a: A, bc: B}\n" + shown)
    assert "`inputs.b`: `inputs` has no 'b'" in message


def test_size_and_ending_are_held_to_what_is_configured(tmp_path: Path) -> None:
    text = HEAD + "  - {id: a, description: x}\n  - {id: b, description: x}"
    assert errors(tmp_path, text) == []
    (too_many, two_ends) = errors(tmp_path, text, max_steps=1, one_final_step=True)
    assert "2 steps, at most 1" in too_many[2]
    assert "exactly one step" in two_ends[2]


@pytest.mark.parametrize(
    ("step", "column", "said"),
    [
        ("{id: a, description: b}", 5, "neither `tool` nor `agent`"),
        ("{id: a, description: b, tool: echo, agent: llm}", 41, "both `tool` and `agent`: the tool does it"),
        ("{id: a, description: b, tool: calculater}", 35, "did you mean 'calculator'?"),
        ("{id: a, description: b, tool: calculator, arguments: {}}", 58, "'expression' is a required property"),
        ("{id: a, description: b, tool: calculator, arguments: {expression: 5}}", 71, "5 is not of type 'string'"),
    ],
)  # fmt: skip
def test_what_the_engine_can_work_around_is_a_warning(
    tmp_path: Path, step: str, column: int, said: str
) -> None:
    ((line, at, severity, message),) = found(tmp_path, f"{HEAD}  - {step}", tool_names=TOOLS)
    assert (line, at, severity) == (3, column, "warning")
    assert said in message


def test_arguments_that_wait_for_a_reference_are_not_held_against_their_schema_yet(
    tmp_path: Path,
) -> None:
    text = """goal: g
steps:
  - {id: a, description: b, agent: llm}
  - id: c
    description: d
    depends_on: [a]
    tool: calculator
    arguments: {expression: "${steps.a.output}", digits: "${steps.a.output.n}"}
"""
    assert found(tmp_path, text, tool_names=TOOLS) == []
    assert found(tmp_path, text, tool_names=["calculator"]) == []


def test_tools_are_not_checked_when_none_are_named(tmp_path: Path) -> None:
    assert found(tmp_path, HEAD + "  - {id: a, description: b, tool: x}") == []


def test_json_is_checked_with_lines_and_columns_too(tmp_path: Path) -> None:
    text = '{\n\t"goal": "g",\n\t"steps": [\n\t\t{"id": "a", "description": "b", "agent": "llm", "x": 1}\n\t]\n}'
    assert [(p[0], p[1]) for p in found(tmp_path, text, "my.json")] == [(4, 51)]
    assert found(tmp_path, '{"goal": "g",\n "steps": [}', "my.json")[0][:2] == (2, 12)
    assert "NaN is no JSON value" in found(tmp_path, '{"goal": NaN}', "my.json")[0][3]
    twice = (
        json.dumps({"goal": "g", "steps": [{"id": "a", "description": "b", "agent": "llm"}]})[:-1]
        + ', "goal": "h"}'
    )
    assert "is repeated here" in found(tmp_path, twice, "my.json")[0][3]


def test_aliases_that_unfold_without_end_are_refused_soon(tmp_path: Path) -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
    )
    started = time.monotonic()
    ((_, _, message),) = errors(tmp_path, bomb)
    assert "values, once aliases and merge keys are followed" in message
    assert time.monotonic() - started < SOON


@pytest.mark.slow
@pytest.mark.parametrize("text", ["a: " + "[" * 5000, "{" * 2000, "a: &x {b: *x}"])
def test_deep_and_circular_files_are_refused(tmp_path: Path, text: str) -> None:
    assert errors(tmp_path, text)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"goal: \xe9"])
def test_a_file_that_is_no_utf_8_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "my.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="UTF-8"):
        load_workflow(path)


def test_a_file_that_is_not_there_or_is_a_folder_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.yaml", tmp_path):
        with pytest.raises(ConfigError, match="cannot be read"):
            load_workflow(path)


def test_a_plan_of_far_too_many_steps_is_refused_before_a_step_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PlanStep, "model_construct", None)
    path = tmp_path / "large.yaml"
    path.write_text("goal: g\nsteps:\n" + "- {id: a}\n" * 31)
    workflow, (problem,) = inspect_workflow(path, max_steps=3)
    assert workflow is None
    assert (problem.line, problem.column) == (33, 3)
    assert problem.message == (
        "`steps` has more than 30 entries. A plan has at most 3 steps (execution.max_steps)"
    )


def test_a_step_without_an_id_is_reported_for_that_alone(tmp_path: Path) -> None:
    text = HEAD + "  - {description: b}\n  - {id: 5, description: c}\n"
    assert [said for _, _, said in errors(tmp_path, text)] == [
        "steps[1]: `id` is missing",
        'steps[2].id: must be text: quote it if you mean the text "5"',
    ]


OWN = HEAD + "- id: a\n  description: d\n  agent: llm\n"


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        (
            OWN + "  tools: [echo, calculater]\n",
            6,
            17,
            "step 'a' names the tool 'calculater', which is not registered (did you mean 'calculator'?)",
        ),
        (OWN + '  tools: ["db_*"]\n', 6, 11, "step 'a' names the tool 'db_*', which is not"),
        (OWN + "  tools: echo\n", 6, 10, "must be a list"),
        (
            HEAD + "- {id: a, description: d, tool: echo, tools: [echo]}\n",
            3,
            46,
            "step 'a' has `tools`, which the model calls by itself: write `agent: llm`",
        ),
    ],
)
def test_tools_that_the_model_cannot_call_are_errors(
    tmp_path: Path, text: str, line: int, column: int, said: str
) -> None:
    (problem,) = errors(tmp_path, text, tool_names=TOOLS)
    assert problem[:2] == (line, column)
    assert said in problem[2]


@pytest.mark.parametrize("tools", ["[]", "[echo]", '["calc*", echo]'])
def test_tools_that_the_model_may_call_are_no_problem(tmp_path: Path, tools: str) -> None:
    assert found(tmp_path, f"{OWN}  tools: {tools}\n", tool_names=TOOLS) == []
