"""Judgements of an answer: its assessment with the thresholds for it, and its comparison with
another answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from aeon.domain.checks import CheckSettings
from aeon.domain.values import JsonObject, OfRow, Value

IssueKind = Literal["contradiction", "omission", "hallucination", "other"]


class ConvergenceThresholds(Value):
    """The minimum of each score, each in [0, 1] (FR-022)."""

    completeness: OfRow[float] = Field(default=0.95, ge=0, le=1)
    coherence: OfRow[float] = Field(default=0.90, ge=0, le=1)
    consistency: OfRow[float] = Field(default=0.90, ge=0, le=1)


class PairStatus(Value):
    """Whether two artefacts agree, and why."""

    status: Literal["consistent", "inconsistent", "not_applicable"]
    explanation: str = ""

    @model_validator(mode="before")
    @classmethod
    def _from_status(cls, given: object) -> Any:
        """Accept a bare status: a custom engine may know only that `consistency_status` is a
        dict."""
        if isinstance(given, bool):
            return {"status": "consistent" if given else "inconsistent"}
        return {"status": given} if isinstance(given, str) else given


class ConvergenceScores(Value):
    """The model's scores, each in [0, 1], and the agreement of each pair of artefacts; a score is
    None if it was not given (FR-025)."""

    completeness_score: float | None = Field(default=None, ge=0, le=1)
    coherence_score: float | None = Field(default=None, ge=0, le=1)
    consistency_score: float | None = Field(default=None, ge=0, le=1)
    consistency_status: dict[str, PairStatus] = Field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        """Return the score of that name, as in `scores["completeness_score"]`."""
        return getattr(self, name)


class CriterionResult(Value):
    """A custom criterion: whether it is met, and why, in the model's words."""

    name: str
    met: bool
    reason: str = ""


class ConvergenceAssessment(Value):
    """Whether the task is done (FR-017 to FR-025, FR-068). `converged` and `reason_codes` follow
    from the model's judgement and the thresholds; `blocking_issues` are the `detected_issues` that
    prevent convergence. `judgements` were made, and `spread` is the range of each score in them,
    empty for a single one."""

    converged: bool
    reason_codes: tuple[str, ...] = Field(min_length=1)
    scores: ConvergenceScores = Field(default_factory=ConvergenceScores)
    explanation: str = ""
    detected_issues: tuple[str, ...] = ()
    blocking_issues: tuple[str, ...] = ()
    criteria: tuple[CriterionResult, ...] = ()
    judgements: int = 1
    spread: dict[str, float] = Field(default_factory=dict)
    metadata: JsonObject = Field(default_factory=dict)

    @property
    def evaluated(self) -> bool:
        """Whether a model assessed anything; False for a pass whose evaluation was unavailable."""
        return self.scores.completeness_score is not None


AWAITED = ConvergenceAssessment(
    converged=False,
    reason_codes=("answer_awaited",),
    explanation="The step that gives the answer was still to come: this pass was not assessed.",
)
UNAVAILABLE = ConvergenceAssessment(
    converged=False,
    reason_codes=("evaluation_unavailable",),
    explanation="This pass could not be evaluated.",
)
"""The assessment of a pass that could not be evaluated."""

# The reason codes of each score: when it reaches its threshold, and when it does not.
SCORE_CODES = {
    "completeness": ("complete", "incomplete"),
    "coherence": ("coherent", "incoherent"),
    "consistency": ("consistent", "inconsistent"),
}
LOW_SCORE_CODES = tuple(low for _, low in SCORE_CODES.values())
MET_CODES = tuple(met for met, _ in SCORE_CODES.values())
_VERDICT_CODES = (code for pair in SCORE_CODES.values() for code in pair)
_OWN_CODES = frozenset(
    {*SCORE_CODES, *_VERDICT_CODES, "evaluation_unavailable", "answer_awaited", "blocking_issue"}
)


def is_own_code(code: str) -> bool:
    """Whether a reason code is one of Aeon's own; all others are names of custom criteria."""
    return code in _OWN_CODES or code.endswith("_detected")


class Calibration(Value):
    """The result of `aeon calibrate` for a judge, on labelled answers.

    `models` are the judges; `hashes` the SHA-256 of the templates, schema, criteria and parameters
    of the judgement; `good` and `bad` the number of labels, each judged `repeat` times. With
    `threshold` for all three scores, the share `sensitivity` of the judgements of good answers and
    `specificity` of those of bad ones were right; of the runs that converge within `passes`, at
    most the share `at_most` is wrong, which is within `max_false`. `spread` is the standard
    deviation of each score between judgements of one answer, empty if each was judged once.
    """

    threshold: float = Field(ge=0, le=1)
    max_false: float = Field(gt=0, lt=1)
    at_most: float = Field(ge=0, le=1)
    passes: int = Field(ge=1)
    models: tuple[str, ...]
    hashes: dict[str, str]
    good: int = Field(ge=1)
    bad: int = Field(ge=1)
    repeat: int = Field(ge=1)
    sensitivity: float = Field(ge=0, le=1)
    specificity: float = Field(ge=0, le=1)
    spread: dict[str, float] = Field(default_factory=dict)


class ConvergenceSettings(ConvergenceThresholds):
    """`convergence`: the thresholds, and custom criteria, each with a name (its reason code) and a
    description.

    `criteria_file` is a YAML or JSON file of further criteria; validated settings have its entries
    in `criteria`. A run whose latest `max_unavailable` evaluations were all unavailable fails with
    the last one's error. `when`: with `plan_done`, no run converges or ends on a plateau while
    steps that the answer depends on are pending. `open_severity`: issues of this severity or higher
    are refined once before the first convergence is accepted. A run ends after `patience`
    consecutive assessed passes without a gain, which for scores means more than `min_gain`. A
    judgement with a score at most `margin` from its threshold is repeated up to twice, and the
    median counts. `calibration` is the source of thresholds that `aeon calibrate` chose.
    """

    criteria: dict[str, str] = Field(default_factory=dict)
    criteria_file: Path | None = None
    checks: dict[str, CheckSettings] = Field(default_factory=dict)
    max_unavailable: int = Field(default=2, ge=1)
    when: OfRow[Literal["any", "plan_done"]] = "any"
    open_severity: OfRow[Literal["LOW", "MEDIUM", "HIGH"] | None] = None
    patience: OfRow[int | None] = Field(default=None, ge=1)
    min_gain: OfRow[float] = Field(default=0.0, ge=0, le=1)
    margin: OfRow[float] = Field(default=0.0, ge=0, le=1)
    calibration: Calibration | None = None

    @field_validator("criteria")
    @classmethod
    def _usable_criteria(cls, criteria: dict[str, str]) -> dict[str, str]:
        for name, text in criteria.items():
            if not name.strip() or not text.strip():
                raise ValueError(
                    f"criterion {name!r} says nothing: describe in plain words when it is met"
                )
            if is_own_code(name):
                raise ValueError(
                    f"criterion {name!r} has the name of a reason code of Aeon's own: "
                    "choose another"
                )
        return criteria

    @field_validator("checks")
    @classmethod
    def _usable_names(cls, checks: dict[str, CheckSettings]) -> dict[str, CheckSettings]:
        for name in checks:
            if not name.strip() or is_own_code(name):
                raise ValueError(
                    f"check {name!r} has the name of a reason code of Aeon's own, or none: "
                    "choose another"
                )
        return checks


class EvaluationSettings(Value):
    """`evaluation`: when the judge is called; None: the mode's default, which in `auto` is
    `answer_complete` and True. `when`: every pass is evaluated, or only passes with the complete
    answer, unless something failed or is BLOCKED."""

    when: OfRow[Literal["every_pass", "answer_complete"] | None] = None
    skip_judge_when_checks_fail: OfRow[bool | None] = None


ExpirationPoint = Literal["phase_boundary", "mid_phase"]
SpentReason = Literal[
    "ttl_expired", "max_seconds", "max_tokens", "max_cost", "max_llm_calls", "max_passes"
]


class TTLExpiredMetadata(Value):
    """The latest assessment when a budget ended, and its pass; without an assessment, the pass in
    which the budget ended (FR-062)."""

    completeness_score: float | None = None
    coherence_score: float | None = None
    consistency_score: float | None = None
    consistency_status: dict[str, PairStatus] = Field(default_factory=dict)
    detected_issues: tuple[str, ...] = ()
    reason_codes: tuple[str, ...] = ()
    pass_number: int


class TTLExpirationResponse(Value):
    """The response of a run whose TTL or another cap ended before convergence: the latest completed
    pass, which always exists at a phase boundary, else a partial result (FR-062, FR-064)."""

    converged: Literal[False] = False
    result_type: Literal["ttl_expired"] = "ttl_expired"
    latest_pass_result: JsonObject | None = None
    partial_result: JsonObject | None = None
    expiration_point: ExpirationPoint
    ttl_expired_metadata: TTLExpiredMetadata
    termination_reason: SpentReason = "ttl_expired"

    @model_validator(mode="after")
    def _has_a_result(self) -> TTLExpirationResponse:
        if self.latest_pass_result is None and self.expiration_point == "phase_boundary":
            raise ValueError("at a phase boundary latest_pass_result is needed")
        if self.latest_pass_result is None and self.partial_result is None:
            raise ValueError("without a completed pass partial_result is needed")
        return self


Preference = Literal["first", "second", "neither"]
ComparedWithEarlier = Literal["better", "as_good", "worse", "unknown"]


class Preferred(Value):
    """Which of two answers one judgement found better, and why, in the model's words."""

    better: Preference
    explanation: str = ""


class AnswerComparison(Value):
    """A later answer compared with an earlier one: `better` or `worse` only if the judgements in
    both orders agree, `unknown` if they were unavailable. `explanations` are those of the
    judgements, in order, each after what was shown first and second, or the error of one that
    failed; `later` is the later answer if it was not accepted."""

    outcome: ComparedWithEarlier
    explanations: tuple[str, ...] = ()
    later: str | None = None

    @property
    def is_accepted(self) -> bool:
        """Whether the later answer is accepted."""
        return self.outcome in ("better", "as_good")


def prefer_same_place(later_second: Preferred, later_first: Preferred) -> bool:
    """Whether two judgements of the same answers, in both orders, contradict each other: both
    prefer the answer shown first, or both the one shown second."""
    return later_second.better == later_first.better != "neither"


CHANGED_ANSWERS = ("the answer before", "the changed answer")
"""The names of the two answers, where the later one is the earlier one changed."""


def settle_comparison(
    later_second: Preferred,
    later_first: Preferred,
    names: tuple[str, str] = CHANGED_ANSWERS,
) -> AnswerComparison:
    """Combine two judgements of the same answers: one that saw the later answer second, and one
    that saw it first. `names` are those of the earlier and the later answer for the
    explanations."""
    earlier, later = names
    outcome: ComparedWithEarlier = "as_good"
    if (later_second.better, later_first.better) == ("second", "first"):
        outcome = "better"
    if (later_second.better, later_first.better) == ("first", "second"):
        outcome = "worse"
    explanations = (
        _explain(later_second, first=earlier, second=later),
        _explain(later_first, first=later, second=earlier),
    )
    return AnswerComparison(outcome=outcome, explanations=tuple(filter(None, explanations)))


def _explain(preferred: Preferred, first: str, second: str) -> str:
    if not preferred.explanation:
        return ""
    return f"(first: {first}; second: {second}) {preferred.explanation}"
