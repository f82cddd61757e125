"""A plan written as a workflow file reads back as the plan it was."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aeon.domain.plan import FollowUpQuestion, Plan, PlanStep
from aeon.plan.workflow.load import load_workflow
from aeon.plan.workflow.references import resolve_arguments
from aeon.plan.workflow.write import workflow_text

ODD = st.text(
    alphabet=st.one_of(
        st.sampled_from(" \n\t'\"#:-?&*!|>%@`{}[],$~=\\\u2028\x85\r\ufeff\U0001f600"),
        st.sampled_from("\u2029 \t\x7f\0"),
        st.sampled_from(string.ascii_letters + string.digits),
        st.characters(exclude_categories=["Cs"]),
    ),
    min_size=1,
    max_size=60,
)
LIKE_OTHER_TYPES = st.sampled_from(
    [
        "yes",
        "No",
        "null",
        "~",
        "1e3",
        "0o17",
        "010",
        "12:30",
        "2020-01-01",
        ".inf",
        "true",
        "<<",
        "=",
        "-",
        "${inputs.x}",
    ]
)
LONG = st.lists(ODD, min_size=8, max_size=20).map(" ".join)
TEXT = st.one_of(ODD, LIKE_OTHER_TYPES, LONG).filter(str.strip)
# The check of a plan refuses other ids.
IDS = TEXT.filter(str.isprintable)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)

BREAKS = PlanStep(step_id="a", description="\u2028b", incoming_context="", agent="llm")


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    ids = draw(st.lists(TEXT.filter(str.isprintable), min_size=1, max_size=4, unique=True))
    steps = []
    for index, step_id in enumerate(ids):
        dependencies = draw(st.lists(st.sampled_from(ids[:index]), unique=True)) if index else []
        tool = draw(st.none() | TEXT)
        steps.append(
            PlanStep(
                step_id=step_id,
                description=draw(TEXT),
                dependencies=tuple(dependencies),
                provides=tuple(draw(st.lists(TEXT, max_size=2))),
                incoming_context="",
                handoff_to_next=draw(st.none() | TEXT),
                tool=tool,
                agent=None if tool else "llm",
                tools=None if tool else draw(st.none() | st.lists(TEXT, max_size=2).map(tuple)),
                arguments=draw(st.dictionaries(TEXT, JSON, max_size=2)) if tool else None,
            )
        )
    return Plan(goal=draw(TEXT), task=draw(TEXT), steps=tuple(steps))


@pytest.mark.slow
@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@hypothesis.example(Plan(goal="g\x85", task="\r\nx ", steps=(BREAKS,)), [])
@given(plans(), st.lists(ODD, max_size=3))
def test_any_plan_reads_back_as_it_was(tmp_path: Path, plan: Plan, header: list[str]) -> None:
    path = tmp_path / "plan.yaml"
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(workflow_text(plan, header=header))
    back = load_workflow(path).plan(inputs={})
    outputs = dict.fromkeys((step.step_id for step in plan.steps), "")
    resolved = [
        s
        if s.arguments is None
        else s.model_copy(update={"arguments": resolve_arguments(s.arguments, {}, outputs)})
        for s in back.steps
    ]
    assert back.model_copy(update={"steps": tuple(resolved)}) == plan


def example(**fields: Any) -> Plan:
    first = PlanStep(step_id="a", description="do a", agent="llm")
    second = PlanStep(step_id="b", description="do b", dependencies=("a",), tool="echo", **fields)
    return Plan(goal="g", task="line one\nline two", steps=(first, second))


def test_it_is_written_as_a_person_would() -> None:
    text = workflow_text(
        example(arguments={"text": "hello"}),
        inputs={"doc": "The contents of doc.md."},
        header=["Made by hand.", "  a command"],
        schema="schemas/workflow.json",
    )
    assert (
        text
        == """\
# yaml-language-server: $schema=schemas/workflow.json
# Made by hand.
#   a command

goal: g

task: |-
  line one
  line two

inputs:
  doc: The contents of doc.md.

steps:
  - id: a
    description: do a
    agent: llm

  - id: b
    description: do b
    depends_on: [a]
    tool: echo
    arguments:
      text: hello
"""
    )


def test_valid_references_stay_and_anything_else_is_escaped(tmp_path: Path) -> None:
    plan = example(
        arguments={
            "x": "${inputs.doc} ${inputs.other} ${steps.a.output.k} ${steps.b.output} ${HOME}"
        }
    )
    path = tmp_path / "plan.yaml"
    path.write_text(workflow_text(plan, inputs={"doc": "a document"}), encoding="utf-8")
    arguments = load_workflow(path).plan().steps[1].arguments
    assert arguments == {
        "x": "${inputs.doc} $${inputs.other} ${steps.a.output.k} $${steps.b.output} $${HOME}"
    }


def test_what_happened_to_a_step_is_left_out(tmp_path: Path) -> None:
    done = PlanStep(
        step_id="a", description="b", status="complete", step_output="secret", agent="llm"
    )
    assert "secret" not in workflow_text(Plan(goal="g", steps=(done,)))


@pytest.mark.parametrize(
    ("answer", "said"), [(None, "# Assumed: red"), ("blue", "# Answered: blue")]
)
def test_questions_become_comments_that_nothing_gets_out_of(
    tmp_path: Path, answer: str | None, said: str
) -> None:
    question = FollowUpQuestion(
        question="Which?\ngoal: x\u2028steps: []", assumption="red", step_id="a", answer=answer
    )
    text = workflow_text(example().model_copy(update={"questions": (question,)}))
    assert "# Asked (step a): Which? goal: x steps: []\n" in text
    assert said in text
    path = tmp_path / "plan.yaml"
    path.write_text(text, encoding="utf-8")
    assert load_workflow(path).plan().goal == "g"
