"""The tool calls that a model requests during a step: each is made once."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from aeon.domain.checks import ToolErrorKind, ToolResult
from aeon.domain.history import ToolCallRecord
from aeon.domain.request import ToolCall
from aeon.domain.values import JsonObject
from aeon.llm.extract import ExtractError, read_json
from aeon.schema.equality import canonical
from aeon.tools.invoke import cut_text

MOST_CALLS = 32
"""Most calls made in one round; the model's further calls are refused."""
MOST_REPEATS = 2
"""Rounds in which an equal call is answered; the next round with it ends the rounds."""
_LONGEST_SHOWN = 2_000


class NewCall(NamedTuple):
    """A call to make: its number within its round, from 1."""

    number: int
    tool: str
    arguments: JsonObject


MakeCalls = Callable[[Sequence[NewCall]], Sequence[ToolResult]]


class MadeCall(NamedTuple):
    """The result of a call that a model requested."""

    call: ToolCall
    result: ToolResult
    repeated: bool = False

    def record(self) -> ToolCallRecord:
        """Return the call as stored in the history."""
        return ToolCallRecord(
            tool=cut_text(self.call.tool, _LONGEST_SHOWN)[0],
            arguments=cut_text(self.call.arguments, _LONGEST_SHOWN)[0],
            characters=len(self.result.text),
            error=self.result.error,
            repeated=self.repeated,
        )


@dataclass
class _KnownCall:
    """The result of a call, and in how many rounds it was requested."""

    result: ToolResult
    rounds: int = 0


class _AskedCall(NamedTuple):
    """A requested call: equal calls have an equal `key`. `new` is None for a call that cannot be
    made, for the reason in `problem`."""

    call: ToolCall
    key: Hashable
    new: NewCall | None = None
    problem: ToolResult | None = None


@dataclass
class CallMaker:
    """Makes the calls of one step. A call with equal arguments gets the result of the first one;
    only `offered` tools are called. `make` calls the tools."""

    offered: tuple[str, ...]
    make: MakeCalls
    _known: dict[Hashable, _KnownCall] = field(default_factory=dict)

    def make_round(self, calls: Sequence[ToolCall]) -> list[MadeCall]:
        """Return the calls of a round with their results, in order. Raises what `make` raises."""
        asked = [self._read(call, number) for number, call in enumerate(calls[:MOST_CALLS], 1)]
        first: dict[Hashable, _AskedCall] = {}
        for one in asked:
            if one.key not in self._known:
                first.setdefault(one.key, one)
        self._make_new(list(first.values()))
        for key in {one.key for one in asked}:
            self._known[key].rounds += 1
        made = [
            MadeCall(one.call, self._known[one.key].result, first.get(one.key) is not one)
            for one in asked
        ]
        return [*made, *map(_refuse, calls[MOST_CALLS:])]

    def is_stuck(self) -> bool:
        """Whether a call was requested in more rounds than it is answered in."""
        return any(answered.rounds > MOST_REPEATS for answered in self._known.values())

    def _make_new(self, first: Sequence[_AskedCall]) -> None:
        new = [one.new for one in first if one.new is not None]
        results = iter(self.make(new) if new else ())
        for one in first:
            self._known[one.key] = _KnownCall(one.problem or next(results))

    def _read(self, call: ToolCall, number: int) -> _AskedCall:
        as_written = call.tool, canonical(call.arguments)
        if call.tool not in self.offered:
            shown = cut_text(call.tool, 100)[0]
            there_are = ", ".join(self.offered)
            problem = _fail(call, "unknown", f"there is no tool {shown!r}; there are {there_are}")
            return _AskedCall(call, as_written, problem=problem)
        try:
            arguments = read_json(call.arguments.strip() or "{}")
        except ExtractError as error:
            why = str(error).removeprefix("not valid JSON: ")
            problem = _fail(call, "invalid_arguments", f"the arguments are not valid JSON: {why}")
            return _AskedCall(call, as_written, problem=problem)
        if not isinstance(arguments, dict):
            problem = _fail(call, "invalid_arguments", "the arguments are not a JSON object")
            return _AskedCall(call, as_written, problem=problem)
        # Two spellings of the same arguments are the same call.
        key = call.tool, canonical(json.dumps(arguments))
        return _AskedCall(call, key, NewCall(number, call.tool, arguments))


def _refuse(call: ToolCall) -> MadeCall:
    message = f"at most {MOST_CALLS} calls are made in one round: this one was not"
    return MadeCall(call, _fail(call, "refused", message))


def _fail(call: ToolCall, kind: ToolErrorKind, message: str) -> ToolResult:
    return ToolResult(tool=call.tool, arguments={}, error=message, error_kind=kind)
