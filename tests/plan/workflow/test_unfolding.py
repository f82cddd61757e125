"""Steps that are carried out for each item of a list, and steps that are repeated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon, RunResult
from aeon.domain.errors import ConfigError
from aeon.domain.events import StepUnfolded
from aeon.domain.history import StepResult
from aeon.domain.plan import ForEach, Plan, PlanStep, Repeat
from aeon.plan.workflow.load import inspect_workflow, load_workflow
from aeon.plan.workflow.unfolding import Settlement, collect_outputs
from aeon.plan.workflow.write import workflow_text
from tests.support.scripted_model import ScriptedModel, clear
from tests.tools.builders import a_tool

ROWS = [{"name": "north", "n": 1}, {"name": "${inputs.x} $${y}", "n": [2]}]


def step(step_id: str, *dependencies: str, **fields: Any) -> PlanStep:
    given = {"description": "d", **fields}
    return PlanStep(step_id=step_id, dependencies=dependencies, **given)


def each(items: str = "inputs.rows", **fields: Any) -> dict[str, Any]:
    return {"for_each": ForEach(items=items, name="row"), **fields}


def settle(
    *steps: PlanStep, outputs: Mapping[str, Any] | None = None, **settings: Any
) -> dict[str, PlanStep]:
    inputs = {"rows": ROWS, "x": "filled", "none": [], "loud": False}
    given = {"max_steps": 10, **settings}
    plan = Settlement(outputs or {}, inputs, **given).settle(Plan(goal="g", steps=steps))
    return {each.step_id: each for each in plan.steps}


# Lists


def test_a_step_has_an_instance_for_each_item_and_what_depends_on_it_on_all() -> None:
    settled = settle(step("a"), step("b", "a", **each()), step("c", "b", "a"))
    assert list(settled) == ["a", "b[0]", "b[1]", "c"]
    assert settled["b[1]"].dependencies == ("a",)
    assert settled["c"].dependencies == ("b[0]", "b[1]", "a")
    assert [(one.step_index, one.total_steps) for one in settled.values()] == [
        (1, 4),
        (2, 4),
        (3, 4),
        (4, 4),
    ]


def test_an_item_is_filled_in_and_read_no_further() -> None:
    settled = settle(
        step(
            "b",
            description="Say ${row.name} to ${inputs.x}",
            tool="t",
            arguments={
                "all": "${row}",
                "n": "${row.n}",
                "text": "<${row.name}>",
                "x": "${inputs.x}",
            },
            **each(),
        )
    )
    assert settled["b[0]"].description == "Say north to filled"
    assert settled["b[1]"].description == "Say ${inputs.x} $${y} to filled"
    assert settled["b[0]"].arguments == {
        "all": {"name": "north", "n": 1},
        "n": 1,
        "text": "<north>",
        "x": "${inputs.x}",
    }
    # What is left is resolved when the step is carried out, and then gives the item's text.
    assert settled["b[1]"].arguments["text"] == "<$${inputs.x} $$${y}>"


def test_a_list_of_an_output_is_waited_for() -> None:
    steps = (step("a"), step("b", "a", **each("steps.a.output.rows")))
    assert list(settle(*steps)) == ["a", "b"]
    done = steps[0].model_copy(update={"status": "complete"})
    for output in ({"rows": [1, 2]}, '{"rows": [1, 2]}'):
        settled = settle(done, steps[1], outputs={"a": output})
        assert list(settled) == ["a", "b[0]", "b[1]"]


def test_without_items_a_step_is_skipped_and_its_output_is_an_empty_list() -> None:
    settled = settle(
        step("b", **each("inputs.none")), step("c", "b", when="len(steps.b.output) > 0")
    )
    assert {name: one.status for name, one in settled.items()} == {"b": "skipped", "c": "skipped"}


def test_without_the_step_that_makes_its_list_a_step_is_skipped() -> None:
    settled = settle(step("a", when="inputs.loud"), step("b", "a", **each("steps.a.output")))
    assert {name: one.status for name, one in settled.items()} == {"a": "skipped", "b": "skipped"}


def test_a_hand_off_names_the_item_too() -> None:
    settled = settle(step("b", handoff_to_next="what ${row.name} and ${inputs.x} need", **each()))
    assert settled["b[1]"].handoff_to_next == "what ${inputs.x} $${y} and filled need"


def test_a_condition_of_the_step_itself_comes_first() -> None:
    settled = settle(step("b", when="inputs.loud", **each()))
    assert {name: one.status for name, one in settled.items()} == {"b": "skipped"}


@pytest.mark.parametrize(
    ("items", "output", "message"),
    [
        ("inputs.x", None, "no JSON"),
        ("inputs.loud", None, "is no list"),
        ("inputs.rows[0]", None, "is no list"),
        ("steps.a.output.rows", {"x": 1}, "there is no `rows`"),
        ("steps.a.output", list(range(10)), "has 10 items: more than execution.max_steps=10"),
    ],
)
def test_what_is_no_list_or_too_long_fails_the_step(items: str, output: Any, message: str) -> None:
    settled = settle(
        step("a", status="complete"), step("b", "a", **each(items)), outputs={"a": output}
    )
    assert settled["b"].status == "failed"
    assert message in settled["b"].errors[0]


def test_an_instance_takes_no_other_steps_id() -> None:
    settled = settle(step("b[0]"), step("b", **each()))
    assert "the step 'b[0]' already exists" in settled["b"].errors[0]


def test_the_outputs_of_instances_are_a_list_too() -> None:
    results = {
        "b[0]": StepResult(step_id="b[0]", step_output="x"),
        "b[1]": StepResult(step_id="b[1]", error="no"),
        "b[2]": StepResult(step_id="b[2]", step_output="z"),
    }
    assert collect_outputs(results, lambda result: result.step_output) == {
        "b": ["x", None, "z"],
        "b[0]": "x",
        "b[2]": "z",
    }


def test_only_the_outputs_that_are_named_are_read() -> None:
    ids = ("a", "b[0]", "b[1]", "c[0]", "c[1]")
    results = {name: StepResult(step_id=name, step_output=name) for name in ids}
    read = []

    def read_output(result: StepResult) -> str | None:
        read.append(result.step_id)
        return result.step_output

    outputs = collect_outputs(results, read_output, {"b", "c[1]"})
    assert read == ["b[0]", "b[1]", "c[1]"]
    assert (outputs["b"], outputs["c[1]"]) == (["b[0]", "b[1]"], "c[1]")


# Repetitions


def repeated(done: int = 0, **fields: Any) -> PlanStep:
    repeat = Repeat(until="steps.a.output.ok", at_most=3, done=done)
    return step("a", status="complete", step_output="so far", repeat=repeat, **fields)


def test_a_step_is_repeated_while_its_condition_does_not_hold() -> None:
    settled = settle(repeated(), outputs={"a": {"ok": False}})["a"]
    assert (settled.status, settled.repeat.done) == ("pending", 1)
    assert (settled.step_output, settled.clarity_reason) == (
        "so far",
        "`steps.a.output.ok` does not hold",
    )


def test_a_step_is_repeated_no_more_once_its_condition_holds() -> None:
    assert settle(repeated(), outputs={"a": {"ok": True}})["a"].status == "complete"


def test_a_step_is_repeated_so_often_at_most_and_says_so() -> None:
    settled = settle(repeated(done=2), outputs={"a": {"ok": False}})["a"]
    assert settled.status == "complete"
    assert settled.errors == ("repeated 3 times, but `steps.a.output.ok` does not hold",)
    assert settle(settled, outputs={"a": {"ok": False}})["a"] == settled


def test_a_condition_to_repeat_that_cannot_be_worked_out_fails_the_step() -> None:
    assert settle(repeated(), outputs={"a": {"x": 1}})["a"].status == "failed"


# In a file


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("for_each: inputs.rows + 1", "must name one list"),
        ("for_each: inputs.count", "is of the type integer, and no list"),
        ("for_each: steps.x.output", "there is no step 'x'"),
        ("for_each: steps.c.output", "does not depend on 'c'"),
        ("for_each: inputs.rows\n    as: inputs", "another name"),
        ("as: row", "`as` needs `for_each`"),
        ("at_most: 2", "`at_most` needs `repeat_until`"),
        ("repeat_until: steps.b.output ==", "`repeat_until: steps.b.output ==` cannot be read"),
        ("repeat_until: steps.c.output == 1", "does not depend on 'c'"),
        ("repeat_until: steps.b.output == 1\n    at_most: 0", "at_most"),
        ("for_each: inputs.rows\n    repeat_until: steps.b.output == 1", "not both"),
        ("for_each: inputs.rows\n    arguments: {x: '${rov.n}'}", "names nothing"),
        ("arguments: {x: '${item}'}", "names nothing"),
    ],
)
def test_what_is_wrong_is_named_before_a_run(tmp_path: Path, keys: str, message: str) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(
        "goal: g\ninputs: {rows: {type: array}, count: {type: integer}}\nsteps:\n"
        "  - {id: a, description: d, agent: llm}\n"
        f"  - id: b\n    description: d\n    tool: t\n    depends_on: [a]\n    {keys}\n"
        "  - {id: c, description: d, agent: llm}\n"
    )
    workflow, problems = inspect_workflow(path)
    assert workflow is None
    assert any(message in problem.message for problem in problems), problems


def test_lists_and_repetitions_are_written_and_read_back(tmp_path: Path) -> None:
    steps = (
        step("a", agent="llm", description="Say ${row.name}", **each("inputs.rows")),
        step("b", "a", agent="llm", repeat=Repeat(until="len(steps.b.output) > 1", at_most=3)),
    )
    path = tmp_path / "plan.yaml"
    path.write_text(workflow_text(Plan(goal="g", steps=steps), inputs={"rows": "Rows"}))
    read = load_workflow(path).plan()
    assert [(one.for_each, one.repeat) for one in read.steps] == [
        (one.for_each, one.repeat) for one in steps
    ]
    assert load_workflow(path).input_names == ("rows",)


# In a run


def carried_out(
    tmp_path: Path, model: ScriptedModel, steps: list[dict[str, Any]], *overrides: str, **given: Any
) -> RunResult:
    inputs = {"rows": {"type": "array", "default": ROWS}, "x": {"default": "filled"}}
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"goal": "g", "inputs": inputs, "steps": steps}))
    tools = given.pop("tools", ())
    overrides = (f"plan_file={path}", "convergence.when=plan_done", *overrides)
    with Aeon.from_config(overrides, environ={}, adapter=model, tools=tools) as aeon:
        return aeon.run(**given)


MAP = [
    {
        "id": "b",
        "description": "Describe ${row.name}",
        "agent": "llm",
        "for_each": "inputs.rows",
        "as": "row",
    },
    {"id": "c", "description": "Together", "agent": "llm", "depends_on": ["b"]},
    {
        "id": "t",
        "description": "All",
        "tool": "probe",
        "arguments": {"all": "${steps.b.output}"},
        "depends_on": ["b"],
    },
]


@pytest.mark.parametrize("mode", ["core", "adaptive"])
def test_instances_run_and_their_outputs_are_given_on_one_by_one_and_as_a_list(
    tmp_path: Path, mode: str
) -> None:
    model = ScriptedModel()
    seen: list[Any] = []
    tool = a_tool(lambda given: seen.append(dict(given)) or "done", name="probe")
    result = carried_out(tmp_path, model, MAP, f"mode={mode}", tools=[tool])
    assert result.exit_status == 0
    steps = [call for call in model.calls if call.startswith("step")]
    assert sorted(steps) == ["step:b[0]", "step:b[1]", "step:c"]
    assert seen == [{"all": ["output of b[0]", "output of b[1]"]}]
    prompt = model.prompts("step")[-1]
    assert "output of b[0]" in prompt
    assert "output of b[1]" in prompt
    passes = result.history.passes
    if mode == "adaptive":
        assert set(passes[1].execution_results) == {"b[0]", "b[1]"}


@pytest.mark.parametrize("mode", ["core", "adaptive"])
def test_an_empty_list_is_given_on_as_one(tmp_path: Path, mode: str) -> None:
    model = ScriptedModel()
    seen: list[Any] = []
    tool = a_tool(lambda given: seen.append(dict(given)) or "done", name="probe")
    result = carried_out(tmp_path, model, MAP, f"mode={mode}", tools=[tool], inputs={"rows": "[]"})
    assert result.exit_status == 0
    assert seen == [{"all": []}]
    assert (
        "Step b was to be done for each item of a list, which is empty" in model.prompts("step")[-1]
    )


@pytest.mark.parametrize("mode", ["core", "adaptive"])
def test_a_skipped_step_in_the_middle_adds_nothing_to_the_answer(tmp_path: Path, mode: str) -> None:
    steps = [
        {"id": "a", "description": "Draft", "agent": "llm"},
        {
            "id": "b",
            "description": "Mend",
            "agent": "llm",
            "depends_on": ["a"],
            "when": "inputs.x == 'mend'",
        },
        {"id": "c", "description": "Answer", "agent": "llm", "depends_on": ["b"]},
    ]
    result = carried_out(tmp_path, ScriptedModel(), steps, f"mode={mode}")
    assert result.answer == "output of c"


def test_a_step_that_unfolds_is_an_event(tmp_path: Path) -> None:
    seen: list[StepUnfolded] = []

    def note(recorded: Any) -> None:
        if isinstance(recorded.event, StepUnfolded):
            seen.append(recorded.event)

    carried_out(tmp_path, ScriptedModel(), MAP[:2], "mode=core", observers=[note])
    assert [(one.step_id, one.instances, one.pass_number) for one in seen] == [
        ("b", ("b[0]", "b[1]"), 0)
    ]


def test_an_input_that_is_no_list_is_refused_before_the_first_call(tmp_path: Path) -> None:
    model = ScriptedModel()
    steps = [{**MAP[0], "for_each": "inputs.x"}]
    with pytest.raises(ConfigError, match=r"step b: `for_each: inputs\.x` is a text"):
        carried_out(tmp_path, model, steps)
    with pytest.raises(ConfigError, match="has 2 items: more than"):
        carried_out(tmp_path, model, MAP[:1], "execution.max_steps=1")
    assert model.calls == []


def test_a_step_is_carried_out_until_its_condition_holds(tmp_path: Path) -> None:
    answers = [clear('{"ok": false}'), clear('{"ok": false}'), clear('{"ok": true}')]
    model = ScriptedModel(step=answers)
    steps = [
        {
            "id": "a",
            "description": "try",
            "agent": "llm",
            "repeat_until": "steps.a.output.ok == true",
        }
    ]
    result = carried_out(tmp_path, model, steps, "mode=core", directory=tmp_path / "one")
    assert (result.exit_status, model.calls) == (0, ["step:a"] * 3)
    assert result.ttl.used == 3
    assert "`steps.a.output.ok == true` does not hold" in model.prompts("step")[1]
    again = ScriptedModel(step=clear("never"))
    with Aeon.from_config([f"resume={tmp_path / 'one'}"], environ={}, adapter=again) as aeon:
        assert aeon.run(directory=tmp_path / "two").answer == result.answer
    assert again.calls == []


def test_a_step_that_never_comes_to_its_end_stops_at_its_bound(tmp_path: Path) -> None:
    model = ScriptedModel(step=clear('{"ok": false}'))
    steps = [
        {
            "id": "a",
            "description": "try",
            "agent": "llm",
            "repeat_until": "steps.a.output.ok == true",
            "at_most": 2,
        },
        {"id": "b", "description": "then", "agent": "llm", "depends_on": ["a"]},
    ]
    result = carried_out(tmp_path, model, steps, "mode=core")
    assert model.calls == ["step:a", "step:a", "step:b"]
    assert "repeated 2 times" in result.history.passes[-1].steps[0].errors[0]


# Outputs that are JSON

LISTED = {
    "id": "list",
    "description": "List two regions",
    "agent": "llm",
    "output_schema": {"type": "array", "items": {"type": "string"}},
}


def test_an_output_of_a_schema_is_a_value(tmp_path: Path) -> None:
    seen: list[Any] = []
    tool = a_tool(lambda given: seen.append(dict(given)) or "done", name="probe")
    model = ScriptedModel(step=[clear(["north", "south"])])
    use = {
        "id": "use",
        "description": "Use ${item}",
        "tool": "probe",
        "arguments": {"all": "${steps.list.output}", "one": "${item}"},
        "for_each": "steps.list.output",
        "depends_on": ["list"],
    }
    result = carried_out(tmp_path, model, [LISTED, use], "mode=core", tools=[tool])
    assert result.exit_status == 0
    both = ["north", "south"]
    assert seen == [{"all": both, "one": "north"}, {"all": both, "one": "south"}]
    prompt = model.prompts("step")[0]
    assert "Its step_output is JSON of this schema" in prompt
    assert "<answer_schema" not in prompt


def test_an_output_that_is_not_as_its_schema_says_is_repaired(tmp_path: Path) -> None:
    model = ScriptedModel(step=clear("north and south"), repair=json.dumps(clear(["north"])))
    result = carried_out(tmp_path, model, [LISTED], "mode=core")
    assert model.calls == ["step:list", "repair"]
    assert json.loads(result.answer) == ["north"]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("agent: llm\n    output_schema: {type: listt}", "no JSON Schema"),
        ("tool: t\n    output_schema: {type: array}", "write `agent: llm`"),
        ("agent: person\n    output_schema: {type: array}", "write `agent: llm`"),
    ],
)
def test_a_wrong_output_schema_is_named(tmp_path: Path, keys: str, message: str) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(f"goal: g\nsteps:\n  - id: b\n    description: d\n    {keys}\n")
    workflow, problems = inspect_workflow(path)
    assert workflow is None
    assert any(message in problem.message for problem in problems), problems
