"""The judge's assessments, pass by pass: scores, blockers of convergence, plateaus, regressions,
contradictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Literal

from pydantic import Field

from aeon.domain.assessment import (
    MET_CODES,
    SCORE_CODES,
    ConvergenceAssessment,
    is_own_code,
)
from aeon.domain.checks import CheckOutcome
from aeon.domain.history import ExecutionHistory, ExecutionPass
from aeon.domain.plan import PlanStep
from aeon.domain.result import RunResult
from aeon.domain.values import Value

NOTICEABLE = 0.02
"""The least difference of two scores that counts as one."""
SCORE_OF = {low: name for name, (_, low) in SCORE_CODES.items()}
"""The score by the reason code of one below its threshold."""


class AssessedPass(Value):
    """A pass that was assessed: its scores by name, the criteria met or not, the codes of what
    failed, how many steps were done by then, and whether the answer was whole."""

    pass_number: int
    scores: dict[str, float]
    criteria: dict[str, bool] = Field(default_factory=dict)
    missed: tuple[str, ...] = ()
    steps_done: int = 0
    answer_complete: bool = True


BlockerKind = Literal["score", "criterion", "check", "issue", "reason", "unavailable"]


class Blocker(Value):
    """A blocker of convergence, by its reason code: in which passes, and whether also in the
    assessment of the run's answer, `at_end`. A `reason` is a code that only a user's own judge
    knows. For a score the threshold, the best value and the `last`, which is the answer's; `words`
    are the model's, or the check's, on the answer, else of the last pass that it held back, and
    `measured` whether a check could be had there."""

    code: str
    kind: BlockerKind
    passes: tuple[int, ...]
    at_end: bool
    score: str | None = None
    threshold: float | None = None
    best: float | None = None
    last: float | None = None
    words: tuple[str, ...] = ()
    measured: bool = True


class Regression(Value):
    """A score that fell, or a criterion (1: met, 0: not) that ceased to be met, from one assessed
    pass to the next; `refined` are the steps that refinements between the two targeted."""

    name: str
    kind: Literal["score", "criterion"]
    from_pass: int
    to_pass: int
    before: float
    after: float
    refined: tuple[str, ...] = ()


class JudgeConflict(Value):
    """Two judgements that contradict each other. `same_work`: the same answer from the same outputs
    of steps has another score, or another verdict on a criterion, in the pass after. `pairs`: two
    of plan, steps and answer (`name`) disagree in a pass whose scores all reach their thresholds;
    `values` is the consistency score."""

    kind: Literal["same_work", "pairs"]
    name: str
    passes: tuple[int, ...]
    values: tuple[float, ...]


def thresholds_of(history: ExecutionHistory) -> dict[str, float]:
    """Return the thresholds in force, by the name of the score."""
    given = history.configuration.get("convergence_criteria") or {}
    return {name: float(given[name]) for name in SCORE_CODES if name in given}


def find_assessed_passes(history: ExecutionHistory) -> tuple[AssessedPass, ...]:
    """Return the passes that a model assessed, in their order."""
    found = []
    for number, assessment in _assessments(history):
        if assessment.evaluated:
            scores = read_scores(assessment)
            criteria = {criterion.name: criterion.met for criterion in assessment.criteria}
            found.append(
                AssessedPass(
                    pass_number=number,
                    scores=scores,
                    criteria=criteria,
                    missed=_list_missed(assessment),
                    steps_done=_count_done(history.passes[number]),
                    answer_complete=history.passes[number].answer_complete,
                )
            )
    return tuple(found)


def _count_done(passed: ExecutionPass) -> int:
    return sum(step.status == "complete" for step in steps_carried_out(passed))


def steps_carried_out(record: ExecutionPass) -> Iterator[PlanStep]:
    """Return the steps that a pass began with, in their state at its end, before its refinement."""
    ended = {step.step_id: step for step in record.steps}
    for change in record.refinement.changes if record.refinement else ():
        if change.before is not None:
            ended[change.step_id] = change.before
    for step in record.plan_state.steps if record.plan_state else record.steps:
        yield ended.get(step.step_id, step)


def read_scores(assessment: ConvergenceAssessment) -> dict[str, float]:
    """Return the scores of an assessment by name; a user's own judge may give fewer than three."""
    values = {name: assessment.scores[f"{name}_score"] for name in SCORE_CODES}
    return {name: value for name, value in values.items() if value is not None}


def describe_repeats(assessment: ConvergenceAssessment | None, name: str) -> str:
    """Describe how far the judgements of a score went apart, as `3 judgements, spread 0.07`; empty
    for a single one."""
    if assessment is None or assessment.judgements == 1 or name not in assessment.spread:
        return ""
    return f"{assessment.judgements} judgements, spread {assessment.spread[name]:.2f}"


def _assessments(history: ExecutionHistory) -> Iterator[tuple[int, ConvergenceAssessment]]:
    for passed in history.passes:
        if passed.evaluation_results.convergence is not None:
            yield passed.pass_number, passed.evaluation_results.convergence


def find_answering_pass(passes: Sequence[ExecutionPass], result: RunResult) -> ExecutionPass | None:
    """Return the one of these passes that the run's answer is from: of those with its text the one
    whose judgement applies to it, else the latest that was not set back; None for an answer of none
    of them."""
    given = [one for one in passes if one.answer == result.answer]
    judged = [one for one in given if one.pass_number == result.assessed_pass]
    accepted = [one for one in given if not one.is_set_back]
    return next(reversed(judged or accepted or given), None)


def find_deciding_pass(result: RunResult) -> int:
    """Return the pass with the assessment of the run's answer: the latest with an assessment, or an
    earlier one whose answer was chosen; 0 where no pass has an assessment."""
    final = result.history.final_convergence
    given = dict(_assessments(result.history))
    same = [number for number, assessment in given.items() if assessment == final]
    if result.assessed_pass in same:
        same = [result.assessed_pass]
    return max(same or given, default=0)


def find_blockers(history: ExecutionHistory, decided_by: int) -> tuple[Blocker, ...]:
    """Return the blockers of convergence, those in the assessment that the end was `decided_by`
    first, then by how often."""
    missed: dict[str, list[int]] = {}
    for number, assessment in _assessments(history):
        for code in _list_missed(assessment):
            missed.setdefault(code, []).append(number)
    found = (_make_blocker(history, code, passes, decided_by) for code, passes in missed.items())
    return tuple(sorted(found, key=lambda blocker: (not blocker.at_end, -len(blocker.passes))))


def _list_missed(assessment: ConvergenceAssessment) -> tuple[str, ...]:
    """Return the reason codes that kept an assessment from converging."""
    if assessment.converged:
        return ()
    # A user's own judge may add its codes to those of what is met.
    return tuple(code for code in assessment.reason_codes if code not in MET_CODES)


def _make_blocker(
    history: ExecutionHistory, code: str, passes: Sequence[int], decided_by: int
) -> Blocker:
    assessments = dict(_assessments(history))
    name = SCORE_OF.get(code)
    number = decided_by if decided_by in passes else passes[-1]
    found = assessments[number]
    check = _find_check(history, number, code)
    best, last = _find_best_and_last(assessments, name, decided_by)
    return Blocker(
        code=code,
        kind="check" if check else _kind_of(code, found),
        passes=tuple(passes),
        at_end=decided_by in passes,
        score=name,
        threshold=thresholds_of(history).get(name) if name else None,
        best=best,
        last=last,
        words=(check.feedback,) if check else _words_on(code, found),
        measured=check is None or check.measured,
    )


def _find_best_and_last(
    assessments: Mapping[int, ConvergenceAssessment], name: str | None, decided_by: int
) -> tuple[float | None, float | None]:
    """Return the best value of a score, and the one at the end: that of the deciding pass, else the
    latest one."""
    given = {number: read_scores(assessment) for number, assessment in assessments.items()}
    values = {number: scores[name] for number, scores in given.items() if name in scores}
    if not values:
        return None, None
    return max(values.values()), values.get(decided_by, values[max(values)])


def _find_check(history: ExecutionHistory, number: int, code: str) -> CheckOutcome | None:
    """Return the check of that name that failed in a pass."""
    checks = history.passes[number].evaluation_results.checks
    return next((check for check in checks if check.blocks and check.name == code), None)


def _kind_of(code: str, assessment: ConvergenceAssessment) -> BlockerKind:
    if code in SCORE_OF:
        return "score"
    if code == "evaluation_unavailable":
        return "unavailable"
    if is_own_code(code):
        return "issue"
    return "criterion" if code in (each.name for each in assessment.criteria) else "reason"


def _words_on(code: str, assessment: ConvergenceAssessment) -> tuple[str, ...]:
    kind = _kind_of(code, assessment)
    if kind == "criterion":
        return tuple(
            each.reason for each in assessment.criteria if each.name == code and each.reason
        )
    if kind == "issue":
        return assessment.blocking_issues
    if kind == "reason" and assessment.blocking_issues:
        return assessment.blocking_issues
    return (assessment.explanation,) if assessment.explanation else ()


def _differences(before: AssessedPass, after: AssessedPass) -> dict[str, tuple[float, float]]:
    """Return the scores that differ noticeably, and the criteria that do, before and after."""
    scores = {
        name: (score, after.scores[name])
        for name, score in before.scores.items()
        if name in after.scores
    }
    common = before.criteria.keys() & after.criteria.keys()
    criteria = {
        name: (float(before.criteria[name]), float(after.criteria[name])) for name in sorted(common)
    }
    # Rounded, since 0.72 - 0.7 is less than 0.02.
    return {
        name: two
        for name, two in (scores | criteria).items()
        if round(abs(two[1] - two[0]), 6) >= NOTICEABLE
    }


def find_plateaus(assessed: Sequence[AssessedPass]) -> tuple[tuple[int, ...], ...]:
    """Return consecutive passes, at least two, that differ from the first of them in no score,
    criterion or missed code."""
    stretches: list[list[AssessedPass]] = []
    for each in assessed:
        first = stretches[-1][0] if stretches else None
        if (
            first
            and first.missed
            and set(first.missed) == set(each.missed)
            and not _differences(first, each)
        ):
            stretches[-1].append(each)
        else:
            stretches.append([each])
    return tuple(
        tuple(each.pass_number for each in stretch) for stretch in stretches if len(stretch) > 1
    )


def find_without_gain(assessed: Sequence[AssessedPass]) -> tuple[int, ...]:
    """Return the passes in which, against the assessed pass before, no score rose, no criterion was
    met and no code disappeared."""
    return tuple(
        after.pass_number
        for before, after in pairwise(assessed)
        if not any(new > old for old, new in _differences(before, after).values())
        and not set(before.missed) - set(after.missed)
    )


def find_regressions(
    assessed: Sequence[AssessedPass], refined: Mapping[int, Sequence[str]]
) -> tuple[Regression, ...]:
    """Return what fell from one assessed pass to the next; `refined` has the steps that the
    refinement of a pass targeted."""
    return tuple(
        Regression(
            name=name,
            kind="score" if name in SCORE_CODES else "criterion",
            from_pass=before.pass_number,
            to_pass=after.pass_number,
            before=old,
            after=new,
            refined=tuple(
                step
                for n in range(before.pass_number, after.pass_number)
                for step in refined.get(n, ())
            ),
        )
        for before, after in pairwise(assessed)
        for name, (old, new) in _differences(before, after).items()
        if new < old
    )


def find_judge_conflicts(
    history: ExecutionHistory, assessed: Sequence[AssessedPass]
) -> tuple[JudgeConflict, ...]:
    """Return pairs of judgements that contradict each other."""
    return (*_find_same_work(history, assessed), *_find_denied_scores(history, assessed))


def _find_same_work(
    history: ExecutionHistory, assessed: Sequence[AssessedPass]
) -> Iterator[JudgeConflict]:
    """Find the same answer from the same outputs, judged differently in the pass after."""
    work = {}
    for passed in history.passes:
        outputs = [(step.step_id, step.step_output) for step in passed.steps]
        work[passed.pass_number] = (passed.answer, outputs)
    for before, after in pairwise(assessed):
        passes = (before.pass_number, after.pass_number)
        if work[passes[0]] != work[passes[1]]:
            continue
        for name, values in _differences(before, after).items():
            yield JudgeConflict(kind="same_work", name=name, passes=passes, values=values)


def _find_denied_scores(
    history: ExecutionHistory, assessed: Sequence[AssessedPass]
) -> Iterator[JudgeConflict]:
    """Find pairs of artefacts that disagree in a pass whose scores all reach their thresholds."""
    thresholds = thresholds_of(history)
    for each in assessed:
        is_low = any(each.scores.get(name, 0.0) < value for name, value in thresholds.items())
        if is_low or "consistency" not in each.scores:
            continue
        assessment = history.passes[each.pass_number].evaluation_results.convergence
        for name in _find_disagreeing_pairs(assessment):
            yield JudgeConflict(
                kind="pairs",
                name=name,
                passes=(each.pass_number,),
                values=(each.scores["consistency"],),
            )


def _find_disagreeing_pairs(assessment: ConvergenceAssessment | None) -> Iterator[str]:
    pairs = assessment.scores.consistency_status if assessment else {}
    for name, status in pairs.items():
        # What memory holds may be of a step that was replaced; the score is of plan, steps and
        # answer.
        if status.status == "inconsistent" and "memory" not in name:
            yield name
