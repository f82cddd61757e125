"""What stands out in a run, in sentences: first what kept it from converging, then what cost it time or money."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from aeon.domain.assessment import ConvergenceAssessment
from aeon.domain.result import RunResult
from aeon.report.page.calls import Item, count_side_by_side
from aeon.report.page.commands import Way, is_short
from aeon.report.page.passes import shorten
from aeon.report.patterns import Patterns
from aeon.report.record import Call, Record
from aeon.report.scores import Blocker
from aeon.report.words import count_noun, format_took, list_names, round_down

_MOST = 10
_WORDS = 320
_MOST_REPAIRS, _LONGEST_WAIT = 0.2, 0.1
_SLOW, _SLOWER = 0.25, 2.5
_REPLAN = Way("To have another model refine the plan", ("roles.planner.model=NAME",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A sentence about a run, with the model's words or figures on it, what could be changed and the commands for that,
    and the anchor on the page where more stands, with others and their names in `links`. `is_cause`: it kept the run
    from converging; `warns`: what a reader has to know of an answer all the same."""

    title: str
    words: str = ""
    change: str = ""
    anchor: str = ""
    links: tuple[tuple[str, str], ...] = ()
    ways: tuple[Way, ...] = ()
    is_cause: bool = False
    warns: bool = False


def find_causes(record: Record, patterns: Patterns, items: Sequence[Item], critical: Sequence[Item]) -> list[Cause]:
    """What stands out in a run, the gravest first, at most ten."""
    ended_well = record.result.exit_status == 0
    found = [
        *_of_steps(record.result),
        *_of_refinements(record.result),
        *([] if ended_well else _causes(record, patterns)),
        *_of_passes(record.result, patterns),
        *_of_answers(record, patterns),
        *_of_time(record, patterns, items, critical),
        *_of_judge(record.result, patterns, items),
    ]
    return sorted(found, key=lambda one: (not one.is_cause, not one.warns))[:_MOST]


def _passes(numbers: Iterable[int]) -> str:
    told = sorted(set(numbers))
    if len(told) > 2 and told == list(range(told[0], told[-1] + 1)):
        return f"passes {told[0]} to {told[-1]}"
    *first, last = map(str, told)
    return f"passes {', '.join(first)} and {last}" if first else f"pass {last}"


def _causes(record: Record, patterns: Patterns) -> Iterator[Cause]:
    result = record.result
    if result.error is not None:
        title = f"It failed: {shorten(result.error.message, _WORDS)}"
        yield Cause(title=title, change=result.error.hint, anchor="calls", is_cause=True)
    at_end = [blocker for blocker in patterns.blockers if blocker.at_end]
    steps = result.history.passes[-1].steps if result.history.passes else ()
    done = all(step.status == "complete" or step.replaced_by is not None for step in steps)
    for blocker in at_end:
        yield _of_blocker(blocker, result, alone=len(at_end) == 1 and done)
    if result.termination_reason == "ttl_expired" or result.termination_reason.startswith("max_"):
        what = "TTL" if result.termination_reason == "ttl_expired" else f"limit limits.{result.termination_reason}"
        yield Cause(
            title=f"The {what} ended the run before it was done", anchor="budget", is_cause=not (at_end and done)
        )
    if result.termination_reason == "stalled":
        title = "Nothing changed and no step was ready, so the run stalled"
        yield Cause(title=title, anchor="plan", ways=(_REPLAN,) if done else (), is_cause=True)


def _of_blocker(blocker: Blocker, result: RunResult, *, alone: bool) -> Cause:
    words = shorten(" ".join(blocker.words), _WORDS)
    passes = _passes(blocker.passes)
    if blocker.kind == "score" and blocker.last is not None and blocker.best is not None:
        best, key = round_down(blocker.best), f"convergence.{blocker.score}"
        title = f"{str(blocker.score).capitalize()} ended at {round_down(blocker.last):.2f}; "
        title += f"its threshold is {blocker.threshold:.2f}" + (f" (best: {best:.2f})" if best > blocker.last else "")
        change = f"This threshold alone stood in the way: {key}={best:g} would accept what is there." if alone else ""
        return Cause(title=title, words=words, change=change, anchor="scores", is_cause=True)
    titles = {
        "criterion": f"The criterion {blocker.code} was not met in {passes}",
        "issue": f"The judge found a blocking issue{kind_of_issue(blocker.code)} in {passes}",
        "unavailable": f"No assessment could be had in {passes}",
    }
    changes = {"criterion": "Say in the task what it asks for, or word the criterion so that it can be met."}
    title, change = titles.get(blocker.kind, blocker.code), changes.get(blocker.kind, "")
    ways = _ways_to_meet(blocker.code, result) if blocker.kind == "criterion" else ()
    return Cause(
        title=title, words=words, change=change, anchor=f"judge-{blocker.passes[-1]}", ways=ways, is_cause=True
    )


def _ways_to_meet(criterion: str, result: RunResult) -> tuple[Way, ...]:
    asked = str(result.configuration["convergence"]["criteria"].get(criterion) or "")
    task = f"{result.task.rstrip().rstrip('.')}. {asked}"
    told = (Way("To ask for it in the task", (f"task={task}",), anew=True),) if asked and is_short(task) else ()
    return (*told, Way("To word the criterion so that it can be met", (f"convergence.criteria.{criterion}={asked}",)))


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
    last = {step.step_id: step for step in (result.history.passes[-1].steps if result.history.passes else ())}
    failed = [step for step in last.values() if step.status == "failed"]
    stuck = [name for name in blocked if name in last and last[name].blocked]
    for name in sorted(blocked, key=lambda each: each not in stuck)[:3]:
        end = "and still is" if name in stuck else "and was taken up again"
        title = f"The step {name} was BLOCKED in {_passes(blocked[name])}, {end}"
        change = 'Give what it misses: inputs.NAME="..." or the task, or answer its questions (interaction=ask).'
        yield Cause(
            title=title,
            words=shorten(reasons[name], _WORDS),
            change=change if name in stuck else "",
            anchor=f"pass-{blocked[name][-1]}",
            is_cause=name in stuck and result.exit_status != 0,
        )
    for step in failed[:3]:
        words = shorten(step.errors[-1] if step.errors else "", _WORDS)
        yield Cause(title=f"The step {step.step_id} failed", words=words, anchor="plan", is_cause=True)
    unreached = [step.step_id for step in last.values() if step.status == "pending" and step.replaced_by is None]
    if unreached and result.exit_status:
        yield Cause(title=f"Never reached: {list_names(unreached)}", anchor="plan", is_cause=False)


def _of_judge(result: RunResult, patterns: Patterns, items: Sequence[Item]) -> Iterator[Cause]:
    calls = {item.pass_number: item.key for item in items if item.kind == "convergence"}
    said = {one.pass_number: one.evaluation_results.convergence for one in result.history.passes}
    ways = (Way("To have another model judge what is there", ("roles.grader.model=NAME",)),)
    for one in [one for one in patterns.judge_conflicts if one.kind == "same_work"][:3]:
        title = f"The judge contradicts itself: {one.name} went from {one.values[0]:.2f} to {one.values[-1]:.2f} "
        title += f"from pass {one.passes[0]} to pass {one.passes[-1]}, for the same work"
        given = {number: shorten(_words_of(said[number], one.name), _WORDS) for number in one.passes}
        told = [f"Pass {number}: {text or 'no reason.'}" for number, text in given.items() if any(given.values())]
        words = "\n".join(("No step and no word of the answer changed between.", *told))
        links = tuple((f"its call in pass {number}", calls[number]) for number in one.passes if number in calls)
        anchor = f"judge-{one.passes[-1]}"
        yield Cause(title=title, words=words, anchor=anchor, links=links, ways=ways, is_cause=True)
    if pairs := [one for one in patterns.judge_conflicts if one.kind == "pairs"]:
        where = sorted({number for one in pairs for number in one.passes})
        names = ", ".join(dict.fromkeys(one.name.replace("_", " and ") for one in pairs))
        title = f"The judge contradicts itself in {_passes(where)}: every score is reached, "
        title += f"and yet these are said to disagree: {names}"
        last = said[where[-1]]
        stated = last.scores.consistency_status if last else {}
        reasons = [stated[one.name].explanation for one in pairs if where[-1] in one.passes]
        words = shorten("; ".join(filter(None, reasons)), _WORDS)
        links = tuple((f"its call in pass {number}", calls[number]) for number in where[:4] if number in calls)
        yield Cause(title=title, words=words, anchor=f"judge-{where[-1]}", links=links, ways=ways)


def _words_of(said: ConvergenceAssessment | None, name: str) -> str:
    """What the judge said for a score or on a criterion."""
    if said is None:
        return ""
    reasons = [one.reason for one in said.criteria if one.name == name]
    return " ".join(reasons or (*said.detected_issues, said.explanation)).strip()


def _of_refinements(result: RunResult) -> Iterator[Cause]:
    refused, failed = result.refused_actions, result.exit_status == 3
    if refused:
        told = Counter(f"{one.action.action_type} {one.action.fragment}" for one in refused)
        names = ", ".join(f"{name} ({times} times)" if times > 1 else name for name, times in list(told.items())[:4])
        verb = "was" if len(refused) == 1 else "were"
        title = f"{count_noun(len(refused), 'change')} of the plan {verb} refused: {names}"
        number = next(
            (one.pass_number for one in result.history.passes if one.refinement and one.refinement.refused), 0
        )
        words, ways = shorten(refused[-1].reason, _WORDS), (_REPLAN,) if failed else ()
        yield Cause(title=title, words=words, anchor=f"pass-{number}", ways=ways, is_cause=failed)
    left = [one for one in result.advisories if one.kind in ("manual_intervention", "refinement_limit")]
    if left:
        yield Cause(title="Left to a person", words=shorten(left[-1].message, _WORDS), anchor="advisories")


def _of_passes(result: RunResult, patterns: Patterns) -> Iterator[Cause]:
    spent = patterns.by_pass
    if numbers := patterns.without_gain:
        tokens = sum(spent[number].tokens for number in numbers if number in spent)
        title = f"{_passes(numbers).capitalize()} gained nothing: no score rose and nothing that was missing came"
        ways = _ways_to_stop(result, patterns)
        yield Cause(title=title, words=f"It took {tokens:,} tokens." if tokens else "", anchor="scores", ways=ways)
    fell = [one for one in patterns.regressions if one.kind == "score"]
    for one in sorted(fell, key=lambda each: each.after - each.before)[:2]:
        title = f"{one.name.capitalize()} fell from {one.before:.2f} to {one.after:.2f} in pass {one.to_pass}"
        words = f"after the refinement of {list_names(one.refined, 4)}" if one.refined else ""
        yield Cause(title=title, words=words, anchor=f"pass-{one.to_pass}")


def _ways_to_stop(result: RunResult, patterns: Patterns) -> tuple[Way, ...]:
    """How to do without passes that gained nothing: those at the end, or all from the first where the run converged."""
    numbers = [one.pass_number for one in patterns.assessed]
    if result.converged:
        before = patterns.assessed[numbers.index(patterns.without_gain[0]) - 1]
        low = {name: score for name, score in before.scores.items() if score < patterns.thresholds[name]}
        lower = tuple(f"convergence.{name}={round_down(score):g}" for name, score in low.items())
        purpose = f"To end with pass {before.pass_number}, if that is good enough"
        return (Way(purpose, lower),) if lower and len(low) == len(before.missed) else ()
    while numbers and numbers[-1] in patterns.without_gain:
        numbers.pop()
    if not numbers or patterns.assessed[-1].pass_number < numbers[-1] + 2:  # one alone may be followed by a gain
        return ()
    purpose = f"To end with pass {numbers[-1]}, which had as much"
    return (Way(purpose, (f"limits.max_passes={numbers[-1]}",)),)


def _of_answers(record: Record, patterns: Patterns) -> Iterator[Cause]:
    for name, rate in patterns.repairs_by_call.items():
        broken = rate.repaired + rate.unrecoverable
        if broken >= 2 and rate.rate >= _MOST_REPAIRS:
            first = next((one for one in record.result.repairs if one.call == name), None)
            title = f"{broken} of {rate.answers} answers to {name} broke their schema and had to be repaired"
            change = "Try another model for it, or provider.structured_output (aeon docs providers)."
            words = shorten("; ".join(first.errors), _WORDS) if first else ""
            role = next((call.role for call in record.calls if call.call == name), "worker")
            ways = (Way(f"To have another model answer {name}", (f"roles.{role}.model=NAME",)),)
            yield Cause(title=title, words=words, change=change, anchor="calls", ways=ways)
    seen: Counter[tuple[str, str]] = Counter()
    errors: dict[tuple[str, str], str] = {}
    for line in record.events:
        if line["event"] == "fallback_used":
            seen[line["failed"], line["endpoint"]] += 1
            errors[line["failed"], line["endpoint"]] = str(line["error"])
    answered = record.result.provider.endpoints
    for failed, endpoint in seen:
        number = count_noun(answered.get(endpoint, 0), "request")
        title = f"The endpoint {endpoint} answered {number} in place of {failed}, which failed"
        ways = (Way(f"To see what {failed} answers now", program="doctor"),)
        words = shorten(errors[failed, endpoint], _WORDS)
        yield Cause(title=title, words=words, anchor="provenance", ways=ways, warns=True)
    kinds = {"profile_fallback": "The default profile was used", "fallback_step": "A step fell back to the model"}
    for one in record.result.advisories:
        if one.kind in kinds:
            yield Cause(title=kinds[one.kind], words=shorten(one.message, _WORDS), anchor="advisories")


def _of_time(record: Record, patterns: Patterns, items: Sequence[Item], critical: Sequence[Item]) -> Iterator[Cause]:
    total = record.result.timings.total_seconds
    for error, wait in patterns.waits.items():
        if wait.seconds >= 0.05 and (wait.times >= 3 or wait.seconds > _LONGEST_WAIT * total):
            title = f"{count_noun(wait.times, 'retry')} after {error}: {format_took(wait.seconds)} were spent waiting"
            change = "provider.requests_per_minute or provider.max_concurrency keep under a server's limit."
            limited = "rate" in error.lower() or "limit" in error.lower()
            most = max(1, count_side_by_side([item for item in items if item.kind != "wait"]) // 2)
            less = Way("To ask less at once next time", (f"provider.max_concurrency={most}",), anew=True)
            yield Cause(
                title=title, change=change if limited else "", anchor="timeline", ways=(less,) if limited else ()
            )
    slow = max(critical, key=lambda item: item.end - item.start, default=None)
    if slow is None or slow.kind == "wait" or record.result.configuration["store"]["mode"] == "replay":
        return
    spans = [item.end - item.start for item in items if item.kind != "wait"]
    here = [item for item in items if item.kind == "wait" and item.start >= slow.start and item.end <= slow.end]
    waited = sum(item.end - item.start for item in here if item.step_id == slow.step_id)
    seconds, usual = slow.end - slow.start - waited, median(spans)
    if seconds > _SLOW * total and seconds > _SLOWER * usual and seconds > 0.1:
        title = f"Everything waited {format_took(seconds)} of {format_took(total)} for {slow.label} "
        title += f"in pass {slow.pass_number}"
        words = f"It is on the critical path; a request usually took {format_took(usual)}."
        model = isinstance(slow.source, Call) and f"roles.{slow.source.role}.model=NAME"
        ways = (Way("To have it answered by a faster model", (model,)),) if model else ()
        yield Cause(title=title, words=words, anchor=slow.key, ways=ways)
