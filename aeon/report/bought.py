"""What the passes of a run bought: its first whole answer compared with its final one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

from aeon.domain.assessment import ComparedWithEarlier
from aeon.domain.checks import count_passed
from aeon.domain.history import ExecutionHistory, ExecutionPass
from aeon.domain.outcome import JudgedPass, count_passes_without_gain, find_judged
from aeon.domain.report import HARMLESS, SEVERITIES
from aeon.domain.result import AnswerPoint, OpenIssue, PassesBought, RunResult, TokenUsage
from aeon.report.diff import measure_change
from aeon.report.scores import find_answering_pass, read_scores
from aeon.report.words import count_noun, round_down

UsageUpTo = Callable[[int], TokenUsage]


def find_bought(result: RunResult, usage_up_to: UsageUpTo) -> PassesBought | None:
    """Return the first whole answer of a run and the final one, each with its usage by the end of
    its evaluation (`usage_up_to` a pass). None where passes made no whole answer."""
    history = result.history
    total_tokens = result.usage.total.total_tokens
    whole = [one for one in history.passes if one.answer_complete and one.answer.strip()]
    last_whole = find_answering_pass(whole, result)
    if last_whole is None:
        return None
    began = result.timings.start_time
    first, last = (
        _describe_point(began, one, usage_up_to(one.pass_number)) for one in (whole[0], last_whole)
    )
    later = history.passes[first.pass_number + 1 :]
    later_tokens = total_tokens - first.tokens if later else 0
    judged = find_judged(history.passes)
    return PassesBought(
        first=first,
        last=last,
        later_passes=len(later),
        later_share=later_tokens / max(1, total_tokens),
        changed=measure_change(whole[0].answer, result.answer),
        comparisons=_count_comparisons(later),
        last_gain=_find_last_gain(history, judged),
        last_judged=judged[-1].passed.pass_number if judged else None,
    )


def _count_comparisons(passes: Sequence[ExecutionPass]) -> Counter[ComparedWithEarlier]:
    compared = (one.evaluation_results.comparison for one in passes)
    return Counter(one.outcome for one in compared if one is not None)


def _describe_point(began: str, one: ExecutionPass, usage: TokenUsage) -> AnswerPoint:
    checks = one.evaluation_results.checks
    return AnswerPoint(
        pass_number=one.pass_number,
        checks=count_passed(checks) if checks else None,
        scores=_read_scores(one),
        tokens=usage.total_tokens,
        cost=usage.cost,
        seconds=_measure_seconds(began, one),
    )


def _read_scores(one: ExecutionPass) -> dict[str, float]:
    assessment = one.evaluation_results.convergence
    return read_scores(assessment) if assessment else {}


def _measure_seconds(began: str, one: ExecutionPass) -> float:
    """Return the seconds from when the run `began` to the end of the pass's evaluation."""
    ends = [phase.end_time for phase in one.phases if phase.phase == "EVALUATE" and phase.end_time]
    end = ends[-1] if ends else one.timing_information.end_time
    return (datetime.fromisoformat(end) - datetime.fromisoformat(began)).total_seconds()


def _find_last_gain(history: ExecutionHistory, judged: Sequence[JudgedPass]) -> int | None:
    """Return the judged pass after which nothing was gained; None where none was judged."""
    configured = history.configuration.get("convergence_criteria") or {}
    count = count_passes_without_gain(history.passes, configured.get("min_gain") or 0.0)
    return judged[-1 - count].passed.pass_number if judged else None


def find_open_issues(judged: ExecutionPass | None) -> tuple[OpenIssue, ...]:
    """Return the faults that review and judge found in the answer of a pass, the review's first;
    a harmless one that both found is the review's."""
    if judged is None:
        return ()
    results = judged.evaluation_results
    issues = results.validation_report.issues if results.validation_report else ()
    found = results.convergence.metadata.get("issues", ()) if results.convergence else ()
    reviewed = (
        OpenIssue(
            source="review",
            kind=issue.type,
            severity=issue.severity,
            description=issue.description,
            step_id=issue.step_id,
        )
        for issue in issues
    )
    of_judge = (
        OpenIssue(
            source="judge",
            kind=raw["kind"],
            severity=None if raw.get("blocking") else HARMLESS,
            description=raw["description"],
        )
        for raw in found
        if raw.get("blocking") or raw.get("review_issue") is None
    )
    return (*reviewed, *of_judge)


def count_open_issues(issues: Sequence[OpenIssue]) -> str:
    """`3 known faults left (2 MEDIUM)`; empty without any."""
    if not issues:
        return ""
    severities = Counter(issue.severity for issue in issues if issue.severity)
    named = [f"{severities[name]} {name}" for name in reversed(SEVERITIES) if severities[name]]
    graded = f" ({', '.join(named)})" if named else ""
    return f"{count_noun(len(issues), 'known fault')} left{graded}"


def describe_bought(bought: PassesBought | None) -> str:
    """Describe in one sentence the usage of a run after the evaluation of its first whole answer,
    and what was gained; empty without a whole answer."""
    if bought is None:
        return ""
    first = bought.first.pass_number
    if not bought.later_passes:
        return f"The first whole answer, of pass {first}, was the last."
    end = first + bought.later_passes
    share = f"{bought.later_share:.0%} of the tokens"
    clauses = [f"What came after the evaluation of pass {first} took {share}"]
    clauses += _describe_change(bought, end)
    clauses += [
        _COMPARED[outcome].format(
            count_noun(number, "changed answer"), "was" if number == 1 else "were"
        )
        for outcome, number in bought.comparisons.items()
    ]
    clauses += _describe_gain(bought, end)
    return f"{'; '.join(clauses)}."


def _describe_gain(bought: PassesBought, end: int) -> Iterator[str]:
    """Describe the passes that gained nothing, and those up to the `end` that nobody judged."""
    gained = bought.last_gain
    judged = bought.last_judged
    if gained is None or judged is None:
        return
    if gained < judged:
        yield f"nothing was gained after pass {gained}"
    if judged < end:
        yield f"no pass after pass {judged} was judged"


def _describe_change(bought: PassesBought, end: int) -> list[str]:
    first = bought.first
    last = bought.last
    if first.pass_number == last.pass_number:
        return [f"the answer is still that of pass {first.pass_number}"]
    if not bought.changed:
        return ["the answer stayed", *_describe_difference(first, last)]
    earlier = "" if last.pass_number == end else f"is that of pass {last.pass_number}, and "
    changed = f"the answer {earlier}changed by {bought.changed:.0%}"
    return [changed, *_describe_difference(first, last)]


_COMPARED: Mapping[ComparedWithEarlier, str] = {
    "better": "{} {} found better",
    "as_good": "{} {} found as good",
    "worse": "{} {} found worse, and set back",
    "unknown": "{} could not be compared, and {} set back",
}


def _describe_difference(first: AnswerPoint, last: AnswerPoint) -> list[str]:
    clauses = []
    if first.checks and last.checks:
        clauses.append(f"checks {first.checks}, then {last.checks}")
    if first.scores and last.scores:
        before = round_down(min(first.scores.values()))
        after = round_down(min(last.scores.values()))
        clauses.append(f"least score {before:.2f}, then {after:.2f}")
    return clauses
