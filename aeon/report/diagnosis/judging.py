"""Detectors in the judge's assessments: scores, criteria, issues and contradictions, also its
own."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aeon.domain.assessment import ConvergenceAssessment
from aeon.domain.report import ValidationIssue
from aeon.report.diagnosis.finding import (
    WORDS,
    Evidence,
    Finding,
    Remedy,
    join_names,
    name_passes,
)
from aeon.report.given import name_defaults
from aeon.report.scores import (
    NOTICEABLE,
    AssessedPass,
    Blocker,
    Regression,
    steps_carried_out,
)
from aeon.report.words import format_threshold, list_names, round_down, shorten

_OTHER_JUDGE = Remedy("To have another model judge the answer", ("roles.grader.model=NAME",))
_DOCTOR = Remedy("To see what each endpoint answers", program="doctor")
_LONGEST_TASK = 400
_MOST = 3
_WIDE = 0.1
"""From here on the spread of scores for one text hides what a pass gains, where all work is
done."""
_CONTENTS = {
    "description": "description",
    "dependencies": "dependencies",
    "tool": "tool",
    "arguments": "arguments",
    "handoff_to_next": "hand-off",
    "step_output": "output",
}
"""What a judge reads of a step, with the words for it."""
_CONTRADICTION = "contradiction_detected"
_QUOTED = re.compile(r"(?=([`'\"])(.+?)\1)")


def find_low_scores(evidence: Evidence) -> Iterator[Finding]:
    """Find scores below their threshold at the end."""
    for blocker in evidence.open_blockers:
        if blocker.kind != "score" or blocker.last is None or blocker.best is None:
            continue
        yield Finding(
            title=_describe_low_score(evidence, blocker),
            rank="cause",
            weight=40,
            evidence=shorten(" ".join(blocker.words), WORDS),
            advice=name_defaults(evidence.result, {f"convergence.{blocker.score}"}),
            anchor="scores",
        )


def _describe_low_score(evidence: Evidence, blocker: Blocker) -> str:
    name = str(blocker.score)
    values = [each.scores[name] for each in evidence.patterns.assessed if name in each.scores]
    if not values:
        return f"{name.capitalize()} is what the judge finds lacking; it gave no score"
    last = round_down(blocker.last if blocker.last is not None else values[-1])
    best = round_down(max(values))
    needs = f"its threshold is {format_threshold(blocker.threshold or 0.0)}"
    if len(values) > 1 and max(values) - min(values) < NOTICEABLE:
        passes = name_passes(each.pass_number for each in evidence.patterns.assessed)
        return f"{name.capitalize()} stays at {last:.2f} in {passes}; {needs}"
    more = f" (best: {best:.2f})" if best > last else ""
    return f"{name.capitalize()} ended at {last:.2f}; {needs}{more}"


def find_unmet_criteria(evidence: Evidence) -> Iterator[Finding]:
    """Find criteria that the assessment of the answer found not met."""
    for blocker in evidence.open_blockers:
        if blocker.kind != "criterion":
            continue
        yield Finding(
            title=f"The criterion `{blocker.code}` was not met in {name_passes(blocker.passes)}",
            rank="cause",
            weight=75,
            evidence=shorten(" ".join(blocker.words), WORDS),
            advice="Say in the task what it asks for, or word the criterion so that it can be met.",
            anchor=f"judge-{evidence.deciding_pass}",
            remedies=tuple(_meet_criterion(evidence, blocker.code)),
        )


def find_failed_checks(evidence: Evidence) -> Iterator[Finding]:
    """Find required checks that failed, or could not be measured, at the end."""
    for blocker in evidence.open_blockers:
        if blocker.kind == "check":
            outcome = f"failed in {name_passes(blocker.passes)}"
            advice = "Say in the task what it asks for, or correct the check."
            if not blocker.measured:
                outcome = f"could not be measured in pass {evidence.deciding_pass}"
                advice = "A resumed run asks for it again."
            yield Finding(
                title=f"The check `{blocker.code}` {outcome}",
                rank="cause",
                weight=85,
                evidence=shorten(" ".join(blocker.words), WORDS),
                advice=advice,
                anchor="checks",
            )


def _meet_criterion(evidence: Evidence, name: str) -> Iterator[Remedy]:
    criteria = evidence.result.configuration["convergence"]["criteria"]
    words = str(criteria.get(name) or "")
    task = f"{evidence.result.task.rstrip().rstrip('.')}. {words}"
    if words and len(task) <= _LONGEST_TASK:
        yield Remedy("To ask for it in the task", (f"task={task}",), anew=True)
    reword = (f"convergence.criteria.{name}=WORDS",)
    yield Remedy("To word the criterion so that it can be met", reword)


def find_blocking_issues(evidence: Evidence) -> Iterator[Finding]:
    """Find blocking issues of the answer's assessment, except contradictions, and the reasons that
    only a user's own judge knows."""
    for blocker in evidence.open_blockers:
        if blocker.kind not in ("issue", "reason") or blocker.code == _CONTRADICTION:
            continue
        passes = name_passes(blocker.passes)
        title = f"The judge gave the reason `{blocker.code}` in {passes}"
        if blocker.kind == "issue":
            title = f"The judge found a blocking issue{name_issue_kind(blocker.code)} in {passes}"
        yield Finding(
            title=title,
            rank="cause",
            weight=74,
            evidence=shorten(" ".join(blocker.words), WORDS),
            anchor=f"judge-{evidence.deciding_pass}",
        )


def name_issue_kind(code: str) -> str:
    """Return the kind in a reason code, in brackets: contradiction, omission, hallucination; empty
    for another."""
    return "" if code == "blocking_issue" else f" ({code.removesuffix('_detected')})"


def find_missing_assessments(evidence: Evidence) -> Iterator[Finding]:
    """Find an answer that no model assessed."""
    for blocker in evidence.open_blockers:
        if blocker.kind == "unavailable":
            passes = {*blocker.passes, *_passes_without_assessment(evidence)}
            yield Finding(
                title=f"The judge gave no usable assessment in {name_passes(passes)}",
                rank="cause",
                weight=85,
                anchor="advisories",
                remedies=(_DOCTOR,),
            )


def _passes_without_assessment(evidence: Evidence) -> Iterator[int]:
    for one in evidence.result.advisories:
        if one.kind == "evaluation_unavailable" and one.message.startswith("convergence:"):
            yield one.pass_number


def find_contradictions(evidence: Evidence) -> Iterator[Finding]:
    """Find outputs that contradict each other at the end, by the answer's judge and its review."""
    codes = {blocker.code for blocker in evidence.open_blockers}
    number = evidence.deciding_pass
    if number not in evidence.assessments:
        return
    assessment = evidence.assessments[number]
    words = _contradictions(assessment)
    pairs = _list_disagreeing(assessment) if "inconsistent" in codes else []
    if _CONTRADICTION not in codes and not pairs:
        return
    issues = _consistency_issues(evidence, number)
    steps = _steps_of(issues, words, list(evidence.last_steps))
    reasons = words or [issue.description for issue in issues] or _reasons(assessment)
    yield Finding(
        title=_describe_contradiction(number, steps, [] if words else pairs),
        rank="cause",
        weight=80,
        evidence=shorten("\n".join(dict.fromkeys(reasons)), WORDS),
        advice="If your inputs disagree, say in the task which of them holds.",
        anchor=f"judge-{number}",
    )


def _describe_contradiction(number: int, steps: Sequence[str], pairs: Sequence[str]) -> str:
    place = f"in pass {number}"
    if len(steps) > 1:
        return f"Outputs contradict each other {place}: it concerns {join_names(steps)}"
    if steps:
        return f"An output contradicts the others {place}: it concerns {join_names(steps)}"
    if pairs:
        return f"The judge found disagreement {place}: {list_names(pairs)}"
    return f"The judge found a contradiction {place}"


def _contradictions(assessed: ConvergenceAssessment) -> list[str]:
    issues = assessed.metadata.get("issues") or ()
    return [
        str(issue["description"])
        for issue in issues
        if issue["kind"] == "contradiction" and issue["blocking"]
    ]


def _consistency_issues(evidence: Evidence, number: int) -> list[ValidationIssue]:
    report = evidence.passes[number].evaluation_results.validation_report
    issues = report.issues if report else ()
    return [issue for issue in issues if issue.type == "consistency"]


def _list_disagreeing(assessed: ConvergenceAssessment) -> list[str]:
    pairs = assessed.scores.consistency_status.items()
    return [
        name.replace("_", " and ")
        for name, status in pairs
        if status.status == "inconsistent" and "memory" not in name
    ]


def _reasons(assessed: ConvergenceAssessment) -> list[str]:
    statuses = assessed.scores.consistency_status.values()
    reasons = [one.explanation for one in statuses if one.status == "inconsistent"]
    return [*filter(None, reasons)] or [assessed.explanation]


def _steps_of(
    issues: Sequence[ValidationIssue], words: Sequence[str], steps: Sequence[str]
) -> list[str]:
    """Return the steps that a contradiction concerns: where the review found it, and those whose
    ids its description quotes. A quoted id is a step's; an unquoted one may be a word."""
    named = {issue.step_id for issue in issues}
    texts = [*words, *(issue.description for issue in issues)]
    for issue in issues:
        if issue.location is not None:
            texts.append(issue.location.artifact_reference or "")
    for text in texts:
        named.update(name for _, name in _QUOTED.findall(text))
    return [step for step in steps if step in named]


def find_noise(evidence: Evidence) -> Iterator[Finding]:
    """Find one text that was judged in two ways: the scores of a judge are then partly chance."""
    differing = [
        one for group in _same_texts(evidence) for one in _differences_within(evidence, group)
    ]
    for one in sorted(differing, key=lambda each: each.spread, reverse=True)[:_MOST]:
        decides = one.low < one.threshold <= one.high
        is_wide = round(one.spread, 6) >= _WIDE and evidence.is_done
        is_cause = (decides or is_wide) and evidence.is_unconverged
        what = "answer" if evidence.answers[one.last[0]] else "outputs of the steps"
        yield Finding(
            title=f"The judge contradicts itself: {one.describe()}, for the same {what}",
            rank="cause" if is_cause else "doubt",
            weight=84 if is_cause else 55,
            evidence=_quote_judge(evidence, one),
            anchor=f"judge-{one.last[0]}",
            links=_links_to_judge(evidence, (one.first[0], one.last[0])),
            remedies=(_OTHER_JUDGE,),
        )


@dataclass(frozen=True)
class _Difference:
    """The largest difference between the judgements of one answer: a score or a criterion (1: met),
    the pass and the value of its first and of its last differing value, and the required value."""

    name: str
    first: tuple[int, float]
    last: tuple[int, float]
    threshold: float
    is_criterion: bool = False

    def describe(self) -> str:
        """Describe the difference, as the middle of a sentence."""
        if self.is_criterion:
            words = [
                f"{'met' if value else 'not met'} in pass {number}"
                for number, value in (self.first, self.last)
            ]
            return f"the criterion `{self.name}` was {' and '.join(words)}"
        passes = f"from pass {self.first[0]} to pass {self.last[0]}"
        return f"{self.name} went from {self.first[1]:.2f} to {self.last[1]:.2f} {passes}"

    @property
    def low(self) -> float:
        return min(self.first[1], self.last[1])

    @property
    def high(self) -> float:
        return max(self.first[1], self.last[1])

    @property
    def spread(self) -> float:
        return self.high - self.low


def _same_texts(evidence: Evidence) -> Iterator[list[AssessedPass]]:
    """Return the assessed passes in which one text was judged, at least two."""
    by_text: defaultdict[tuple[str, ...], list[AssessedPass]] = defaultdict(list)
    for each in evidence.patterns.assessed:
        by_text[evidence.judged_texts[each.pass_number]].append(each)
    for text, group in by_text.items():
        if text and len(group) > 1:
            yield group


def _score_differences(evidence: Evidence, group: Sequence[AssessedPass]) -> Iterator[_Difference]:
    for name, threshold in evidence.patterns.thresholds.items():
        values = [(each.pass_number, each.scores[name]) for each in group if name in each.scores]
        if values:
            yield _Difference(name, *_extremes(values), threshold)


def _differences_within(evidence: Evidence, group: Sequence[AssessedPass]) -> Iterator[_Difference]:
    """Return the score that differs most between these passes, and each criterion that differs."""
    scores = _score_differences(evidence, group)
    widest = max(scores, key=lambda one: one.spread, default=None)
    # Rounded, since 0.72 - 0.7 is less than 0.02.
    if widest is not None and round(widest.spread, 6) >= NOTICEABLE:
        yield widest
    for name in group[0].criteria:
        met = [
            (one.pass_number, float(one.criteria[name])) for one in group if name in one.criteria
        ]
        difference = _Difference(name, *_extremes(met), threshold=1.0, is_criterion=True)
        if difference.spread:
            yield difference


def _extremes(values: Sequence[tuple[int, float]]) -> tuple[tuple[int, float], tuple[int, float]]:
    """Return the lowest and the highest value with their passes, in the order of the passes."""
    lowest = min(values, key=lambda one: one[1])
    highest = max(values, key=lambda one: one[1])
    return min(lowest, highest), max(lowest, highest)


def _quote_judge(evidence: Evidence, one: _Difference) -> str:
    first, last = (
        (number, _words_on(evidence.assessments[number], one.name))
        for number in (one.first[0], one.last[0])
    )
    changes = _describe_changes(evidence, first[0], last[0])
    if first[1] == last[1]:
        both = f"In both passes: {shorten(first[1], WORDS)}"
        return f"{changes}\n{both}" if first[1] else changes
    words = [
        f"Pass {number}: {shorten(text, WORDS) or 'no reason.'}" for number, text in (first, last)
    ]
    return "\n".join((changes, *words))


def _words_on(assessed: ConvergenceAssessment, name: str) -> str:
    """Return the judge's words for a score or on a criterion, each sentence once."""
    reasons = [one.reason for one in assessed.criteria if one.name == name]
    if reasons:
        return " ".join(reasons).strip()
    explanation = assessed.explanation
    issues = [issue for issue in assessed.detected_issues if issue.strip() not in explanation]
    return " ".join((*dict.fromkeys(issues), explanation)).strip()


def _describe_changes(evidence: Evidence, first: int, last: int) -> str:
    """Describe the changes in plan and outputs between two passes with the same answer."""
    before, after = (
        {step.step_id: step for step in steps_carried_out(evidence.passes[number])}
        for number in (first, last)
    )
    differing = sorted(
        f"the {word} of `{step}`"
        for step in before.keys() & after.keys()
        for name, word in _CONTENTS.items()
        if getattr(before[step], name) != getattr(after[step], name)
    )
    differing += [f"the step `{step}`" for step in sorted(before.keys() ^ after.keys())]
    if not differing:
        return "No step of the plan changed between."
    return f"Changed between: {list_names(differing, 3)}."


def find_denied_scores(evidence: Evidence) -> Iterator[Finding]:
    """Find passes whose scores all reach their thresholds although the judge says that two
    artefacts disagree."""
    conflicts = [one for one in evidence.patterns.judge_conflicts if one.kind == "pairs"]
    if not conflicts:
        return
    where = sorted({number for one in conflicts for number in one.passes})
    last = where[-1]
    names = ", ".join(dict.fromkeys(one.name.replace("_", " and ") for one in conflicts))
    statuses = evidence.assessments[last].scores.consistency_status
    reasons = [statuses[one.name].explanation for one in conflicts if last in one.passes]
    yield Finding(
        title=f"The judge contradicts itself in {name_passes(where)}: every score is reached, "
        f"and yet these are said to disagree: {names}",
        rank="doubt",
        weight=45,
        evidence=shorten("; ".join(filter(None, reasons)), WORDS),
        anchor=f"judge-{last}",
        links=_links_to_judge(evidence, where[:4]),
        remedies=(_OTHER_JUDGE,),
    )


def _links_to_judge(evidence: Evidence, numbers: Sequence[int]) -> tuple[tuple[str, str], ...]:
    """Return the judge's calls in these passes, as far as they are recorded."""
    calls = evidence.judge_calls
    return tuple((f"its call in pass {one}", calls[one]) for one in numbers if one in calls)


def find_falls(evidence: Evidence) -> Iterator[Finding]:
    """Find scores that fell from one judged pass to the next although another text was judged; the
    cause where one of them is low at the end and never rose again."""
    by_pass: defaultdict[int, list[Regression]] = defaultdict(list)
    for one in evidence.patterns.regressions:
        if one.kind == "score" and not _is_same_text(evidence, one):
            by_pass[one.to_pass].append(one)
    for number, fell in list(by_pass.items())[:_MOST]:
        yield _describe_fall(evidence, number, fell)


def _describe_fall(evidence: Evidence, number: int, fell: Sequence[Regression]) -> Finding:
    parts = [f"{one.name} from {one.before:.2f} to {one.after:.2f}" for one in fell]
    refined = list(dict.fromkeys(name for one in fell for name in one.refined))
    is_cause = any(_is_lasting(evidence, one) for one in fell)
    size = max(one.before - one.after for one in fell)
    return Finding(
        title=f"In pass {number} scores fell: {', '.join(parts)}",
        rank="cause" if is_cause else "cost",
        weight=45 if is_cause else 30 + 40 * size,
        evidence=f"After the refinement of {join_names(refined)}." if refined else "",
        anchor=f"pass-{number}",
    )


def _is_lasting(evidence: Evidence, fall: Regression) -> bool:
    """Check whether the score is below its threshold at the end, and noticeably below its value
    before it fell."""
    lasts = {one.score: one.last for one in evidence.open_blockers if one.kind == "score"}
    last = lasts.get(fall.name)
    return last is not None and round(fall.before - last, 6) >= NOTICEABLE


def _is_same_text(evidence: Evidence, one: Regression) -> bool:
    return evidence.judged_texts[one.from_pass] == evidence.judged_texts[one.to_pass]
