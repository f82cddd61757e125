"""What a tool did, taken without trust: JSON or not, as its schema says or not, and no longer than allowed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aeon.domain.tool_result import ToolErrorKind
from aeon.files.nesting import TOO_DEEP, is_too_deep
from aeon.files.stdout import printed_to_stderr
from aeon.schema.validators import violations
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


def carried_out(entry: RegisteredTool, arguments: Mapping[str, Any], limit: int, seconds: float) -> Outcome:
    """Call the tool and take what comes of it, its result checked for so many seconds at most. Raises nothing for a
    fault of the tool's."""
    try:
        with printed_to_stderr():
            value = entry.tool.invoke(arguments)
    except BaseException as error:  # a tool that calls sys.exit() has failed; the program goes on
        return failure("raised", described(error), limit)
    try:
        output, text = _as_json(value)
    except BaseException as error:  # the methods of what it returned are the tool's code too
        return failure("not_json", f"what it returned is not JSON: {described(error)}", limit)
    found = violations(entry.output, output, seconds)
    kept, cut = capped(output if isinstance(output, str) else text, limit)
    shown = Outcome(kept if cut else output, kept, cut=cut)
    if not found:
        return shown
    listed = [f"{place or '(whole value)'}: {capped(said, 300)[0]}" for place, said in found[:_SHOWN_VIOLATIONS]]
    rest = [f"and {len(found) - len(listed)} more"] if len(found) > len(listed) else []
    message = "what it returned is not as its output schema says: " + "; ".join(listed + rest)
    return Outcome(shown.output, shown.text, capped(message, limit)[0], "invalid_output", cut)


def failure(kind: ToolErrorKind, message: str, limit: int) -> Outcome:
    """A call without a result."""
    return Outcome(error=capped(message, limit)[0], error_kind=kind)


def capped(text: str, limit: int) -> tuple[str, int]:
    """At most `limit` characters of a text, then how many were cut, if any; and that number."""
    cut = len(text) - limit
    return (f"{text[:limit]}... [{cut} of {len(text)} characters cut]", cut) if cut > 0 else (text, 0)


def described(error: BaseException) -> str:
    """The kind of an error and what it says; only the kind when even that fails."""
    name = type(error).__name__
    try:
        said = str(error).encode("utf-8", "backslashreplace").decode()
    except BaseException:  # an exception's own __str__ is the tool's code too
        said = ""
    return f"{name}: {said}" if said else name


def _as_json(value: Any) -> tuple[Any, str]:
    """The value as JSON has it, shared with nobody, and its text. Raises whatever is in the way."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    text.encode()
    own = json.loads(text)
    if is_too_deep(own):
        raise ValueError(TOO_DEEP)
    return own, text
