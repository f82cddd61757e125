"""The requests, tool calls and waits of a run in order of time, and those on its critical path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate

from aeon.report.record import Call, Line, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A request, a tool call, or a wait before a request is sent again, in the order of their
    beginning. `key` is its anchor on the page (empty for a wait), `repairs` the call whose answer
    it repairs; times are seconds since the run began."""

    key: str
    kind: str
    label: str
    pass_number: int
    phase: str
    step_id: str | None
    start: float
    end: float
    failed: bool
    source: Call | Line
    repairs: str = ""


def list_items(record: Record) -> list[Item]:
    """Return the requests, tool calls and waits of a run."""
    began = datetime.fromisoformat(record.result.timings.start_time)
    items = [*_requests(record.calls, began), *_tools_and_waits(record.events, began)]
    return sorted(items, key=lambda item: (item.start, item.end))


def _requests(calls: Sequence[Call], began: datetime) -> Iterator[Item]:
    first = {_cycle_of(call): call.call for call in calls if not call.attempt}
    for call in calls:
        repairs = first.get(_cycle_of(call), "") if call.attempt else ""
        step = f" {call.step_id}" if call.step_id else ""
        repair = " (repair)" if call.attempt else ""
        number = f" (round {call.round + 1})" if call.round else ""
        start = (datetime.fromisoformat(call.started) - began).total_seconds()
        yield Item(
            key=f"call-{call.number}",
            kind="repair" if call.attempt else call.call,
            label=f"{repairs or call.call}{step}{number}{repair}",
            pass_number=call.pass_number,
            phase=call.phase,
            step_id=call.step_id,
            start=start,
            end=start + call.seconds,
            failed=call.error is not None,
            source=call,
            repairs=repairs,
        )


def _cycle_of(call: Call) -> tuple[int, str, int, str | None]:
    """Return the key that a call and its repairs share."""
    return call.pass_number, call.phase, call.cycle, call.step_id


def _tools_and_waits(events: Sequence[Line], began: datetime) -> Iterator[Item]:
    number = 0
    for line in events:
        if line["event"] == "tool_called":
            number += 1
            yield _tool(line, number, began)
        elif line["event"] == "retry_scheduled":
            yield _wait(line, began)


def _tool(line: Line, number: int, began: datetime) -> Item:
    result = line["result"]
    end = _seconds_since(began, line)
    return Item(
        key=f"tool-{number}",
        kind="tool",
        label=f"{result['tool']} {line['step_id']}",
        pass_number=line["site"]["pass_number"],
        phase=line["site"]["phase"],
        step_id=line["site"]["step_id"],
        start=end - float(result["seconds"] or 0),
        end=end,
        failed=bool(result["error"]),
        source=line,
    )


def _wait(line: Line, began: datetime) -> Item:
    start = _seconds_since(began, line)
    return Item(
        key="",
        kind="wait",
        label=f"wait after {line['error']}",
        pass_number=line["site"]["pass_number"],
        phase=line["site"]["phase"],
        step_id=line["site"]["step_id"],
        start=start,
        end=start + float(line["seconds"]),
        failed=False,
        source=line,
    )


def _seconds_since(began: datetime, line: Line) -> float:
    return (datetime.fromisoformat(line["time"]) - began).total_seconds()


def find_critical(items: Sequence[Item]) -> list[Item]:
    """Return the chain of items that the run waited for: the last to end, before it the last that
    had ended when it began, and so on to the first; in order of time."""
    chain: list[Item] = []
    horizon = float("inf")
    for item in sorted(items, key=lambda each: each.end, reverse=True):
        if item.end <= horizon + 1e-6:
            chain.append(item)
            horizon = item.start
    return chain[::-1]


def count_side_by_side(items: Sequence[Item]) -> int:
    """Return the most items under way at once."""
    marks = sorted(mark for item in items for mark in ((item.start, 1), (item.end, -1)))
    return max(accumulate(step for _, step in marks), default=0)
