"""Calls a tool by its name: checks arguments, asks for approval, bounds time and output, checks the
result."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Mapping
from contextvars import copy_context
from fnmatch import fnmatchcase
from typing import Any

from aeon.domain.checks import ToolErrorKind, ToolResult
from aeon.domain.errors import ArtefactError, PersonAwaited
from aeon.domain.values import JsonMapping, JsonObject
from aeon.files.stdout import redirect_prints_to_stderr
from aeon.files.text import TOO_DEEP, is_too_deep
from aeon.schema.validators import FieldError, find_errors
from aeon.tools.registry import (
    ApprovalRequest,
    Approve,
    RegisteredTool,
    Tool,
    ToolRegistry,
    asking_step,
)
from aeon.tools.settings import Approval, ToolSettings

_SHOWN_VIOLATIONS = 5

Outcome = JsonObject
"""The fields of a ToolResult that the call itself determines."""


class ToolInvoker:
    """Calls a registry's tools as the settings say; `approve` is called for one call at a time;
    thread-safe."""

    def __init__(
        self,
        registry: ToolRegistry,
        settings: ToolSettings | None = None,
        *,
        approve: Approve | None = None,
    ) -> None:
        self._registry = registry
        self._settings = settings or ToolSettings()
        self._approve = approve
        self._asking = threading.Lock()

    def check_arguments(self, name: str, arguments: object) -> list[FieldError]:
        """Return the violations of the tool's input schema with JSON pointers; empty if there are
        none."""
        entry = self._registry.entry(name)
        if entry is None:
            return [FieldError("", self._registry.describe_missing(name))]
        return read_arguments(entry, arguments)[1]

    def approval(self, name: str) -> Approval:
        """Return the policy of the first pattern in `tools.approval` that matches the name, else
        the tool's own."""
        tool = self._registry.get(name)
        own: Approval = tool.approval if tool else "always"
        return next(
            (
                policy
                for pattern, policy in self._settings.approval.items()
                if fnmatchcase(name, pattern)
            ),
            own,
        )

    def must_be_alone(self, name: str) -> bool:
        """Whether a call of a tool must not be made concurrently with others."""
        return self.may_have_effects(name)

    def may_have_effects(self, name: str) -> bool:
        """Whether a call of a tool must not be repeated silently, because it changes something or
        needs its own approval."""
        tool = self._registry.get(name)
        return tool is not None and (tool.side_effects or self.approval(name) == "ask")

    def invoke(self, name: str, arguments: object) -> ToolResult:
        """Call a tool within its time limit; `error` and `error_kind` describe failures. Raises
        only errors of the approval that end the run: PersonAwaited, ArtefactError."""
        started = time.monotonic()
        entry = self._registry.entry(name)
        own_limit = entry.tool.max_output_characters if entry else None
        limit = own_limit or self._settings.max_output_characters
        given, violations = read_arguments(entry, arguments)
        if entry is None:
            outcome = _failure("unknown", self._registry.describe_missing(name))
        elif violations:
            outcome = _failure("invalid_arguments", "; ".join(map(_describe_violation, violations)))
        elif refusal := self._find_refusal(entry.tool, given):
            outcome = _failure("refused", refusal)
        else:
            seconds = entry.tool.timeout_seconds or self._settings.timeout_seconds
            self._begin(entry.tool, given)
            outcome = self._registry.hide(_call_in_thread(entry, given, limit, seconds))
            outcome["approved"] = self.approval(name) == "ask"
        if error := outcome.get("error"):
            outcome["error"] = cut_text(error, limit)[0]
        if outcome.get("cut"):
            outcome |= {"kept": limit, "own_limit": own_limit is not None}
        seconds = time.monotonic() - started
        return ToolResult.model_validate(
            {**outcome, "tool": name, "arguments": given, "seconds": seconds}
        )

    def ask_ahead(self, name: str, arguments: object) -> None:
        """Ask a person about a call that is made later, if it is one to ask about. Raises like
        `invoke`."""
        entry = self._registry.entry(name)
        given, violations = read_arguments(entry, arguments)
        if entry is not None and not violations and self.approval(name) == "ask":
            self._find_refusal(entry.tool, given)

    def _begin(self, tool: Tool, given: JsonMapping) -> None:
        """Do nothing; a subclass records here that a call is about to start."""

    def _was_begun(self, tool: Tool, given: JsonMapping) -> bool:  # noqa: ARG002
        """Return whether this very call was under way in an earlier run that was cut off."""
        return False

    def _find_refusal(self, tool: Tool, given: JsonMapping) -> str | None:
        policy = self.approval(tool.name)
        if policy == "always":
            return None
        if policy == "never":
            return "tools.approval refuses it"
        if self._approve is None:
            return "tools.approval asks a person, and there is nobody to ask"
        try:
            with self._asking:
                is_approved = self._approve(
                    ApprovalRequest(
                        tool,
                        _copy_json(given)[0],
                        asking_step.get(),
                        repeated=self._was_begun(tool, given),
                    )
                )
        except (PersonAwaited, ArtefactError):
            raise
        except Exception as error:  # asking may fail in any way; then nobody approved
            return f"the person could not be asked: {_describe_error(error)}"
        return None if is_approved else "the person refused it"


def read_arguments(
    entry: RegisteredTool | None, arguments: object
) -> tuple[JsonObject, list[FieldError]]:
    """Return the arguments as JSON values, empty if they are not JSON, and their violations of the
    input schema."""
    if not isinstance(arguments, Mapping):
        return {}, [FieldError("", f"arguments are an object, not {type(arguments).__name__}")]
    try:
        given: JsonObject = _copy_json(dict(arguments))[0]
    except (TypeError, ValueError, RecursionError) as error:
        return {}, [FieldError("", f"arguments must be values that JSON has: {error}")]
    return given, [] if entry is None else find_errors(entry.input, given)


def _call_in_thread(
    entry: RegisteredTool, given: JsonObject, limit: int, seconds: float
) -> Outcome:
    done: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
    context = copy_context()
    arguments = _copy_json(given)[0]

    def work() -> None:
        done.put(context.run(_call, entry, arguments, limit))

    try:
        threading.Thread(target=work, name=f"tool-{entry.tool.name}", daemon=True).start()
        return done.get(timeout=seconds)
    except queue.Empty:
        return _failure("timeout", f"took longer than {seconds:g} seconds")
    except RuntimeError as error:  # no thread is left for it
        return _failure("raised", _describe_error(error))


def _call(entry: RegisteredTool, arguments: JsonMapping, limit: int) -> Outcome:
    is_returned = False
    try:
        with redirect_prints_to_stderr():
            value = entry.tool.invoke(arguments)
        is_returned = True
        output, text = _copy_json(value)
    except BaseException as error:  # a tool that calls sys.exit() has failed; the program continues
        problem = _describe_error(error)
        if is_returned:
            return _failure("not_json", f"what it returned is not JSON: {problem}")
        return _failure("raised", problem)
    found = find_errors(entry.output, output)
    text, cut = cut_text(output if isinstance(output, str) else text, limit)
    outcome = {"output": text if cut else output, "text": text, "cut": cut}
    if found:
        listed = [cut_text(str(error), 300)[0] for error in found[:_SHOWN_VIOLATIONS]]
        listed += [f"and {len(found) - len(listed)} more"] if len(found) > len(listed) else []
        outcome |= _failure(
            "invalid_output",
            f"what it returned is not as its output schema says: {'; '.join(listed)}",
        )
    return outcome


def _describe_violation(violation: FieldError) -> str:
    return str(violation) if violation.pointer else f"the arguments: {violation.message}"


def _failure(kind: ToolErrorKind, message: str) -> Outcome:
    return {"error": message, "error_kind": kind}


def cut_text(text: str, limit: int) -> tuple[str, int]:
    """Cut a text to `limit` characters followed by a note about the rest, and return the number of
    characters cut."""
    cut = len(text) - limit
    return (
        (f"{text[:limit]}... [{cut} of {len(text)} characters cut]", cut) if cut > 0 else (text, 0)
    )


def _describe_error(error: BaseException) -> str:
    name = type(error).__name__
    try:
        text = str(error).encode("utf-8", "backslashreplace").decode()
    except BaseException:  # an exception's __str__ is the tool's code too
        text = ""
    return f"{name}: {text}" if text else name


def _copy_json(value: object) -> tuple[Any, str]:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    text.encode()
    own = json.loads(text)
    if is_too_deep(own):
        raise ValueError(TOO_DEEP)
    return own, text
