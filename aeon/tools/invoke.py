"""Calling a tool: arguments checked, approval asked, time and output bounded, the result checked.

A tool is not trusted to return, to raise only errors, to keep quiet or to be brief (Sprint 1, FR-025, FR-054, FR-056).
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from aeon.domain.tool_result import SchemaViolation, ToolResult
from aeon.files.nesting import TOO_DEEP, is_too_deep
from aeon.schema.validators import violations
from aeon.tools.approval import ApprovalRequest, Approve, asking_step
from aeon.tools.deadline import TookTooLong, call_within
from aeon.tools.outcome import Outcome, carried_out, described, failure
from aeon.tools.registry import RegisteredTool, Tool, ToolRegistry
from aeon.tools.settings import Approval, ToolSettings


class ToolInvoker:
    """Calls the tools of a registry as the settings say; thread-safe, many calls at once.

    `approve` is asked, one call at a time, for tools whose approval is `ask`; without it they are refused.
    """

    def __init__(
        self, registry: ToolRegistry, settings: ToolSettings | None = None, *, approve: Approve | None = None
    ) -> None:
        self._registry = registry
        self._settings = settings or ToolSettings()
        self._approve = approve
        self._asking = threading.Lock()

    def check_arguments(self, name: str, arguments: Any) -> tuple[SchemaViolation, ...]:
        """Everything that is wrong with the arguments by the tool's input schema, each with its JSON pointer (FR-025).

        Empty when nothing is. For a tool that is not registered it is the one violation that says so.
        """
        entry = self._registry.entry(name)
        if entry is None:
            return (SchemaViolation("", not_found(name)),)
        return _checked(entry, arguments)[1]

    def approval(self, name: str) -> Approval:
        """What the first pattern of `tools.approval` that matches the name says; what the tool says when none does."""
        patterns = self._settings.approval.items()
        tool = self._registry.get(name)
        own: Approval = tool.approval if tool else "always"
        return next((policy for pattern, policy in patterns if fnmatchcase(name, pattern)), own)

    def invoke(self, name: str, arguments: Any) -> ToolResult:
        """Call a tool with its own copy of the arguments.

        Whatever the tool does, this returns within its time limit (plus that of the person who is asked), and says in
        `error` and `error_kind` what went wrong; it raises nothing for a fault of the tool or of the arguments.
        """
        started = time.monotonic()
        entry = self._registry.entry(name)
        if entry is None:
            given, outcome = _object(arguments), failure("unknown", not_found(name), self._limit(None))
        else:
            given, outcome = self._checked_and_called(entry, arguments)
        return ToolResult(
            tool=name,
            arguments=given,
            output=outcome.output,
            text=outcome.text,
            error=outcome.error,
            error_kind=outcome.error_kind,
            seconds=time.monotonic() - started,
            cut=outcome.cut,
            kept=self._limit(entry.tool if entry else None) if outcome.cut else 0,
            own_limit=bool(outcome.cut and entry and entry.tool.max_output_characters),
        )

    def _checked_and_called(self, entry: RegisteredTool, arguments: Any) -> tuple[dict[str, Any], Outcome]:
        given, found = _checked(entry, arguments)
        limit = self._limit(entry.tool)
        if found:
            return given, failure("invalid_arguments", "; ".join(map(str, found)), limit)
        refusal = self._refusal(entry.tool, given)
        if refusal is not None:
            return given, failure("refused", refusal, limit)
        return given, self._called(entry, given, limit)

    def _called(self, entry: RegisteredTool, given: Mapping[str, Any], limit: int) -> Outcome:
        seconds = entry.tool.timeout_seconds or self._settings.timeout_seconds
        own = json.loads(json.dumps(given))
        try:
            return call_within(seconds, lambda: carried_out(entry, own, limit, seconds), f"tool-{entry.tool.name}")
        except TookTooLong:
            return failure("timeout", f"took longer than {seconds:g} seconds", limit)
        except Exception as error:  # no thread or no memory left for it
            return failure("raised", described(error), limit)

    def _refusal(self, tool: Tool, given: Mapping[str, Any]) -> str | None:
        policy = self.approval(tool.name)
        if policy == "always":
            return None
        if policy == "never":
            return "tools.approval refuses it"
        if self._approve is None:
            return "tools.approval asks a person, and there is nobody to ask"
        try:
            request = ApprovalRequest(tool, json.loads(json.dumps(given)), asking_step())
            with self._asking:
                return None if self._approve(request) else "the person refused it"
        except Exception as error:  # asking may fail in any way, and then nobody approved
            return f"the person could not be asked: {described(error)}"

    def _limit(self, tool: Tool | None) -> int:
        return (tool.max_output_characters if tool else None) or self._settings.max_output_characters


def not_found(name: str) -> str:
    """What is said of a tool that is not registered (FR-058, FR-064)."""
    return f"Tool '{name}' not found in registry"


def not_there(name: str, reason: str) -> str:
    """What is said of a tool that is configured and could not be had."""
    return f"Tool '{name}': {reason}"


def _checked(entry: RegisteredTool, arguments: Any) -> tuple[dict[str, Any], tuple[SchemaViolation, ...]]:
    """The arguments as JSON has them, and what is wrong with them."""
    if not isinstance(arguments, Mapping):
        return {}, (SchemaViolation("", f"arguments are an object, not {type(arguments).__name__}"),)
    given = _object(arguments)
    if not given and arguments:
        return {}, (SchemaViolation("", f"arguments must be values that JSON has, and not {TOO_DEEP}"),)
    return given, violations(entry.input, given)


def _object(arguments: Any) -> dict[str, Any]:
    """A copy as JSON has it; empty when it is no JSON object, or nested too deeply to be written into a result."""
    try:
        text = json.dumps(dict(arguments), ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError):
        return {}
    given = dict(json.loads(text))
    return {} if is_too_deep(given) else given
