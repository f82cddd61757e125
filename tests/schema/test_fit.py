"""A person's schema file: what it must have, what it may change, and what of its own is never read."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from aeon.adaptive.heuristics import AdaptiveDepth
from aeon.app.aeon import Aeon
from aeon.convergence.engine import ConvergenceEngine
from aeon.domain.errors import SchemaFileError
from aeon.llm.schemas import CALLS, SchemaLibrary, load_packaged_schemas
from aeon.schema.fit import drop_extras, misfits, relax_extras
from aeon.supervisor.structured import StructuredCaller
from tests.contract.components import a_plan, a_report
from tests.support.scripted_model import ScriptedModel, assessment, profile
from tests.support.strict_subset import violations

NULL = {"type": "null"}
TEXT = {"type": "string"}
STEP = ("$defs", "step", "properties")
ISSUE = ("properties", "issues", "items", "properties")
Change = Callable[[Any], Any]


def object_of(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


def changed(call: Any, *path: str, to: Any) -> dict[str, Any]:
    """The packaged schema with another schema at a path."""
    result = deepcopy(load_packaged_schemas().wire(call).schema)
    part = result
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = to
    return result


def without(call: Any, *path: str) -> dict[str, Any]:
    """The packaged schema without the property at a path."""
    result = deepcopy(load_packaged_schemas().wire(call).schema)
    part = result
    for name in path[:-2]:
        part = part[name]
    del part["properties"][path[-1]]
    part["required"].remove(path[-1])
    return result


def with_property(call: Any, *path: str, **properties: Any) -> dict[str, Any]:
    """The packaged schema with more properties, first of all, in the object at a path."""
    result = deepcopy(load_packaged_schemas().wire(call).schema)
    part = result
    for name in path:
        part = part[name]
    part["properties"] = {**properties, **part["properties"]}
    part["required"] = [*properties, *part["required"]]
    return result


@pytest.fixture
def library(tmp_path: Path) -> Callable[..., SchemaLibrary]:
    """A library over a folder with these schemas."""

    def make(**schemas: Any) -> SchemaLibrary:
        for name, schema in schemas.items():
            (tmp_path / f"{name}.json").write_text(json.dumps(schema), encoding="utf-8")
        return SchemaLibrary(tmp_path)

    return make


def test_a_schema_that_does_not_fit_its_call_is_refused_before_anything_is_asked(tmp_path: Path):
    (tmp_path / "plan.json").write_text(json.dumps(object_of(x=TEXT)), encoding="utf-8")
    with pytest.raises(SchemaFileError) as raised:
        Aeon.from_config(["provider=simulated", f"schemas.dir={tmp_path}"], environ={})
    assert raised.value.message.splitlines() == [
        f"{tmp_path / 'plan.json'}#: has no property 'goal'",
        f"{tmp_path / 'plan.json'}#: has no property 'steps'",
    ]
    assert "schemas/plan.json" in raised.value.hint


@pytest.mark.parametrize(
    ("call", "schema", "problem"),
    [
        ("plan", without("plan", "properties", "goal"), "#: has no property 'goal'"),
        ("plan", without("plan", *STEP, "provides"), "#/$defs/step: has no property 'provides'"),
        (
            "semantic_validation",
            changed(
                "semantic_validation",
                *ISSUE,
                "location",
                to={"anyOf": [object_of(step_id=TEXT), NULL]},
            ),
            "#/properties/issues/items/properties/location/anyOf/0: has no property 'artifact_reference'",
        ),
        (
            "plan",
            changed("plan", "properties", "steps", to=TEXT),
            "#/properties/steps: must be of type array, not string",
        ),
        (
            "plan",
            changed("plan", "properties", "steps", to={"type": "array", "items": TEXT}),
            "#/properties/steps/items: must be of type object, not string",
        ),
        (
            "plan",
            changed("plan", *STEP, "tool", to=TEXT),
            "/tool: must be of type string or null, not string",
        ),
        (
            "step",
            changed("step", "properties", "step_output", to=object_of(a=TEXT)),
            "must be of type string, not object",
        ),
        (
            "step",
            changed("step", "properties", "step_output", to={"anyOf": [TEXT, NULL]}),
            "#/properties/step_output: must be of type string, not null or string",
        ),
        (
            "convergence",
            changed("convergence", "properties", "coherence_score", to={"type": "integer"}),
            "#/properties/coherence_score: must be of type number, not integer",
        ),
        (
            "step",
            changed(
                "step",
                "properties",
                "clarity_state",
                to={"type": "string", "enum": ["CLEAR", "UNSURE"]},
            ),
            "#/properties/clarity_state: must allow no values but CLEAR, PARTIALLY_CLEAR, BLOCKED",
        ),
        (
            "step",
            changed("step", "properties", "clarity_state", to=TEXT),
            "#/properties/clarity_state: must allow no",
        ),
        (
            "task_profile",
            changed(
                "task_profile",
                "properties",
                "reasoning_depth",
                to={"type": "integer", "minimum": 0, "maximum": 5},
            ),
            "#/properties/reasoning_depth: must allow no values but 1, 2, 3, 4, 5",
        ),
    ],
)
def test_each_place_that_could_not_be_read_is_named(
    library: Callable[..., SchemaLibrary], call: str, schema: Any, problem: str
):
    assert violations(schema) == []
    with pytest.raises(SchemaFileError) as raised:
        library(**{call: schema}).check()
    assert f"{call}.json#" in raised.value.message
    assert problem in raised.value.message


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (
            {**load_packaged_schemas().wire("plan").schema, "additionalProperties": True},
            "#: additionalProperties must be false",
        ),
        (
            changed("plan", *STEP, "step_id", to={"type": "string", "minLength": 1}),
            "/step_id: minLength is not supported",
        ),
        (changed("plan", "required", to=["goal"]), "#: every property must be required: steps"),
        (
            changed("plan", "properties", "steps", to={"$ref": "#"}),
            "#/properties/steps: $ref must lead to a definition",
        ),
        (changed("plan", *STEP, "tool", to=True), "a property needs a schema"),
    ],
)
def test_a_file_outside_the_strict_subset_is_refused(
    library: Callable[..., SchemaLibrary], schema: Any, problem: str
):
    with pytest.raises(SchemaFileError) as raised:
        library(plan=schema).check()
    assert "plan.json#" in raised.value.message
    assert problem in raised.value.message


ELSEWHERE = {
    **deepcopy(load_packaged_schemas().wire("step").schema),
    "required": ["handoff_to_next", "clarity_reason", "clarity_state", "step_output"],
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "https://example.org/step",
    "properties": {
        "handoff_to_next": {"anyOf": [{"$ref": "#/$defs/text"}, NULL]},
        "clarity_reason": {"anyOf": [NULL, {"$ref": "#/$defs/text"}]},
        "clarity_state": {"const": "CLEAR"},
        "step_output": {"$ref": "#/$defs/text"},
    },
    "$defs": {"text": {"type": "string", "pattern": "^."}},
}


@pytest.mark.parametrize(
    ("call", "schema"),
    [
        *(
            (call, {**load_packaged_schemas().wire(call).schema, "description": "Mine."})
            for call in CALLS
        ),
        # Room to think, and quotes, need not be asked for.
        ("step", ELSEWHERE),
        (
            "step",
            changed(
                "step",
                "properties",
                "clarity_state",
                to={"type": "string", "enum": ["CLEAR", "BLOCKED"]},
            ),
        ),
        (
            "convergence",
            changed("convergence", "properties", "coherence_score", to={"type": "number"}),
        ),
        ("plan", with_property("plan", thinking=TEXT)),
    ],
)
def test_a_file_may_be_worded_otherwise_and_may_allow_less(
    library: Callable[..., SchemaLibrary], call: Any, schema: Any
):
    library(**{call: schema}).check()


def test_every_packaged_schema_fits_itself():
    for call in CALLS:
        schema = load_packaged_schemas().wire(call).schema
        assert misfits(schema, schema) == ()


THINKING = {
    "task_profile": with_property("task_profile", thinking=TEXT),
    "convergence": with_property("convergence", "properties", "criteria", "items", thinking=TEXT),
}


@pytest.mark.parametrize(
    "thought", [{"thinking": "hm"}, {}, {"thinking": None}], ids=["given", "missing", "odd"]
)
def test_what_only_a_persons_file_asks_for_is_asked_and_never_in_the_way(
    library: Callable[..., SchemaLibrary], thought: dict[str, Any]
):
    schemas = library(**THINKING)
    schemas.check()
    criteria = [{"name": "hot", "met": True, "reason": "steam", **thought}]
    model = ScriptedModel(
        task_profile={**thought, **profile(4)}, convergence=assessment(criteria=criteria)
    )
    structured = StructuredCaller(model, schemas=schemas)
    assert (
        AdaptiveDepth(model, structured=structured).infer_task_profile("make tea").reasoning_depth
        == 4
    )
    engine = ConvergenceEngine(model, structured=structured)
    made = engine.assess(
        a_report(), a_plan(), list(a_plan().steps), {"a": "tea"}, {"hot": "the tea is hot"}
    )
    assert made.criteria[0].met
    assert model.calls == ["task_profile", "convergence"]
    for request in model.requests:
        assert request.strict
        assert violations(request.schema) == []
        assert "thinking" in json.dumps(request.schema)


def test_what_no_file_asks_for_still_goes_to_repair(library: Callable[..., SchemaLibrary]):
    model = ScriptedModel(
        task_profile={"thinking": "hm", "surplus": 1, **profile(4)},
        repair=json.dumps({"thinking": "hm", **profile(5)}),
    )
    structured = StructuredCaller(model, schemas=library(**THINKING))
    assert (
        AdaptiveDepth(model, structured=structured).infer_task_profile("make tea").reasoning_depth
        == 5
    )
    assert "surplus" in model.prompts("repair")[0]


def test_a_definition_used_twice_keeps_what_either_use_reads():
    shared = object_of(a=TEXT, b=TEXT, c=TEXT)
    own = {**object_of(x={"$ref": "#/$defs/s"}, y={"$ref": "#/$defs/s"}), "$defs": {"s": shared}}
    packaged = object_of(x=object_of(a=TEXT), y=object_of(b=TEXT))
    assert misfits(own, packaged) == ()
    relaxed = relax_extras(own, packaged)["properties"]
    assert [relaxed[name]["required"] for name in "xy"] == [["a"], ["b"]]
    answer = {"x": {"a": "1", "b": "2", "c": "3"}, "y": {"a": "1", "b": "2", "c": "3"}}
    assert drop_extras(answer, packaged) == {"x": {"a": "1"}, "y": {"b": "2"}}


def test_a_run_with_a_place_to_think_in_every_schema_goes_through(
    library: Callable[..., SchemaLibrary], tmp_path: Path
):
    library(**{call: with_property(call, thinking=TEXT) for call in CALLS})
    with Aeon.from_config(["provider=simulated", f"schemas.dir={tmp_path}"], environ={}) as aeon:
        result = aeon.run("make tea")
    assert result.answer
    assert result.repairs == ()
