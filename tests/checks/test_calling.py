"""Checks that call a Python function or a registered tool."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from aeon.checks import CheckContext, CheckResult
from aeon.checks.calling import call_function, read_result
from aeon.checks.interface import CheckBroken
from aeon.domain.checks import PythonCheck
from aeon.domain.errors import ConfigError, StopRequested
from tests.checks.builders import CONTEXT, check, run_checks
from tests.tools.builders import a_tool

MODULE = """
from aeon.checks import CheckContext, CheckResult


def is_short(answer, context):
    return len(answer) < 10


def describe(answer, context):
    return "" if "tea" in context.task else "no tea"


def score(answer, context):
    return len(answer) / 10


def whole(answer: str, context: CheckContext) -> CheckResult:
    print("to standard error")
    return CheckResult(passed=False, score=0.5, feedback=f"pass {context.pass_number}")


def crash(answer, context):
    raise KeyError("gone")


def count(answer, context):
    return len(answer)


def name_a_file(answer, context):
    return "bad \\udcff.txt"


def name_it_in_a_result(answer, context):
    return {"passed": False, "feedback": "bad \\udcff.txt"}


def crash_on_a_file(answer, context):
    raise ValueError("bad \\udcff.txt")


async def wait(answer, context):
    return True


def one(answer):
    return True


NUMBER = 7
"""


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"own_checks_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    return name


def test_a_function_may_return_a_truth_a_text_a_number_or_a_result(own_module: str) -> None:
    def found(function: str, **more: Any) -> Any:
        return check("Earl Grey", type="python", value=f"{own_module}:{function}", **more)

    assert found("is_short").passed
    assert found("describe").passed
    assert (found("score").passed, found("score").score) == (True, 0.9)
    close = found("score", threshold=0.95)
    assert (close.passed, close.feedback) == (False, "The score is 0.9; 0.95 is needed.")
    whole = found("whole")
    assert (whole.passed, whole.score, whole.feedback) == (False, 0.5, "pass 1")


def test_a_function_turned_round_passes_where_it_says_no(own_module: str) -> None:
    assert check("x", type="not-python", value=f"{own_module}:whole").passed
    assert not check("x", type="not-python", value=f"{own_module}:is_short").passed


def test_a_function_turned_round_has_the_rest_of_its_score_and_no_reason_to_have_failed(
    own_module: str,
) -> None:
    low = check("tea", type="not-python", value=f"{own_module}:score", threshold=0.5)
    assert (low.passed, low.score, low.feedback) == (True, 0.7, "")
    high = check("Earl Grey", type="not-python", value=f"{own_module}:score", threshold=0.5)
    assert (high.passed, high.score) == (False, pytest.approx(0.1))
    whole = check("x", type="not-python", value=f"{own_module}:whole")
    assert (whole.passed, whole.score, whole.feedback) == (True, 0.5, "")


def test_a_score_that_is_no_share_is_left_out_where_a_function_is_turned_round(
    own_module: str,
) -> None:
    assert check("nine", type="python", value=f"{own_module}:count").score == 4
    assert check("nine", type="not-python", value=f"{own_module}:count").score is None


def test_a_function_that_crashes_has_failed_whichever_way_it_is_asked(own_module: str) -> None:
    for kind in ("python", "not-python"):
        found = check("x", type=kind, value=f"{own_module}:crash")
        assert (found.passed, found.measured) == (False, False)
        assert found.feedback == f"crashed: KeyError: 'gone' ({own_module}.py:23)"


@pytest.mark.parametrize("function", ["name_a_file", "name_it_in_a_result", "crash_on_a_file"])
def test_half_a_surrogate_pair_in_feedback_is_replaced_by_its_escape(
    own_module: str, function: str
) -> None:
    found = check("x", type="python", value=f"{own_module}:{function}")
    assert not found.passed
    assert r"bad \udcff.txt" in found.feedback
    assert found.model_dump_json()


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        ("missing", "cannot be imported"),
        ("wait", "not an async one"),
        ("one", "takes other arguments"),
        ("NUMBER", "not a function"),
    ],
)
def test_a_function_that_cannot_be_a_check_is_refused_before_the_run(
    own_module: str, function: str, problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem) as refused:
        run_checks({"mine": {"type": "python", "value": f"{own_module}:{function}"}})
    assert "convergence.checks.mine" in refused.value.message


def test_a_module_that_is_not_there_is_refused_before_the_run() -> None:
    with pytest.raises(ConfigError, match="No module named 'no_such_module'"):
        run_checks({"mine": {"type": "python", "value": "no_such_module:check"}})


def test_a_function_that_takes_too_long_has_failed() -> None:
    def slow(_: str, __: CheckContext) -> bool:
        time.sleep(5)
        return True

    settings = PythonCheck(type="python", value="m:slow", timeout_seconds=0.05)
    with pytest.raises(CheckBroken, match=r"took longer than 0\.05 seconds"):
        call_function(slow, settings, "x", CONTEXT)


def test_a_run_that_stops_waits_for_no_function() -> None:
    def slow(_: str, __: CheckContext) -> bool:
        time.sleep(5)
        return True

    settings = PythonCheck(type="python", value="m:slow")
    with pytest.raises(StopRequested):
        call_function(slow, settings, "x", CONTEXT, stop=lambda: True)


@pytest.mark.parametrize("value", [None, [True], {"pass": True}, float("nan")])
def test_what_says_nothing_is_no_result(value: Any) -> None:
    with pytest.raises(CheckBroken, match="returned"):
        read_result(value)


def test_without_a_threshold_a_number_above_nought_passes() -> None:
    assert read_result(0.01).passed
    assert not read_result(0).passed


def test_a_tool_is_called_with_the_answer_as_its_argument() -> None:
    seen: list[Any] = []

    def look(arguments: Any) -> Any:
        seen.append(arguments)
        return {"passed": False, "score": 0.2, "feedback": "too plain"}

    found = check_with(look, argument="text")
    assert seen == [{"text": "tea"}]
    assert (found.passed, found.score, found.feedback) == (False, 0.2, "too plain")


def test_a_tool_that_fails_has_not_passed() -> None:
    def look(_: Any) -> Any:
        raise ValueError("out of order")

    found = check_with(look, argument="text")
    assert (found.passed, found.measured) == (False, False)
    assert "out of order" in found.feedback


def test_a_tool_that_is_missing_or_lacks_the_argument_is_refused_before_the_run() -> None:
    with pytest.raises(ConfigError, match="Tool 'probe' not found"):
        run_checks({"mine": {"type": "tool", "value": "probe"}})
    with pytest.raises(ConfigError, match="has no argument 'answer'"):
        check_with(lambda _: True)


def check_with(look: Any, **settings: Any) -> Any:
    from aeon.domain.request import CallSite
    from tests.plan.builders import done, plan_of

    inputs = {"type": "object", "properties": {"text": {"type": "string"}}}
    tool = a_tool(look, inputs=inputs)
    checks = run_checks({"it": {"type": "tool", "value": "probe", **settings}}, tools=(tool,))
    (outcome,) = checks.run(plan_of(done("a")), "tea", CallSite(pass_number=1))
    return outcome


def test_what_a_check_imports_is_published_in_one_place() -> None:
    context = CheckContext(task="t", outputs={"a": "x"}, row={"id": 1})
    assert context.previous_answer is None
    assert CheckResult(passed=True).feedback == ""
    with pytest.raises(Exception, match="frozen"):
        context.task = "another"  # type: ignore[misc]
