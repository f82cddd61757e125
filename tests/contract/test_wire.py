"""The wire contract and the domain types, held together: what is asked of a model is what is read from its answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, get_args

import pytest

from aeon.adaptive.heuristics import AdaptiveDepth
from aeon.convergence.engine import ConvergenceEngine
from aeon.domain.assessment import (
    ConvergenceScores,
    CriterionResult,
    IssueKind,
    PairStatus,
    Preference,
)
from aeon.domain.errors import ValidationError
from aeon.domain.plan import ClarityState, FollowUpQuestion, PlanStep
from aeon.domain.profile import Breadth, Confidence, TaskProfile, ToolUsage
from aeon.domain.refinement import ActionType
from aeon.domain.report import IssueLocation, IssueType, ProposedRepair, Severity, ValidationIssue
from aeon.llm.exchange import InvalidAnswer
from aeon.llm.schemas import CALLS, load_packaged_schemas
from aeon.plan.wire import parse_plan, parse_refinement, parse_subplan
from tests.contract.components import ANSWERS, METHODS, Method, a_plan, a_report, an_issue, script
from tests.kernel.build import run
from tests.support.scripted_model import ScriptedModel, assessment, clear, profile
from tests.support.strict_subset import violations

OWN_ANSWER = {
    "type": "object",
    "properties": {"cups": {"type": "integer"}, "notes": {"type": ["string", "null"]}},
    "required": ["cups", "notes"],
    "additionalProperties": False,
}


def schema(call: Any) -> dict[str, Any]:
    return load_packaged_schemas().wire(call).schema


def at(root: Mapping[str, Any], *path: str) -> Any:
    """A property of a schema, through arrays, references and null alternatives."""
    node = _resolved(root, root)
    for name in path:
        node = _resolved(root, node["properties"][name])
    return node


def _resolved(root: Mapping[str, Any], node: Any) -> Any:
    if "$ref" in node:
        return _resolved(root, root["$defs"][node["$ref"].rsplit("/", 1)[-1]])
    if "anyOf" in node:
        return _resolved(root, next(n for n in node["anyOf"] if n != {"type": "null"}))
    items = node.get("items")
    return (
        _resolved(root, items)
        if isinstance(items, dict) and items.get("type") != "string"
        else node
    )


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("tools", [None, (), ("kettle",), ("kettle", "oven")])
def test_every_schema_on_the_wire_is_within_the_strict_subset(call: Any, tools: Any):
    wire = load_packaged_schemas().wire(call, tools=tools)
    assert violations(wire.schema) == []
    assert wire.strict


@pytest.mark.parametrize("names", [("hot",), ("hot", "C", 'a "quoted" name', "naïve")])
def test_on_the_wire_a_criterion_is_one_of_the_configured_names(names: tuple[str, ...]):
    wire = load_packaged_schemas().wire("convergence", criteria=names)
    assert violations(wire.schema) == []
    assert wire.strict
    name = at(wire.schema, "criteria", "name")
    assert name["enum"] == list(names)
    assert name["description"] == at(schema("convergence"), "criteria", "name")["description"]
    assert "enum" not in at(schema("convergence"), "criteria", "name")
    without = {**at(schema("convergence"), "criteria"), "properties": None}
    assert {**at(wire.schema, "criteria"), "properties": None} == without


def test_without_criteria_their_names_stay_as_they_are():
    assert load_packaged_schemas().wire("convergence", criteria=()).schema == schema("convergence")


def test_locally_the_name_of_a_criterion_is_a_text():
    load_packaged_schemas().wire("convergence", criteria=("hot",))
    judged = [{"name": "Hot", "met": True, "reason": ""}]
    assert load_packaged_schemas().local("convergence").is_valid(assessment(criteria=judged))


def test_a_step_with_a_persons_answer_schema_is_within_the_strict_subset():
    wire = load_packaged_schemas().wire("step", answer_schema=OWN_ANSWER)
    assert violations(wire.schema) == []
    assert wire.strict
    assert at(wire.schema, "step_output")["properties"].keys() == {"cups", "notes"}


def test_an_answer_schema_outside_the_subset_is_sent_without_strict_and_still_held():
    open_ended = {"type": "object", "properties": {"cups": {"type": "integer"}}}
    wire = load_packaged_schemas().wire("step", answer_schema=open_ended)
    assert violations(wire.schema)
    assert not wire.strict
    assert list(
        load_packaged_schemas().local("step", open_ended).iter_errors(clear({"cups": "two"}))
    )
    assert not list(
        load_packaged_schemas().local("step", open_ended).iter_errors(clear({"cups": 2, "more": 1}))
    )


@pytest.mark.parametrize(
    ("call", "path", "kind"),
    [
        ("task_profile", ["expected_tool_usage"], ToolUsage),
        ("task_profile", ["output_breadth"], Breadth),
        ("task_profile", ["confidence_requirement"], Confidence),
        ("semantic_validation", ["issues", "type"], IssueType),
        ("semantic_validation", ["issues", "severity"], Severity),
        ("refinement", ["actions", "action_type"], ActionType),
        ("step", ["clarity_state"], ClarityState),
        ("convergence", ["issues", "kind"], IssueKind),
        (
            "convergence",
            ["consistency_status", "status"],
            PairStatus.model_fields["status"].annotation,
        ),
        ("comparison", ["better"], Preference),
    ],
    ids=str,
)
def test_every_enumeration_is_the_models(call: str, path: list[str], kind: Any):
    assert tuple(at(schema(call), *path)["enum"]) == get_args(kind)


def test_no_enumeration_was_forgotten_above():
    enums = {call: sum(1 for node in _nodes(schema(call)) if "enum" in node) for call in CALLS}
    assert enums == {
        "task_profile": 4,  # with reasoning_depth, whose five values are a range of the model
        "plan": 0,
        "semantic_validation": 2,
        "refinement": 1,
        "subplan": 0,
        "step": 1,
        "direct": 0,
        "convergence": 3,
        "comparison": 1,
    }


def _nodes(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if "type" in node or "anyOf" in node:
            yield node
        for inner in node.values():
            yield from _nodes(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _nodes(inner)


@pytest.mark.parametrize(
    ("call", "model"),
    [("task_profile", TaskProfile), ("convergence", ConvergenceScores)],
    ids=["profile", "scores"],
)
def test_every_range_is_at_most_the_models(call: str, model: Any):
    published = model.model_json_schema()["properties"]
    numbers = {
        n: p
        for n, p in schema(call)["properties"].items()
        if p.get("type") in ("number", "integer")
    }
    assert numbers
    for name, wired in numbers.items():
        own = next(
            p for p in published[name].get("anyOf", [published[name]]) if p["type"] != "null"
        )
        allowed = (
            wired["enum"]
            if "enum" in wired
            else [wired["minimum"], wired.get("maximum", float("inf"))]
        )
        assert own["type"] == wired["type"], name
        assert min(allowed) >= own["minimum"], name
        assert max(allowed) <= own.get("maximum", float("inf")), name
    assert schema("task_profile")["properties"]["reasoning_depth"]["enum"] == [1, 2, 3, 4, 5]


class Watched(dict):
    """An answer that knows which of its properties were read, all the way down."""

    def __init__(self, value: Mapping[str, Any], read: set[str], place: str = "") -> None:
        self._read, self._place = read, place
        super().__init__(
            {key: _watched(inner, read, f"{place}/{key}") for key, inner in value.items()}
        )

    def __getitem__(self, key: str) -> Any:
        self._read.add(f"{self._place}/{key}")
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self._read.add(f"{self._place}/{key}")
        return super().get(key, default)

    def keys(self) -> Any:
        self._read.update(f"{self._place}/{key}" for key in self)
        return super().keys()

    def items(self) -> Any:
        self._read.update(f"{self._place}/{key}" for key in self)
        return super().items()


def _watched(value: Any, read: set[str], place: str) -> Any:
    if isinstance(value, dict):
        return Watched(value, read, place)
    return [_watched(inner, read, place) for inner in value] if isinstance(value, list) else value


def _places(value: Any, place: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{place}/{key}"
            yield from _places(inner, f"{place}/{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _places(inner, place)


FULL_ANSWERS: dict[str, tuple[Any, Any]] = {
    "plan": (
        ANSWERS["plan"],
        lambda answer: parse_plan(answer, "tea", max_steps=9, one_final_step=False),
    ),
    "subplan": (
        ANSWERS["subplan"],
        lambda answer: parse_subplan(answer, PlanStep(step_id="b", description="x"), 1),
    ),
    "refinement": (
        {
            **ANSWERS["refinement"],
            "questions": [{"question": "Which?", "assumption": "Green.", "step_id": None}],
        },
        lambda answer: parse_refinement(answer, [an_issue()]),
    ),
}


@pytest.mark.parametrize(
    ("call", "path", "model", "own"),
    [
        ("task_profile", [], TaskProfile, {"profile_version"}),
        ("semantic_validation", ["issues"], ValidationIssue, set()),
        ("semantic_validation", ["issues", "location"], IssueLocation, set()),
        ("semantic_validation", ["issues", "proposed_repair"], ProposedRepair, set()),
        ("convergence", ["criteria"], CriterionResult, set()),
        ("refinement", ["questions"], FollowUpQuestion, {"answer"}),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_is_read_as_a_whole_has_the_models_fields(
    call: str, path: list[str], model: Any, own: set[str]
):
    assert set(at(schema(call), *path)["properties"]) == set(model.model_fields) - own
    assert model.model_config["extra"] == ("allow" if model is TaskProfile else "forbid")


@pytest.mark.parametrize("call", FULL_ANSWERS)
def test_every_property_that_is_asked_for_is_read(call: Any):
    answer, parse = FULL_ANSWERS[call]
    assert not list(load_packaged_schemas().local(call).iter_errors(answer)), (
        "the example is an answer of that schema"
    )
    read: set[str] = set()
    parse(Watched(answer, read))
    assert set(_places(answer)) <= read


def test_every_property_of_an_assessment_reaches_it():
    fault = {"kind": "omission", "description": "no cups", "blocking": True}
    judged = {"name": "hot", "met": False, "reason": "it is cold"}
    model = script(convergence=assessment(0.1, 0.2, 0.3, issues=[fault], criteria=[judged]))
    made = ConvergenceEngine(model).assess(
        a_report(), a_plan(), list(a_plan().steps), {}, {"hot": "it is hot"}
    )
    text = json.dumps(made.model_dump(mode="json"))
    expected = (
        "as it stands",
        "omission",
        "no cups",
        "0.1",
        "0.2",
        "0.3",
        "plan_steps",
        "they agree",
        "it is cold",
    )
    assert [said for said in expected if said not in text] == []
    assert made.blocking_issues == ("no cups",)


def test_every_property_of_a_steps_answer_reaches_its_result():
    """But for room to think, and for what its output quotes, which is in the output."""
    answer = {
        **clear("tea", "hot"),
        "clarity_state": "PARTIALLY_CLEAR",
        "clarity_reason": "which cup?",
    }
    assert set(answer) == set(schema("step")["properties"]) - {"working", "quotes"}
    result = run(ScriptedModel(step=answer)).history.passes[1].execution_results["only"]
    assert (result.step_output, result.handoff, result.clarity_state, result.clarity_reason) == (
        "tea",
        "hot",
        "PARTIALLY_CLEAR",
        "which cup?",
    )


SET_BY_THE_PROGRAM = {
    "status", "step_index", "total_steps", "incoming_context", "profile_version", "validation_id", "artifact_type",
    "overall_severity", "issue_summary", "proposed_repairs", "converged", "reason_codes", "depth_level", "created_by",
    "parent_step_id", "replaced_by", "incomplete", "errors", "agent", "semantic_validation_input",
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_what_the_program_sets_is_not_asked_of_the_model(call: Any):
    asked = {name for node in _nodes(schema(call)) for name in node.get("properties", {})}
    of_a_pair = {"status"} if call == "convergence" else set()
    assert (asked - of_a_pair).isdisjoint(SET_BY_THE_PROGRAM)


@pytest.mark.parametrize("call", CALLS)
def test_nothing_on_the_wire_is_without_a_description(call: Any):
    for node in _nodes(schema(call)):
        for name, prop in node.get("properties", {}).items():
            assert prop.get("description"), name


@pytest.mark.parametrize("call", CALLS)
def test_every_call_has_a_file_of_its_name(call: Any):
    assert load_packaged_schemas().files(call)["schema"].stem == call


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_a_repair_is_named_so_whatever_its_schema(method: Method):
    model = script(**{method.call: "no JSON", "repair": [json.dumps(ANSWERS[method.call])]})
    method(model)
    first, repair = model.requests
    assert (first.call, repair.call) == (method.call, "repair")
    assert repair.schema == first.schema
    assert (first.site.attempt, repair.site.attempt) == (0, 1)


@pytest.mark.parametrize("score", [1.7, -0.2, 17, "0.9", None, True])
@pytest.mark.parametrize("name", ["completeness_score", "coherence_score", "consistency_score"])
def test_a_score_that_is_none_goes_to_repair(name: str, score: Any):
    model = script(convergence={**assessment(), name: score}, repair=json.dumps(assessment(0.9)))
    engine = ConvergenceEngine(model)
    made = engine.assess(a_report(), a_plan(), list(a_plan().steps), {"a": "output of a"})
    assert model.calls == ["convergence", "repair"]
    assert f"/{name}" in model.prompts("repair")[0]
    assert made.scores.completeness_score == 0.9


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_a_score_that_is_no_number_at_all_goes_to_repair(text: str):
    broken = json.dumps(assessment()).replace(
        '"completeness_score": 1.0', f'"completeness_score": {text}'
    )
    model = script(convergence=broken, repair=json.dumps(assessment(0.9)))
    ConvergenceEngine(model).assess(a_report(), a_plan(), list(a_plan().steps), {})
    assert model.calls == ["convergence", "repair"]


def test_ranges_that_a_persons_schema_gave_up_are_still_held_by_the_models(tmp_path):
    from aeon.llm.schemas import SchemaLibrary
    from aeon.supervisor.structured import StructuredCaller

    loose = {**schema("convergence"), "properties": dict(schema("convergence")["properties"])}
    loose["properties"]["completeness_score"] = {"type": "number"}
    (tmp_path / "convergence.json").write_text(json.dumps(loose), encoding="utf-8")
    model = script(convergence=assessment(1.7), repair="nothing useful")
    engine = ConvergenceEngine(
        model, structured=StructuredCaller(model, schemas=SchemaLibrary(tmp_path))
    )
    with pytest.raises(ValidationError):
        engine.assess(a_report(), a_plan(), list(a_plan().steps), {})
    assert model.calls == ["convergence", "repair", "repair"]


@pytest.mark.parametrize(
    ("changed", "pointer"),
    [
        ({"reasoning_depth": 6}, "/reasoning_depth"),
        ({"information_sufficiency": 1.2}, "/information_sufficiency"),
        ({"expected_step_count": -1}, "/expected_step_count"),
        ({"raw_inference": ""}, "/raw_inference"),
        ({"surplus": 1}, "surplus"),
    ],
)
def test_a_profile_outside_its_ranges_goes_to_repair(changed: dict[str, Any], pointer: str):
    model = ScriptedModel(task_profile={**profile(), **changed}, repair=json.dumps(profile(5)))
    assert AdaptiveDepth(model).infer_task_profile("make tea").reasoning_depth == 5
    assert pointer in model.prompts("repair")[0]


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (
            "plan",
            {
                "goal": "g",
                "steps": [{**ANSWERS["plan"]["steps"][0], "tool": "x", "arguments": "[1]"}],
            },
        ),
        (
            "plan",
            {
                "goal": "g",
                "steps": [{**ANSWERS["plan"]["steps"][0], "tool": "x", "arguments": "{"}],
            },
        ),
        ("plan", {"goal": "g", "steps": [{**ANSWERS["plan"]["steps"][0], "step_id": ""}]}),
    ],
)
def test_json_text_that_is_no_object_and_empty_ids_are_invalid_answers(call: str, answer: Any):
    with pytest.raises(InvalidAnswer) as raised:
        parse_plan(answer, "tea", max_steps=9, one_final_step=False)
    assert raised.value.errors[0].pointer.startswith("/steps/0/")
