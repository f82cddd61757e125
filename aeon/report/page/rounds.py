"""The rounds in which the model called tools for a step, for a page and a terminal."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from aeon.domain.history import StepResult, ToolCallRecord
from aeon.report.items import Item
from aeon.report.record import Call, Line
from aeon.report.words import count_noun, format_took, one_line, shorten
from aeon.schema.equality import canonical

_LONGEST_ARGUMENTS = 400
_LONGEST_RESULT = 600
_LONGEST_ON_A_LINE = 100
MOST_CALLS_SHOWN = 12
"""Calls of one round that are shown in it; the list of calls has all."""
_ENDS = {
    "max_tool_rounds": "asked to finish after the last round (execution.max_tool_rounds)",
    "budget": "asked to finish, since the budget had no cycle for another round",
    "repeated": "asked to finish, since a call was asked for a third time",
    "error": "the next request failed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundCall:
    """A call that the model requested. `anchor` is the tool call on the page with its answer, the
    first equal one where it is `repeated`; "" where no journal has it. `seconds` is None for a call
    that was not made."""

    tool: str
    arguments: str
    result: str = ""
    characters: int | None = None
    seconds: float | None = None
    error: str = ""
    repeated: bool = False
    approved: bool = False
    anchor: str = ""

    @property
    def outcome(self) -> str:
        """The outcome, in a few words."""
        if self.error:
            return "failed"
        if self.repeated:
            return "answered from the first equal call"
        if self.characters is None:
            return "no result"
        return count_noun(self.characters, "character")

    def describe(self) -> str:
        """Describe the call on one line."""
        given = one_line(self.arguments, _LONGEST_ON_A_LINE)
        outcome = f"failed: {one_line(self.error, _LONGEST_ON_A_LINE)}" if self.error else ""
        allowed = ", approved by a person" if self.approved else ""
        return f"{one_line(self.tool, 60)} {given} ({outcome or self.outcome}{allowed})"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundView:
    """A round, counted from 1: the request that asked for its calls, and the calls; none if the
    model gave neither calls nor an answer."""

    number: int
    asked_by: str
    calls: tuple[RoundCall, ...]

    @property
    def shown(self) -> tuple[RoundCall, ...]:
        """The calls to show."""
        return self.calls[:MOST_CALLS_SHOWN]

    def describe(self, *, timed: bool = True) -> str:
        """Describe the round on one line, `timed` with the seconds of its longest call."""
        if not self.calls:
            return f"round {self.number}: neither calls nor an answer, asked again"
        spent = [call.seconds for call in self.calls if call.seconds is not None and timed]
        took = f" in {format_took(max(spent))}" if spent else ""
        named = "; ".join(call.describe() for call in self.calls[:3])
        more = f"; and {len(self.calls) - 3} more" if len(self.calls) > 3 else ""
        return f"round {self.number}: {count_noun(len(self.calls), 'call')}{took}: {named}{more}"


@dataclass(frozen=True, slots=True)
class StepRounds:
    """The rounds of a step; `end` explains why there were no more, where the model did not end
    them."""

    rounds: tuple[RoundView, ...]
    end: str = ""


@dataclass(frozen=True, slots=True)
class _StepItems:
    """The journals' entries for a step's rounds: the requests by their round, the tool calls by
    round and number."""

    requests: Mapping[int, Item]
    called: Mapping[tuple[int, int], Item]

    @property
    def count(self) -> int:
        """Count the rounds with calls."""
        return max((number + 1 for number, _ in self.called), default=0)


def view_rounds(results: Mapping[str, StepResult], items: Sequence[Item]) -> dict[str, StepRounds]:
    """Return the rounds of the steps of a pass, by step; `items` are its requests and tool calls. A
    step without a result, as in a killed run, has those in the journals."""
    by_step: defaultdict[str, list[Item]] = defaultdict(list)
    for item in items:
        if item.step_id:
            by_step[item.step_id].append(item)
    found = {}
    for step_id in dict.fromkeys((*results, *by_step)):
        result = results.get(step_id)
        used = result.tool_use if result else None
        journal = _read_journal(by_step[step_id])
        asked: Mapping[int, Sequence[ToolCallRecord]] = dict(enumerate(used.rounds if used else ()))
        if result is None:
            asked = dict(_list_open_rounds(journal))
        rounds = tuple(_view_step(asked, journal))
        if rounds:
            found[step_id] = StepRounds(rounds, _ENDS.get(used.ended_by, "") if used else "")
    return found


def _read_journal(items: Sequence[Item]) -> _StepItems:
    requests = {
        item.source.round: item
        for item in items
        if isinstance(item.source, Call) and not item.source.attempt
    }
    called = {}
    for item in items:
        if not isinstance(item.source, Call) and item.kind == "tool" and _number_of(item.source):
            called[int(item.source["site"].get("round", 0)), _number_of(item.source)] = item
    return _StepItems(requests, called)


def _number_of(line: Line) -> int:
    return int(line.get("number") or 0)


def _list_open_rounds(journal: _StepItems) -> Iterator[tuple[int, Sequence[ToolCallRecord]]]:
    """Yield the rounds of a step without a result, up to the last that requested calls. A round
    without calls is one that was asked again, if its response is known."""
    asking = [number for number in journal.requests if _read_asked(journal, number)]
    for number in range(max(journal.count, max(asking, default=-1) + 1)):
        asked = _list_asked(journal, number)
        if asked or _read_response(journal, number) is not None:
            yield number, asked


def _list_asked(journal: _StepItems, number: int) -> list[ToolCallRecord]:
    """Return the calls of a round of a step without a result: as the model requested them, else
    those made."""
    if asked := _read_asked(journal, number):
        return asked
    made = sorted((place, item) for (each, place), item in journal.called.items() if each == number)
    return [
        ToolCallRecord(tool=result["tool"], arguments=_write(result["arguments"]))
        for result in (_result_of(item) for _, item in made)
    ]


def _read_asked(journal: _StepItems, number: int) -> list[ToolCallRecord]:
    text = _read_response(journal, number)
    try:
        calls = json.loads(text or "null")["tool_calls"]
        return [
            ToolCallRecord(tool=one["tool"], arguments=_write(one["arguments"])) for one in calls
        ]
    except (LookupError, TypeError, ValueError, RecursionError):
        return []


def _read_response(journal: _StepItems, number: int) -> str | None:
    item = journal.requests.get(number)
    return item.source.text if item and isinstance(item.source, Call) else None


def _write(arguments: object) -> str:
    is_text = isinstance(arguments, str)
    return str(arguments) if is_text else json.dumps(arguments, ensure_ascii=False)


def _result_of(item: Item) -> Line:
    assert not isinstance(item.source, Call)
    result: Line = item.source["result"]
    return result


def _view_step(
    asked: Mapping[int, Sequence[ToolCallRecord]], journal: _StepItems
) -> Iterator[RoundView]:
    first: dict[Hashable, RoundCall] = {}
    for number, calls in asked.items():
        request = journal.requests.get(number)
        views = []
        for place, call in enumerate(calls, 1):
            key = call.tool, canonical(call.arguments)
            view = _view_call(call, journal.called.get((number, place)), first.get(key))
            first.setdefault(key, view)
            views.append(view)
        yield RoundView(
            number=number + 1, asked_by=request.key if request else "", calls=tuple(views)
        )


def _view_call(call: ToolCallRecord, item: Item | None, first: RoundCall | None) -> RoundCall:
    if item is None and first is not None:
        return replace(first, repeated=True, seconds=None, approved=False)
    view = RoundCall(
        tool=shorten(call.tool, 60),
        arguments=shorten(call.arguments, _LONGEST_ARGUMENTS),
        characters=call.characters or None,
        error=shorten(call.error or "", _LONGEST_RESULT),
        repeated=call.repeated,
    )
    if item is None:
        return view
    result = _result_of(item)
    output = _write(result["output"])
    return replace(
        view,
        result=shorten(output, _LONGEST_RESULT) if result["output"] is not None else "",
        characters=None if result["error"] else len(output),
        seconds=float(result["seconds"] or 0),
        error=shorten(str(result["error"] or ""), _LONGEST_RESULT),
        approved=bool(result.get("approved")),
        anchor=item.key,
    )
