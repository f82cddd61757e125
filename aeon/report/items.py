"""The requests, tool calls and waits of a run in order of time, and those that the run waited for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate

from aeon.report.record import Call, Line, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A request, a tool call, or a wait before a request is sent again, in the order of their beginning. `key` is its
    anchor on the page (empty for a wait), `repairs` the call whose answer it repairs;
    times are seconds since the run began."""

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
    """What a run spent its time on."""
    began = datetime.fromisoformat(record.result.timings.start_time)
    items = [*_requests(record.calls, began), *_tools_and_waits(record.events, began)]
    return sorted(items, key=lambda item: (item.start, item.end))


def _requests(calls: Sequence[Call], began: datetime) -> Iterator[Item]:
    first = {
        (call.pass_number, call.phase, call.cycle, call.step_id): call.call
        for call in calls
        if not call.attempt
    }
    for call in calls:
        repairs = (
            first.get((call.pass_number, call.phase, call.cycle, call.step_id), "")
            if call.attempt
            else ""
        )
        name = repairs or call.call
        start = (datetime.fromisoformat(call.started) - began).total_seconds()
        yield Item(
            key=f"call-{call.number}",
            kind=call.call if call.attempt == 0 else "repair",
            label=name
            + (f" {call.step_id}" if call.step_id else "")
            + (" (repair)" if call.attempt else ""),
            pass_number=call.pass_number,
            phase=call.phase,
            step_id=call.step_id,
            start=start,
            end=start + call.seconds,
            failed=call.error is not None,
            source=call,
            repairs=repairs,
        )


def _tools_and_waits(events: Sequence[Line], began: datetime) -> Iterator[Item]:
    number = 0
    for line in events:
        if line["event"] not in ("tool_called", "retry_scheduled"):
            continue
        site, told = line["site"], (datetime.fromisoformat(line["time"]) - began).total_seconds()
        is_tool = line["event"] == "tool_called"
        number += is_tool
        seconds = float(line["result"]["seconds"] or 0) if is_tool else float(line["seconds"])
        yield Item(
            key=f"tool-{number}" if is_tool else "",
            kind="tool" if is_tool else "wait",
            label=f"{line['result']['tool']} {line['step_id']}"
            if is_tool
            else f"wait after {line['error']}",
            pass_number=site["pass_number"],
            phase=site["phase"],
            step_id=site["step_id"],
            start=told - seconds if is_tool else told,
            end=told if is_tool else told + seconds,
            failed=bool(is_tool and line["result"]["error"]),
            source=line,
        )


def find_critical(items: Sequence[Item]) -> list[Item]:
    """The chain of items that the run waited for: the last to end, before it the last that had ended when it began,
    and so on to the first; in order of time."""
    chain: list[Item] = []
    horizon = float("inf")
    for item in sorted(items, key=lambda each: each.end, reverse=True):
        if item.end <= horizon + 1e-6:
            chain.append(item)
            horizon = item.start
    return chain[::-1]


def count_side_by_side(items: Sequence[Item]) -> int:
    """The most items that were under way at once."""
    marks = sorted(mark for item in items for mark in ((item.start, 1), (item.end, -1)))
    return max(accumulate(step for _, step in marks), default=0)
