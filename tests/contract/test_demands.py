"""What is asked of a model on the wire is all that its answer is held to: no demand is first heard of in a repair."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import pytest
from jsonschema import Draft202012Validator

from aeon.convergence.comparison import parse_preferred
from aeon.convergence.engine import parse_assessment
from aeon.domain.assessment import ConvergenceThresholds
from aeon.domain.errors import ValidationError
from aeon.domain.plan import PlanStep
from aeon.domain.profile import TaskProfile
from aeon.execution.outcome import step_result
from aeon.llm.exchange import InvalidAnswer, check_answer
from aeon.llm.schemas import NAMES, load_packaged_schemas
from aeon.plan.wire import MAX_ACTIONS, parse_plan, parse_refinement, parse_subplan, require_answers
from aeon.supervisor.faithful import choose_tool
from aeon.supervisor.tool_round import read_round
from aeon.validation.semantic import parse_report
from tests.contract.components import an_issue
from tests.contract.test_wire import at
from tests.support.scripted_model import (
    PAIRS,
    assessment,
    clear,
    issue,
    modify,
    planned,
    profile,
    refinement,
    report,
)

Place = tuple[str | int, ...]


class Case(NamedTuple):
    """An answer with a value at every property, and how it is read."""

    answer: dict[str, Any]
    parse: Callable[[Any], Any]


def worked(step_id: str, *dependencies: str) -> dict[str, Any]:
    given = {
        "provides": ["tea"],
        "handoff_to_next": "hot",
        "tool": "kettle",
        "arguments": '{"cups": 2}',
    }
    return {**planned(step_id, *dependencies), **given}


def read_refinement(answer: Any) -> None:
    require_answers(parse_refinement(answer, [an_issue()]), [an_issue()])


FAULT = {"kind": "omission", "description": "no cups", "blocking": True, "review_issue": "i1"}
JUDGED = {"name": "hot", "met": False, "reason": "it is cold"}
LOCATED = {
    **issue("i1", "a", "HIGH"),
    "location": {"step_id": "a", "artifact_reference": "its end"},
    "proposed_repair": {"action": "reword", "target": "a", "changes": "{}"},
}
PARENT = PlanStep(step_id="b", description="x")
CASES: dict[str, Case] = {
    "plan": Case(
        {"goal": "tea", "steps": [worked("a"), worked("b", "a")]},
        lambda answer: parse_plan(answer, "tea", max_steps=9, one_final_step=False),
    ),
    "subplan": Case(
        {"subplan_goal": "tea", "substeps": [worked("a"), worked("c", "a")]},
        lambda answer: parse_subplan(answer, PARENT, 1),
    ),
    "refinement": Case(
        {
            **refinement({**modify("b"), "new_step": worked("b", "a"), "overrides_issues": ["i1"]}),
            "declined_issues": [{"issue_id": "i1", "reason": "it is plain"}],
            "questions": [{"question": "Which?", "assumption": "Green.", "step_id": "b"}],
        },
        read_refinement,
    ),
    "semantic_validation": Case(
        {"checked": "the cups", **report(LOCATED)},
        lambda answer: parse_report(answer, "plan", {"a", "b"}),
    ),
    "convergence": Case(
        {"checked": "the cups", **assessment(0.4, issues=[FAULT], criteria=[JUDGED])},
        lambda answer: parse_assessment(answer, ConvergenceThresholds(), ("hot",), PAIRS),
    ),
    "task_profile": Case(profile(4), TaskProfile.model_validate),
    "tool_round": Case(
        {"tool_calls": [{"tool": "look_up", "arguments": "{}"}], "answer": "tea"},
        lambda answer: read_round(str, answer, is_over=False),
    ),
    "step": Case(
        {
            **clear("tea [[b]]", "hot"),
            "clarity_reason": "which cup?",
            "working": "one cup each",
            "quotes": [{"step": "b", "at": "[[b]]", "edits": [{"find": "x", "replace": "y"}]}],
        },
        lambda a: step_result("a", a, False, {"b": "with x"}),
    ),
    "direct": Case(
        {"working": "a kettle", "answer": "tea"}, lambda a: step_result("answer", a, False)
    ),
    "comparison": Case(
        {"checked": "the cups", "explanation": "It is hot.", "better": "first"},
        parse_preferred,
    ),
    "tool_choice": Case(
        {"step_id": "b", "description": "x", "tool": "kettle", "arguments": "{}"},
        lambda answer: choose_tool(PARENT, answer, ("kettle",)),
    ),
}
# A text that lost a marker is refused where the marker is named.
WITH_MARKERS = ("step_output",)
# What a description says of a demand. An identifier that is changed is missed by the steps that name it.
STATED = {
    "blank": (
        "never blank",
        "exactly as",
        "needed for every action but",
        "outputs this step needs",
    ),
    "unknown": ("exactly as", "outputs this step needs", "JSON text of an object", "identifier"),
    "repeated": ("nique", "xactly one"),
    "range": (),
    "empty": ("xactly one", "stands here or in", "each marker has an entry"),
}


def _changes(value: Any, place: Place = ()) -> Iterator[tuple[str, Place, Any]]:
    """Every answer that differs in one place, as what is put there."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _changes(inner, (*place, name))
    elif isinstance(value, list):
        yield "empty", place, []
        if value:
            yield "repeated", place, [*value, value[-1]]
        for index, inner in enumerate(value):
            yield from _changes(inner, (*place, index))
    elif isinstance(value, str):
        yield from (("blank", place, text) for text in ("", " "))
        yield "unknown", place, "no such thing"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from (("range", place, number) for number in (-1, 0, 0.5, 1.5, 6, 10**6))


def _changed(answer: Any, place: Place, value: Any) -> Any:
    *way, last = place
    changed = node = copy.deepcopy(answer)
    for part in way:
        node = node[part]
    node[last] = value
    return changed


@cache
def _wire(call: Any) -> Draft202012Validator:
    return Draft202012Validator(
        load_packaged_schemas().wire(call, tools=("kettle",), criteria=("hot",)).schema
    )


def _is_refused(call: Any, answer: Any) -> bool:
    """Whether an answer that the keywords of its schema on the wire allow is refused all the same."""
    if not _wire(call).is_valid(answer):
        return False
    try:
        check_answer(json.dumps(answer), load_packaged_schemas().local(call), CASES[call].parse)
    except (InvalidAnswer, ValidationError):
        return True
    return False


def _description(call: Any, place: Place) -> str:
    """What is said of a place: the description of the property that it is in, and for a list those of its entries."""
    root = load_packaged_schemas().wire(call).schema
    *way, last = names = [part for part in place if isinstance(part, str)]
    inner = at(root, *names).get("properties", {}).values()
    described = [at(root, *way)["properties"][last], *inner]
    return "\n".join(each["description"] for each in described)


def _properties(value: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from (() if inner is None else [(*place, name)])
            yield from _properties(inner, (*place, name))
    elif isinstance(value, list):
        for inner in value:
            yield from _properties(inner, place)


def _of_schema(root: dict[str, Any], *way: str) -> Iterator[tuple[str, ...]]:
    for name in at(root, *way).get("properties", {}):
        yield (*way, name)
        yield from _of_schema(root, *way, name)


def test_every_schema_on_the_wire_has_a_case():
    assert set(CASES) == set(NAMES)


@pytest.mark.parametrize("call", CASES)
def test_the_case_has_a_value_everywhere_and_is_read(call: Any):
    answer, parse = CASES[call]
    check_answer(json.dumps(answer), load_packaged_schemas().local(call), parse)
    missing = set(_of_schema(load_packaged_schemas().wire(call).schema)) - set(_properties(answer))
    assert missing <= {("actions", "addresses_issues")}


@pytest.mark.parametrize("call", CASES)
def test_whatever_an_answer_is_refused_for_is_said_by_keyword_or_in_the_description(call: Any):
    answer = CASES[call].answer
    unsaid = [
        f"{place} {value!r}: {demand} is refused and not said"
        for demand, place, value in _changes(answer)
        if place != WITH_MARKERS
        and _is_refused(call, _changed(answer, place, value))
        and not any(words in _description(call, place) for words in STATED[demand])
    ]
    assert unsaid == []


@pytest.mark.parametrize("call", CASES)
def test_what_is_said_never_to_be_blank_is_refused_when_it_is_empty(call: Any):
    answer = CASES[call].answer
    texts = [place for demand, place, value in _changes(answer) if (demand, value) == ("blank", "")]
    said = [place for place in texts if "never blank" in _description(call, place)]
    assert [place for place in said if not _is_refused(call, _changed(answer, place, ""))] == []


@pytest.mark.parametrize(("call", "steps"), [("plan", "steps"), ("subplan", "substeps")])
def test_that_a_step_depends_on_itself_or_in_a_circle_is_refused_and_said(call: Any, steps: str):
    answer = CASES[call].answer
    for dependency, words in (
        ("a", "never its own"),
        (answer[steps][1]["step_id"], "never one that needs this"),
    ):
        place = (steps, 0, "dependencies")
        assert _is_refused(call, _changed(answer, place, [dependency]))
        assert words in _description(call, place)


def test_how_many_changes_are_read_is_said():
    answer = CASES["refinement"].answer
    many = _changed(answer, ("actions",), answer["actions"] * (MAX_ACTIONS + 1))
    assert _is_refused("refinement", many)
    assert f"at most {MAX_ACTIONS}" in _description("refinement", ("actions",))
