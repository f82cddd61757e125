"""The judge's contradictions: other scores for the same answer, and scores that its own words deny."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aeon.domain.assessment import ConvergenceAssessment
from aeon.domain.result import RunResult
from aeon.report.page.calls import Item
from aeon.report.page.commands import WORDS, Cause, Way, name_passes
from aeon.report.page.passes import COMPARED, shorten, steps_carried_out
from aeon.report.patterns import Patterns
from aeon.report.words import list_names


def find_faults(
    result: RunResult, patterns: Patterns, items: Sequence[Item], stops: Sequence[Way]
) -> Iterator[Cause]:
    """Where the judge said two things that do not go together; `stops` are ways to do without passes without gain."""
    calls = {item.pass_number: item.key for item in items if item.kind == "convergence"}
    assessed = (
        (one.pass_number, one.evaluation_results.convergence) for one in result.history.passes
    )
    said = {number: assessment for number, assessment in assessed if assessment}
    ways = (Way("To have another model judge what is there", ("roles.grader.model=NAME",)),)
    for one in [one for one in patterns.judge_conflicts if one.kind == "same_work"][:3]:
        title = f"The judge contradicts itself: {one.name} went from {one.values[0]:.2f} to {one.values[-1]:.2f} "
        title += f"from pass {one.passes[0]} to pass {one.passes[-1]}, for the same answer"
        given = {number: shorten(_words_of(said[number], one.name), WORDS) for number in one.passes}
        told = [
            f"Pass {number}: {text or 'no reason.'}"
            for number, text in given.items()
            if any(given.values())
        ]
        words = "\n".join((_tell_changes(result, *one.passes), *told))
        links = tuple(
            (f"its call in pass {number}", calls[number])
            for number in one.passes
            if number in calls
        )
        anchor = f"judge-{one.passes[-1]}"
        yield Cause(
            title=title,
            words=words,
            anchor=anchor,
            links=links,
            ways=(*ways, *stops),
            is_cause=True,
        )
    if pairs := [one for one in patterns.judge_conflicts if one.kind == "pairs"]:
        where = sorted({number for one in pairs for number in one.passes})
        names = ", ".join(dict.fromkeys(one.name.replace("_", " and ") for one in pairs))
        title = f"The judge contradicts itself in {name_passes(where)}: every score is reached, "
        title += f"and yet these are said to disagree: {names}"
        stated = said[where[-1]].scores.consistency_status
        reasons = [stated[one.name].explanation for one in pairs if where[-1] in one.passes]
        words = shorten("; ".join(filter(None, reasons)), WORDS)
        links = tuple(
            (f"its call in pass {number}", calls[number]) for number in where[:4] if number in calls
        )
        yield Cause(title=title, words=words, anchor=f"judge-{where[-1]}", links=links, ways=ways)


def _words_of(said: ConvergenceAssessment, name: str) -> str:
    """What the judge said for a score or on a criterion."""
    reasons = [one.reason for one in said.criteria if one.name == name]
    return " ".join(reasons or (*said.detected_issues, said.explanation)).strip()


def _tell_changes(result: RunResult, first: int, last: int) -> str:
    """What is the same in two passes with the same answer and outputs, and what in the plan is not."""
    passes = result.history.passes
    before, after = (
        {step.step_id: step for step in steps_carried_out(passes[one])} for one in (first, last)
    )
    differing = [
        f"the {name.replace('_', ' ')} of `{step}`"
        for step in before.keys() & after.keys()
        for name in (*COMPARED, "clarity_state")
        if getattr(before[step], name) != getattr(after[step], name)
    ]
    if not differing:
        return "Neither the answer nor any step of the plan changed between."
    return f"The answer and the steps' outputs did not change between; {list_names(sorted(differing), 3)} did."
