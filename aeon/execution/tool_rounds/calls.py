"""The calls of tools that a model asks for while it carries a step out: each is made once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from aeon.domain.checks import ToolErrorKind, ToolResult
from aeon.domain.errors import PersonAwaited
from aeon.domain.history import ToolCallRecord
from aeon.domain.request import ToolCall
from aeon.llm.extract import ExtractError, read_json
from aeon.schema.equality import canonical
from aeon.tools.invoke import cut_text

MOST_CALLS = 32
"""Calls that are made in one round; what a model asks for beyond them is refused."""
MOST_REPEATS = 2
"""A call is answered in so many rounds; in the next one that asks for it, it ends the rounds."""
_LONGEST_SHOWN = 2_000

MakeCall = Callable[[str, dict[str, Any]], ToolResult]


class MadeCall(NamedTuple):
    """What came of a call that a model asked for."""

    call: ToolCall
    result: ToolResult
    repeated: bool = False

    def record(self) -> ToolCallRecord:
        """The call as the history has it."""
        return ToolCallRecord(
            tool=cut_text(self.call.tool, _LONGEST_SHOWN)[0],
            arguments=cut_text(self.call.arguments, _LONGEST_SHOWN)[0],
            characters=len(self.result.text),
            error=self.result.error,
            repeated=self.repeated,
        )


@dataclass
class _KnownCall:
    """The result of a call, and in how many rounds it was asked for."""

    result: ToolResult
    rounds: int = 0


@dataclass
class CallMaker:
    """Makes the calls of one step. A call with equal arguments is answered from the first of them;
    no tool but those `offered` is called. `make` calls a tool."""

    offered: tuple[str, ...]
    make: MakeCall
    _known: dict[Hashable, _KnownCall] = field(default_factory=dict)

    def make_round(self, calls: Sequence[ToolCall]) -> list[MadeCall]:
        """Make the calls of a round, one after another. Raises PersonAwaited once all have been
        tried: whoever approves later approves them together."""
        asked: set[Hashable] = set()
        made = []
        awaited: PersonAwaited | None = None
        for call in calls[:MOST_CALLS]:
            key = call.tool, canonical(call.arguments)
            is_known = key in self._known
            if not is_known:
                try:
                    self._known[key] = _KnownCall(self._make(call))
                except PersonAwaited as waits:
                    awaited = waits
                    continue
            if key not in asked:
                self._known[key].rounds += 1
            asked.add(key)
            made.append(MadeCall(call, self._known[key].result, is_known))
        if awaited is not None:
            raise awaited
        return [*made, *map(_refuse, calls[MOST_CALLS:])]

    def is_stuck(self) -> bool:
        """Whether a call was asked for in more rounds than it is answered in."""
        return any(answered.rounds > MOST_REPEATS for answered in self._known.values())

    def _make(self, call: ToolCall) -> ToolResult:
        if call.tool not in self.offered:
            shown = cut_text(call.tool, 100)[0]
            there_are = ", ".join(self.offered)
            return _fail(call, "unknown", f"there is no tool {shown!r}; there are {there_are}")
        try:
            arguments = read_json(call.arguments.strip() or "{}")
        except ExtractError as error:
            return _fail(call, "invalid_arguments", f"the arguments are not JSON: {error}")
        if not isinstance(arguments, dict):
            return _fail(call, "invalid_arguments", "the arguments are not a JSON object")
        return self.make(call.tool, arguments)


def _refuse(call: ToolCall) -> MadeCall:
    message = f"at most {MOST_CALLS} calls are made in one round: this one was not"
    return MadeCall(call, _fail(call, "refused", message))


def _fail(call: ToolCall, kind: ToolErrorKind, message: str) -> ToolResult:
    return ToolResult(tool=call.tool, arguments={}, error=message, error_kind=kind)
