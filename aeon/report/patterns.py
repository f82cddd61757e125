"""Patterns across the passes of a run (FR-076): counts, and comparisons of the scores that the
judge gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from pydantic import Field

from aeon.domain.history import ExecutionHistory
from aeon.domain.refinement import RefinementRecord
from aeon.domain.result import RunResult
from aeon.domain.values import Value
from aeon.execution.settings import UNJUDGED_MODES
from aeon.report import scores, spending
from aeon.report.record import Call, Record


class RefinementGain(Value):
    """The effect of one refinement. `gain` is the change of the mean of the three scores from its
    pass to the next assessed one, `to_pass`; `tokens` are those from the refinement up to that
    assessment. None where there is no assessment before or after it, as for the refinement of pass
    0, or no journal. A refinement whose answer was `set_back` in `to_pass` gained nothing; what
    follows is compared with the answer before."""

    pass_number: int
    to_pass: int | None = None
    triggers: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    refused: int = 0
    set_back: bool = False
    tokens: int | None = None
    gain: float | None = None
    gain_per_1000_tokens: float | None = None


class RefinedFragment(Value):
    """A step that refinements targeted: how often, in which passes, how many of the changes were
    refused, and whether it was left to a person in the end."""

    step_id: str
    times: int
    passes: tuple[int, ...] = ()
    refused: int = 0
    left_to_person: bool = False


class Patterns(Value):
    """The patterns of one run. A field is empty where the run, or the rest of its files, has no
    information on it; passes are given by their numbers."""

    assessed: tuple[scores.AssessedPass, ...] = ()
    thresholds: dict[str, float] = Field(default_factory=dict)
    best_pass: int | None = None
    blockers: tuple[scores.Blocker, ...] = ()
    plateaus: tuple[tuple[int, ...], ...] = ()
    without_gain: tuple[int, ...] = ()
    set_back: tuple[int, ...] = ()
    regressions: tuple[scores.Regression, ...] = ()
    judge_conflicts: tuple[scores.JudgeConflict, ...] = ()
    fragments: tuple[RefinedFragment, ...] = ()
    refinements: tuple[RefinementGain, ...] = ()
    by_pass: dict[int, spending.Spending] = Field(default_factory=dict)
    by_phase: dict[str, spending.Spending] = Field(default_factory=dict)
    by_step: dict[str, spending.Spending] = Field(default_factory=dict)
    by_call: dict[str, spending.Spending] = Field(default_factory=dict)
    repairs_by_call: dict[str, spending.RepairRate] = Field(default_factory=dict)
    repairs_by_model: dict[str, spending.RepairRate] = Field(default_factory=dict)
    waits: dict[str, spending.RetryWait] = Field(default_factory=dict)
    prefix: spending.PrefixShare = spending.PrefixShare()


def find_patterns(record: Record) -> Patterns:
    """Compute all patterns of a run."""
    result = record.result
    history = record.result.history
    assessed = scores.find_assessed_passes(history)
    refined = {
        number: tuple(action.fragment for action in made.accepted)
        for number, made in _refinements(history)
    }
    set_back = find_set_back(result)
    spent = spending.spend(record)
    with record.hold_requests():
        prefix = spending.measure_prefixes(record.calls)
    repairs_by_call, repairs_by_model = spending.repair_rates(record)
    return Patterns(
        assessed=assessed,
        thresholds=scores.thresholds_of(history),
        best_pass=result.best_pass.pass_number if result.best_pass else None,
        blockers=scores.find_blockers(history, scores.find_deciding_pass(result)),
        plateaus=scores.find_plateaus(assessed),
        without_gain=tuple(sorted({*scores.find_without_gain(assessed), *set_back})),
        set_back=set_back,
        regressions=scores.find_regressions(assessed, refined),
        judge_conflicts=scores.find_judge_conflicts(history, assessed),
        fragments=_fragments(history),
        refinements=tuple(
            _gain(number, made, _follow_mean(assessed, set_back), set_back, record.calls)
            for number, made in _refinements(history)
        ),
        by_pass=spent.by_pass,
        by_phase=spent.by_phase,
        by_step=spent.by_step,
        by_call=spent.by_call,
        repairs_by_call=repairs_by_call,
        repairs_by_model=repairs_by_model,
        waits=spending.find_waits(record),
        prefix=prefix,
    )


def _refinements(history: ExecutionHistory) -> list[tuple[int, RefinementRecord]]:
    return [
        (passed.pass_number, passed.refinement)
        for passed in history.passes
        if passed.refinement is not None
    ]


def _fragments(history: ExecutionHistory) -> tuple[RefinedFragment, ...]:
    """Return the steps that were refined, most often first."""
    passes: dict[str, list[int]] = {}
    refused: dict[str, int] = {}
    for number, made in _refinements(history):
        for step in dict.fromkeys(
            [action.fragment for action in (*made.accepted, *(r.action for r in made.refused))]
        ):
            passes.setdefault(step, []).append(number)
        for refusal in made.refused:
            refused[refusal.action.fragment] = refused.get(refusal.action.fragment, 0) + 1
    counted = history.overall_statistics.fragments_refined
    left = history.final_result.metadata
    found = [
        RefinedFragment(
            step_id=step,
            times=counted.get(step, len(passes.get(step, ()))),
            passes=tuple(passes.get(step, ())),
            refused=refused.get(step, 0),
            left_to_person=step in (left.get("manual_intervention") or ()),
        )
        for step in {**counted, **passes}
    ]
    return tuple(sorted(found, key=lambda fragment: -fragment.times))


def find_set_back(result: RunResult) -> tuple[int, ...]:
    """Return the passes whose changed answer was not accepted."""
    if result.configuration["mode"]["kind"] in UNJUDGED_MODES:
        return ()  # the comparison is with another run's answer
    return tuple(one.pass_number for one in result.history.passes if one.is_set_back)


def _follow_mean(
    assessed: Sequence[scores.AssessedPass], set_back: Sequence[int]
) -> dict[int, float]:
    """Return the mean score by pass; one that was set back has that of the answer before it."""
    mean = {each.pass_number: fmean(each.scores.values()) for each in assessed}
    for number in set_back:
        before = [earlier for earlier in mean if earlier < number]
        mean |= {number: mean[max(before)]} if before else {}
    return dict(sorted(mean.items()))


def _gain(
    number: int,
    made: RefinementRecord,
    mean: Mapping[int, float],
    set_back: Sequence[int],
    calls: Sequence[Call],
) -> RefinementGain:
    following = next((n for n in mean if n > number), None)
    gain = tokens = None
    if following is not None:
        tokens = _tokens_between(number, following, calls) or None
        if number in mean:
            gain = round(mean[following] - mean[number], 4)
    return RefinementGain(
        pass_number=number,
        to_pass=following,
        triggers=made.triggers,
        steps=tuple(action.fragment for action in made.accepted),
        refused=len(made.refused),
        set_back=following in set_back,
        tokens=tokens,
        gain=gain,
        gain_per_1000_tokens=round(gain * 1000 / tokens, 4)
        if gain is not None and tokens
        else None,
    )


def _tokens_between(number: int, following: int, calls: Sequence[Call]) -> int:
    """Return the tokens from the refinement of a pass up to the assessment of the pass
    `following`."""

    def belongs(call: Call) -> bool:
        if call.phase == "REFINE":
            return number <= call.pass_number < following
        return number < call.pass_number <= following

    return sum(call.usage.total_tokens for call in calls if belongs(call))


COMPARED = (
    "description",
    "dependencies",
    "tool",
    "arguments",
    "handoff_to_next",
    "provides",
    "status",
    "replaced_by",
)
"""The fields of a step in which two passes are compared."""
