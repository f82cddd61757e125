from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from aeon.domain.errors import SchemaFileError
from aeon.domain.request import CallName
from aeon.files.resources import resource_root
from aeon.llm import schemas
from aeon.llm.schemas import CALLS, NAMES, SchemaLibrary, load_packaged_schemas, read_schema
from aeon.schema.json_schema import drop_absent, relax_absent
from aeon.schema.strict import strict_violations
from tests.support.strict_subset import violations

NULL = {"type": "null"}
STEP = {
    "type": "object",
    "description": "A step.",
    "additionalProperties": False,
    "required": ["step_id", "tool"],
    "properties": {"step_id": {"type": "string"}, "tool": {"type": ["string", "null"]}},
}
PLAN = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "https://example.org/plan",
    "type": "object",
    "additionalProperties": False,
    "required": ["steps"],
    "properties": {"steps": {"type": "array", "items": {"$ref": "#/$defs/step"}}},
    "$defs": {"step": STEP},
}
WORK = {
    "type": "object",
    "additionalProperties": False,
    "required": ["step_output", "clarity_reason"],
    "properties": {"step_output": {"type": "string"}, "clarity_reason": {"$ref": "#/$defs/item"}},
    "$defs": {"item": {"type": ["string", "null"]}},
}
ANSWER = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "https://example.org/answer",
    "type": "object",
    "additionalProperties": False,
    "required": ["rows", "first"],
    "properties": {
        "rows": {"type": "array", "items": {"$ref": "#/$defs/item"}},
        "first": {"$ref": "#/definitions/item"},
    },
    "$defs": {"item": {"type": "integer"}},
    "definitions": {"item": {"type": "string"}},
}

Write = Callable[..., SchemaLibrary]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A library over files given as schemas or as text."""

    def make(**files: Any) -> SchemaLibrary:
        for name, content in files.items():
            text = content if isinstance(content, str) else json.dumps(content)
            (tmp_path / f"{name}.json").write_text(text, encoding="utf-8")
        return SchemaLibrary(tmp_path if files else None)

    return make


def test_the_wire_form_leaves_out_what_only_names_the_document(write: Write) -> None:
    wire = write(plan=PLAN).wire("plan")
    assert wire.strict
    assert wire.schema == {
        key: value for key, value in PLAN.items() if key not in ("$schema", "$id")
    }


def test_on_the_wire_a_tool_is_one_of_the_registered_names_or_null(write: Write) -> None:
    library = write(plan=PLAN)
    tool = library.wire("plan", tools=("search", "calc")).schema["$defs"]["step"]["properties"][
        "tool"
    ]
    assert tool == {"anyOf": [{"type": "string", "enum": ["search", "calc"]}, NULL]}
    assert library.wire("plan", tools=()).schema["$defs"]["step"]["properties"]["tool"] == NULL
    assert library.wire("plan").schema["$defs"]["step"] == STEP


def test_a_criterion_is_named_where_a_persons_file_has_it_and_nowhere_else(write: Write) -> None:
    criterion = {**STEP, "required": ["name"], "properties": {"name": {"type": "string"}}}
    listed = {"type": "array", "items": {"$ref": "#/$defs/criterion"}}
    parts = {
        "criteria": {"anyOf": [{"$ref": "#/$defs/list"}, NULL]},
        "other": {"$ref": "#/$defs/criterion"},
    }
    own = {
        **STEP,
        "required": [*parts],
        "properties": parts,
        "$defs": {"criterion": criterion, "list": listed},
    }
    wire = write(convergence=own).wire("convergence", criteria=["a", "b"])
    assert violations(wire.schema) == []
    properties = wire.schema["properties"]
    assert properties["criteria"]["anyOf"][0]["items"]["properties"]["name"] == {
        "type": "string",
        "enum": ["a", "b"],
    }
    assert properties["other"] == {"$ref": "#/$defs/criterion"}
    assert wire.schema["$defs"] == own["$defs"]


def test_locally_an_unknown_tool_name_is_valid(write: Write) -> None:
    library = write(plan=PLAN)
    library.wire("plan", tools=())
    assert library.local("plan").is_valid({"steps": [{"step_id": "a", "tool": "nobody knows it"}]})


def test_wire_forms_and_validators_are_kept(write: Write) -> None:
    library = write(plan=PLAN, step=WORK)
    assert library.wire("plan", tools=["a"]) is library.wire("plan", tools=("a",))
    assert library.local("plan") is library.local("plan")
    assert library.wire("step", answer_schema=ANSWER) is library.wire(
        "step", answer_schema=dict(ANSWER)
    )
    assert library.local("step", ANSWER) is library.local("step", dict(ANSWER))


def test_a_file_is_read_once(write: Write) -> None:
    library = write(plan=PLAN)
    library.local("plan")
    write(plan="broken")
    assert library.wire("plan", tools=()).strict


def test_the_answers_schema_takes_the_place_of_the_output_with_its_definitions(
    write: Write,
) -> None:
    library = write(step=WORK)
    wire = library.wire("step", answer_schema=ANSWER)
    assert wire.strict
    assert violations(wire.schema) == []
    output = wire.schema["properties"]["step_output"]
    assert output["properties"]["rows"]["items"] == {"$ref": "#/$defs/answer_item"}
    assert output["properties"]["first"] == {"$ref": "#/$defs/answer_item_"}
    assert "$defs" not in output
    assert "$id" not in output
    assert wire.schema["$defs"]["item"] == WORK["$defs"]["item"]  # type: ignore[index]


def test_the_answers_schema_holds_locally_too(write: Write) -> None:
    validator = write(step=WORK).local("step", ANSWER)
    assert validator.is_valid({"step_output": {"rows": [1], "first": "x"}, "clarity_reason": None})
    errors = validator.iter_errors(
        {"step_output": {"rows": ["x"], "first": 1}, "clarity_reason": None}
    )
    assert sorted(error.json_path for error in errors) == [
        "$.step_output.first",
        "$.step_output.rows[0]",
    ]


def test_null_stays_allowed_where_the_file_allows_it(write: Write) -> None:
    nullable = {
        **WORK,
        "properties": {**WORK["properties"], "step_output": {"type": ["string", "null"]}},
    }  # type: ignore[dict-item]
    library = write(step=nullable)
    assert library.wire("step", answer_schema=ANSWER).strict
    assert library.local("step", ANSWER).is_valid({"step_output": None, "clarity_reason": None})
    assert not library.local("step", ANSWER).is_valid({"step_output": "x", "clarity_reason": None})


def test_a_recursive_answer_schema_is_sent_loosely_and_checked_locally(write: Write) -> None:
    tree = {
        "type": "object",
        "required": ["children"],
        "additionalProperties": False,
        "properties": {"children": {"type": "array", "items": {"$ref": "#"}}},
    }
    library = write(step=WORK)
    assert not library.wire("step", answer_schema=tree).strict
    validator = library.local("step", tree)
    assert validator.is_valid(
        {"step_output": {"children": [{"children": []}]}, "clarity_reason": None}
    )
    assert not validator.is_valid(
        {"step_output": {"children": [{"children": [1]}]}, "clarity_reason": None}
    )


@pytest.mark.parametrize(
    "loose", [{"type": "object"}, {"type": "string", "minLength": 2}, {}, {"type": "array"}]
)
def test_an_answer_schema_outside_the_strict_subset_is_sent_loosely(
    write: Write, loose: dict[str, Any]
) -> None:
    assert not write(step=WORK).wire("step", answer_schema=loose).strict


def test_a_property_called_tool_in_the_answers_schema_is_the_persons(write: Write) -> None:
    answer = {
        "type": "object",
        "additionalProperties": False,
        "required": ["tool"],
        "properties": {"tool": {"type": "string"}},
    }
    wire = write(step=WORK).wire("step", tools=(), answer_schema=answer)
    assert wire.schema["properties"]["step_output"] == answer


def test_the_file_of_a_person_is_used_unchanged_by_its_uses(write: Write) -> None:
    library, before = write(plan=PLAN, step=WORK), json.dumps(ANSWER)
    library.wire("plan", tools=())
    library.wire("step", answer_schema=ANSWER)
    library.local("step", ANSWER)
    assert library.wire("plan").schema["properties"] == PLAN["properties"]
    assert library.wire("step").schema["properties"] == WORK["properties"]
    assert json.dumps(ANSWER) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{\n "type": object}', r"plan\.json:2:10: not valid JSON"),
        ('["type"]', r"plan\.json: a schema is a JSON object, not list"),
        (
            '{"type": "object", "properties": {"a": {"type": "strnig"}}}',
            r"plan\.json#/properties/a/type: .strnig",
        ),
        ('{"type": "object", "required": "a"}', r"plan\.json#/required"),
        (
            '{"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}}',
            r"plan\.json#/properties/a/\$ref: Pointer '/\$defs/b' does not exist",
        ),
        (
            '{"type": "object", "properties": {"a": {"$ref": "http://x.org/y"}}}',
            r"plan\.json#/properties/a/\$ref: .*'http://x\.org/y'",
        ),
        ('{"type": "object", "properties": {"a": {"$anchor": "b"}}}', r"/properties/a/\$anchor"),
        ('{"answer": 42}', r"plan\.json#/type: must be \"object\""),
        (
            '{"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}',
            r"plan\.json#/properties/a/pattern",
        ),
    ],
)
def test_a_file_that_is_no_schema_is_named_with_its_place(
    write: Write, text: str, message: str
) -> None:
    with pytest.raises(SchemaFileError, match=message):
        write(plan=text).wire("plan")


def test_a_file_that_is_not_utf8_or_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b'"\xff"')
    with pytest.raises(SchemaFileError, match=r"x\.json: cannot be read: .* position 1"):
        read_schema(tmp_path / "x.json")
    with pytest.raises(SchemaFileError, match=r"y\.json: cannot be read: .*No such file"):
        read_schema(tmp_path / "y.json")


def test_check_loads_every_file(write: Write) -> None:
    with pytest.raises(SchemaFileError, match=r"convergence\.json:1:1"):
        write(convergence="nonsense").check()


def test_a_schemas_folder_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaFileError, match="nowhere"):
        SchemaLibrary(tmp_path / "nowhere")


def test_an_unknown_call_has_no_schema(write: Write) -> None:
    with pytest.raises(
        SchemaFileError, match="no schema belongs to 'plans'; there are: task_profile, plan,"
    ):
        write().wire("plans")  # type: ignore[arg-type]


def test_a_schema_without_a_place_for_the_answer_says_so(write: Write) -> None:
    with pytest.raises(SchemaFileError, match="no property 'step_output'"):
        write(step=PLAN).wire("step", answer_schema=ANSWER)


def test_the_persons_file_wins_and_the_rest_is_packaged(write: Write, tmp_path: Path) -> None:
    library = write(plan=PLAN)
    assert library.files("plan") == {"schema": tmp_path / "plan.json"}
    assert library.files("step") == {"schema": resource_root() / "schemas" / "step.json"}
    assert library.files("repair") == {}


def test_a_tools_arguments_have_the_tools_own_schema(write: Write) -> None:
    library = write()
    wire = library.wire("tool_arguments", answer_schema=ANSWER)
    assert wire.strict
    assert "$id" not in wire.schema
    assert wire.schema["properties"]["first"] == {"$ref": "#/definitions/item"}
    assert library.local("tool_arguments", {"type": "object"}).is_valid({"anything": 1})
    assert not library.wire("tool_arguments", answer_schema={"type": "object"}).strict
    with pytest.raises(SchemaFileError, match=r"the tool's input schema#/type"):
        library.wire("tool_arguments", answer_schema={"type": "nothing"})
    assert library.files("tool_arguments") == {}


def test_the_digest_follows_the_files(write: Write) -> None:
    first = write(plan=PLAN).digest()
    assert write(plan={**PLAN, "title": "x"}).digest() != first
    assert write(plan=PLAN).digest() == first


@pytest.mark.parametrize("tools", [None, (), ("search", "calc")])
@pytest.mark.parametrize("call", CALLS)
def test_every_packaged_schema_is_strict_on_the_wire(
    call: Any, tools: tuple[str, ...] | None
) -> None:
    wire = load_packaged_schemas().wire(call, tools=tools)
    assert strict_violations(wire.schema) == ()
    assert violations(wire.schema) == []
    assert wire.strict


@pytest.mark.parametrize("call", NAMES)
def test_every_packaged_schema_passes_the_check_of_a_persons_own(call: Any) -> None:
    path = load_packaged_schemas().files(call)["schema"]
    assert read_schema(path) == json.loads(path.read_text(encoding="utf-8"))


def test_the_packaged_schemas_are_not_checked_again_in_a_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checked: list[str] = []
    monkeypatch.setattr(schemas, "check_schema", lambda _, name: checked.append(name))
    schemas._read_packaged_schema.cache_clear()
    assert SchemaLibrary().wire("plan").strict
    assert checked == []


def test_the_packaged_schemas_can_all_be_used() -> None:
    for call in NAMES:
        load_packaged_schemas().local(call)
        load_packaged_schemas().wire(call, tools=())
    assert load_packaged_schemas() is load_packaged_schemas()


STRICT_STRING = {"type": "string"}


def object_of(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "array", "items": STRICT_STRING}, "must be of type object"),
        ({**object_of(), "anyOf": [object_of()]}, "must not be an anyOf"),
        ({**object_of(a=STRICT_STRING), "required": []}, "every property must be required: a"),
        ({**object_of(), "required": ["b"]}, "required names no property: b"),
        (
            object_of(a={**object_of(), "additionalProperties": True}),
            "/properties/a: additionalProperties must be false",
        ),
        (
            object_of(a={"type": "object", "additionalProperties": False}),
            "an object needs properties",
        ),
        (object_of(a={"type": "string", "minLength": 1}), "minLength is not supported"),
        (object_of(a={"type": "string", "default": "x"}), "default is not supported"),
        (object_of(a={"allOf": [STRICT_STRING]}), "allOf is not supported"),
        (object_of(a={"oneOf": [STRICT_STRING]}), "oneOf is not supported"),
        (
            object_of(a={"type": "array", "items": STRICT_STRING, "uniqueItems": True}),
            "uniqueItems is not supported",
        ),
        (object_of(a={"type": "array"}), "an array needs items"),
        (object_of(a={"type": "array", "items": True}), "an array needs items"),
        (object_of(a={"description": "anything"}), "has no type"),
        (object_of(a=True), "a property needs a schema"),
        (object_of(a={"anyOf": [True, STRICT_STRING]}), "anyOf needs schemas"),
        (object_of(a={"type": "string", "format": "uri"}), "format uri is not supported"),
        (object_of(a={"$ref": "#/properties/b"}, b=STRICT_STRING), r"must lead to a definition"),
        (
            {**object_of(a={"$ref": "#/$defs/b", "title": "x"}), "$defs": {"b": STRICT_STRING}},
            "cannot be combined with title",
        ),
        (
            {
                **object_of(a={"$ref": "#/$defs/b"}),
                "$defs": {"b": object_of(c={"$ref": "#/$defs/b"})},
            },
            "refers to itself",
        ),
    ],
)
def test_what_leaves_the_strict_subset_is_named(schema: dict[str, Any], reason: str) -> None:
    Draft202012Validator.check_schema(schema)
    assert any(reason in violation for violation in strict_violations(schema)), strict_violations(
        schema
    )


def test_data_that_looks_like_a_schema_is_not_judged_as_one() -> None:
    assert strict_violations(object_of(properties=STRICT_STRING, items=STRICT_STRING)) == ()
    assert strict_violations(object_of(a={"enum": ["allOf"]}, tool={"const": "x"})) == ()


CHOOSY = {
    "type": "object",
    "properties": {
        "a": {"type": "string", "description": "A.", "enum": ["x", "y"]},
        "b": {"type": "string", "description": "B.", "$comment": "only with tea"},
        "c": {"type": "string", "description": "C.", "$comment": "only with milk"},
    },
    "required": ["a", "b", "c"],
    "additionalProperties": False,
}


def test_what_is_there_only_with_something_absent_is_not_sent_and_relax_absent() -> None:
    sent = drop_absent(CHOOSY, {"tea", "y"})
    assert sent["properties"] == {
        "a": {"type": "string", "description": "A.", "enum": ["x"]},
        "c": {"type": "string", "description": "C."},
    }
    assert sent["required"] == ["a", "c"]
    local = relax_absent(CHOOSY, {"tea", "y"})
    assert local["properties"] == CHOOSY["properties"]
    assert local["required"] == ["a", "c"]
    assert drop_absent(CHOOSY, ())["required"] == ["a", "b", "c"]
    assert "$comment" not in json.dumps(drop_absent(CHOOSY, ()))


def test_what_may_be_left_out_is_asked_for_and_may_be_missing() -> None:
    library = load_packaged_schemas()
    rooms = {"step": "working", "semantic_validation": "checked", "convergence": "checked"}
    for call, room in rooms.items():
        sent = library.wire(call).schema
        assert next(iter(sent["properties"])) == sent["required"][0] == room
        assert room not in library.local(call).schema["required"]


@pytest.mark.parametrize("call", CALLS)
def test_whatever_is_absent_the_rest_is_within_the_strict_subset(call: CallName) -> None:
    wire = load_packaged_schemas().wire(
        call, absent=("tools", "criteria", "issues", "memory_answer", "SUBPLAN_CREATE", "quotes")
    )
    assert wire.strict
    assert violations(wire.schema) == []


def test_a_copy_of_a_packaged_file_is_narrowed_like_the_original(tmp_path: Path) -> None:
    text = (resource_root() / "schemas" / "plan.json").read_text(encoding="utf-8")
    (tmp_path / "plan.json").write_text(
        text.replace("A declarative plan.", "My plan."), encoding="utf-8"
    )
    own = SchemaLibrary(tmp_path)
    own.check()
    sent = own.wire("plan", absent=("tools",))
    assert sent.strict
    assert "tool" not in sent.schema["$defs"]["step"]["properties"]
