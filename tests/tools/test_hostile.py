import asyncio
import io
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from typing import Any

import pytest

from aeon.domain.checks import ToolResult
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import Tool, ToolRegistry
from aeon.tools.settings import ToolSettings
from tests.support.timing import SOON
from tests.tools.builders import a_tool


def call(
    invoke: Callable[[Mapping[str, Any]], Any], arguments: Any = None, **settings: Any
) -> ToolResult:
    calls = ToolInvoker(ToolRegistry([a_tool(invoke)]), ToolSettings(**settings))
    return calls.invoke("probe", {} if arguments is None else arguments)


@pytest.fixture
def released() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


class Trap(dict[str, Any]):
    def items(self) -> Any:
        raise SystemExit(3)


def raising(error: BaseException) -> Callable[[Mapping[str, Any]], Any]:
    def invoke(_: Mapping[str, Any]) -> Any:
        raise error

    return invoke


def endless(given: Mapping[str, Any]) -> Any:
    return endless(given)


def test_a_tool_that_hangs_is_left_to_itself(released: threading.Event) -> None:
    started = time.monotonic()
    result = call(lambda _: released.wait(60), timeout_seconds=0.05)
    assert (result.error_kind, result.error) == ("timeout", "took longer than 0.05 seconds")
    assert time.monotonic() - started < SOON


def test_a_tool_that_hangs_does_not_keep_the_program_from_ending() -> None:
    script = (
        "import time\n"
        "from aeon.tools.invoke import ToolInvoker\n"
        "from aeon.tools.registry import Tool, ToolRegistry\n"
        "tool = Tool('t', 'd', {}, {}, lambda _: time.sleep(300), timeout_seconds=0.05)\n"
        "print(ToolInvoker(ToolRegistry([tool])).invoke('t', {}).error_kind)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=90, check=False
    )
    assert (done.stdout, done.returncode) == ("timeout\n", 0), done.stderr


@pytest.mark.parametrize(
    ("invoke", "error"),
    [
        (raising(ValueError("no such order")), "ValueError: no such order"),
        (raising(SystemExit(3)), "SystemExit: 3"),
        (raising(KeyboardInterrupt()), "KeyboardInterrupt"),
        (raising(GeneratorExit()), "GeneratorExit"),
        (raising(MemoryError()), "MemoryError"),
        (raising(Unspeakable()), "Unspeakable"),
        (raising(ValueError("half \ud800")), "ValueError: half \\ud800"),
        (endless, "RecursionError: maximum recursion depth exceeded"),
        (lambda given: given["missing"], "KeyError: 'missing'"),
    ],
)
def test_whatever_a_tool_raises_is_an_error_of_its_call(invoke: Any, error: str) -> None:
    result = call(invoke)
    assert (result.error_kind, result.error) == ("raised", error)
    assert json.loads(result.model_dump_json())["error"] == error


def test_a_long_error_is_cut() -> None:
    result = call(raising(ValueError("x" * 10_000_000)), max_output_characters=50)
    assert result.error == "ValueError: " + "x" * 38 + "... [9999962 of 10000012 characters cut]"


@pytest.mark.slow
def test_a_hundred_megabytes_are_cut_and_not_kept() -> None:
    result = call(lambda _: "x" * 100_000_000)
    assert result.cut == 100_000_000 - 20_000
    assert len(result.text) < 20_100
    assert result.output == result.text


@pytest.mark.parametrize(
    "value",
    [
        object(),
        {1, 2},
        b"bytes",
        float("nan"),
        float("inf"),
        {("a", "b"): 1},
        lambda: None,
        10**5000,
        "\ud800",
        Trap(a=1),
    ],
    ids=["object", "set", "bytes", "nan", "inf", "keys", "function", "huge", "surrogate", "trap"],
)
def test_what_is_not_json_is_said_to_be_none(value: Any) -> None:
    result = call(lambda _: value)
    assert result.error_kind == "not_json"
    assert str(result.error).startswith("what it returned is not JSON: ")
    assert (result.output, result.text) == (None, "")


def test_a_value_within_itself_or_too_deep_is_not_json() -> None:
    circular: list[Any] = []
    circular.append(circular)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert call(lambda _: circular).error_kind == "not_json"
    assert call(lambda _: deep).error_kind == "not_json"


def test_a_value_that_takes_for_ever_to_write_is_a_timeout(released: threading.Event) -> None:
    class Slow(dict[str, Any]):
        def items(self) -> Any:
            released.wait(60)
            return super().items()

    assert call(lambda _: Slow(a=1), timeout_seconds=0.05).error_kind == "timeout"


def test_what_a_tool_keeps_of_its_result_changes_nothing_afterwards() -> None:
    kept: list[int] = [1]
    result = call(lambda _: kept)
    kept.append(2)
    assert result.output == [1]


def test_a_tool_that_changes_its_arguments_changes_only_its_own() -> None:
    given = {"deep": {"list": [1]}}

    def change(arguments: Mapping[str, Any]) -> Any:
        arguments["deep"]["list"].append(2)
        arguments["deep"]["more"] = True
        return "changed"

    result = call(change, given)
    assert given == {"deep": {"list": [1]}}
    assert result.arguments == {"deep": {"list": [1]}}


def test_a_tool_that_unregisters_itself_still_answers_and_is_then_unknown() -> None:
    registry = ToolRegistry()

    def leave(_: Mapping[str, Any]) -> Any:
        registry.unregister("probe")
        return "gone"

    registry.register(a_tool(leave))
    calls = ToolInvoker(registry)
    assert calls.invoke("probe", {}).output == "gone"
    assert calls.invoke("probe", {}).error_kind == "unknown"


def test_what_a_tool_prints_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    def chatty(_: Mapping[str, Any]) -> Any:
        print("one")
        sys.stdout.write("two\n")
        sys.stdout.writelines(["three\n"])
        sys.stdout.flush()

        async def aside() -> None:
            print("four")
            await asyncio.to_thread(print, "five")

        asyncio.run(aside())

    assert call(chatty).error is None
    assert capsys.readouterr() == ("", "one\ntwo\nthree\nfour\nfive\n")


def test_others_print_where_they_did_while_a_tool_runs(
    capsys: pytest.CaptureFixture[str], released: threading.Event
) -> None:
    running = threading.Event()

    def slow(_: Mapping[str, Any]) -> Any:
        running.set()
        released.wait(60)
        print("the tool")

    caller = threading.Thread(target=call, args=(slow,))
    caller.start()
    running.wait(60)
    print("the program")
    with redirect_stdout(io.StringIO()) as own:
        print("somebody else")
    released.set()
    caller.join()
    assert own.getvalue() == "somebody else\n"
    assert capsys.readouterr() == ("the program\n", "the tool\n")


def test_a_tool_that_was_left_prints_to_standard_error_still(
    capsys: pytest.CaptureFixture[str], released: threading.Event
) -> None:
    finished = threading.Event()

    def late(_: Mapping[str, Any]) -> Any:
        released.wait(60)
        print("late")
        finished.set()

    assert call(late, timeout_seconds=0.02).error_kind == "timeout"
    released.set()
    finished.wait(60)
    assert capsys.readouterr() == ("", "late\n")


def test_a_thread_that_cannot_be_started_is_an_error_of_the_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    result = call(lambda _: 1)
    assert (result.error_kind, result.error) == ("raised", "RuntimeError: can't start new thread")


def invoker_of(tool: Tool) -> ToolInvoker:
    return ToolInvoker(ToolRegistry([tool]))


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


def test_values_that_no_result_could_hold_are_refused() -> None:
    deep = invoker_of(a_tool(lambda _: nested(300))).invoke("probe", {})
    assert deep.error_kind == "not_json"
    assert "nested more than 200 levels deep" in (deep.error or "")
    given = invoker_of(a_tool(lambda _: 1)).invoke("probe", nested(300))
    assert given.error_kind == "invalid_arguments"
    assert "nested more than 200 levels deep" in (given.error or "")
    assert ToolResult.model_validate_json(
        invoker_of(a_tool(lambda _: nested(200))).invoke("probe", {}).model_dump_json()
    )
