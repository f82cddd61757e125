"""Conditions of steps: what they may say, when steps are skipped, and what follows from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon, RunResult
from aeon.cli.progress.dag import draw
from aeon.domain.errors import PlanError
from aeon.domain.events import StepFinished, StepSkipped
from aeon.domain.graph import final_steps, ready_steps
from aeon.domain.plan import ForEach, Plan, PlanStep, Repeat
from aeon.plan.workflow.conditions import Named, find_named, holds, settle_conditions
from aeon.plan.workflow.load import inspect_workflow
from tests.support.scripted_model import (
    ScriptedModel,
    action,
    assessment,
    issue,
    planned,
    refinement,
    report,
)
from tests.tools.builders import a_tool

VALUES = {
    ("input", "city"): "Oslo",
    ("input", "count"): 3,
    ("input", "loud"): False,
    ("step", "check"): {"ok": True, "rows": [1, 2, 3], "items": "x"},
}


def look_up(named: Named) -> Any:
    value: Any = VALUES[named.kind, named.name]
    for part in named.path:
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


# What a condition may say


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("steps.check.output.ok == true", True),
        ("steps['check'].output['ok']", True),
        ("not steps.check.output.ok", False),
        ("inputs.count > 2 and inputs.city == 'Oslo'", True),
        ("inputs.count * 2 - 1 >= 5", True),
        ("1 < inputs.count < 3", False),
        ("inputs.city in ['Oslo', 'Bergen']", True),
        ("'Os' in inputs.city", True),
        ("len(steps.check.output.rows) == 3", True),
        ("steps.check.output.rows[0] == 1 or inputs.loud", True),
        ("steps.check.output.items == 'x'", True),
        ("steps.check.output != null", True),
        ("false", False),
    ],
)
def test_a_condition_holds_or_does_not(condition: str, expected: bool) -> None:
    assert holds(condition, look_up) is expected


@pytest.mark.parametrize(
    "condition",
    [
        "",
        "steps.check.output.ok ==",
        "city == 'Oslo'",
        "inputs",
        "steps.check",
        "steps.check.ok",
        "steps.check.output.rows[inputs.count]",
        "steps.check.output.rows[0:1]",
        "inputs.city.upper() == 'OSLO'",
        "open('/etc/passwd')",
        "__import__('os')",
        "len(inputs.city, 1)",
        "len",
        "[x for x in inputs.city]",
        "lambda: 1",
        "inputs.count ** 99",
        "f'{inputs.city}'",
        "(inputs.x := 1)",
        "{'a': 1}",
        "1 if true else 2",
        "x" * 3000,
        "(" * 500 + ")" * 500,
    ],
)
def test_what_is_no_condition_is_refused_before_anything_runs(condition: str) -> None:
    with pytest.raises(PlanError, match="when"):
        find_named(condition)


@pytest.mark.parametrize(
    "condition", ["inputs.city", "inputs.count", "inputs.city > 3", "1 / 0 == 1", "null"]
)
def test_a_condition_that_is_neither_true_nor_false_is_an_error(condition: str) -> None:
    with pytest.raises(PlanError, match="when: "):
        holds(condition, look_up)


@pytest.mark.parametrize("condition", ["'%99999999999d' % 1 == ''", "'x' * 99999999999 == ''"])
def test_a_condition_cannot_fill_the_memory(condition: str) -> None:
    with pytest.raises(PlanError, match="cannot be evaluated"):
        holds(condition, look_up)


def test_what_a_condition_names_is_found() -> None:
    found = find_named("steps['a-1'].output.k[0] == inputs.n.m and len(steps.b.output) > 1")
    assert [(one.kind, one.name, one.path) for one in found] == [
        ("step", "a-1", ("k", "0")),
        ("input", "n", ("m",)),
        ("step", "b", ()),
    ]


# Which steps are skipped


def step(step_id: str, *dependencies: str, **fields: Any) -> PlanStep:
    return PlanStep(step_id=step_id, description="d", dependencies=dependencies, **fields)


def statuses(plan: Plan, outputs: Mapping[str, Any], *, in_order: bool = False) -> list[str]:
    settled = settle_conditions(plan, outputs, {"loud": False}, in_order=in_order)
    return [each.status for each in settled.steps]


def test_a_step_is_skipped_once_its_condition_is_known_not_to_hold() -> None:
    steps = (step("a"), step("b", "a", when="steps.a.output.ok"), step("c", "b"))
    plan = Plan(goal="g", steps=steps)
    assert statuses(plan, {}) == ["pending", "pending", "pending"]
    plan = plan.with_steps(steps[0].model_copy(update={"status": "complete"}))
    assert statuses(plan, {"a": {"ok": True}}) == ["complete", "pending", "pending"]
    settled = settle_conditions(plan, {"a": '{"ok": false}'}, {}, in_order=False)
    assert [each.status for each in settled.steps] == ["complete", "skipped", "pending"]
    assert [each.step_id for each in ready_steps(settled)] == ["c"]


def test_the_output_of_a_skipped_step_is_null() -> None:
    first = step("a", when="inputs.loud")
    steps = (
        first,
        step("b", "a", when="steps.a.output.k == null"),
        step("c", "a", when="steps.a.output != null"),
    )
    assert statuses(Plan(goal="g", steps=steps), {}) == ["skipped", "pending", "skipped"]


@pytest.mark.parametrize(("in_order", "status"), [(False, "pending"), (True, "failed")])
def test_behind_a_failed_step_a_condition_waits_or_in_core_mode_fails(
    in_order: bool, status: str
) -> None:
    steps = (step("a", status="failed"), step("b", "a", when="steps.a.output.ok"))
    plan = Plan(goal="g", steps=steps)
    assert statuses(plan, {}, in_order=in_order) == ["failed", status]


def test_a_step_whose_condition_cannot_be_worked_out_fails_and_says_why() -> None:
    steps = (step("a", status="complete"), step("b", "a", when="steps.a.output.k"))
    settled = settle_conditions(Plan(goal="g", steps=steps), {"a": {"x": 1}}, {}, in_order=False)
    assert settled.steps[1].status == "failed"
    assert "there is no `k`" in settled.steps[1].errors[0]


def test_what_stands_for_a_step_is_asked_in_its_place() -> None:
    steps = (
        step("a", status="invalid", replaced_by="a2"),
        step("a2", status="complete"),
        step("b", "a2", when="steps.a.output.ok"),
    )
    assert statuses(Plan(goal="g", steps=steps), {"a2": {"ok": False}})[2] == "skipped"


def test_a_skipped_step_is_no_final_one() -> None:
    steps = (step("a", status="complete"), step("b", "a", status="skipped"))
    assert [each.step_id for each in final_steps(Plan(goal="g", steps=steps))] == ["a"]


# In a file


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ("steps.a.output.ok ==", "cannot be read"),
        ("steps.x.output", "there is no step 'x'"),
        ("steps.c.output", "does not depend on 'c'"),
        ("steps.b.output", "cannot use its own output"),
        ("inputs.lout", "`inputs` has no 'lout' (did you mean 'loud'?)"),
        ("5", "must be text"),
    ],
)
def test_a_condition_is_checked_with_its_file(tmp_path: Path, when: str, message: str) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(
        "goal: g\ninputs: {loud: words}\nsteps:\n"
        "  - {id: a, description: d, agent: llm}\n"
        "  - id: b\n    description: d\n    agent: llm\n    depends_on: [a]\n"
        f"    when: {when}\n"
        "  - {id: c, description: d, agent: llm}\n"
    )
    workflow, problems = inspect_workflow(path)
    assert workflow is None
    assert [problem.line for problem in problems] == [9]
    assert message in problems[0].message


def test_the_course_of_a_step_is_drawn() -> None:
    steps = (
        step("a", for_each=ForEach(items="inputs.rows", name="row")),
        step("b", "a", when="inputs.loud"),
        step("c", "a", repeat=Repeat(until="inputs.loud", at_most=3)),
    )
    drawn = draw(Plan(goal="g", steps=steps), width=80)
    assert "a  (for each of inputs.rows) d" in drawn
    assert "b  (when inputs.loud) d" in drawn
    assert "c  (until inputs.loud, at most 3 times) d" in drawn


# In a run


def carried_out(
    tmp_path: Path, model: ScriptedModel, *overrides: str, loud: str = "false", **given: Any
) -> RunResult:
    steps = [
        {"id": "a", "description": "check", "tool": "probe", "arguments": {}},
        {
            "id": "b",
            "description": "mend",
            "agent": "llm",
            "depends_on": ["a"],
            "when": "steps.a.output.broken == true",
        },
        {"id": "c", "description": "say", "agent": "llm", "depends_on": ["a", "b"]},
        {"id": "d", "description": "shout", "agent": "llm", "when": "inputs.loud"},
    ]
    inputs = {"loud": {"type": "boolean", "default": False}}
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"goal": "g", "inputs": inputs, "steps": steps}))
    tool = a_tool(lambda _: {"broken": False}, name="probe")
    with Aeon.from_config(
        [f"plan_file={path}", *overrides], environ={}, adapter=model, tools=[tool]
    ) as aeon:
        return aeon.run(inputs={"loud": loud}, **given)


@pytest.mark.parametrize("mode", ["core", "adaptive"])
def test_skipped_steps_cost_nothing_and_have_a_status_of_their_own(
    tmp_path: Path, mode: str
) -> None:
    model = ScriptedModel()
    given = (f"mode={mode}", "convergence.when=plan_done")
    result = carried_out(tmp_path, model, *given)
    assert result.exit_status == 0
    assert [call for call in model.calls if call.startswith("step")] == ["step:c"]
    states = {each.step_id: each.status for each in result.history.passes[-1].steps}
    assert states == {"a": "complete", "b": "skipped", "c": "complete", "d": "skipped"}
    assert result.steps_left == {}
    assert result.answer == "output of c"


@pytest.mark.parametrize("mode", ["core", "adaptive"])
def test_what_depends_on_a_skipped_step_is_given_a_note(tmp_path: Path, mode: str) -> None:
    model = ScriptedModel()
    carried_out(tmp_path, model, f"mode={mode}", "convergence.when=plan_done")
    prompt = model.prompts("step")[0]
    assert "Step b was skipped, since its condition does not hold" in prompt
    assert "steps.a.output.broken == true" in prompt


def test_a_condition_that_holds_makes_no_difference(tmp_path: Path) -> None:
    model = ScriptedModel()
    carried_out(tmp_path, model, "mode=core", loud="true")
    assert [call for call in model.calls if call.startswith("step")] == ["step:c", "step:d"]


def test_a_skip_is_an_event_with_its_reason(tmp_path: Path) -> None:
    seen: list[StepSkipped] = []

    def note(recorded: Any) -> None:
        if isinstance(recorded.event, StepSkipped):
            seen.append(recorded.event)

    carried_out(tmp_path, ScriptedModel(), "mode=core", observers=[note])
    assert {(one.step.step_id, one.pass_number) for one in seen} == {("d", 0), ("b", 1)}
    assert "steps.a.output.broken == true" in {one.step.step_id: one.reason for one in seen}["b"]


def test_a_step_whose_condition_fails_ends_as_an_event_too(tmp_path: Path) -> None:
    seen: list[StepFinished] = []

    def note(recorded: Any) -> None:
        if isinstance(recorded.event, StepFinished):
            seen.append(recorded.event)

    steps = [
        {"id": "a", "description": "say", "agent": "llm"},
        {
            "id": "b",
            "description": "d",
            "agent": "llm",
            "depends_on": ["a"],
            "when": "steps.a.output.x",
        },
    ]
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"goal": "g", "steps": steps}))
    given = [f"plan_file={path}", "mode=core", "progress=none"]
    with Aeon.from_config(given, environ={}, adapter=ScriptedModel()) as aeon:
        result = aeon.run(observers=[note])
    assert result.termination_reason == "step_failed"
    assert {one.step.step_id: one.step.status for one in seen} == {"a": "complete", "b": "failed"}


def test_a_run_with_skipped_steps_is_resumed_as_it_was(tmp_path: Path) -> None:
    first = ScriptedModel()
    given = ("mode=core", "limits.max_llm_calls=10")
    one = carried_out(tmp_path, first, *given, directory=tmp_path / "one")
    tool = a_tool(lambda _: {"broken": True}, name="probe")
    model = ScriptedModel()
    with Aeon.from_config(
        [f"resume={tmp_path / 'one'}"], environ={}, adapter=model, tools=[tool]
    ) as aeon:
        two = aeon.run(directory=tmp_path / "two")
    assert (two.answer, model.calls) == (one.answer, [])


def test_a_refinement_cannot_take_a_condition_away(tmp_path: Path) -> None:
    replaced = action("REPLACE", "b", planned("b2", "a"), addresses_issues=["i1"])
    model = ScriptedModel(
        semantic_validation=[report(issue(step_id="b")), report()],
        refinement=[refinement(replaced), refinement()],
        convergence=assessment(),
    )
    result = carried_out(tmp_path, model, "convergence.when=plan_done")
    states = {each.step_id: each.status for each in result.history.passes[-1].steps}
    assert states["b2"] == "skipped"


def test_the_page_shows_skipped_steps(tmp_path: Path) -> None:
    carried_out(tmp_path, ScriptedModel(), "mode=core", directory=tmp_path / "one")
    page = (tmp_path / "one" / "report.html").read_text()
    assert "skipped" in page
    assert "⊘" in page
