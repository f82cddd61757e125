import json
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

import pytest

from aeon.domain.checks import ToolResult
from aeon.domain.errors import SchemaFileError
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import ApprovalRequest, Approve, Tool, ToolRegistry
from aeon.tools.settings import ToolSettings
from tests.tools.builders import a_tool

NUMBERS = {
    "type": "object",
    "properties": {
        "a": {"type": "integer"},
        "b": {"type": "object", "properties": {"c/d": {"type": "string"}}},
    },
    "required": ["a"],
    "additionalProperties": False,
}


def invoker(*tools: Tool, approve: Approve | None = None, **settings: Any) -> ToolInvoker:
    return ToolInvoker(ToolRegistry(tools), ToolSettings(**settings), approve=approve)


def call(tool: Tool, arguments: Any = None, **settings: Any) -> ToolResult:
    return invoker(tool, **settings).invoke(tool.name, {} if arguments is None else arguments)


def test_a_call_gives_the_output_its_text_and_what_was_given() -> None:
    result = call(
        a_tool(lambda given: {"twice": given["a"] * 2, "é": None}, inputs=NUMBERS), {"a": 4}
    )
    assert (result.tool, result.arguments, result.output) == (
        "probe",
        {"a": 4},
        {"twice": 8, "é": None},
    )
    assert result.text == '{"twice": 8, "é": null}'
    assert (result.error, result.error_kind, result.cut) == (None, None, 0)
    assert (result.kept, result.own_limit) == (0, False)
    assert result.seconds >= 0


def test_a_text_is_its_own_text() -> None:
    result = call(a_tool(lambda _: 'say "hello"\n'))
    assert (result.output, result.text) == ('say "hello"\n', 'say "hello"\n')


def test_a_tool_that_is_not_registered_is_said_to_be_unknown() -> None:
    result = invoker().invoke("nothing", {"a": 1})
    assert (result.error, result.error_kind) == ("Tool 'nothing' not found in registry", "unknown")
    assert result.arguments == {"a": 1}


def test_every_invalid_argument_is_named_with_its_pointer_and_the_tool_not_called() -> None:
    called: list[Any] = []
    tool = a_tool(called.append, inputs=NUMBERS)
    result = call(tool, {"b": {"c/d": 1}, "x": 2})
    assert result.error_kind == "invalid_arguments"
    assert "the arguments: 'a' is a required property" in str(result.error)
    assert "/b/c~1d: 1 is not of type 'string'" in str(result.error)
    assert "'x' was unexpected" in str(result.error)
    assert called == []


def test_arguments_can_be_checked_without_a_call() -> None:
    checked = invoker(a_tool(inputs=NUMBERS)).check_arguments
    assert checked("probe", {"a": 1}) == []
    assert [(found.pointer, found.message) for found in checked("probe", {"a": "1"})] == [
        ("/a", "'1' is not of type 'integer'")
    ]
    assert str(checked("nothing", {})[0]) == "(whole answer): Tool 'nothing' not found in registry"


@pytest.mark.parametrize(
    "arguments", [[], "a", None, 3, {"a": {1, 2}}, {"a": float("nan")}, {"a": "\ud800"}]
)
def test_arguments_that_are_no_json_object_are_invalid(arguments: Any) -> None:
    result = invoker(a_tool()).invoke("probe", arguments)
    assert (result.error_kind, result.arguments) == ("invalid_arguments", {})


def test_a_tool_whose_schema_refers_to_itself_in_place_is_refused() -> None:
    with pytest.raises(SchemaFileError, match="it refers to itself"):
        call(a_tool(inputs={"$ref": "#"}), {"a": 1})


@pytest.mark.parametrize(
    ("value", "kind"),
    [("x", None), (3, "invalid_output"), ({"a": 1}, "invalid_output"), (None, "invalid_output")],
)
def test_what_a_tool_returns_must_be_as_its_output_schema_says(
    value: Any, kind: str | None
) -> None:
    result = call(a_tool(lambda _: value, outputs={"type": "string"}))
    assert (result.error_kind, result.output) == (kind, value)
    assert (result.error is None) == (kind is None)


def test_a_violation_of_the_output_schema_names_its_places() -> None:
    outputs = {"properties": {"n": {"type": "integer"}}}
    error = call(a_tool(lambda _: {"n": "one"}, outputs=outputs)).error
    assert (
        error
        == "what it returned is not as its output schema says: /n: 'one' is not of type 'integer'"
    )


def test_a_long_output_is_cut_and_what_was_cut_is_said() -> None:
    result = call(a_tool(lambda _: "x" * 120), max_output_characters=100)
    assert result.text == "x" * 100 + "... [20 of 120 characters cut]"
    assert (result.output, result.cut, result.error) == (result.text, 20, None)
    assert (result.kept, result.own_limit) == (100, False)


def test_a_long_value_is_cut_as_its_json_and_only_after_it_was_checked() -> None:
    value = list(range(100))
    result = call(a_tool(lambda _: value, outputs={"type": "array"}), max_output_characters=10)
    assert (result.text, result.error) == ("[0, 1, 2, ... [380 of 390 characters cut]", None)
    assert len(json.dumps(value)) == 390


def test_a_tools_own_limits_win() -> None:
    tool = a_tool(lambda _: "x" * 30, max_output_characters=20, timeout_seconds=60)
    result = call(tool, max_output_characters=10, timeout_seconds=0.0001)
    assert (result.cut, result.kept, result.own_limit) == (10, 20, True)


@pytest.mark.parametrize(
    ("approval", "name", "runs"),
    [
        ({}, "shop.buy", True),
        ({"*": "never"}, "shop.buy", False),
        ({"shop.read_*": "always", "shop.*": "never"}, "shop.read_all", True),
        ({"shop.read_*": "always", "shop.*": "never"}, "shop.buy", False),
        ({"shop.*": "never", "shop.buy": "always"}, "shop.buy", False),
        ({"SHOP.*": "never"}, "shop.buy", True),
        ({"*": "ask"}, "shop.buy", False),
    ],
)
def test_the_first_pattern_that_matches_decides(
    approval: dict[str, str], name: str, runs: bool
) -> None:
    result = call(a_tool(name=name), approval=approval)
    assert (result.error_kind is None) == runs
    assert runs or result.error_kind == "refused"


@pytest.mark.parametrize("answer", [True, False])
def test_a_person_is_asked_with_the_tool_and_its_arguments(answer: bool) -> None:
    asked: list[tuple[str, Any]] = []

    def approve(request: ApprovalRequest) -> bool:
        asked.append((request.tool.name, dict(request.arguments)))
        return answer

    result = call(a_tool(), {"a": 1}, approval={"*": "ask"}, approve=approve)
    assert asked == [("probe", {"a": 1})]
    assert result.error == (None if answer else "the person refused it")


def test_nobody_is_asked_about_arguments_that_are_invalid() -> None:
    result = call(
        a_tool(inputs=NUMBERS), {}, approval={"*": "ask"}, approve=lambda *_: pytest.fail("asked")
    )
    assert result.error_kind == "invalid_arguments"


def test_asking_that_fails_is_a_refusal() -> None:
    def approve(request: ApprovalRequest) -> bool:
        raise EOFError("no terminal")

    result = call(a_tool(), approval={"*": "ask"}, approve=approve)
    assert (result.error_kind, result.error) == (
        "refused",
        "the person could not be asked: EOFError: no terminal",
    )


def test_a_person_is_asked_one_question_at_a_time() -> None:
    asking = threading.Semaphore(1)

    def approve(request: ApprovalRequest) -> bool:
        assert asking.acquire(blocking=False)
        threading.Event().wait(0.01)
        asking.release()
        return True

    calls = invoker(a_tool(), approval={"*": "ask"}, approve=approve)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: calls.invoke("probe", {}), range(8)))
    assert [result.error for result in results] == [None] * 8


def test_a_tool_runs_with_the_context_of_its_caller() -> None:
    place: ContextVar[str] = ContextVar("place", default="nowhere")
    place.set("step s1")
    assert call(a_tool(lambda _: place.get())).output == "step s1"


def test_twenty_tools_run_at_once() -> None:
    together = threading.Barrier(20, timeout=60)

    def meet(given: Mapping[str, Any]) -> Any:
        together.wait()
        return given["n"]

    tools = [a_tool(meet, name=f"t{n}") for n in range(20)]
    calls = invoker(*tools)
    with ThreadPoolExecutor(20) as pool:
        results = list(pool.map(lambda n: calls.invoke(f"t{n}", {"n": n}), range(20)))
    assert [result.output for result in results] == list(range(20))
