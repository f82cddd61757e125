"""Convergence: the model scores, the program compares with the configured thresholds (FR-017 to
FR-025, FR-068)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pydantic

from aeon.domain.assessment import (
    SCORE_CODES,
    ConvergenceAssessment,
    ConvergenceScores,
    ConvergenceThresholds,
    CriterionResult,
    PairStatus,
)
from aeon.domain.checks import CheckOutcome
from aeon.domain.errors import ConfigError
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.report import UNREVIEWED, SemanticValidationReport, ValidationIssue
from aeon.domain.request import LLMAdapter
from aeon.domain.values import JsonMapping, JsonObject
from aeon.llm.exchange import InvalidAnswer, require_few
from aeon.memory.run_memory import ShownMemory
from aeon.plan.views import answer_view, find_drafts, outputs_view, plan_view
from aeon.schema.json_schema import enum_of
from aeon.schema.validators import FieldError
from aeon.supervisor.structured import StructuredCaller

UNREMEMBERED = ("memory_answer",)  # not requested if memory has nothing to show


class ConvergenceEngine:
    """Assesses whether a task is done. `default_thresholds` may set completeness, coherence,
    consistency, each in [0, 1]; the answer must agree with `memory` as well as the outputs. Unless
    it `shows_drafts`, outputs of a finished plan that another step used are shown by name."""

    def __init__(
        self,
        llm: LLMAdapter,
        default_thresholds: dict[str, float] | None = None,
        *,
        structured: StructuredCaller | None = None,
        memory: ShownMemory | None = None,
        shows_drafts: bool = True,
    ) -> None:
        self._structured = structured or StructuredCaller(llm)
        self._memory = memory or ShownMemory()
        self._shows_drafts = shows_drafts
        self._thresholds = _thresholds(ConvergenceThresholds(), default_thresholds or {})

    def assess(
        self,
        validation_report: SemanticValidationReport,
        plan: Plan,
        steps: list[PlanStep],
        outputs: JsonObject,
        custom_criteria: JsonObject | None = None,
        *,
        left_to_person: Sequence[ValidationIssue] = (),
        checks: Sequence[CheckOutcome] = (),
    ) -> ConvergenceAssessment:
        """Assess a plan's results, in one model call (FR-050).

        `custom_criteria` maps a name to a description, or a score's name to its threshold;
        contradictions `left_to_person` block nothing; the model sees the outcomes of `checks`. Raises
        LLMError, ValidationError (answer not repaired), ConfigError (threshold outside [0, 1]).
        """
        own_thresholds, criteria = split_criteria(custom_criteria or {})
        thresholds = _thresholds(self._thresholds, own_thresholds)
        current = plan.model_copy(update={"steps": tuple(steps)})
        memory = self._memory.variables()
        unasked = () if memory["memory"] else UNREMEMBERED
        pairs = enum_of(self._structured.schema("convergence"), "artifacts")
        reviewed = validation_report != UNREVIEWED
        issue_ids = [issue.issue_id for issue in validation_report.issues]
        # Earlier assessments showed them, so that providers' caches hold them.
        shows_drafts = self._shows_drafts or not reviewed
        drafts = () if shows_drafts else find_drafts(current.steps, validation_report.issues)
        variables = {
            "task": plan.task,
            "plan": plan_view(current, outputs),
            "outputs": outputs_view(current.steps, outputs, self._memory.handoffs(), drafts),
            "answer": answer_view(current, outputs),
            "reviewed": reviewed,
            "issues": [issue.model_dump(exclude_none=True) for issue in validation_report.issues],
            "criteria": [{"name": name, "description": words} for name, words in criteria.items()],
            "left_to_person": [issue.description for issue in left_to_person],
            "checks": [check.view for check in checks],
            **memory,
        }
        return self._structured.call(
            "convergence",
            variables,
            lambda answer: parse_assessment(
                answer, thresholds, tuple(criteria), pairs, unasked, issue_ids
            ),
            role="grader",
            criteria=tuple(criteria),
            absent=(*unasked, *_list_absent(criteria=bool(criteria), review=reviewed)),
        )


def _list_absent(**present: bool) -> list[str]:
    """Return the names of what the schema's properties need and is not there."""
    return [name for name, is_there in present.items() if not is_there]


def split_criteria(custom: JsonMapping) -> tuple[dict[str, float], dict[str, str]]:
    """Separate custom criteria: a number under a score's name is a threshold, everything else a
    criterion in words."""
    thresholds = {
        name: value
        for name, value in custom.items()
        if name in SCORE_CODES and isinstance(value, int | float) and not isinstance(value, bool)
    }
    return thresholds, {
        name: str(value) for name, value in custom.items() if name not in thresholds
    }


def parse_assessment(
    answer: JsonMapping,
    thresholds: ConvergenceThresholds,
    criteria: Sequence[str],
    pairs: Sequence[str],
    unasked: Sequence[str] = (),
    reviewed: Sequence[str] = (),
) -> ConvergenceAssessment:
    """Compare the model's answer with the thresholds; the `unasked` ones of the `pairs` have
    nothing to compare, and `reviewed` are the ids of the review's issues. Raises InvalidAnswer
    unless each criterion and each pair is judged once, and every blocking issue is described."""
    require_few(len(answer["issues"]), "/issues", "issues")
    results = tuple(CriterionResult.model_validate(raw) for raw in answer.get("criteria", ()))
    _check_once("/criteria", "criterion", [result.name for result in results], criteria)
    statuses = _parse_pairs(answer["consistency_status"], pairs, unasked)
    _require_descriptions(answer["issues"])
    issues = [
        {**raw, "review_issue": _find_reviewed(raw, reviewed)}
        for raw in answer["issues"]
        if raw["description"].strip()
    ]
    blocking = [raw for raw in issues if raw["blocking"]]
    scores = ConvergenceScores(
        completeness_score=answer["completeness_score"],
        coherence_score=answer["coherence_score"],
        consistency_score=answer["consistency_score"],
        consistency_status=statuses,
    )
    converged, codes = verdict(scores, thresholds, results, [raw["kind"] for raw in blocking])
    return ConvergenceAssessment(
        converged=converged,
        reason_codes=codes,
        scores=scores,
        explanation=answer["explanation"],
        detected_issues=tuple(raw["description"] for raw in issues),
        blocking_issues=tuple(raw["description"] for raw in blocking),
        criteria=results,
        metadata={"issues": issues},
    )


def _find_reviewed(raw: JsonMapping, reviewed: Sequence[str]) -> str | None:
    """Return the id of the review's issue that an issue repeats; None where there is no such
    issue."""
    issue_id = raw.get("review_issue")
    return issue_id if issue_id in reviewed else None


def _parse_pairs(
    answered: Sequence[JsonMapping], pairs: Sequence[str], unasked: Sequence[str]
) -> dict[str, PairStatus]:
    statuses = {
        raw["artifacts"]: PairStatus(status=raw["status"], explanation=raw["explanation"])
        for raw in answered
    }
    missing = [pair for pair in unasked if pair in pairs and pair not in statuses]
    judged = [raw["artifacts"] for raw in answered]
    _check_once("/consistency_status", "pair", [*judged, *missing], pairs)
    return statuses | dict.fromkeys(missing, PairStatus(status="not_applicable"))


def _require_descriptions(issues: Sequence[JsonMapping]) -> None:
    errors = [
        FieldError(f"/issues/{index}/description", "a blocking issue needs a description")
        for index, raw in enumerate(issues)
        if raw["blocking"] and not raw["description"].strip()
    ]
    if errors:
        raise InvalidAnswer(tuple(errors))


def verdict(
    scores: ConvergenceScores,
    thresholds: ConvergenceThresholds,
    criteria: Sequence[CriterionResult],
    blocking_kinds: Sequence[str],
) -> tuple[bool, tuple[str, ...]]:
    """Return whether it converged, and the reason codes (FR-024, FR-068). It converges if every
    score reaches its threshold, every criterion is met, and no issue blocks. The codes name
    everything satisfied, or else everything that was not."""
    reached = {name: scores[f"{name}_score"] >= getattr(thresholds, name) for name in SCORE_CODES}
    failed = [
        *(SCORE_CODES[name][1] for name, ok in reached.items() if not ok),
        *(result.name for result in criteria if not result.met),
        *map(_code_of_issue, dict.fromkeys(blocking_kinds)),
    ]
    if failed:
        return False, tuple(failed)
    return True, (
        *(SCORE_CODES[name][0] for name in SCORE_CODES),
        *(result.name for result in criteria),
    )


def _code_of_issue(kind: str) -> str:
    return "blocking_issue" if kind == "other" else f"{kind}_detected"


def _check_once(pointer: str, kind: str, judged: Sequence[str], listed: Sequence[str]) -> None:
    counts = Counter(judged)
    errors = [
        *(f"the {kind} {name!r} is missing" for name in listed if name not in counts),
        *(f"there is no {kind} {name!r}" for name in counts if name not in listed),
        *(
            f"the {kind} {name!r} is there {count} times"
            for name, count in counts.items()
            if count > 1
        ),
    ]
    if errors:
        raise InvalidAnswer(tuple(FieldError(pointer, error) for error in errors))


def _thresholds(base: ConvergenceThresholds, given: Mapping[str, float]) -> ConvergenceThresholds:
    try:
        return ConvergenceThresholds.model_validate({**base.model_dump(), **given})
    except pydantic.ValidationError as error:
        raise ConfigError(f"thresholds cannot be used: {error}") from error
