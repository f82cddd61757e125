"""Calling a tool's function, which may never return, raise anything, and return no JSON or too much of it."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Mapping
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

from aeon.domain.tool_result import ToolErrorKind
from aeon.files.nesting import TOO_DEEP, is_too_deep
from aeon.files.stdout import redirect_prints_to_stderr
from aeon.tools.registry import RegisteredTool

_SHOWN_VIOLATIONS = 5


@dataclass(frozen=True, slots=True)
class Outcome:
    """The part of a ToolResult that the call itself decides."""

    output: Any = None
    text: str = ""
    error: str | None = None
    error_kind: ToolErrorKind | None = None
    cut: int = 0


def call_tool(entry: RegisteredTool, arguments: Mapping[str, Any], limit: int, seconds: float) -> Outcome:
    """Call a tool in a thread of its own, for at most so many seconds, with at most `limit` characters of output.

    A call that takes longer is left to its daemon thread. Raises nothing for a fault of the tool.
    """
    done: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
    context = copy_context()

    def work() -> None:
        done.put(context.run(_call, entry, arguments, limit, seconds))

    try:
        threading.Thread(target=work, name=f"tool-{entry.tool.name}", daemon=True).start()
        return done.get(timeout=seconds)
    except queue.Empty:
        return failure("timeout", f"took longer than {seconds:g} seconds", limit)
    except Exception as error:  # no thread or no memory left for it
        return failure("raised", describe_error(error), limit)


def _call(entry: RegisteredTool, arguments: Mapping[str, Any], limit: int, seconds: float) -> Outcome:
    try:
        with redirect_prints_to_stderr():
            value = entry.tool.invoke(arguments)
    except BaseException as error:  # a tool that calls sys.exit() has failed; the program goes on
        return failure("raised", describe_error(error), limit)
    try:
        output, text = _to_json(value)
    except BaseException as error:  # the methods of the returned value are the tool's code too
        return failure("not_json", f"what it returned is not JSON: {describe_error(error)}", limit)
    try:
        return _check_result(entry, output, text, limit, seconds)
    except BaseException as error:  # whatever happens, the caller gets an outcome
        return failure("raised", describe_error(error), limit)


def _check_result(entry: RegisteredTool, output: Any, text: str, limit: int, seconds: float) -> Outcome:
    from aeon.schema.validators import find_violations  # slow to load, and there may be no tools

    found = find_violations(entry.output, output, seconds)
    kept, cut = cut_text(output if isinstance(output, str) else text, limit)
    output = kept if cut else output
    if not found:
        return Outcome(output, kept, cut=cut)
    listed = [f"{place or '(whole value)'}: {cut_text(reason, 300)[0]}" for place, reason in found[:_SHOWN_VIOLATIONS]]
    rest = [f"and {len(found) - len(listed)} more"] if len(found) > len(listed) else []
    message = "what it returned is not as its output schema says: " + "; ".join(listed + rest)
    return Outcome(output, kept, cut_text(message, limit)[0], "invalid_output", cut)


def failure(kind: ToolErrorKind, message: str, limit: int) -> Outcome:
    """A call without a result."""
    return Outcome(error=cut_text(message, limit)[0], error_kind=kind)


def cut_text(text: str, limit: int) -> tuple[str, int]:
    """At most `limit` characters of a text, then how many were cut, if any; and that number."""
    cut = len(text) - limit
    return (f"{text[:limit]}... [{cut} of {len(text)} characters cut]", cut) if cut > 0 else (text, 0)


def describe_error(error: BaseException) -> str:
    """The kind of an error and its text; only the kind when its text cannot be had."""
    name = type(error).__name__
    try:
        text = str(error).encode("utf-8", "backslashreplace").decode()
    except BaseException:  # an exception's own __str__ is the tool's code too
        text = ""
    return f"{name}: {text}" if text else name


def _to_json(value: Any) -> tuple[Any, str]:
    """A copy of the value as JSON has it, and its text. Raises whatever is in the way."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    text.encode()
    own = json.loads(text)
    if is_too_deep(own):
        raise ValueError(TOO_DEEP)
    return own, text
