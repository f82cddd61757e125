"""What a run used, and where: tokens, seconds and money; repairs, waits, and prompts that begin as an earlier one."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

from aeon.domain.refinement import RepairRecord
from aeon.domain.result import TokenUsage
from aeon.domain.values import Value
from aeon.report.record import Call, Line, Record

TOOL = "tool"
"""What stands among the names of calls for calls of tools."""
_Key = TypeVar("_Key", bound=Hashable)


class Spending(Value):
    """What requests and tools took. `seconds` are theirs added up, waits for retries included: what ran side by side
    counts twice. `cost` is None where something has no known price."""

    requests: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    seconds: float = 0.0
    cost: float | None = 0.0

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Spending) -> Spending:
        ours, theirs = dict(self), dict(other)
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Spending(**{name: ours[name] + theirs[name] for name in ours if name != "cost"}, cost=cost)


class RepairRate(Value):
    """Of so many answers, those that broke their schema: `repaired` were put right, `unrecoverable` were not. `rate` is
    the share of both, in [0, 1]."""

    answers: int
    repaired: int
    unrecoverable: int
    rate: float


class Waiting(Value):
    """Requests that were sent again after an error of one class: how often, and the seconds waited before."""

    times: int = 0
    seconds: float = 0.0


class PrefixShare(Value):
    """Of the characters of prompts from pass 2 on, those that repeat the beginning of a prompt sent before in the run.
    `share` is None where no such prompt is known."""

    characters: int = 0
    repeated: int = 0
    share: float | None = None


def spend_by_pass(record: Record) -> dict[int, Spending]:
    """By the number of the pass. Without a journal as the result has it, without seconds."""
    if not record.events:
        return {number: _of_usage(usage) for number, usage in record.result.usage.by_pass.items()}
    return _add_up(record, lambda call: call.pass_number, lambda site: int(site["pass_number"]))


def spend_by_phase(record: Record) -> dict[str, Spending]:
    """By phase; empty without a journal."""
    return _add_up(record, lambda call: call.phase, lambda site: str(site["phase"]))


def spend_by_step(record: Record) -> dict[str, Spending]:
    """By the id of the step that it was for, most seconds first; empty without a journal."""
    found = _add_up(record, lambda call: call.step_id, lambda site: site["step_id"])
    named = {step: spent for step, spent in found.items() if step is not None}
    return dict(sorted(named.items(), key=lambda item: -item[1].seconds))


def spend_by_call(record: Record) -> dict[str, Spending]:
    """By the name of the call, with `tool` for tools, most tokens first. Without a journal as the result has it."""
    if not record.events:
        usage, seconds = record.result.usage.by_call, record.result.timings.seconds_by_call
        found = {name: _of_usage(used, seconds.get(name, 0.0)) for name, used in usage.items()}
    else:
        found = _add_up(record, lambda call: call.call, lambda _: TOOL)
    return dict(sorted(found.items(), key=lambda item: -item[1].tokens))


def _add_up(record: Record, of_call: Callable[[Call], _Key], of_site: Callable[[Line], _Key]) -> dict[_Key, Spending]:
    found: defaultdict[_Key, Spending] = defaultdict(Spending)
    for call in record.calls:
        found[of_call(call)] += _of_call(call)
    for line in record.events:
        if line["event"] == "tool_called":
            seconds = float(line["result"].get("seconds") or 0.0)
            found[of_site(line["site"])] += Spending(tool_calls=1, seconds=seconds)
    return dict(found)


def _of_call(call: Call) -> Spending:
    used = call.usage
    tokens = {name: getattr(used, name) for name in ("input_tokens", "output_tokens", "cached_tokens")}
    return Spending(requests=used.requests, seconds=call.seconds, cost=call.cost, **tokens)


def _of_usage(usage: TokenUsage, seconds: float = 0.0) -> Spending:
    kept = {"requests", "input_tokens", "output_tokens", "cached_tokens", "cost"}
    return Spending(seconds=seconds, **usage.model_dump(include=kept))


def repairs_by_call(record: Record) -> dict[str, RepairRate]:
    """By the name of the call whose answers were repaired; without a journal every request counts as an answer."""
    asked: Mapping[str, int] = Counter(call.call for call in _first_answers(record))
    if not record.events:
        asked = {name: usage.requests for name, usage in record.result.usage.by_call.items() if name != "repair"}
    return _rates(asked, ((repair.call, repair) for repair in record.result.repairs))


def repairs_by_model(record: Record) -> dict[str, RepairRate]:
    """By the model that gave the answer; empty without a journal."""
    first = _first_answers(record)
    model_of = {(call.call, call.cycle, call.step_id): call.model for call in first}
    repairs = ((model_of.get((each.call, each.cycle, each.step_id)), each) for each in record.result.repairs)
    return _rates(Counter(call.model for call in first), ((model, each) for model, each in repairs if model))


def _first_answers(record: Record) -> list[Call]:
    return [call for call in record.calls if call.attempt == 0 and call.error is None]


def _rates(asked: Mapping[str, int], repairs: Iterable[tuple[str, RepairRecord]]) -> dict[str, RepairRate]:
    found = Counter((name, repair.outcome) for name, repair in repairs)
    rates = {}
    for name, answers in asked.items():
        repaired, unrecoverable = found[name, "repaired"], found[name, "unrecoverable"]
        rate = min(1.0, round((repaired + unrecoverable) / answers, 3)) if answers else 0.0
        rates[name] = RepairRate(answers=answers, repaired=repaired, unrecoverable=unrecoverable, rate=rate)
    return dict(sorted(rates.items(), key=lambda item: -item[1].rate))


def find_waits(record: Record) -> dict[str, Waiting]:
    """By the class of the error that was waited after, most seconds first."""
    found: defaultdict[str, Waiting] = defaultdict(Waiting)
    for line in record.events:
        if line["event"] == "retry_scheduled":
            kind = str(line["error"]).partition(":")[0]
            before = found[kind]
            found[kind] = Waiting(times=before.times + 1, seconds=before.seconds + float(line["seconds"]))
    return dict(sorted(found.items(), key=lambda item: -item[1].seconds))


def measure_prefixes(calls: Iterable[Call]) -> PrefixShare:
    """How much of the prompts from pass 2 on repeats the beginning of an earlier one. A prompt is its messages, one
    after the other."""
    characters, repeated = 0, 0
    earlier: list[str] = []
    for call in calls:
        if call.request is None:
            continue
        prompt = "\n".join(str(message.get("content") or "") for message in call.request["messages"])
        if call.pass_number >= 2:
            characters += len(prompt)
            # The longest common prefix is one with a neighbour in sorted order.
            place = bisect_left(earlier, prompt)
            near = earlier[max(0, place - 1) : place + 1]
            repeated += max((_common(prompt, other) for other in near), default=0)
        insort(earlier, prompt)
    share = round(repeated / characters, 3) if characters else None
    return PrefixShare(characters=characters, repeated=repeated, share=share)


def _common(one: str, other: str) -> int:
    sizes = range(1, min(len(one), len(other)) + 1)
    return bisect_left(sizes, True, key=lambda size: one[:size] != other[:size])
