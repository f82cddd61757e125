"""What stands out in a run, in sentences: first what kept it from converging, then what cost it time or money."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

from aeon.domain.result import RunResult
from aeon.report.page.calls import Item, count_side_by_side
from aeon.report.page.commands import WORDS, Cause, Way, is_short, name_passes, tell_default
from aeon.report.page.judge import find_faults
from aeon.report.page.passes import shorten
from aeon.report.patterns import Patterns
from aeon.report.record import Call, Line, Record
from aeon.report.scores import Blocker, Regression
from aeon.report.words import count_noun, format_took, list_names, round_down

_MOST = 10
_MOST_REPAIRS, _LONGEST_WAIT = 0.2, 0.1
_SLOW, _SLOWER = 0.25, 2.5
_REPLAN = Way("To have another model refine the plan", ("roles.planner.model=NAME",))


def find_causes(
    record: Record, patterns: Patterns, items: Sequence[Item], critical: Sequence[Item]
) -> list[Cause]:
    """What stands out in a run, the gravest first, at most ten."""
    ended_well = record.result.exit_status == 0
    found = [
        *_of_steps(record.result),
        *_of_refinements(record.result),
        *([] if ended_well else _causes(record, patterns)),
        *_of_passes(record.result, patterns),
        *_of_answers(record, patterns, items),
        *_of_time(record, patterns, items, critical),
        *find_faults(record.result, patterns, items, _ways_to_stop(record.result, patterns)),
    ]
    return sorted(found, key=lambda one: (not one.is_cause, not one.warns, one.follows))[:_MOST]


def _causes(record: Record, patterns: Patterns) -> Iterator[Cause]:
    result = record.result
    if result.error is not None:
        title = f"It failed: {shorten(result.error.message, WORDS)}"
        yield Cause(title=title, change=result.error.hint, anchor="calls", is_cause=True)
    at_end = [blocker for blocker in patterns.blockers if blocker.at_end]
    steps = result.history.passes[-1].steps if result.history.passes else ()
    done = all(step.status == "complete" or step.replaced_by is not None for step in steps)
    made = next((one.refinement for one in reversed(result.history.passes) if one.refinement), None)
    refused = result.exit_status == 3 and made and made.refused and not made.accepted
    follows = bool(refused) or any(step.blocked or step.status == "failed" for step in steps)
    for blocker in at_end:
        yield replace(
            _of_blocker(blocker, result, alone=len(at_end) == 1 and done), follows=follows
        )
    if result.termination_reason == "ttl_expired" or result.termination_reason.startswith("max_"):
        key = f"limits.{result.termination_reason}"
        what = "TTL" if result.termination_reason == "ttl_expired" else f"limit `{key}`"
        title = f"The {what} ended the run before it was done"
        yield Cause(
            title=title,
            change=tell_default(result, key),
            anchor="budget",
            is_cause=not (at_end and done),
        )
    if result.termination_reason == "stalled":
        title = f"{'So nothing' if follows else 'Nothing'} changed and no step was ready: the run stalled"
        yield Cause(
            title=title,
            anchor="plan",
            ways=(_REPLAN,) if done else (),
            is_cause=True,
            follows=follows,
        )


def _of_blocker(blocker: Blocker, result: RunResult, *, alone: bool) -> Cause:
    words = shorten(" ".join(blocker.words), WORDS)
    passes = name_passes(blocker.passes)
    if blocker.kind == "score" and blocker.last is not None and blocker.best is not None:
        best, key = round_down(blocker.best), f"convergence.{blocker.score}"
        title = f"{str(blocker.score).capitalize()} ended at {round_down(blocker.last):.2f}; "
        title += f"its threshold is {blocker.threshold:.2f}" + (
            f" (best: {best:.2f})" if best > blocker.last else ""
        )
        accepted = f"{key}={round_down(blocker.last):g}"
        only = (
            f"This threshold alone stood in the way: `{accepted}` would accept what is there."
            if alone
            else ""
        )
        ways: tuple[Way, ...] = (Way("To accept what there is", (accepted,)),) if alone else ()
        change = " ".join(filter(None, (only, tell_default(result, key))))
        return Cause(
            title=title, words=words, change=change, anchor="scores", ways=ways, is_cause=True
        )
    titles = {
        "criterion": f"The criterion `{blocker.code}` was not met in {passes}",
        "issue": f"The judge found a blocking issue{kind_of_issue(blocker.code)} in {passes}",
        "unavailable": f"No assessment could be had in {passes}",
    }
    changes = {
        "criterion": "Say in the task what it asks for, or word the criterion so that it can be met."
    }
    title, change = titles.get(blocker.kind, blocker.code), changes.get(blocker.kind, "")
    ways = _ways_to_meet(blocker.code, result) if blocker.kind == "criterion" else ()
    anchor = f"judge-{blocker.passes[-1]}"
    return Cause(title=title, words=words, change=change, anchor=anchor, ways=ways, is_cause=True)


def _ways_to_meet(criterion: str, result: RunResult) -> tuple[Way, ...]:
    asked = str(result.configuration["convergence"]["criteria"].get(criterion) or "")
    task = f"{result.task.rstrip().rstrip('.')}. {asked}"
    told = (
        (Way("To ask for it in the task", (f"task={task}",), anew=True),)
        if asked and is_short(task)
        else ()
    )
    return (
        *told,
        Way(
            "To word the criterion so that it can be met",
            (f"convergence.criteria.{criterion}=WORDS",),
        ),
    )


def kind_of_issue(code: str) -> str:
    """What a reason code says was found, in brackets: contradiction, omission, hallucination; nothing for another."""
    return "" if code == "blocking_issue" else f" ({code.removesuffix('_detected')})"


def _of_steps(result: RunResult) -> Iterator[Cause]:
    blocked: dict[str, list[int]] = {}
    reasons: dict[str, str] = {}
    for record in result.history.passes:
        for name, done in record.execution_results.items():
            if done.clarity_state == "BLOCKED":
                blocked.setdefault(name, []).append(record.pass_number)
                reasons[name] = done.clarity_reason or ""
    last = {
        step.step_id: step
        for step in (result.history.passes[-1].steps if result.history.passes else ())
    }
    failed = [step for step in last.values() if step.status == "failed"]
    stuck = [name for name in blocked if name in last and last[name].blocked]
    for name in sorted(blocked, key=lambda each: each not in stuck)[:3]:
        end = "and still is" if name in stuck else "and was taken up again"
        title = f"The step `{name}` was BLOCKED in {name_passes(blocked[name])}, {end}"
        change = "Give what it misses, in the task or as an input, or answer its questions (`interaction=ask`)."
        yield Cause(
            title=title,
            words=shorten(reasons[name], WORDS),
            change=change if name in stuck else "",
            anchor=f"pass-{blocked[name][-1]}",
            is_cause=name in stuck and result.exit_status != 0,
        )
    for step in failed[:3]:
        words = shorten(step.errors[-1] if step.errors else "", WORDS)
        yield Cause(
            title=f"The step `{step.step_id}` failed", words=words, anchor="plan", is_cause=True
        )
    unreached = [
        step.step_id
        for step in last.values()
        if step.status == "pending" and step.replaced_by is None
    ]
    if unreached and result.exit_status:
        follows = bool(stuck or failed)
        title = f"{'So never' if follows else 'Never'} reached: {list_names([f'`{name}`' for name in unreached])}"
        yield Cause(title=title, anchor="plan", follows=follows)


def _of_refinements(result: RunResult) -> Iterator[Cause]:
    refused, failed = result.refused_actions, result.exit_status == 3
    if refused:
        told = Counter(f"{one.action.action_type} `{one.action.fragment}`" for one in refused)
        names = ", ".join(
            f"{name} ({times} times)" if times > 1 else name
            for name, times in list(told.items())[:4]
        )
        verb = "was" if len(refused) == 1 else "were"
        title = f"{count_noun(len(refused), 'change')} of the plan {verb} refused: {names}"
        number = next(
            (
                one.pass_number
                for one in result.history.passes
                if one.refinement and one.refinement.refused
            ),
            0,
        )
        words, ways = shorten(refused[-1].reason, WORDS), (_REPLAN,) if failed else ()
        yield Cause(title=title, words=words, anchor=f"pass-{number}", ways=ways, is_cause=failed)
    left = [
        one for one in result.advisories if one.kind in ("manual_intervention", "refinement_limit")
    ]
    if left:
        yield Cause(
            title="Left to a person", words=shorten(left[-1].message, WORDS), anchor="advisories"
        )


def _of_passes(result: RunResult, patterns: Patterns) -> Iterator[Cause]:
    spent = patterns.by_pass
    conflicts = [one for one in patterns.judge_conflicts if one.kind == "same_work"]
    told = {(one.name, one.passes[-1]) for one in conflicts}  # each fall stands once
    fell = [
        one
        for one in patterns.regressions
        if one.kind == "score" and (one.name, one.to_pass) not in told
    ]
    if numbers := [
        one for one in patterns.without_gain if one not in {number for _, number in told}
    ]:
        tokens = sum(spent[number].tokens for number in numbers if number in spent)
        falls = [f"{_tell_fall(one)}." for one in fell if one.to_pass in numbers]
        words = " ".join((*falls, *([f"It took {tokens:,} tokens."] if tokens else [])))
        title = f"{name_passes(numbers).capitalize()} gained nothing: no score rose and nothing that was missing came"
        ways = _ways_to_stop(result, patterns)
        yield Cause(title=title, words=words, anchor="scores", ways=ways)
    fell = [one for one in fell if one.to_pass not in numbers]
    for one in sorted(fell, key=lambda each: each.after - each.before)[:2]:
        words = f"After the refinement of {list_names(one.refined, 4)}." if one.refined else ""
        yield Cause(title=_tell_fall(one), words=words, anchor=f"pass-{one.to_pass}")


def _tell_fall(one: Regression) -> str:
    return f"{one.name.capitalize()} fell from {one.before:.2f} to {one.after:.2f} in pass {one.to_pass}"


def _ways_to_stop(result: RunResult, patterns: Patterns) -> tuple[Way, ...]:
    """How to do without passes that gained nothing: those at the end, or all from the first where the run converged."""
    numbers = [one.pass_number for one in patterns.assessed]
    if result.converged and patterns.without_gain:
        before = patterns.assessed[numbers.index(patterns.without_gain[0]) - 1]
        low = {
            name: score
            for name, score in before.scores.items()
            if score < patterns.thresholds[name]
        }
        lower = tuple(f"convergence.{name}={round_down(score):g}" for name, score in low.items())
        purpose = f"To end with pass {before.pass_number}, if that is good enough"
        return (Way(purpose, lower),) if lower and len(low) == len(before.missed) else ()
    while numbers and numbers[-1] in patterns.without_gain:
        numbers.pop()
    if (
        not numbers or patterns.assessed[-1].pass_number < numbers[-1] + 2
    ):  # one alone may be followed by a gain
        return ()
    purpose = f"To end with pass {numbers[-1]}, which had as much"
    return (Way(purpose, (f"limits.max_passes={numbers[-1]}",)),)


def _of_answers(record: Record, patterns: Patterns, items: Sequence[Item]) -> Iterator[Cause]:
    for name, rate in patterns.repairs_by_call.items():
        broken = rate.repaired + rate.unrecoverable
        if broken >= 2 and rate.rate >= _MOST_REPAIRS:
            first = next((one for one in record.result.repairs if one.call == name), None)
            title = f"{broken} of {rate.answers} answers to `{name}` broke their schema and had to be repaired"
            change = (
                "Try another model for it, or `provider.structured_output` (`aeon docs providers`)."
            )
            words = shorten("; ".join(first.errors), WORDS) if first else ""
            role = next((call.role for call in record.calls if call.call == name), "worker")
            ways = (Way(f"To have another model answer {name}", (f"roles.{role}.model=NAME",)),)
            yield Cause(title=title, words=words, change=change, anchor="calls", ways=ways)
    lines: dict[tuple[str, str], Line] = {}
    for line in record.events:
        if line["event"] == "fallback_used":
            lines.setdefault((line["failed"], line["endpoint"]), line)
    for (failed, endpoint), line in lines.items():
        number = count_noun(record.result.provider.endpoints.get(endpoint, 0), "request")
        title = f"The endpoint `{endpoint}` answered {number} in place of `{failed}`, which failed"
        ways = (Way(f"To see what {failed} answers now", program="doctor"),)
        site, words = line["site"], shorten(str(line["error"]), WORDS)
        place = site["pass_number"], site["phase"], site["step_id"]
        keys = (
            one.key
            for one in items
            if (one.pass_number, one.phase, one.step_id) == place and one.key
        )
        yield Cause(title=title, words=words, anchor=next(keys, "calls"), ways=ways, warns=True)
    kinds = {
        "profile_fallback": "The default profile was used",
        "fallback_step": "A step fell back to the model",
    }
    for one in record.result.advisories:
        if one.kind in kinds:
            yield Cause(
                title=kinds[one.kind], words=shorten(one.message, WORDS), anchor="advisories"
            )


def _of_time(
    record: Record, patterns: Patterns, items: Sequence[Item], critical: Sequence[Item]
) -> Iterator[Cause]:
    total = record.result.timings.total_seconds
    for error, wait in patterns.waits.items():
        if wait.seconds >= 0.05 and (wait.times >= 3 or wait.seconds > _LONGEST_WAIT * total):
            title = f"{count_noun(wait.times, 'retry')} after `{error}`: {format_took(wait.seconds)} were spent waiting"
            change = "`provider.requests_per_minute` or `provider.max_concurrency` keep under a server's limit."
            limited = "rate" in error.lower() or "limit" in error.lower()
            most = max(1, count_side_by_side([item for item in items if item.kind != "wait"]) // 2)
            less = Way(
                "To ask less at once next time", (f"provider.max_concurrency={most}",), anew=True
            )
            yield Cause(
                title=title,
                change=change if limited else "",
                anchor="timeline",
                ways=(less,) if limited else (),
            )
    slow = max(critical, key=lambda item: item.end - item.start, default=None)
    if (
        slow is None
        or slow.kind == "wait"
        or record.result.configuration["store"]["mode"] == "replay"
    ):
        return
    spans = [item.end - item.start for item in items if item.kind != "wait"]
    here = [
        item
        for item in items
        if item.kind == "wait" and item.start >= slow.start and item.end <= slow.end
    ]
    waited = sum(item.end - item.start for item in here if item.step_id == slow.step_id)
    name = (
        f"{slow.label.removesuffix(f' {slow.step_id}')} `{slow.step_id}`"
        if slow.step_id
        else f"`{slow.label}`"
    )
    seconds, usual = slow.end - slow.start - waited, median(spans)
    if seconds > _SLOW * total and seconds > _SLOWER * usual and seconds > 0.1:
        title = f"Everything waited {format_took(seconds)} of {format_took(total)} for {name} "
        title += f"in pass {slow.pass_number}"
        words = f"It is on the critical path; a request usually took {format_took(usual)}."
        model = isinstance(slow.source, Call) and f"roles.{slow.source.role}.model=NAME"
        ways = (Way("To have it answered by a faster model", (model,)),) if model else ()
        yield Cause(title=title, words=words, anchor=slow.key, ways=ways)
