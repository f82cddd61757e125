"""The end of a run: the verdict, its figures, and its open points."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from aeon.adaptive.heuristics import count_units
from aeon.adaptive.table import complete_table
from aeon.domain.assessment import SCORE_CODES
from aeon.domain.checks import CheckOutcome, count_passed
from aeon.domain.graph import count_expected_calls, count_passes, final_steps
from aeon.domain.history import AdvisoryKind, SampleRecord
from aeon.domain.plan import FollowUpQuestion, Plan, PlanStep
from aeon.domain.profile import OWN_LEVELS, TTLTable
from aeon.domain.result import (
    BaselineReport,
    DegradationKind,
    Overrun,
    RunResult,
    Saved,
    TokenUsage,
    UsageReport,
)
from aeon.execution.settings import UNJUDGED_MODES
from aeon.report.bought import count_open_issues
from aeon.report.partial import PartialResult
from aeon.report.scores import describe_repeats
from aeon.report.words import (
    answer_command,
    command_of,
    count_noun,
    format_threshold,
    list_names,
    one_line,
    relative_to_here,
    round_down,
)

Points = list[tuple[str, str]]
REPORT = "report.html"
"""The page of a run, in its directory."""
_MOST = 8
_LONGEST = 300
SMALL_GAP = 0.05
"""How far below its threshold a score may be for what there is to be offered as good enough."""
_VERDICTS = {
    "converged": "Converged",
    "completed": "Completed",
    "failed": "Failed",
    "interrupted": "Interrupted",
    "waiting": "Waiting for a person",
    "step_failed": "Finished, but not every step is complete",
    "check_failed": "Finished, but a required check failed",
}
_MOST_TIMES = 1000
_REASONS = {
    "ttl_expired": "the TTL is spent",
    "stalled": "no step was ready and nothing changed",
    "plateau": "the last passes gained nothing",
}
_COMPARED = {"better": "better than", "as_good": "as good as", "worse": "worse than"}
_CAPS = {
    "max_tokens": "{} tokens",
    "max_cost": "{} on cost",
    "max_seconds": "{} s",
}
_STATES = {
    "running": "Still running: this is what its journals tell so far.",
    "cut off": "Cut off: there is no result, and this is what its journals tell.",
    "unfinished": "Running or cut off: there is no result, and this is what its journals tell.",
    "plan": "A plan alone was made: this is what its journals tell.",
}
LACKS: Mapping[DegradationKind, str] = {
    "tool_missing": "missing tool",
    "server_down": "server down",
    "review_lost": "lost review",
    "comparison_lost": "lost comparison",
    "tools_ended": "look-ups cut short",
}
"""The words for what a run did without."""


def find_page(directory: Path) -> Path | None:
    """Return the page in a run's directory, as it can be typed here; None where there is none."""
    page = directory / REPORT
    return relative_to_here(page) if page.is_file() else None


def headline(result: RunResult) -> str:
    """Return the sentence that every screen begins with: how the run ended, and what was
    missing."""
    clauses = [verdict(result).removesuffix("."), *_list_exceeded_caps(result)]
    clauses += [*_steps_not_done(result), *_fallbacks(result)]
    if result.converged and result.open_issues:
        clauses.append(count_open_issues(result.open_issues))
    clauses += [describe_samples(one) for one in _find_samples(result)[-1:]]
    if result.checks:
        clauses.append(f"checks passed {count_passed(result.checks)}")
    clauses += _describe_judge(result)
    if result.baseline:
        clauses.append(describe_baseline(result.baseline))
    return f"{'; '.join(clauses)}."


def _describe_judge(result: RunResult) -> Iterator[str]:
    if result.self_judged and (result.assessed_pass or result.baseline):
        yield "judged by the model that did the work"
    if result.converged and _list_advisories(result, "not_calibrated"):
        yield "not judged as the thresholds were calibrated"


def _list_advisories(result: RunResult, kind: AdvisoryKind) -> list[str]:
    return [one.message for one in result.advisories if one.kind == kind]


def _find_samples(result: RunResult) -> list[SampleRecord]:
    """Return how the answer was chosen, where its step had several."""
    passes = result.history.passes
    plan = next((one.plan_state for one in reversed(passes) if one.plan_state), None)
    answering = {step.step_id for step in final_steps(plan)} if plan else set()
    return [
        done.samples
        for one in passes
        for step_id, done in one.execution_results.items()
        if step_id in answering and done.samples
    ]


def describe_samples(samples: SampleRecord) -> str:
    """Describe how many answers a step had, and how one was chosen."""
    lost = samples.asked - samples.usable
    without = f", {lost} of them unusable" if lost else ""
    return f"chosen of {count_noun(samples.asked, 'answer')}{without}: {samples.reason}"


def describe_baseline(baseline: BaselineReport) -> str:
    """Describe how the answer compares with that of one direct call, and at what price."""
    if baseline.outcome == "unknown":
        return "could not be compared with one direct call"
    price = f", at {baseline.times:.3g} times the tokens" if baseline.times else ""
    return f"{_COMPARED[baseline.outcome]} one direct call{price}"


def verdict(result: RunResult) -> str:
    """Describe how the run ended, in a sentence, without what was missing."""
    if isinstance(result, PartialResult):
        return _STATES[result.state]
    reason = result.termination_reason
    verb = "completing" if _is_core(result) else "converging"
    why = _REASONS.get(reason) or _describe_cap(result)
    return f"{_VERDICTS.get(reason, f'Finished without {verb}: {why} ({reason})')}."


def _describe_cap(result: RunResult) -> str:
    reason = result.termination_reason
    overrun = result.overrun
    if overrun is None or (overrun.limit or reason) != reason:
        return f"limits.{reason} was reached"
    return _describe_overrun(overrun, reason, "reached")


def _list_exceeded_caps(result: RunResult) -> list[str]:
    """Return the cap that the last calls exceeded, in a run that it did not end."""
    overrun = result.overrun
    if overrun is None or (overrun.limit or result.termination_reason) == result.termination_reason:
        return []
    return [_describe_overrun(overrun, overrun.limit, "exceeded")]


def _describe_overrun(overrun: Overrun, limit: str, how: str) -> str:
    cap = _CAPS[limit].format(_format_figure(overrun.cap))
    return f"the cap of {cap} was {how} with {_format_figure(overrun.used)}"


def _format_figure(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.6g}"


def tone(result: RunResult) -> Literal["good", "warn", "bad"]:
    """Return the tone of an end: `good` (green) only where the run lacked nothing, `bad` where it
    failed."""
    if result.exit_status == 1:
        return "bad"
    return "good" if result.exit_status == 0 and not result.degraded else "warn"


def _steps_not_done(result: RunResult) -> list[str]:
    """Return the unfinished steps of a run that converged; for other ends, the open points name
    them."""
    if not result.converged:
        return []
    total = sum(step.replaced_by is None for step in _steps(result))
    left = list(result.steps_left.values())
    pending = left.count("pending")
    failed = left.count("failed")
    counted = {
        "not needed and did not run": pending,
        "not completed: failed": failed,
        "not completed: blocked or invalid": len(left) - pending - failed,
    }
    return [f"{_of_steps(number, total)} {what}" for what, number in counted.items() if number]


def _fallbacks(result: RunResult) -> list[str]:
    counted = Counter(
        one.kind for one in result.degraded if one.step is None or one.step not in result.steps_left
    )
    total = sum(step.replaced_by is None for step in _steps(result))
    return [_describe_lack(kind, counted[kind], total) for kind in LACKS if counted[kind]]


def _describe_lack(kind: DegradationKind, number: int, total: int) -> str:
    """Describe what a run with `total` steps lacked `number` times."""
    match kind:
        case "tool_missing":
            tools = "its tool" if number == 1 else "their tools"
            return f"{_of_steps(number, total)} done by the model instead of {tools}"
        case "server_down":
            return f"{count_noun(number, 'MCP server')} did not start"
        case "review_lost":
            return f"{name_lost_reviews(number)} could not be had"
        case "comparison_lost":
            return f"{count_noun(number, 'comparison')} could not be had"
        case _:
            return f"{_of_steps(number, total)} finished while tools were still asked for"


def name_lost_reviews(number: int) -> str:
    """Count the lost `review or assessment`: of a plan by the reviewer, of an answer by the
    judge."""
    return "1 review or assessment" if number == 1 else f"{number:,} reviews or assessments"


def _of_steps(number: int, total: int) -> str:
    return f"{number} of {count_noun(total, 'step')} {'was' if number == 1 else 'were'}"


def describe_spent(result: RunResult) -> str:
    """Describe passes, TTL, calls, tokens and cost, and what reused answers saved."""
    total = result.usage.total
    head = f"Passes: {result.passes}, TTL {result.ttl.used} of {result.ttl.allocated}"
    if is_replay(result):
        differing = result.parent.differing if result.parent else 0
        replayed = f"{head}, {count_noun(total.requests, 'answer')} from a recording."
        if not differing:
            return replayed
        return f"{replayed} Requests that are not those that had been recorded: {differing}."
    spent = f"{head}, {count_noun(total.requests, 'call')}, {total.total_tokens} tokens"
    spent += _describe_cache(total)
    sentences = [f"{spent}{_describe_cost(result)}", *_describe_endpoints(result)]
    saved = _describe_saved(result.parent.saved) if result.parent else ""
    if saved:
        sentences.append(f"Saved: {saved}")
    return " ".join(f"{sentence}." for sentence in sentences)


def _describe_cache(used: TokenUsage) -> str:
    """Describe how much of the input was read from the provider's cache, and written to it."""
    if not used.cached_tokens and not used.cache_write_tokens:
        return ""
    read = used.cached_tokens
    written = used.cache_write_tokens
    return f" ({read} read from the provider's cache, {written} written to it)"


def _describe_cost(result: RunResult) -> str:
    if result.usage.total.cost is not None:
        return f", cost {result.usage.total.cost:.4f}"
    unknown = why_cost_is_unknown([result.usage])
    return f", cost unknown ({unknown})" if unknown else ""


def _describe_endpoints(result: RunResult) -> Iterator[str]:
    """Describe how many requests each endpoint answered, where not only the first did."""
    endpoints = result.provider.endpoints
    first = result.configuration["provider"].get("name", result.provider.kind)
    if set(endpoints) - {first}:
        counted = ", ".join(f"{name} {number}" for name, number in endpoints.items())
        yield f"Answered by: {counted}"


def _describe_saved(saved: Saved) -> str:
    parts = []
    if saved.model_calls:
        parts += [count_noun(saved.model_calls, "call"), f"{saved.total_tokens} tokens"]
    if saved.cost:
        parts.append(f"cost {saved.cost:.4f}")
    if saved.tool_calls:
        parts.append(count_noun(saved.tool_calls, "tool call"))
    return ", ".join(parts)


def why_cost_is_unknown(usages: Iterable[UsageReport]) -> str:
    """Name the models without a price, and those whose server did not report usage; empty without
    any."""
    unpriced = set[str]()
    unreported = set[str]()
    for usage in usages:
        unpriced.update(usage.unpriced)
        unreported.update(usage.unreported)
    named = (("no price for", unpriced), ("no usage reported for", unreported))
    return "; ".join(f"{what} {', '.join(sorted(models))}" for what, models in named if models)


def open_questions(questions: Iterable[FollowUpQuestion]) -> list[str]:
    """Return the questions without an answer, each once, with the assumption made meanwhile."""
    texts = (
        f"{one.question.rstrip()} (assumed: {one.assumption.strip().rstrip('.')})"
        for one in questions
        if one.answer is None
    )
    return [one_line(text, 400) for text in dict.fromkeys(texts)]


def open_points(result: RunResult) -> Points:
    """Return the open points of a run, as names and texts: what it waits for, what was missing,
    scores below their threshold, unmet criteria, issues, steps that lack something, and the
    questions that only a person can answer; at most 8 of each kind."""
    waits: Points = [(one.kind, f"{one.id}: {one.text}") for one in result.waits_for]
    kinds = [
        waits,
        [(LACKS[one.kind], f"{one.message}. {one.remedy}") for one in result.degraded],
    ]
    if result.exit_status:
        kinds += _gaps(result)
    kinds.append([("judge", text) for text in _list_advisories(result, "not_calibrated")])
    kinds.append([("question", text) for text in open_questions(result.follow_up_questions)])
    return [(name, one_line(text, _LONGEST)) for kind in kinds for name, text in kind[:_MOST]]


def _gaps(result: RunResult) -> list[Points]:
    """Return what prevented the intended end, by kind."""
    checks = [(f"check {one.name}", _describe_check(one)) for one in result.checks if one.blocks]
    left = [one for one in result.advisories if one.kind == "manual_intervention"]
    low = [
        (name, f"{round_down(score):.2f} ({describe_threshold(result, name, threshold)})")
        for name, score, threshold in _low_scores(result)
    ]
    for_person = [("for you", one.message) for one in left]
    return [checks, low, *_objections(result), *_open_steps(_steps(result)), for_person]


def _describe_check(check: CheckOutcome) -> str:
    """Describe a failed check."""
    failed = "failed" if check.measured else "could not be had"
    return f"{failed}: {check.feedback}" if check.feedback else failed


def _objections(result: RunResult) -> tuple[Points, Points]:
    """Return the criteria that were not met, and the issues that blocked."""
    assessed = result.history.final_convergence
    if assessed is None:
        return [], []
    checks = {check.name for check in result.checks}
    unmet = [one for one in assessed.criteria if not one.met and one.name not in checks]
    issues = [("issue", text) for text in assessed.blocking_issues]
    return [(f"not met, {one.name}", one.reason) for one in unmet], issues


def _open_steps(steps: Sequence[PlanStep]) -> tuple[Points, Points]:
    """Return the steps that lack something, and those that were not done."""
    lacking = [step for step in steps if step.state in ("failed", "blocked", "invalid")]
    named = [(how, list_names(names)) for how, names in list_undone(steps).items()]
    return [(step.state, _lack(step)) for step in lacking], named


def list_undone(steps: Iterable[PlanStep]) -> dict[str, list[str]]:
    """Return the pending steps: those that the end cut off or kept from beginning, `not finished`,
    and those whose turn had not come, `not reached`."""
    undone: dict[str, list[str]] = {}
    for step in steps:
        if step.state == "pending":
            how = "not finished" if step.incomplete else "not reached"
            undone.setdefault(how, []).append(step.step_id)
    return dict(sorted(undone.items()))


def _low_scores(result: RunResult) -> list[tuple[str, float, float]]:
    return [one for one in scores(result) if one[1] < one[2]]


def _lack(step: PlanStep) -> str:
    error = step.errors[-1] if step.errors else ""
    reason = error if step.status == "failed" else step.clarity_reason or error
    return f"{step.step_id}: {reason or step.description}"


def list_ways_to_answer(directory: Path) -> Points:
    """Return the commands for a run that waits for a person."""
    return [
        ("To answer", answer_command(directory)),
        ("Then, to go on", resume_command(directory)),
    ]


def ask_for_more(result: RunResult, directory: Path) -> Points:
    """Return the command for a higher threshold than the score, after a run that converged and
    leaves nothing to do."""
    if not result.converged or not result.scores or not is_resumable(result):
        return []
    completeness = result.scores.completeness_score or 0.0
    higher = math.ceil(50 * (1 + completeness) - 1e-9) / 100
    if higher <= completeness or higher >= 1:
        return []
    more = f"{resume_command(directory)} convergence.completeness={higher:g}"
    return [("To ask for more, from these answers on", more)]


def raise_limits(result: RunResult) -> list[str]:
    """Return the overrides that raise the limit which ended the run: at least twofold, and enough
    for the calls and passes that the plan was expected to take."""
    reason = result.termination_reason
    configuration = result.configuration
    limits = configuration["limits"]
    if reason == "ttl_expired":
        return _raise_budget(result)
    if reason == "max_passes" and limits[reason]:
        return [f"limits.{reason}={max(2 * limits[reason], estimate_passes(result))}"]
    if reason.startswith("max_") and limits[reason]:
        return [f"limits.{reason}={_times_needed(result) * limits[reason]}"]
    if result.exit_status and any(one.kind == "refinement_limit" for one in result.advisories):
        return [
            f"refinement.max_attempts_total={2 * configuration['refinement']['max_attempts_total']}"
        ]
    return []


def _times_needed(result: RunResult) -> int:
    """Return how many times what it used a run is expected to need, at least twice."""
    calls = result.usage.total.requests
    if not calls or not result.history.passes:
        return 2
    return max(2, math.ceil(estimate_cycles(result) / calls))


def _raise_budget(result: RunResult) -> list[str]:
    limits = result.configuration["limits"]
    ttl = result.configuration["ttl"]
    needed = max(2 * result.ttl.allocated, estimate_cycles(result))
    base = needed if _is_core(result) else _base_for(result, needed)
    bounds = {"ttl.limit": ttl["limit"], "limits.max_llm_calls": limits["max_llm_calls"]}
    raised = [f"{key}={needed}" for key, bound in bounds.items() if bound and bound < needed]
    return [f"ttl.base={base}", *raised]


def estimate_cycles(result: RunResult) -> int:
    """Return the cycles that the plan was expected to take when it was made; a little more, where
    steps are tools with arguments."""
    steps = result.history.passes[0].steps
    plan = Plan(goal="", steps=steps)
    return len(steps) if _is_core(result) else count_expected_calls(plan)


def estimate_passes(result: RunResult) -> int:
    """Return the fewest passes that the plan took when it was made."""
    steps = result.history.passes[0].steps
    return count_passes(Plan(goal="", steps=steps), one_by_one=_is_core(result))


def describe_few_passes(plan: Plan, most: int | None, *, one_by_one: bool) -> str:
    """Describe a plan that takes more passes than `most`, with the key to raise; else empty."""
    needed = count_passes(plan, one_by_one=one_by_one)
    if most is None or needed <= most:
        return ""
    return (
        f"it takes {needed} passes, limits.max_passes={most} allows {most}: "
        f"raise it to at least {needed}"
    )


def _base_for(result: RunResult, needed: int) -> int:
    """Return the least multiple of the base, at least twofold, that gives every profile of the run
    the `needed` cycles."""
    given = complete_table(result.configuration["ttl"])
    table = TTLTable.model_validate(given, context=OWN_LEVELS)
    profiles = [passed.taskprofile for passed in result.history.passes if passed.taskprofile]
    for base in range(2 * table.base, _MOST_TIMES * table.base, table.base):
        if all(count_units(profile, table, base) >= needed for profile in profiles):
            return base
    return 2 * table.base  # a table that gives nothing for its base


def resume_command(directory: Path) -> str:
    """Return the command that resumes the run of a directory."""
    return command_of((f"resume={relative_to_here(directory)}",))


def scores(result: RunResult) -> list[tuple[str, float, float]]:
    """Return the scores of the answer's assessment, each with its name and its threshold."""
    given = result.scores.model_dump() if result.scores else {}
    found = [
        (name, given.get(f"{name}_score"), result.configuration["convergence"][name])
        for name in SCORE_CODES
    ]
    return [(name, score, bar) for name, score, bar in found if score is not None]


def describe_threshold(result: RunResult, name: str, threshold: float) -> str:
    """Describe the threshold of one of the `scores`, and how far its judgements went apart."""
    judged = (
        passed.evaluation_results.convergence
        for passed in result.history.passes
        if passed.pass_number == result.assessed_pass
    )
    repeats = describe_repeats(next(judged, None), name)
    return f"threshold {format_threshold(threshold)}{repeats and f'; {repeats}'}"


def _steps(result: RunResult) -> tuple[PlanStep, ...]:
    return result.history.passes[-1].steps if result.history.passes else ()


def _is_core(result: RunResult) -> bool:
    return result.configuration["mode"]["kind"] in UNJUDGED_MODES


def asks_again(result: RunResult) -> bool:
    """Check whether a resumed run would repeat a call, because its answer could not be used."""
    return bool(result.exit_status and result.unusable_calls)


def is_replay(result: RunResult) -> bool:
    """Check whether a recording answered, so that no model and no tool was called."""
    return bool(result.configuration["store"]["mode"] == "replay")


def is_under_way(result: RunResult) -> bool:
    """Check whether the run may still be under way, or only made a plan: it cannot be resumed."""
    return isinstance(result, PartialResult) and result.state in ("running", "plan")


def is_resumable(result: RunResult) -> bool:
    """Check whether any answers are stored: a model's, or those of tools that completed a step."""
    answered = bool(result.usage.total.requests) or any(
        step.status == "complete" for step in _steps(result)
    )
    return answered and result.configuration["store"]["mode"] in ("record", "cache")
