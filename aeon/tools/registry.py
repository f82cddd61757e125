"""The tools that a plan may name, and the questions to a person before a call that needs
approval."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from aeon.domain.errors import ConfigError
from aeon.domain.plan import PlanStep
from aeon.domain.values import JsonMapping, JsonObject
from aeon.schema.examples import NoExample, make_example
from aeon.schema.validators import SchemaValidator, compile_schema, find_errors
from aeon.tools.settings import MOST_TIMEOUT_SECONDS, Approval

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_MISSING = re.compile(r"Tool '(.+?)'(?:: | not found in registry)")


@dataclass(frozen=True, slots=True)
class Tool:
    """A capability. `invoke` gets checked arguments and returns a JSON value; it runs in any
    thread. `side_effects`: a call changes something outside; `pure`: equal arguments return equal
    results. `approval` applies if no pattern of `tools.approval` matches. `again` is called instead
    for a stored result, to repeat effects on the run itself."""

    name: str
    description: str
    input_schema: JsonMapping
    output_schema: JsonMapping
    invoke: Callable[[JsonMapping], Any] = field(repr=False)
    examples: Sequence[JsonMapping] = ()
    timeout_seconds: float | None = None
    max_output_characters: int | None = None
    side_effects: bool = False
    pure: bool = False
    approval: Approval = "always"
    again: Callable[[JsonMapping], Any] | None = field(default=None, repr=False)

    def describe(self) -> JsonObject:
        """Describe the tool for prompts."""
        described = {
            "name": self.name,
            "description": self.description,
            "input_schema": dict(self.input_schema),
            "output_schema": dict(self.output_schema),
        }
        return (
            {**described, "examples": [dict(each) for each in self.examples]}
            if self.examples
            else described
        )


@dataclass(frozen=True, slots=True)
class RegisteredTool:
    """A tool with the validators of its arguments and result."""

    tool: Tool
    input: SchemaValidator
    output: SchemaValidator


class ToolRegistry:
    """Tools by name, in order of registration, together with the current ones of a `parent`;
    thread-safe. `hide` removes secrets from a tool's result, a JSON value."""

    def __init__(self, tools: Sequence[Tool] = (), *, parent: ToolRegistry | None = None) -> None:
        self._parent = parent
        self.hide: Callable[[Any], Any] = parent.hide if parent else lambda result: result
        self._tools: dict[str, RegisteredTool] = {}
        self._explainers: list[Callable[[str], str | None]] = []
        self._closers: list[Callable[[], None]] = []
        self.servers_down: dict[str, str] = {}
        """The configured servers that did not start, and why."""
        for tool in tools:
            self.register(tool)

    def register(self, tool: Tool) -> None:
        """Add a tool. Raises ConfigError for an invalid or taken name, a malformed schema, and a
        wrong example."""
        entry = _check_tool(tool)
        if self.get(tool.name) is not None or self._tools.setdefault(tool.name, entry) is not entry:
            raise ConfigError(f"a tool named {tool.name!r} is registered already")

    def unregister(self, name: str) -> None:
        """Remove a tool; one that is not registered is ignored."""
        if self._tools.pop(name, None) is None and self._parent is not None:
            self._parent.unregister(name)

    def get(self, name: str) -> Tool | None:
        """Return the tool of that name; None if it is not registered."""
        entry = self.entry(name)
        return entry.tool if entry else None

    def entry(self, name: str) -> RegisteredTool | None:
        """Return the tool of that name with its validators; None if it is not registered."""
        own = self._tools.get(name)
        return own if own or self._parent is None else self._parent.entry(name)

    def explain_missing_with(self, why: Callable[[str], str | None]) -> None:
        """Add a function that returns why a configured tool is missing, or None if it does not
        know."""
        self._explainers.append(why)

    def unavailable(self, name: str) -> str | None:
        """Return, as a clause, why a configured tool is missing; None for a tool that is registered
        or not configured."""
        if self.get(name) is not None:
            return None
        own = next(filter(None, (why(name) for why in self._explainers)), None)
        return own if own or self._parent is None else self._parent.unavailable(name)

    def describe_missing(self, name: str) -> str:
        """Return the message for a tool that is not registered."""
        reason = self.unavailable(name)
        return f"Tool '{name}': {reason}" if reason else f"Tool '{name}' not found in registry"

    def list(self) -> tuple[Tool, ...]:
        """Return all tools, in order of registration, a parent's first."""
        own = tuple(self._tools.values())
        return (self._parent.list() if self._parent else ()) + tuple(entry.tool for entry in own)

    def names(self) -> tuple[str, ...]:
        """Return all names, in order of registration."""
        return tuple(tool.name for tool in self.list())

    def describe(self) -> Sequence[JsonObject]:
        """Describe all tools for prompts."""
        return [tool.describe() for tool in self.list()]

    def on_close(self, close: Callable[[], None]) -> None:
        """Add a function that `close` calls, such as one that ends a session of the tools."""
        self._closers.append(close)

    def close(self) -> None:
        """Close what the tools hold open, newest first; a parent stays open. May be called
        twice."""
        while self._closers:
            with contextlib.suppress(Exception):  # one failure must not keep the others open
                self._closers.pop()()


def name_missing_tool(message: str) -> str | None:
    """Return the tool that a message of `describe_missing` names; None for another message."""
    found = _MISSING.search(message)
    return found[1] if found else None


def _check_tool(tool: Tool) -> RegisteredTool:
    named = f"tool {tool.name!r}"
    if not _NAME.fullmatch(tool.name):
        raise ConfigError(f"{named}: a name is 1 to 64 letters, digits, '_', '.' and '-'")
    _check_limits(tool, named)
    inputs = compile_schema(tool.input_schema, f"{named}: input_schema")
    outputs = compile_schema(tool.output_schema, f"{named}: output_schema")
    if tool.input_schema.get("type", "object") != "object":
        raise ConfigError(
            f"{named}: input_schema#/type: must be 'object', since arguments have names"
        )
    for index, example in enumerate(tool.examples):
        if found := find_errors(inputs, dict(example)):
            raise ConfigError(f"{named}: examples[{index}]: {found[0]}")
    if not tool.examples:  # plans and repairs show how a tool is called
        with contextlib.suppress(NoExample):
            made = make_example(tool.input_schema)
            tool = replace(tool, examples=(made,)) if isinstance(made, Mapping) else tool
    return RegisteredTool(tool, inputs, outputs)


def _check_limits(tool: Tool, named: str) -> None:
    seconds = tool.timeout_seconds
    if seconds is not None and not 0 < seconds <= MOST_TIMEOUT_SECONDS:
        allowed = f"more than 0 and at most {MOST_TIMEOUT_SECONDS} seconds"
        raise ConfigError(f"{named}: timeout_seconds={seconds}: {allowed}")
    characters = tool.max_output_characters
    if characters is not None and characters < 1:
        raise ConfigError(f"{named}: max_output_characters={characters}: at least 1")


asking_step: ContextVar[PlanStep | None] = ContextVar("asking_step", default=None)
"""The step for which the tool call in this context is made; None if there is none."""


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A call that waits for approval: the tool, a copy of its arguments, and the step that requests
    it, if any. `repeated`: it was under way when an earlier run was cut off, and may have been
    executed."""

    tool: Tool
    arguments: JsonMapping
    step: PlanStep | None = None
    repeated: bool = False

    def describe(self) -> list[str]:
        """Return what a person should know before approving, one line each, the arguments last."""
        lines = [f"Tool {self.tool.name}: {_join_lines(self.tool.description)}"]
        if self.step is not None:
            parent = self.step.parent_step_id
            named = f"step {self.step.step_id}"
            named = f"sub{named} of step {parent}" if parent else named
            lines.append(f"For {named}: {_join_lines(self.step.description)}")
        effects = (
            "yes, a call changes something outside" if self.tool.side_effects else "none declared"
        )
        lines.append(f"Side effects: {effects}")
        if self.repeated:
            lines.append(
                "It may have been carried out already: it was "
                "being called when the earlier run was cut off."
            )
        arguments = json.dumps(dict(self.arguments), ensure_ascii=False)
        return [*lines, f"Arguments: {arguments}"]


def _join_lines(text: str) -> str:
    """Put a text on one line, so that none of it looks like a line of its own."""
    return " ".join(text.split())


Approve = Callable[[ApprovalRequest], bool]


@contextlib.contextmanager
def on_behalf_of(step: PlanStep) -> Iterator[None]:
    """Mark the tool calls in this block as made for a step, whatever lies between its worker and
    the tool."""
    token = asking_step.set(step)
    try:
        yield
    finally:
        asking_step.reset(token)
