"""Checks that call your own code: a Python function, or a registered tool."""

from __future__ import annotations

import inspect
import math
import queue
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

import pydantic

from aeon.checks.interface import CheckBroken, CheckContext, CheckResult, describe_failure
from aeon.domain.checks import PythonCheck, ToolCheck
from aeon.domain.errors import ConfigError, StopRequested
from aeon.files.reference import load_object
from aeon.files.stdout import redirect_prints_to_stderr
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import ToolRegistry

_POLL_SECONDS = 0.1


def load_function(key: str, settings: PythonCheck) -> Callable[..., Any]:
    """Load the function of a check. Raises ConfigError for one that cannot be called with an answer
    and a context."""
    function: Callable[..., Any] = load_object(key, settings.value, "function")
    named = f"{key}={settings.value}"
    if not callable(function):
        raise ConfigError(f"{named}: it is of type {type(function).__name__}, not a function")
    if inspect.iscoroutinefunction(function):
        raise ConfigError(f"{named}: a check is a plain function, not an async one")
    try:
        inspect.signature(function).bind("answer", None)
    except TypeError:
        hint = "Write it as: def check(answer: str, context: CheckContext)"
        raise ConfigError(f"{named}: takes other arguments than a check's", hint=hint) from None
    except ValueError:  # a builtin without a signature
        pass
    return function


def call_function(
    function: Callable[..., Any],
    settings: PythonCheck,
    answer: str,
    context: CheckContext,
    stop: Callable[[], bool] = lambda: False,
) -> CheckResult:
    """Call a function with an answer and return its result. Raises CheckBroken if it crashes, takes
    too long or returns an unusable value, StopRequested if `stop` returns True meanwhile."""
    done: queue.SimpleQueue[Any] = queue.SimpleQueue()
    inherited = copy_context()

    def call() -> None:
        try:
            with redirect_prints_to_stderr():
                done.put(function(answer, context))
        except BaseException as error:  # a check that calls sys.exit() has crashed
            done.put(CheckBroken(describe_failure(error)))

    work = threading.Thread(target=inherited.run, args=(call,), name="aeon-check", daemon=True)
    work.start()
    deadline = time.monotonic() + settings.timeout_seconds
    while work.is_alive() and time.monotonic() < deadline:
        if stop():
            raise StopRequested("stopped while a check was running")
        work.join(min(_POLL_SECONDS, max(0.0, deadline - time.monotonic())))
    if done.empty():
        raise CheckBroken(f"took longer than {settings.timeout_seconds:g} seconds")
    returned = done.get()
    if isinstance(returned, CheckBroken):
        raise returned
    return read_result(returned, settings.threshold)


def require_tool(key: str, settings: ToolCheck, registry: ToolRegistry) -> None:
    """Raise ConfigError unless the tool of a check is registered and has its argument."""
    tool = registry.get(settings.value)
    if tool is None:
        raise ConfigError(
            f"{key}={settings.value}: {registry.describe_missing(settings.value)}",
            hint="`aeon tools` lists those that are registered.",
        )
    known = tool.input_schema.get("properties")
    if isinstance(known, dict) and settings.argument not in known:
        raise ConfigError(
            f"{key}={settings.value}: the tool has no argument {settings.argument!r}",
            hint=f"Set `argument` to one of {', '.join(known)}.",
        )


def call_tool(invoker: ToolInvoker, settings: ToolCheck, answer: str) -> CheckResult:
    """Call a tool with an answer and return its result. Raises CheckBroken if it fails or returns
    an unusable value."""
    result = invoker.invoke(settings.value, {settings.argument: answer})
    if result.error is not None:
        raise CheckBroken(result.error)
    return read_result(result.output, settings.threshold)


def read_result(returned: object, threshold: float | None = None) -> CheckResult:
    """Convert a check's return value to a result: a bool, a text (empty: passed), a number, or the
    fields of a CheckResult. Raises CheckBroken for anything else."""
    if isinstance(returned, CheckResult):
        return returned
    if isinstance(returned, bool):
        return CheckResult(passed=returned)
    if isinstance(returned, str):
        return CheckResult(passed=not returned.strip(), feedback=returned)
    if isinstance(returned, int | float):
        return _read_score(float(returned), threshold)
    if isinstance(returned, dict):
        try:
            return CheckResult.model_validate(returned)
        except pydantic.ValidationError as error:
            raise CheckBroken(f"returned {returned!r:.200}: {error.errors()[0]['msg']}") from None
    raise CheckBroken(
        f"returned {type(returned).__name__}, and not a truth, a text, a number or a CheckResult"
    )


def _read_score(score: float, threshold: float | None) -> CheckResult:
    if not math.isfinite(score):
        raise CheckBroken(f"returned {score}")
    if threshold is None:
        return CheckResult(passed=score > 0, score=score)
    passed = score >= threshold
    feedback = "" if passed else f"The score is {score:g}; {threshold:g} is needed."
    return CheckResult(passed=passed, score=score, feedback=feedback)
