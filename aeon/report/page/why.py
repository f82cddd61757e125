"""One sentence on why a run ended as it did."""

from __future__ import annotations

from collections.abc import Iterator

from aeon.domain.checks import find_failed_codes
from aeon.domain.result import RunResult
from aeon.execution.settings import UNJUDGED_MODES
from aeon.report.diagnosis.finding import join_names
from aeon.report.diagnosis.judging import name_issue_kind
from aeon.report.patterns import Patterns
from aeon.report.scores import Blocker
from aeon.report.words import count_noun, format_threshold, round_down, shorten

_HELD = {"BLOCKED": "is BLOCKED", "failed": "failed"}


def explain_end(result: RunResult, patterns: Patterns) -> str:
    """Return the scores with their thresholds, the criterion, the issue or the step that decided
    the end; empty where none of these did."""
    if result.error is not None:
        return f"{result.error.type}: {shorten(result.error.message, 400)}"
    if result.configuration["mode"]["kind"] in UNJUDGED_MODES:
        return _explain_unjudged(result)
    if result.converged and patterns.assessed:
        return _explain_convergence(result, patterns)
    missing = [*_name_blockers(patterns), *_name_held_steps(result)]
    if missing:
        after = f"After {count_noun(result.passes, 'pass')}, {_name_earlier(result, patterns)}"
        return f"{after}{'; '.join(missing)}."
    return "" if patterns.assessed else "No pass was judged."


def _explain_unjudged(result: RunResult) -> str:
    failed = find_failed_codes(result.checks)
    if failed:
        names = join_names(list(failed), most=8)
        return f"Every step is complete, and the answer fails {names}."
    return "In core mode the plan is carried out step by step, and nothing is judged."


def _explain_convergence(result: RunResult, patterns: Patterns) -> str:
    judged = {one.pass_number: one for one in patterns.assessed}
    last = judged.get(result.assessed_pass or 0, patterns.assessed[-1])
    reached = [
        f"{name} {_compare_score(value, patterns.thresholds[name])}"
        for name, value in last.scores.items()
    ]
    if last.criteria:
        reached.append(f"{join_names(list(last.criteria), most=8)} met")
    return f"Pass {last.pass_number} reached every threshold: {'; '.join(reached)}."


def _name_earlier(result: RunResult, patterns: Patterns) -> str:
    """Name the pass that the answer is from, where a later one was judged."""
    judged = [one.pass_number for one in patterns.assessed]
    is_earlier = result.assessed_pass in judged[:-1]
    return f"the answer is that of pass {result.assessed_pass}: " if is_earlier else ""


def _compare_score(score: float, threshold: float) -> str:
    return f"{round_down(score):.2f} (threshold {format_threshold(threshold)})"


def _name_blockers(patterns: Patterns) -> Iterator[str]:
    for one in patterns.blockers:
        if one.at_end:
            yield _name_blocker(one)


def _name_blocker(one: Blocker) -> str:
    if one.kind == "score" and one.last is not None and one.threshold is not None:
        return f"{one.score} is {_compare_score(one.last, one.threshold)}"
    if one.kind == "criterion":
        return f"the criterion `{one.code}` is not met"
    if one.kind == "check":
        return f"the check `{one.code}` {'failed' if one.measured else 'could not be measured'}"
    if one.kind == "reason":
        return f"the judge gave the reason `{one.code}`"
    if one.kind == "unavailable":
        return "the judge gave no usable assessment"
    return f"a blocking issue stands{name_issue_kind(one.code)}"


def _name_held_steps(result: RunResult) -> Iterator[str]:
    for step in result.history.passes[-1].steps if result.history.passes else ():
        if step.standing in _HELD:
            yield f"the step `{shorten(step.step_id, 60)}` {_HELD[step.standing]}"
