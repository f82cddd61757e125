"""Calling a tool by its name: arguments checked, approval asked, time and output bounded, the result checked."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from aeon.domain.tool_result import SchemaViolation, ToolResult
from aeon.files.nesting import TOO_DEEP, is_too_deep
from aeon.tools.approval import ApprovalRequest, Approve, asking_step
from aeon.tools.call import Outcome, call_tool, describe_error, failure
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
        """The violations of the tool's input schema by the arguments, each with its JSON pointer; empty without any.

        For a tool that is not registered, the one violation that says so.
        """
        entry = self._registry.entry(name)
        if entry is None:
            return (SchemaViolation("", not_found(name)),)
        return _check_arguments(entry, arguments)[1]

    def approval(self, name: str) -> Approval:
        """The policy of the first pattern of `tools.approval` that matches the name, else that of the tool."""
        tool = self._registry.get(name)
        own: Approval = tool.approval if tool else "always"
        return next((policy for pattern, policy in self._settings.approval.items() if fnmatchcase(name, pattern)), own)

    def invoke(self, name: str, arguments: Any) -> ToolResult:
        """Call a tool with its own copy of the arguments.

        Returns within the tool's time limit, plus that of the person who is asked. `error` and `error_kind` say what
        went wrong; nothing is raised for a fault of the tool or of the arguments.
        """
        started = time.monotonic()
        entry = self._registry.entry(name)
        limit = self._limit(entry)
        if entry is None:
            given, outcome = _json_object(arguments), failure("unknown", not_found(name), limit)
        else:
            given, outcome = self._check_and_call(entry, arguments, limit)
        return ToolResult(
            tool=name,
            arguments=given,
            output=outcome.output,
            text=outcome.text,
            error=outcome.error,
            error_kind=outcome.error_kind,
            seconds=time.monotonic() - started,
            cut=outcome.cut,
            kept=limit if outcome.cut else 0,
            own_limit=bool(outcome.cut and entry and entry.tool.max_output_characters),
        )

    def _check_and_call(self, entry: RegisteredTool, arguments: Any, limit: int) -> tuple[dict[str, Any], Outcome]:
        given, found = _check_arguments(entry, arguments)
        if found:
            return given, failure("invalid_arguments", "; ".join(map(str, found)), limit)
        refusal = self._refusal(entry.tool, given)
        if refusal is not None:
            return given, failure("refused", refusal, limit)
        seconds = entry.tool.timeout_seconds or self._settings.timeout_seconds
        return given, call_tool(entry, json.loads(json.dumps(given)), limit, seconds)

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
            return f"the person could not be asked: {describe_error(error)}"

    def _limit(self, entry: RegisteredTool | None) -> int:
        return (entry.tool.max_output_characters if entry else None) or self._settings.max_output_characters


def not_found(name: str) -> str:
    """The message for a tool that is not registered."""
    return f"Tool '{name}' not found in registry"


def not_there(name: str, reason: str) -> str:
    """The message for a tool that is configured and not available."""
    return f"Tool '{name}': {reason}"


def _check_arguments(entry: RegisteredTool, arguments: Any) -> tuple[dict[str, Any], tuple[SchemaViolation, ...]]:
    """The arguments as JSON has them, and their violations of the input schema."""
    if not isinstance(arguments, Mapping):
        return {}, (SchemaViolation("", f"arguments are an object, not {type(arguments).__name__}"),)
    given = _json_object(arguments)
    if not given and arguments:
        return {}, (SchemaViolation("", f"arguments must be values that JSON has, and not {TOO_DEEP}"),)
    from aeon.schema.validators import find_violations  # slow to load, and there may be no tools

    return given, find_violations(entry.input, given)


def _json_object(arguments: Any) -> dict[str, Any]:
    """A copy as JSON has it; empty when it is no JSON object, or nested too deeply to be written into a result."""
    try:
        text = json.dumps(dict(arguments), ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError):
        return {}
    given = dict(json.loads(text))
    return {} if is_too_deep(given) else given
