"""The usage of a run by place: tokens, seconds and money; repairs, waits, and prompts that begin
like an earlier one."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from typing import TypeVar

from aeon.domain.refinement import RepairRecord
from aeon.domain.request import Usage
from aeon.domain.result import RunResult, TokenUsage
from aeon.domain.values import Value
from aeon.report.record import Call, Line, Record

TOOL = "tool"
"""What stands among the names of calls for calls of tools."""
K = TypeVar("K")


class Spending(Value):
    """The usage of requests and tools. `seconds` are added up, waits for retries included: parallel
    work counts twice. `cost` is None where something has no known price."""

    requests: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    seconds: float = 0.0
    cost: float | None = 0.0

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens


class RepairRate(Value):
    """How many of the `answers` broke their schema: `repaired` could be repaired, `unrecoverable`
    could not. `rate` is the share of both, in [0, 1]."""

    answers: int
    repaired: int
    unrecoverable: int
    rate: float


class RetryWait(Value):
    """Requests that were sent again after an error of one class: how often, and the seconds in
    which one or more of them waited; parallel waits count once."""

    times: int
    seconds: float


class PrefixShare(Value):
    """The characters of prompts from pass 2 on that repeat the beginning of a prompt sent before in
    the run. `share` is None where no such prompt is known."""

    characters: int = 0
    repeated: int = 0
    share: float | None = None


@dataclass(frozen=True, slots=True)
class SpendingByPlace:
    """The usage of each place in a run: steps by most seconds first, calls, with `tool` for tools,
    by most tokens first."""

    by_pass: dict[int, Spending] = field(default_factory=dict)
    by_phase: dict[str, Spending] = field(default_factory=dict)
    by_step: dict[str, Spending] = field(default_factory=dict)
    by_call: dict[str, Spending] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Charge:
    """The usage of one request or one tool call, and its place."""

    pass_number: int
    phase: str
    step_id: str | None
    call: str
    spent: Spending


def spend(record: Record) -> SpendingByPlace:
    """Add up the usage of each place. Without a journal only the result's figures by pass and call
    are known."""
    if not record.events:
        return _spend_of_result(record.result)
    charges = [*map(_charge_request, record.calls), *map(_charge_tool, _tool_calls(record))]
    by_step = _group(charges, lambda charge: charge.step_id)
    by_call = _group(charges, lambda charge: charge.call)
    return SpendingByPlace(
        by_pass=_group(charges, lambda charge: charge.pass_number),
        by_phase=_group(charges, lambda charge: charge.phase),
        by_step=dict(sorted(by_step.items(), key=lambda item: -item[1].seconds)),
        by_call=dict(sorted(by_call.items(), key=lambda item: -item[1].tokens)),
    )


def _spend_of_result(result: RunResult) -> SpendingByPlace:
    usage = result.usage
    seconds = result.timings.seconds_by_call
    return SpendingByPlace(
        by_pass={number: _of_usage(used, 0.0, used.cost) for number, used in usage.by_pass.items()},
        by_call={
            name: _of_usage(used, seconds.get(name, 0.0), used.cost)
            for name, used in usage.by_call.items()
        },
    )


def _charge_request(call: Call) -> _Charge:
    spent = _of_usage(call.usage, call.seconds, call.cost)
    return _Charge(call.pass_number, call.phase, call.step_id, call.call, spent)


def _tool_calls(record: Record) -> Iterator[Line]:
    return (line for line in record.events if line["event"] == "tool_called")


def _charge_tool(line: Line) -> _Charge:
    site = line["site"]
    spent = Spending(tool_calls=1, seconds=float(line["result"].get("seconds") or 0.0))
    return _Charge(site["pass_number"], site["phase"], site["step_id"], TOOL, spent)


def _group(charges: Iterable[_Charge], key_of: Callable[[_Charge], K | None]) -> dict[K, Spending]:
    grouped: defaultdict[K, list[Spending]] = defaultdict(list)
    for charge in charges:
        if (key := key_of(charge)) is not None:
            grouped[key].append(charge.spent)
    return {key: _add_up(spent) for key, spent in grouped.items()}


def _add_up(spent: Sequence[Spending]) -> Spending:
    costs = [one.cost for one in spent]
    return Spending(
        requests=sum(one.requests for one in spent),
        tool_calls=sum(one.tool_calls for one in spent),
        input_tokens=sum(one.input_tokens for one in spent),
        output_tokens=sum(one.output_tokens for one in spent),
        cached_tokens=sum(one.cached_tokens for one in spent),
        cache_write_tokens=sum(one.cache_write_tokens for one in spent),
        seconds=sum(one.seconds for one in spent),
        cost=None if None in costs else sum(filter(None, costs)),
    )


def _of_usage(usage: Usage | TokenUsage, seconds: float, cost: float | None) -> Spending:
    return Spending(
        requests=usage.requests,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        seconds=seconds,
        cost=cost,
    )


def repair_rates(record: Record) -> tuple[dict[str, RepairRate], dict[str, RepairRate]]:
    """Return how often answers were repaired, by call and by the model that gave them, the highest
    rate first. Without a journal every request counts as an answer, and models are unknown."""
    first = [call for call in record.calls if call.attempt == 0 and call.error is None]
    models = {(call.call, call.cycle): call.model for call in first}
    repairs = record.result.repairs
    by_call = [(one.call, one) for one in repairs]
    by_model = [(models.get((one.call, one.cycle), ""), one) for one in repairs]
    answers_by_model = Counter(call.model for call in first)
    return _rates(_count_answers(record, first), by_call), _rates(answers_by_model, by_model)


def _count_answers(record: Record, first: Sequence[Call]) -> Mapping[str, int]:
    """Count the answers of each kind of call, without repairs."""
    if record.events:
        return Counter(call.call for call in first)
    used = record.result.usage.by_call
    return {name: usage.requests for name, usage in used.items() if name != "repair"}


def _rates(
    asked: Mapping[str, int], repairs: Iterable[tuple[str, RepairRecord]]
) -> dict[str, RepairRate]:
    found = Counter((name, repair.outcome) for name, repair in repairs)
    rates = {}
    for name, answers in asked.items():
        repaired = found[name, "repaired"]
        unrecoverable = found[name, "unrecoverable"]
        rate = min(1.0, round((repaired + unrecoverable) / max(1, answers), 3))
        rates[name] = RepairRate(
            answers=answers, repaired=repaired, unrecoverable=unrecoverable, rate=rate
        )
    return dict(sorted(rates.items(), key=lambda item: -item[1].rate))


def find_waits(record: Record) -> dict[str, RetryWait]:
    """Return the waits by the class of their error, most seconds first."""
    waited: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for line in record.events:
        if line["event"] == "retry_scheduled":
            begun = datetime.fromisoformat(line["time"]).timestamp()
            waited[str(line["error"]).partition(":")[0]].append(
                (begun, begun + float(line["seconds"]))
            )
    found = {
        kind: RetryWait(times=len(spans), seconds=round(_add_up_spans(spans), 3))
        for kind, spans in waited.items()
    }
    return dict(sorted(found.items(), key=lambda item: -item[1].seconds))


def _add_up_spans(spans: Iterable[tuple[float, float]]) -> float:
    """Return the time covered by at least one span."""
    seconds = 0.0
    until = float("-inf")
    for begin, end in sorted(spans):
        seconds += max(0.0, end - max(begin, until))
        until = max(until, end)
    return seconds


def measure_prefixes(calls: Iterable[Call]) -> PrefixShare:
    """Measure how much of the prompts from pass 2 on repeats the beginning of an earlier one. A
    prompt is its messages, one after another."""
    characters = 0
    repeated = 0
    # Prompts grow and share most of their lines: each line is held once, in the order of its
    # prompts.
    earlier: list[list[str]] = []
    known: dict[str, str] = {}
    for call in calls:
        request = call.request
        if request is None:
            continue
        text = "\n".join(str(message.get("content") or "") for message in request["messages"])
        prompt = [known.setdefault(line, line) for line in text.split("\n")]
        if call.pass_number >= 2:
            characters += len(text)
            # The longest common prefix is shared with a neighbour in sorted order.
            place = bisect_left(earlier, prompt)
            near = earlier[max(0, place - 1) : place + 1]
            repeated += max((_common(prompt, other) for other in near), default=0)
        insort(earlier, prompt)
    share = round(repeated / characters, 3) if characters else None
    return PrefixShare(characters=characters, repeated=repeated, share=share)


def _is_same(pair: tuple[str, str]) -> bool:
    return pair[0] == pair[1]


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Count the characters that two texts, given by their lines, have in common at their
    beginning."""
    characters = 0
    for line, its in zip(one, other, strict=False):
        if line != its:
            return characters + sum(1 for _ in takewhile(_is_same, zip(line, its, strict=False)))
        characters += len(line) + 1
    return characters - 1  # the shorter text ends without a line feed
