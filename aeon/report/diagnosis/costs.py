"""Detectors of a run's spending and its causes: limits, shares of the budget, waits, repairs,
passes without gain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from aeon.domain.assessment import ComparedWithEarlier
from aeon.domain.values import JsonMapping
from aeon.report.diagnosis.finding import (
    WORDS,
    Evidence,
    Finding,
    Rank,
    Remedy,
    as_percent,
    name_passes,
)
from aeon.report.ending import estimate_cycles, estimate_passes, is_replay, raise_limits
from aeon.report.given import name_defaults
from aeon.report.items import Item, count_side_by_side
from aeon.report.record import Call, Line
from aeon.report.scores import NOTICEABLE, AssessedPass
from aeon.report.spending import RepairRate, Spending
from aeon.report.words import count_noun, format_took, shorten

_HALF = 0.5
_FEWEST_STEPS = 3
_FEWEST_CALLS = 6
_MOST_REPAIRS = 0.2
_LONGEST_WAIT = 0.1
_SLOW = 0.25
_SLOWER = 2.5
_SECONDS = 0.5  # what is shorter nobody waits for
_RESOURCES = {
    "ttl_expired": "TTL",
    "max_llm_calls": "TTL",
    "max_tokens": "tokens",
    "max_cost": "money",
    "max_seconds": "time",
}
"""The resource that a limit caps, by the reason that a run ended."""

_WAITING = "Waiting before retries"
_TTL_KEYS = frozenset({"ttl.limit", "ttl.base", "limits.max_llm_calls"})
_WEIGHT_OF_LIMIT = 35
_SET_BACK: Mapping[ComparedWithEarlier, str] = {
    "worse": "was found worse, and set back",
    "unknown": "could not be compared, and was set back",
}
_NAMES = {
    "task_profile": "The profile",
    "semantic_validation": "Reviews",
    "convergence": "The judge",
    "refinement": "Refinements",
    "repair": "Repairs",
    "tool": "Tools",
}


@dataclass(frozen=True)
class Share:
    """The part of a run that took a share, in (0, 1], of a resource: TTL, tokens, money or time."""

    what: str
    of: str
    share: float
    anchor: str


def find_limit(evidence: Evidence) -> Iterator[Finding]:
    """Find the TTL or the limit that ended the run."""
    reason = evidence.result.termination_reason
    if reason == "ttl_expired":
        yield _describe_ttl(evidence)
    elif reason == "max_passes":
        yield _describe_passes(evidence)
    elif reason.startswith("max_"):
        key = f"limits.{reason}"
        title = f"The limit `{key}` ended the run before it was done"
        yield _describe_limit(evidence, title, frozenset({key}), _WEIGHT_OF_LIMIT)


def _describe_passes(evidence: Evidence) -> Finding:
    """Describe the passes as the end of the run; the first cause where the plan took more, and
    steps were left."""
    result = evidence.result
    key = "limits.max_passes"
    most = result.configuration["limits"]["max_passes"]
    needed = estimate_passes(result)
    if most is not None and most < needed and "pending" in result.steps_left.values():
        title = f"The plan takes {count_noun(needed, 'pass')}, and `{key}` allowed {most}"
        return _describe_limit(evidence, title, frozenset({key}), 80)
    title = f"The limit `{key}` ended the run before it was done"
    return _describe_limit(evidence, title, frozenset({key}), _WEIGHT_OF_LIMIT)


def _describe_ttl(evidence: Evidence) -> Finding:
    """Describe the TTL as the end of the run; the first cause where the plan was expected to take
    more, and nothing was judged."""
    allocated = evidence.result.ttl.allocated
    expected = estimate_cycles(evidence.result)
    planned = evidence.passes[0].steps
    has_subplans = any(step.parent_step_id for step in planned)
    is_judged = bool(evidence.patterns.assessed)
    if planned and not has_subplans and not is_judged and allocated < expected:
        title = (
            f"The TTL of {allocated} was too small for the plan, "
            f"which was expected to take {count_noun(expected, 'cycle')}"
        )
        return _describe_limit(evidence, title, _TTL_KEYS, 80)
    title = "The TTL ended the run before it was done"
    return _describe_limit(evidence, title, _TTL_KEYS, _WEIGHT_OF_LIMIT)


def _describe_limit(evidence: Evidence, title: str, keys: frozenset[str], weight: float) -> Finding:
    is_open = weight > _WEIGHT_OF_LIMIT or is_rising(evidence.patterns.assessed)
    raised = tuple(raise_limits(evidence.result))
    return Finding(
        title=title,
        rank="cause",
        weight=max(50.0, weight) if is_open else weight,
        advice=name_defaults(evidence.result, keys),
        anchor="budget",
        remedies=(Remedy("To continue with higher limits", raised),) if is_open and raised else (),
    )


def is_rising(assessed: tuple[AssessedPass, ...]) -> bool:
    """Check whether the last assessed pass gained on every earlier one, the best among them; after
    a single pass a gain is still possible."""
    return all(_has_gained(one, assessed[-1]) for one in assessed[:-1])


def _has_gained(before: AssessedPass, after: AssessedPass) -> bool:
    # Rounded, since 0.72 - 0.7 is less than 0.02.
    rises = (
        round(after.scores[name] - score, 6)
        for name, score in before.scores.items()
        if name in after.scores
    )
    newly_met = (after.criteria.get(name) and not met for name, met in before.criteria.items())
    return any(rise >= NOTICEABLE for rise in rises) or any(newly_met)


def find_eaten_budget(evidence: Evidence) -> Iterator[Finding]:
    """Find what took over half of the budget that ended the run."""
    resource = _RESOURCES.get(evidence.result.termination_reason)
    shares = [one for one in _shares(evidence) if one.of == resource]
    if not shares:
        return
    # The step with the wait has at least the wait's share; the wait is the cause.
    most = max(shares, key=lambda one: (one.what == _WAITING, one.share))
    raised = tuple(raise_limits(evidence.result))
    yield Finding(
        title=f"{most.what} took {as_percent(most.share)} of the {most.of}"
        ", which then ended the run",
        rank="cause",
        weight=76,
        anchor=most.anchor,
        remedies=(Remedy("To continue with higher limits", raised),) if raised else (),
    )


def find_large_shares(evidence: Evidence) -> Iterator[Finding]:
    """Find a step, a kind of call or the planning with over half of the tokens, the money, the time
    or the TTL."""
    if len(evidence.record.calls) < _FEWEST_CALLS:
        return  # of so few calls one always has a large share
    ending = _RESOURCES.get(evidence.result.termination_reason)
    by_what: defaultdict[str, list[Share]] = defaultdict(list)
    for one in _shares(evidence):
        if one.of != ending and one.what != _WAITING:  # which has a detector of its own
            by_what[one.what].append(one)
    for what, shares in by_what.items():
        parts = [f"{as_percent(one.share)} of the {one.of}" for one in shares]
        *first, last = parts
        listed = f"{', '.join(first)} and {last}" if first else last
        yield Finding(
            title=f"{what} took {listed}",
            rank="cost",
            weight=20 * max(one.share for one in shares),
            anchor=shares[0].anchor,
        )


def _shares(evidence: Evidence) -> Iterator[Share]:
    """Yield every share over half."""
    for resource, amounts, total in _amounts(evidence):
        for (what, anchor), amount in amounts.items():
            if total and amount / total > _HALF:
                yield Share(what, resource, amount / total, anchor)


_Amounts = dict[tuple[str, str], float]


def _amounts(evidence: Evidence) -> Iterator[tuple[str, _Amounts, float]]:
    """Return how much planning, each step and each kind of call took of each resource, and the
    totals."""
    result = evidence.result
    patterns = evidence.patterns
    spent: dict[tuple[str, str], Spending] = {}
    if 0 in patterns.by_pass:
        spent["Planning (pass 0)", "pass-0"] = patterns.by_pass[0]
    spent |= {(_name_calls(kind), "took"): one for kind, one in _overhead(evidence)}
    if len(patterns.by_step) >= _FEWEST_STEPS:
        spent |= {(f"The step `{step}`", "took"): one for step, one in patterns.by_step.items()}
    total = result.usage.total
    yield "tokens", {what: one.tokens for what, one in spent.items()}, total.total_tokens
    if total.cost:
        yield "money", {what: one.cost or 0.0 for what, one in spent.items()}, total.cost
    if not is_replay(result):
        yield "time", _time(evidence), result.timings.total_seconds
    yield "TTL", _cycles(evidence), result.ttl.used


def _name_calls(kind: str) -> str:
    return _NAMES.get(kind, f"Calls of kind `{kind}`")


def _overhead(evidence: Evidence) -> Iterator[tuple[str, Spending]]:
    """Return the kinds of calls other than the steps, which are the work itself."""
    for kind, spent in evidence.patterns.by_call.items():
        if kind != "step":
            yield kind, spent


def _time(evidence: Evidence) -> _Amounts:
    """Return what the run waited for: seconds on its critical path."""
    found: defaultdict[tuple[str, str], float] = defaultdict(float)
    found[_WAITING, "timeline"] = sum(wait.seconds for wait in evidence.patterns.waits.values())
    steps = {item.step_id for item in evidence.items if item.step_id}
    for item in evidence.critical:
        for what in _places_of(item, has_many_steps=len(steps) >= _FEWEST_STEPS):
            found[what] += item.end - item.start
    return dict(found)


def _cycles(evidence: Evidence) -> _Amounts:
    found: defaultdict[tuple[str, str], float] = defaultdict(float)
    if evidence.passes:
        found["Planning (pass 0)", "pass-0"] = evidence.passes[0].ttl_used
    steps = {item.step_id for item in evidence.items if item.step_id}
    for item in evidence.items:
        is_charged = isinstance(item.source, Call) and item.source.cycle and not item.repairs
        if not is_charged:
            continue
        for what in _places_of(item, has_many_steps=len(steps) >= _FEWEST_STEPS):
            if not what[0].startswith("Planning"):  # counted by the pass itself
                found[what] += 1
    return dict(found)


def _places_of(item: Item, *, has_many_steps: bool) -> Iterator[tuple[str, str]]:
    if item.pass_number == 0:
        yield "Planning (pass 0)", "pass-0"
    if item.kind not in ("step", "wait", "repair"):
        yield _name_calls(item.kind), "took"
    if item.step_id and has_many_steps:
        yield f"The step `{item.step_id}`", "took"


def find_waits(evidence: Evidence) -> Iterator[Finding]:
    """Find requests that were sent again, by error, where they took a share of the time."""
    total = evidence.result.timings.total_seconds or 1.0
    for error, wait in evidence.patterns.waits.items():
        share = min(1.0, wait.seconds / total)
        is_long = wait.times >= 3 or share > _LONGEST_WAIT
        if wait.seconds < 0.05 or not is_long:
            continue
        is_limited = "rate" in error.lower() or "limit" in error.lower()
        yield Finding(
            title=f"{count_noun(wait.times, 'retry')} after `{error}`: {format_took(wait.seconds)} "
            f"were spent waiting, {as_percent(share)} of the time",
            rank="cost",
            weight=20 + 60 * share,
            advice="`provider.requests_per_minute` or `provider.max_concurrency` keep "
            "under a server's limit."
            if is_limited
            else "",
            anchor="timeline",
            remedies=(_ask_less(evidence),) if is_limited else (),
        )


def _ask_less(evidence: Evidence) -> Remedy:
    at_once = count_side_by_side([item for item in evidence.items if item.kind != "wait"])
    overrides = (f"provider.max_concurrency={max(1, at_once // 2)}",)
    return Remedy("To ask less at once next time", overrides, anew=True)


def find_broken_schemas(evidence: Evidence) -> Iterator[Finding]:
    """Find calls whose every answer broke its schema, some past repair, in a run that did not end
    well."""
    for name, rate in _often_broken(evidence):
        if _is_always_broken(evidence, rate):
            title = f"All {rate.answers} answers to `{name}` broke their schema"
            title = f"{title}, {rate.unrecoverable} of them past repair"
            yield _describe_repairs(evidence, name, title, "cause", 99)


def find_repairs(evidence: Evidence) -> Iterator[Finding]:
    """Find calls whose answers often broke their schema without causing the end."""
    requests = evidence.result.usage.total.requests
    repairs = evidence.result.usage.by_call.get("repair")
    share = repairs.requests / requests if repairs and requests else 0.0
    of_all = f"; {as_percent(share)} of all requests were repairs" if share else ""
    for name, rate in _often_broken(evidence):
        if not _is_always_broken(evidence, rate):
            broken = rate.repaired + rate.unrecoverable
            title = f"{broken} of {rate.answers} answers to `{name}` broke their schema{of_all}"
            weight = 25 + 60 * max(share, rate.rate / 2)
            yield _describe_repairs(evidence, name, title, "cost", weight)


def _often_broken(evidence: Evidence) -> Iterator[tuple[str, RepairRate]]:
    for name, rate in evidence.patterns.repairs_by_call.items():
        if rate.repaired + rate.unrecoverable >= 2 and rate.rate >= _MOST_REPAIRS:
            yield name, rate


def _is_always_broken(evidence: Evidence, rate: RepairRate) -> bool:
    is_broken = rate.repaired + rate.unrecoverable == rate.answers
    return is_broken and bool(rate.unrecoverable) and not evidence.ended_well


def _describe_repairs(
    evidence: Evidence, name: str, title: str, rank: Rank, weight: float
) -> Finding:
    roles = {call.call: call.role for call in reversed(evidence.record.calls)}
    errors = {one.call: one.errors for one in reversed(evidence.result.repairs)}
    model = f"roles.{roles.get(name, 'worker')}.model=NAME"
    return Finding(
        title=title,
        rank=rank,
        weight=weight,
        evidence=shorten("; ".join(errors.get(name, ())), WORDS),
        advice="Try another model for it, or `provider.structured_output` (`aeon docs providers`).",
        anchor="calls",
        remedies=(Remedy(f"To have another model answer {name}", (model,)),),
    )


def find_slow_item(evidence: Evidence) -> Iterator[Finding]:
    """Find the request or tool on the critical path that took much longer than the others."""
    if is_replay(evidence.result) or not evidence.critical:
        return
    slow = max(evidence.critical, key=lambda item: item.end - item.start)
    if slow.kind == "wait":
        return
    total = evidence.result.timings.total_seconds
    seconds = slow.end - slow.start - _sum_waits_within(slow, evidence)
    usual = median(_list_seconds(evidence) or [seconds])
    if seconds <= max(_SECONDS, _SLOW * total, _SLOWER * usual):
        return
    advice = ""
    if isinstance(slow.source, Call):
        advice = f"A faster model may answer it: `roles.{slow.source.role}.model=NAME`."
    yield Finding(
        title=f"Everything waited {format_took(seconds)} of {format_took(total)} for "
        f"{_name_item(slow)} "
        f"in pass {slow.pass_number}",
        rank="cost",
        weight=15 + 60 * min(1.0, seconds / total),
        evidence=f"It is on the critical path; a request usually took {format_took(usual)}.",
        anchor=slow.key,
        advice=advice,
    )


def _list_seconds(evidence: Evidence) -> list[float]:
    """Return how long each request and tool call took, without the requests that stored answers
    were found for, which are the shortest."""
    parent = evidence.result.parent
    found = parent.saved.model_calls if parent else 0
    requests = sorted(one.end - one.start for one in evidence.items if isinstance(one.source, Call))
    tools = [one.end - one.start for one in evidence.items if one.kind == "tool"]
    return [*requests[found:], *tools]


def _sum_waits_within(slow: Item, evidence: Evidence) -> float:
    return sum(
        item.end - item.start
        for item in evidence.items
        if item.kind == "wait"
        and item.step_id == slow.step_id
        and slow.start <= item.start
        and item.end <= slow.end
    )


def _name_item(item: Item) -> str:
    if item.step_id is None:
        return f"`{item.label}`"
    return f"{item.label.removesuffix(f' {item.step_id}')} `{item.step_id}`"


def find_passes_without_gain(evidence: Evidence) -> Iterator[Finding]:
    """Find passes after which no score had risen and no criterion was newly met."""
    patterns = evidence.patterns
    numbers = [one for one in patterns.without_gain if one not in patterns.set_back]
    if not numbers:
        return
    spent = sum(patterns.by_pass[one].tokens for one in numbers if one in patterns.by_pass)
    total = evidence.result.usage.total.total_tokens or 1
    figures = f"{spent:,} tokens, {as_percent(spent / total)} of all." if spent else ""
    yield Finding(
        title=f"{name_passes(numbers).capitalize()} gained nothing: no score rose by "
        f"{NOTICEABLE} or more, "
        "and no further criterion was met",
        rank="cost",
        weight=28 + 40 * min(1.0, spent / total),
        evidence=figures,
        anchor="scores",
        remedies=tuple(_stop_earlier(evidence)),
    )


def find_set_back_passes(evidence: Evidence) -> Iterator[Finding]:
    """Find passes whose changed answer was not accepted, by the outcome of its comparison."""
    found: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for number in evidence.patterns.set_back:
        compared = evidence.passes[number].evaluation_results.comparison
        if compared is not None:
            found[_SET_BACK[compared.outcome]][number] = " ".join(compared.explanations)
    for outcome, explanations in found.items():
        yield Finding(
            title=f"In {name_passes(explanations)} the changed answer {outcome}",
            rank="cost",
            weight=30,
            evidence=shorten(explanations[max(explanations)], WORDS),
            anchor=f"pass-{max(explanations)}",
        )


def _stop_earlier(evidence: Evidence) -> Iterator[Remedy]:
    """Return the limit that would end the run before two or more passes without gain."""
    assessed = evidence.patterns.assessed
    if evidence.result.converged:
        return
    for place, one in enumerate(assessed[:-2]):
        has_later_gain = any(_has_gained(one, later) for later in assessed[place + 1 :])
        # A pass with a part of the answer is no end.
        if one.answer_complete and not has_later_gain:
            purpose = (
                f"To end with pass {one.pass_number}, no nearer to converging but cheaper: "
                "no later pass gained on it"
            )
            yield Remedy(purpose, (f"limits.max_passes={one.pass_number}",))
            return


def find_fallback_endpoints(evidence: Evidence) -> Iterator[Finding]:
    """Find endpoints that answered in place of one that failed."""
    lines: dict[tuple[str, str], Line] = {}
    for line in evidence.record.events:
        if line["event"] == "fallback_used":
            lines.setdefault((line["failed"], line["endpoint"]), line)
    for (failed, endpoint), line in lines.items():
        number = evidence.result.provider.endpoints.get(endpoint, 0)
        yield Finding(
            title=f"The endpoint `{endpoint}` answered {count_noun(number, 'request')} in place of "
            f"`{failed}`, which failed",
            rank="doubt",
            weight=50,
            evidence=shorten(str(line["error"]), WORDS),
            anchor=_first_call_at(evidence, line["site"]),
            remedies=(Remedy(f"To see what {failed} answers now", program="doctor"),),
        )


def _first_call_at(evidence: Evidence, site: JsonMapping) -> str:
    place = site["pass_number"], site["phase"], site["step_id"]
    keys = (
        item.key
        for item in evidence.items
        if (item.pass_number, item.phase, item.step_id) == place and item.key
    )
    return next(keys, "calls")
