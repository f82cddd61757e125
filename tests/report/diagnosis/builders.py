"""Recorded runs as values, pass by pass, for detectors to read."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from aeon import Aeon
from aeon.domain.assessment import (
    SCORE_CODES,
    AnswerComparison,
    ConvergenceAssessment,
    ConvergenceScores,
    CriterionResult,
    PairStatus,
)
from aeon.domain.checks import CheckOutcome
from aeon.domain.history import (
    Advisory,
    EvaluationResults,
    ExecutionPass,
    StepResult,
    TerminationReason,
    Timing,
)
from aeon.domain.outcome import latest_assessed
from aeon.domain.plan import PlanStep
from aeon.domain.refinement import RefinementAction, RefinementRecord, RefusedAction
from aeon.domain.report import IssueLocation, SemanticValidationReport, ValidationIssue
from aeon.domain.request import Usage
from aeon.domain.result import RunResult
from aeon.report.diagnosis.finding import Evidence
from aeon.report.items import Item
from aeon.report.patterns import Patterns, find_patterns
from aeon.report.record import Call, Record

THRESHOLDS = {"completeness": 0.95, "coherence": 0.9, "consistency": 0.9}
NO_SCORES = ConvergenceScores()


@cache
def a_result() -> RunResult:
    """A run of the simulated provider, which every run here is changed from."""
    with Aeon.from_config(["provider=simulated", "store=off", "observability=none"]) as aeon:
        result = aeon.run("write a guide")
    configuration = {**result.configuration, "store": {"mode": "record", "backend": "sqlite"}}
    return result.model_copy(update={"configuration": configuration, "repairs": ()})


def a_step(step_id: str, **fields: Any) -> PlanStep:
    """A complete step."""
    given = {"status": "complete", "agent": "llm", **fields}
    return PlanStep(step_id=step_id, description=f"Do {step_id}", **given)


def blocked(step_id: str) -> PlanStep:
    """A step that lacks something."""
    return a_step(step_id, status="invalid", clarity_state="BLOCKED", clarity_reason="No figures.")


def an_issue(step_id: str | None = "facts", **fields: Any) -> ValidationIssue:
    """A grave issue of a review."""
    given = {"issue_id": "i1", "type": "specificity", "severity": "HIGH", **fields}
    location = IssueLocation(step_id=step_id) if step_id else None
    return ValidationIssue(**{"description": "No year.", **given}, location=location)


def assessed(
    completeness: float = 0.97,
    *,
    coherence: float = 0.95,
    consistency: float = 0.95,
    issues: tuple[dict[str, Any], ...] = (),
    criteria: dict[str, bool] | None = None,
    pairs: dict[str, str] | None = None,
) -> ConvergenceAssessment:
    """A judgement, with the codes that follow from it and the thresholds."""
    scores = {"completeness": completeness, "coherence": coherence, "consistency": consistency}
    blocking = [issue for issue in issues if issue["blocking"]]
    codes = [SCORE_CODES[name][1] for name, score in scores.items() if score < THRESHOLDS[name]]
    codes += [name for name, met in (criteria or {}).items() if not met]
    codes += [
        "blocking_issue" if one["kind"] == "other" else f"{one['kind']}_detected"
        for one in blocking
    ]
    return ConvergenceAssessment(
        converged=not codes,
        reason_codes=tuple(codes or ["complete", "coherent", "consistent"]),
        scores=ConvergenceScores(
            **{f"{name}_score": score for name, score in scores.items()},
            consistency_status={
                name: PairStatus(status=status, explanation=f"{name} differ.")
                for name, status in (pairs or {}).items()
            },
        ),
        explanation="As it stands.",
        detected_issues=tuple(issue["description"] for issue in issues),
        blocking_issues=tuple(issue["description"] for issue in blocking),
        criteria=tuple(
            CriterionResult(name=name, met=met, reason="Because.")
            for name, met in (criteria or {}).items()
        ),
        metadata={"issues": list(issues)},
    )


UNAVAILABLE = ConvergenceAssessment(converged=False, reason_codes=("evaluation_unavailable",))


def a_pass(
    number: int,
    judged: ConvergenceAssessment | None = None,
    *,
    answer: str = "",
    steps: tuple[PlanStep, ...] = (a_step("facts"), a_step("write")),
    issues: tuple[ValidationIssue, ...] = (),
    refused: tuple[str, ...] = (),
    accepted: tuple[str, ...] = (),
    ttl_used: int = 3,
    checks: tuple[CheckOutcome, ...] = (),
    compared: AnswerComparison | None = None,
) -> ExecutionPass:
    """A pass with its steps at the end; `refused` and `accepted` are targets of changes of the plan."""
    executed = {
        step.step_id: StepResult(
            step_id=step.step_id,
            step_output=step.step_output,
            clarity_state=step.clarity_state,
            clarity_reason=step.clarity_reason,
        )
        for step in steps
        if step.status != "pending"
    }
    report = SemanticValidationReport(
        validation_id=f"v{number}", artifact_type="plan", issues=issues
    )
    refinement = RefinementRecord(
        accepted=tuple(map(_removal, accepted)),
        refused=tuple(RefusedAction(action=_removal(one), reason="A loop.") for one in refused),
    )
    return ExecutionPass(
        answer_complete=all(step.status == "complete" for step in steps),
        pass_number=number,
        phase="EVALUATE",
        phases=(),
        plan_state=None,
        steps=steps,
        execution_results=executed if number else {},
        evaluation_results=EvaluationResults(
            validation_report=report, convergence=judged, checks=checks, comparison=compared
        ),
        refinement=refinement,
        ttl_remaining=20,
        ttl_used=ttl_used,
        answer=answer or f"answer {number}",
        complete=True,
        timing_information=Timing(
            start_time="2026-01-01T00:00:00+00:00",
            end_time="2026-01-01T00:00:09+00:00",
            duration_seconds=9,
        ),
    )


def _judgement_of(record: ExecutionPass) -> ConvergenceAssessment | None:
    return record.evaluation_results.convergence


def _removal(target: str) -> RefinementAction:
    return RefinementAction(action_type="REMOVE", target_step_id=target, justification="Idle.")


def a_run(
    *passes: ExecutionPass,
    reason: TerminationReason = "max_passes",
    advisories: tuple[Advisory, ...] = (),
    events: tuple[dict[str, Any], ...] = (),
    items: tuple[Item, ...] = (),
    inputs: dict[str, str] | None = None,
    patterns: dict[str, Any] | None = None,
    seconds: float = 10.0,
    **result: Any,
) -> Evidence:
    """A run of these passes after a pass 0, or from pass 0 where that is given. `items` are its requests, one after the
    other; `patterns` take the place of computed ones."""
    whole = passes if passes and passes[0].pass_number == 0 else (a_pass(0), *passes)
    base = a_result()
    history = base.history.model_copy(
        update={
            "passes": whole,
            "configuration": {**base.history.configuration, "convergence_criteria": THRESHOLDS},
            "final_convergence": next(filter(None, map(_judgement_of, reversed(whole))), None),
        }
    )
    judged = latest_assessed(whole)
    made = [one.refinement for one in whole if one.refinement]
    refused = tuple(refusal for one in made for refusal in one.refused)
    timings = base.timings.model_copy(update={"total_seconds": seconds})
    given = {
        "history": history,
        "termination_reason": reason,
        "converged": reason == "converged",
        "advisories": advisories,
        "refused_actions": refused,
        "timings": timings,
        "best_pass": None,
        "assessed_pass": judged.pass_number if judged else None,
        **result,
    }
    record = Record(
        directory=Path("/runs/one"),
        result=base.model_copy(update=given),
        origin={"inputs": inputs or {}},
        overrides=(),
        events=events,
        calls=tuple(item.source for item in items if isinstance(item.source, Call)),
    )
    computed = find_patterns(record)
    found = computed.model_copy(update=patterns or {}) if patterns else computed
    assert isinstance(found, Patterns)
    return Evidence(record=record, patterns=found, items=items, critical=items)


def a_call(
    kind: str,
    seconds: float,
    *,
    begins: float = 0.0,
    number: int = 1,
    pass_number: int = 1,
    step_id: str | None = None,
    tokens: int = 10,
) -> Item:
    """A request to a model."""
    call = Call(
        number=number,
        sequence=number,
        part=0,
        pass_number=pass_number,
        phase="EXECUTE",
        cycle=number,
        call=kind,
        role="worker",
        step_id=step_id,
        attempt=0,
        model="m",
        endpoint="",
        started="2026-01-01T00:00:00+00:00",
        seconds=seconds,
        usage=Usage(input_tokens=tokens, requests=1),
        cost=None,
        text=None,
        error=None,
        message="",
    )
    return Item(
        key=f"call-{number}",
        kind=kind,
        label=f"{kind} {step_id}" if step_id else kind,
        pass_number=pass_number,
        phase="EXECUTE",
        step_id=step_id,
        start=begins,
        end=begins + seconds,
        failed=False,
        source=call,
    )
