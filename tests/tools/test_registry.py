import threading
from dataclasses import replace
from typing import Any

import pytest

from aeon.config.load import compose
from aeon.domain.errors import ConfigError
from aeon.tools.registry import ToolRegistry
from tests.tools.builders import a_tool


def refusal(**given: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        ToolRegistry().register(a_tool(**given))
    return caught.value.message


def test_tools_are_listed_in_order_of_registration() -> None:
    registry = ToolRegistry([a_tool(name="b"), a_tool(name="a")])
    assert registry.names() == ("b", "a")
    assert [tool.name for tool in registry.list()] == ["b", "a"]
    assert [described["name"] for described in registry.describe()] == ["b", "a"]


def test_a_model_is_told_name_description_schemas_and_examples() -> None:
    inputs = {"type": "object", "properties": {"n": {"type": "integer"}}}
    tool = a_tool(inputs=inputs, outputs={"type": "string"}, examples=[{"n": 1}])
    assert tool.describe() == {
        "name": "probe",
        "description": "Does what it is told.",
        "input_schema": inputs,
        "output_schema": {"type": "string"},
        "examples": [{"n": 1}],
    }


@pytest.mark.parametrize("name", ["", "a b", "a/b", "ä", "x" * 65, "a\n", "a:b"])
def test_a_name_that_a_provider_would_not_take_is_refused(name: str) -> None:
    assert "1 to 64 letters" in refusal(name=name)


@pytest.mark.parametrize("name", ["a", "A-b_c.9", "x" * 64])
def test_other_names_are_taken(name: str) -> None:
    assert ToolRegistry([a_tool(name=name)]).get(name) is not None


def test_a_name_is_given_once() -> None:
    registry = ToolRegistry([a_tool()])
    with pytest.raises(ConfigError, match="registered already"):
        registry.register(a_tool())


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": "objekt"}, "#/type"),
        ({"properties": {"a": {"type": "strin"}}}, "#/properties/a/type"),
        ({"properties": {"a": {"pattern": "["}}}, "#/properties/a/pattern"),
        ({"properties": {"a": {"minLength": -1}}}, "#/properties/a/minLength"),
        ({"required": "a"}, "#/required"),
        ({"properties": {"a": {"$ref": "#/$defs/missing"}}}, "#/properties/a/$ref"),
        ({"anyOf": [{}, {"$ref": "http://127.0.0.1:1/schema.json"}]}, "#/anyOf/1/$ref"),
        ([], ": a schema is a JSON object"),
        ("object", ": a schema is a JSON object"),
    ],
)
@pytest.mark.parametrize("kind", ["inputs", "outputs"])
def test_a_malformed_schema_is_refused_with_its_path(kind: str, schema: Any, place: str) -> None:
    which = {"inputs": "input_schema", "outputs": "output_schema"}[kind]
    assert f"tool 'probe': {which}{place}" in refusal(**{kind: schema})


def test_arguments_cannot_be_anything_but_an_object() -> None:
    assert "input_schema#/type" in refusal(inputs={"type": "string"})


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"timeout_seconds": -1}, "timeout_seconds=-1: more than 0 and at most 86400 seconds"),
        ({"timeout_seconds": 1e10}, "timeout_seconds=10000000000.0: more than 0"),
        ({"timeout_seconds": float("nan")}, "timeout_seconds=nan: more than 0"),
        ({"max_output_characters": 0}, "max_output_characters=0: at least 1"),
    ],
)
def test_limits_that_no_call_could_keep_are_refused(limits: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        ToolRegistry([replace(a_tool(), **limits)])
    assert f"tool 'probe': {message}" in refused.value.message


def test_an_example_that_its_own_schema_refuses_is_refused() -> None:
    message = refusal(
        inputs={"properties": {"n": {"type": "integer"}}}, examples=[{"n": 1}, {"n": "one"}]
    )
    assert "examples[1]: /n: 'one' is not of type 'integer'" in message


def test_a_schema_of_another_draft_is_read_as_that_draft() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"n": {"type": "integer"}},
        "properties": {"pair": {"items": [{"$ref": "#/definitions/n"}, {"type": "string"}]}},
    }
    entry = ToolRegistry([a_tool(inputs=schema)]).entry("probe")
    assert entry is not None
    assert entry.input.is_valid({"pair": [1, "a"]})
    assert not entry.input.is_valid({"pair": ["a", 1]})


def test_an_unregistered_tool_is_gone_and_its_name_free() -> None:
    registry = ToolRegistry([a_tool()])
    registry.unregister("probe")
    registry.unregister("probe")
    assert (registry.get("probe"), registry.names()) == (None, ())
    registry.register(a_tool())
    assert registry.names() == ("probe",)


def test_a_run_sees_the_tools_of_its_process_as_they_are_now() -> None:
    process = ToolRegistry([a_tool(name="shared")])
    run = ToolRegistry([a_tool(name="own")], parent=process)
    assert run.names() == ("shared", "own")
    process.unregister("shared")
    assert (run.names(), process.names()) == (("own",), ())
    process.register(a_tool(name="later"))
    run.unregister("later")
    assert process.names() == ()


def test_a_run_cannot_take_a_name_of_its_process() -> None:
    process = ToolRegistry([a_tool()])
    with pytest.raises(ConfigError, match="registered already"):
        ToolRegistry([a_tool()], parent=process)


@pytest.mark.slow
def test_tools_come_and_go_while_others_look() -> None:
    registry = ToolRegistry([a_tool(name="stays")])
    stop = threading.Event()
    failures: list[BaseException] = []

    def change(name: str) -> None:
        try:
            while not stop.is_set():
                registry.register(a_tool(name=name))
                registry.unregister(name)
        except BaseException as error:
            failures.append(error)

    changing = [threading.Thread(target=change, args=(f"t{n}",)) for n in range(4)]
    for thread in changing:
        thread.start()
    seen = [registry.names()[0] for _ in range(200)] + [
        registry.describe()[0]["name"] for _ in range(200)
    ]
    stop.set()
    for thread in changing:
        thread.join()
    assert set(seen) == {"stays"}
    assert failures == []


def test_closing_closes_everything_once_the_newest_first() -> None:
    closed: list[str] = []

    def fails() -> None:
        closed.append("fails")
        raise OSError("gone")

    registry = ToolRegistry()
    registry.on_close(lambda: closed.append("first"))
    registry.on_close(fails)
    registry.close()
    registry.close()
    assert closed == ["fails", "first"]


GONE = "the MCP server 'dead' did not start: gone"


def of_dead(name: str) -> str | None:
    return GONE if name.startswith("dead.") else None


def test_of_a_tool_that_is_missing_though_configured_it_is_known_why() -> None:
    process = ToolRegistry()
    process.explain_missing_with(lambda _: None)
    process.explain_missing_with(of_dead)
    run = ToolRegistry(parent=process)
    for registry in (process, run):
        assert registry.unavailable("dead.x") == GONE
        assert registry.unavailable("dead") is None
        assert registry.unavailable("deader.x") is None
    assert (run.names(), run.get("dead.x")) == ((), None)


def test_a_tool_that_is_there_is_available_whatever_its_name() -> None:
    process = ToolRegistry([a_tool(name="dead.alive")])
    run = ToolRegistry([a_tool(name="dead.own")], parent=process)
    run.explain_missing_with(of_dead)
    assert [run.unavailable(name) for name in ("dead.alive", "dead.own", "dead.x")] == [
        None,
        None,
        GONE,
    ]


@pytest.mark.parametrize(
    ("key", "most"), [("timeout_seconds", "86400"), ("builtin.http_timeout_seconds", "3600")]
)
def test_a_time_limit_that_no_call_could_keep_is_refused_when_it_is_set(
    key: str, most: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        compose(["tools=builtin", "provider=simulated", f"tools.{key}=1e10"])
    assert f"tools.{key}=10000000000.0" in refused.value.message
    assert most in refused.value.message
