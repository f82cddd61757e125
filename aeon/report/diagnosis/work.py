"""Detectors of problems in the work: errors, inputs, tools, steps, reviews and changes of the
plan."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from aeon.domain import errors
from aeon.domain.history import RunError
from aeon.domain.refinement import RefusedAction
from aeon.domain.report import SEVERITIES, ValidationIssue
from aeon.report.diagnosis.finding import (
    WORDS,
    Evidence,
    Finding,
    Remedy,
    join_names,
    name_passes,
)
from aeon.report.ending import (
    is_resumable,
    is_under_way,
    list_undone,
    name_lost_reviews,
    raise_limits,
)
from aeon.report.items import Item
from aeon.report.partial import PartialResult
from aeon.report.record import Call
from aeon.report.words import CALLS, count_noun, one_line, shorten

REPLAN = Remedy("To have another model refine the plan", ("roles.planner.model=NAME",))
GO_ON = Remedy("To resume from the stored answers")
_DOCTOR = Remedy("To see what each endpoint answers", program="doctor")
_MOST_STEPS = 3
_MOST_REVIEWS = 3
_LONGEST_REASON = 160
"""Characters of an error that stands in the sentence; a longer one stands below it."""
_DECLINED = ("Refused", "Filtered")
_ADVICE = {
    "Truncated": "Raise `provider.max_tokens`, or divide the step.",
    "ContextFull": "Give it less text at once, or a model with a larger context.",
    "Refused": "Another model may answer: `roles.worker.model`.",
    "Filtered": "Another model may answer: `roles.worker.model`.",
}
"""What a person could change, by the error of a step."""


def find_failure(evidence: Evidence) -> Iterator[Finding]:
    """Find the error that ended the run, with the call that raised it, or the stop."""
    result = evidence.result
    if result.error is not None:
        yield _describe_error(evidence, result.error)
    elif result.termination_reason == "interrupted" and not is_under_way(result):
        how = "cut off" if isinstance(result, PartialResult) else "interrupted"
        yield Finding(
            title=f"It was {how} before it was done",
            rank="cause",
            weight=100,
            anchor="calls",
            remedies=(GO_ON,) if is_resumable(result) else (),
        )


def find_open_questions(evidence: Evidence) -> Iterator[Finding]:
    """Find the questions that the run waits for, quoting the first."""
    waits_for = evidence.result.waits_for
    if waits_for:
        first = waits_for[0]
        more = f" (and {len(waits_for) - 1} more)" if len(waits_for) > 1 else ""
        yield Finding(
            title=f"It waits for {count_noun(len(waits_for), 'answer')} of a person",
            rank="cause",
            weight=100,
            evidence=f"{first.id}: {shorten(one_line(first.text), WORDS)}{more}",
            advice="`aeon answer` takes the answers, and the run goes on with `resume`.",
        )


def _describe_error(evidence: Evidence, error: RunError) -> Finding:
    item = _find_failed_call(evidence, error)
    kind = getattr(errors, error.type, errors.AeonError)
    is_invalid = issubclass(kind, errors.ValidationError)
    title = "No answer that fits its schema" if is_invalid else "It failed"
    remedies: list[Remedy] = []
    if issubclass(kind, errors.ProviderError):
        title = "The provider failed"
        remedies.append(_DOCTOR)
    if item is not None:
        place = f"the call `{_name_call(item)}` in pass {item.pass_number}"
        is_answer = issubclass(kind, errors.AnswerError)
        title = f"No usable answer to {place}" if is_answer else f"{title} at {place}"
        if error.type in _DECLINED and isinstance(item.source, Call):
            model = f"roles.{item.source.role}.model=NAME"
            remedies.append(Remedy("To have another model answer it", (model,)))
    if is_resumable(evidence.result):
        remedies.append(GO_ON)
    return Finding(
        title=title,
        rank="cause",
        weight=98 if is_invalid else 100,  # it follows from answers that break their schema
        evidence=f"{error.type}: {shorten(error.message, WORDS)}",
        advice=error.hint,
        anchor=item.key if item else "calls",
        remedies=tuple(remedies),
    )


def _find_failed_call(evidence: Evidence, error: RunError) -> Item | None:
    """Return the last request that raised the error."""
    for item in reversed(evidence.items):
        if isinstance(item.source, Call) and item.source.error == error.type:
            return item
    return None


def _name_call(item: Item) -> str:
    kind = item.repairs or item.kind
    name = CALLS.get(kind, kind)
    return f"{name} {item.step_id}" if item.step_id else name


def find_blank_inputs(evidence: Evidence) -> Iterator[Finding]:
    """Find given inputs that hold no text."""
    inputs = evidence.record.origin.get("inputs")
    if not isinstance(inputs, dict):
        return
    blank = [name for name, text in inputs.items() if not str(text).strip()]
    if not blank:
        return
    title = f"The input {join_names(blank)} is blank"
    if len(blank) > 1:
        title = f"The inputs {join_names(blank)} are blank"
    yield Finding(
        title=title,
        rank=evidence.rank_of("doubt"),
        weight=95,
        evidence="The models were given the name without a text.",
        anchor="given",
        remedies=(Remedy(f"To give `{blank[0]}` (repeats every call)", (_blank_input(blank[0]),)),),
    )


def _blank_input(name: str) -> str:
    return f'inputs.{name}="..."'


def find_missing_tools(evidence: Evidence) -> Iterator[Finding]:
    """Find steps whose tool was missing: the model did them instead, or they failed."""
    missing = [one for one in evidence.result.degraded if one.kind == "tool_missing" and one.step]
    if not missing:
        return
    steps = _each_once(str(one.step) for one in missing)
    overrides = _each_once(text for one in missing for text in one.overrides)
    remedy = Remedy("To register the missing tools", tuple(overrides))
    messages = _each_once(f"{one.message}." for one in missing)
    yield Finding(
        title=_describe_missing_tools(evidence, steps),
        rank=evidence.rank_of("doubt"),
        weight=_weigh_missing_tools(evidence, steps),
        evidence=shorten(" ".join(messages), WORDS),
        advice=" ".join(_each_once(one.remedy for one in missing)),
        anchor="advisories",
        remedies=(remedy,) if overrides else (),
    )


def _weigh_missing_tools(evidence: Evidence, steps: Sequence[str]) -> float:
    """Return the weight of missing tools: above that of a BLOCKED step that lacks one of them."""
    return 91 if any(evidence.last_steps[name].blocked for name in steps) else 87


def _describe_missing_tools(evidence: Evidence, steps: Sequence[str]) -> str:
    named = (evidence.last_steps[name].tool for name in steps)
    tools = _each_once(tool for tool in named if tool)
    if not tools:  # refinement took them from their steps
        return f"{join_names(steps)} had to do without {'its tool' if len(steps) == 1 else 'tools'}"
    verb = "is" if len(tools) == 1 else "are"
    return f"{join_names(tools)} {verb} not among the tools: {join_names(steps)} had to do without"


def _each_once(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def find_servers_down(evidence: Evidence) -> Iterator[Finding]:
    """Find tool servers that did not start."""
    for one in evidence.result.degraded:
        if one.kind == "server_down":
            yield Finding(
                title="A server of tools did not start",
                rank=evidence.rank_of("doubt"),
                weight=86,
                evidence=shorten(one.message, WORDS),
                advice=one.remedy,
                anchor="advisories",
            )


def find_lost_reviews(evidence: Evidence) -> Iterator[Finding]:
    """Find reviews and assessments that were not available."""
    lost = [one for one in evidence.result.degraded if one.kind == "review_lost"]
    if lost:
        yield Finding(
            title=f"{name_lost_reviews(len(lost))} could not be had",
            rank="doubt",
            weight=60,
            evidence=shorten(lost[-1].message, WORDS),
            # A run that did not end well requests them again whenever it is resumed.
            advice=lost[-1].remedy if evidence.ended_well else "",
            anchor="advisories",
        )


def find_blocked_steps(evidence: Evidence) -> Iterator[Finding]:
    """Find steps that are BLOCKED at the end, and those that were BLOCKED and taken up again."""
    blocked: defaultdict[str, list[int]] = defaultdict(list)
    reasons: dict[str, str] = {}
    for record in evidence.passes:
        for name, done in record.execution_results.items():
            if done.clarity_state == "BLOCKED":
                blocked[name].append(record.pass_number)
                reasons[name] = done.clarity_reason or ""
    last = evidence.last_steps
    stuck = {name for name in blocked if name in last and last[name].blocked}
    for name in sorted(blocked, key=lambda each: each not in stuck)[:_MOST_STEPS]:
        place = f"The step `{name}` was BLOCKED in {name_passes(blocked[name])}"
        words = shorten(reasons[name], WORDS)
        anchor = f"pass-{blocked[name][-1]}"
        if name not in stuck:
            yield Finding(
                title=f"{place}, and was taken up again",
                rank="cost",
                weight=8,
                evidence=words,
                anchor=anchor,
            )
            continue
        yield Finding(
            title=f"{place}, and still is",
            rank=evidence.rank_of("doubt"),
            weight=90,
            evidence=words,
            advice="Give what it misses, in the task or as an input.",
            anchor=anchor,
            remedies=tuple(_give_what_is_missing(evidence)),
        )


def _give_what_is_missing(evidence: Evidence) -> Iterator[Remedy]:
    result = evidence.result
    asks = result.configuration["interaction"]["kind"] != "none"
    if not asks and any(one.answer is None for one in result.follow_up_questions):
        yield Remedy("To answer the questions", ("interaction=ask",))
    yield Remedy("To give the step what it misses (repeats every call)", (_blank_input("NAME"),))


def find_failed_steps(evidence: Evidence) -> Iterator[Finding]:
    """Find steps that failed and were not replaced, each with its error."""
    failed = [step for step in evidence.last_steps.values() if step.status == "failed"]
    for step in failed[:_MOST_STEPS]:
        error = one_line(step.errors[-1]) if step.errors else ""
        is_short = len(error) <= _LONGEST_REASON
        yield Finding(
            title=f"The step `{step.step_id}` failed{f': {error}' if error and is_short else ''}",
            rank=evidence.rank_of("doubt"),
            weight=88,
            evidence="" if is_short else shorten(error, WORDS),
            advice=_ADVICE.get(error.partition(":")[0], ""),
            anchor=evidence.step_calls.get(step.step_id, "plan"),
            remedies=tuple(_ask_again(evidence, step.step_id)),
        )


def _ask_again(evidence: Evidence, step_id: str) -> Iterator[Remedy]:
    """Return the command that requests a step's answer again, where it could not be used."""
    if step_id not in evidence.result.unusable_steps or not is_resumable(evidence.result):
        return
    overrides = ("store.retry_unusable=all",) if evidence.ended_well else ()
    yield Remedy("To ask for its answer again", overrides)


def find_unreached_steps(evidence: Evidence) -> Iterator[Finding]:
    """Find steps that were not done, in a run that did not converge."""
    undone = list_undone(evidence.last_steps.values())
    if undone and not evidence.ended_well and not is_under_way(evidence.result):
        named = "; ".join(f"{how}: {join_names(names)}" for how, names in undone.items())
        yield Finding(
            title=f"{named[0].upper()}{named[1:]}", rank="cause", weight=20, anchor="plan"
        )


def find_stall(evidence: Evidence) -> Iterator[Finding]:
    """Find the end of a run in which nothing changed any more."""
    if evidence.result.termination_reason == "stalled":
        yield Finding(
            title="No step was ready and nothing changed: the run stalled",
            rank="cause",
            weight=30,
            anchor="plan",
            remedies=tuple(_change_more(evidence)),
        )


def _change_more(evidence: Evidence) -> Iterator[Remedy]:
    """Suggest a higher limit on refinements where it was reached, else another planner for a
    finished plan."""
    raised = tuple(raise_limits(evidence.result))
    if raised:
        yield Remedy("To continue with higher limits", raised)
    elif evidence.is_done:
        yield REPLAN


def find_repeated_issues(evidence: Evidence) -> Iterator[Finding]:
    """Find the same issue in three reviews or more: of one type at one step, or in the same
    words."""
    found: defaultdict[tuple[str, ...], dict[int, ValidationIssue]] = defaultdict(dict)
    for record in evidence.passes:
        report = record.evaluation_results.validation_report
        for issue in report.issues if report else ():
            for key in _keys_of(issue):
                found[key][record.pass_number] = issue
    # One that is the same by its step and by its words is found twice.
    repeated = {tuple(by_pass): by_pass for by_pass in found.values()}
    often = sorted(repeated.values(), key=len, reverse=True)
    for by_pass in often[:_MOST_STEPS]:
        if len(by_pass) >= _MOST_REVIEWS:
            yield _describe_repeated_issue(evidence, by_pass)


def _describe_repeated_issue(evidence: Evidence, by_pass: Mapping[int, ValidationIssue]) -> Finding:
    number = max(by_pass)
    last = by_pass[number]
    steps = {issue.step_id for issue in by_pass.values()}
    place = f" at `{last.step_id}`" if len(steps) == 1 and last.step_id else ""
    kind = last.type.replace("_", " ")
    return Finding(
        title=f"{len(by_pass)} reviews found the same issue{place}: {kind}, "
        f"in {name_passes(by_pass)}",
        rank=evidence.rank_of("cost"),
        weight=25 if evidence.ended_well else 78,
        evidence=shorten(last.description, WORDS),
        advice="The changes of the plan between these reviews did not settle it.",
        anchor=f"issue-{number}-{last.issue_id}",
        remedies=(REPLAN,),
    )


def _keys_of(issue: ValidationIssue) -> Iterator[tuple[str, ...]]:
    """Return the features that make two issues the same; an issue of LOW severity requires no
    change."""
    if issue.severity == SEVERITIES[0]:
        return
    if issue.step_id:
        yield issue.type, issue.step_id
    yield (" ".join(issue.description.split()),)


def find_undone_work(evidence: Evidence) -> Iterator[Finding]:
    """Find a text that returns to an earlier version after a different one: the answer, else a
    step's output or description."""
    returned = _find_return(evidence.answers)
    if returned:
        yield _undone(evidence, "The answer", returned)
        return
    texts: defaultdict[tuple[str, str], dict[int, str]] = defaultdict(dict)
    for record in evidence.passes:
        for step in record.steps:
            texts["output", step.step_id][record.pass_number] = step.step_output or ""
            texts["description", step.step_id][record.pass_number] = step.description
    for (name, step_id), by_pass in texts.items():
        returned = _find_return(by_pass)
        if returned:
            yield _undone(evidence, f"The {name} of `{step_id}`", returned)
            return


def _find_return(texts: dict[int, str]) -> tuple[int, int, int] | None:
    """Return the last three passes of which the first and the third have one text, and the second
    another."""
    stretches: list[tuple[int, int, str]] = []  # the first and the last pass that have a text
    for number, text in texts.items():
        if not text.strip():
            continue
        if stretches and stretches[-1][2] == text:
            stretches[-1] = (stretches[-1][0], number, text)
        else:
            stretches.append((number, number, text))
    last: dict[str, int] = {}  # the place of the last stretch with a text
    found = None
    for place, (begins, _, text) in enumerate(stretches):
        if text in last:
            found = stretches[last[text]][1], stretches[place - 1][1], begins
        last[text] = place
    return found


def _undone(evidence: Evidence, what: str, passes: tuple[int, int, int]) -> Finding:
    earlier, between, later = passes
    return Finding(
        title=f"{what} went back: in pass {later} it is the text of pass {earlier} again",
        rank=evidence.rank_of("cost"),
        weight=82 if not evidence.ended_well else 35,
        evidence=f"What pass {between} had changed was undone.",
        anchor=f"answer-{later}",
        remedies=(REPLAN,),
    )


def find_refused_changes(evidence: Evidence) -> Iterator[Finding]:
    """Find changes of the plan that were refused; the cause where the last refinement had no other,
    and not the budget refused them."""
    refused = evidence.result.refused_actions
    if not refused:
        return
    refined = ((one.pass_number, one.refinement) for one in evidence.passes if one.refinement)
    anchors = (f"pass-{number}" for number, refinement in refined if refinement.refused)
    is_cause = _is_held_back(evidence)
    verb = "was" if len(refused) == 1 else "were"
    yield Finding(
        title=f"{count_noun(len(refused), 'change')} of the plan {verb} refused: "
        f"{_name_actions(refused)}",
        rank="cause" if is_cause else "cost",
        weight=70 if is_cause else 15,
        evidence=shorten(refused[-1].reason, WORDS),
        anchor=next(anchors, "plan"),
        remedies=(REPLAN,) if is_cause else (),
    )


def _is_held_back(evidence: Evidence) -> bool:
    """Check whether a run did not end well, and every change of its last refinement was refused,
    not all of them for the budget."""
    refined = [one.refinement for one in evidence.passes if one.refinement]
    if evidence.ended_well or not refined or refined[-1].accepted:
        return False
    return not all(one.for_budget for one in refined[-1].refused)


def _name_actions(refused: tuple[RefusedAction, ...]) -> str:
    counted = Counter(f"{one.action.action_type} `{one.action.fragment}`" for one in refused)
    names = [
        f"{name} ({times} times)" if times > 1 else name for name, times in counted.most_common(4)
    ]
    return ", ".join(names)


def find_left_to_a_person(evidence: Evidence) -> Iterator[Finding]:
    """Find fragments that refinement gave up."""
    kinds = ("manual_intervention", "refinement_limit")
    left = [one for one in evidence.result.advisories if one.kind in kinds]
    if left:
        yield Finding(
            title="Something is left to a person",
            rank=evidence.rank_of("doubt"),
            weight=45,
            evidence=shorten(left[-1].message, WORDS),
            anchor="advisories",
        )


def find_default_profile(evidence: Evidence) -> Iterator[Finding]:
    """Find a task that could not be profiled, so that the default profile set the budget."""
    used = [one for one in evidence.result.advisories if one.kind == "profile_fallback"]
    if used:
        yield Finding(
            title="The task has no profile of its own from the model",
            rank="cost",
            weight=10,
            evidence=shorten(used[0].message, WORDS),
            anchor="advisories",
        )
