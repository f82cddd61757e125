"""Semantic validation: the model reviews plans, steps and results; the program checks structure
only (FR-036 to FR-046)."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from aeon.domain.plan import Plan, PlanStep
from aeon.domain.report import SemanticValidationReport, ValidationIssue
from aeon.domain.request import LLMAdapter, current_site
from aeon.domain.values import JsonMapping, JsonObject
from aeon.llm.exchange import InvalidAnswer, locate_errors, require_few
from aeon.llm.extract import ExtractError, read_json
from aeon.memory.run_memory import ShownMemory
from aeon.plan.deltas import DeltaResult
from aeon.plan.structural import check_steps
from aeon.plan.triggers import Trigger, show_reasons
from aeon.plan.views import answer_view, changes_view, outputs_view, plan_view, select_answered
from aeon.schema.validators import FieldError
from aeon.supervisor.structured import StructuredCaller
from aeon.tools.registry import ToolRegistry

ARTIFACT_TYPES = ("plan", "step", "execution_artifact", "cross_phase")


class SemanticValidator:
    """Reviews artefacts. Advisory, not authoritative (FR-081); `tool_registry` has the tools that
    really exist (FR-039)."""

    def __init__(
        self,
        llm: LLMAdapter,
        tool_registry: ToolRegistry | None = None,
        *,
        structured: StructuredCaller | None = None,
        max_steps: int | None = None,
        memory: ShownMemory | None = None,
    ) -> None:
        self._structured = structured or StructuredCaller(llm)
        self._registry = tool_registry
        self._max_steps = max_steps
        self._memory = memory or ShownMemory()

    def validate(
        self,
        artifact_type: str,
        plan: Plan | None = None,
        steps: list[PlanStep] | None = None,
        outputs: JsonObject | None = None,
        memory_artifacts: JsonObject | None = None,
        *,
        delta: DeltaResult | None = None,
        reasons: Sequence[Trigger] = (),
    ) -> SemanticValidationReport:
        """Review artefacts, in one model call (FR-042, FR-046, FR-082).

        `artifact_type` is "plan", "step" (`steps` are the new, changed or removed ones in `plan`,
        from `delta`, for the planner's `reasons`), "execution_artifact" or "cross_phase" (outputs
        and answer too, FR-041). `memory_artifacts` replace the content of memory. Raises ValueError
        for another type, LLMError, and ValidationError for an answer that cannot be repaired.
        """
        if artifact_type not in ARTIFACT_TYPES:
            raise ValueError(
                f"artifact_type must be one of {', '.join(ARTIFACT_TYPES)}, not {artifact_type!r}"
            )
        outputs = outputs or {}
        reviewed = plan.steps if plan and steps is None else tuple(steps or ())
        shown = plan or Plan.model_construct(goal="", steps=reviewed, task="", questions=())
        known = {step.step_id for step in (*reviewed, *shown.steps)} | set(outputs)
        variables = {
            "artifact_type": artifact_type,
            **self._show_plan(shown, outputs),
            **_show_change(delta, reviewed, reasons),
            **self._memory.variables(memory_artifacts),
        }
        return self._structured.call(
            "semantic_validation",
            variables,
            lambda answer: parse_report(answer, artifact_type, known),
            role="grader",
        )

    def _show_plan(self, plan: Plan, outputs: JsonObject) -> JsonObject:
        names = self._registry.names() if self._registry else None
        findings = check_steps(plan.steps, max_steps=self._max_steps, tool_names=names)
        return {
            "task": plan.task,
            "plan": plan_view(plan, outputs),
            "outputs": outputs_view(plan.steps, outputs, self._memory.handoffs()),
            "answer": answer_view(plan, outputs),
            "structural_findings": [finding.message for finding in findings],
            "tools": self._registry.describe() if self._registry else [],
        }


def _show_change(
    delta: DeltaResult | None, reviewed: Sequence[PlanStep], reasons: Sequence[Trigger]
) -> JsonObject:
    if delta is None:
        return {
            "changed": [{"step_id": step.step_id} for step in reviewed],
            "answered": [],
            "reasons": show_reasons(reasons),
        }
    answered = select_answered(delta)
    return {
        "changed": changes_view(delta),
        "answered": [issue.model_dump(exclude_none=True) for issue in answered],
        "reasons": show_reasons(reasons, answered),
    }


def parse_report(
    answer: JsonMapping, artifact_type: str, step_ids: set[str]
) -> SemanticValidationReport:
    """Convert the model's issues to a report. Raises InvalidAnswer if an issue names an unknown
    step, or ids repeat."""
    require_few(len(answer["issues"]), "/issues", "issues")
    issues = []
    errors = []
    for index, raw in enumerate(answer["issues"]):
        pointer = f"/issues/{index}"
        step_id = (raw.get("location") or {}).get("step_id")
        if step_id is not None and step_id not in step_ids:
            known = ", ".join(sorted(step_ids))
            errors.append(
                FieldError(
                    f"{pointer}/location/step_id",
                    f"there is no step {step_id!r}; there are {known}",
                )
            )
        repair = raw.get("proposed_repair")
        if repair:
            raw = {**raw, "proposed_repair": {**repair, "changes": _changes(repair["changes"])}}
        if not errors:
            with locate_errors(pointer):
                issues.append(ValidationIssue.model_validate(raw))
    if errors:
        raise InvalidAnswer(tuple(errors))
    cycle = current_site().cycle  # the same when a run is repeated; random outside a run
    validation_id = f"validation-{cycle or uuid.uuid4().hex[:12]}"
    return SemanticValidationReport.model_validate(
        {"validation_id": validation_id, "artifact_type": artifact_type, "issues": issues}
    )


def _changes(text: str) -> JsonObject:
    """Return the suggested changes as an object; other text becomes its `text`, because a
    suggestion is only read."""
    try:
        changes = read_json(text) if text.strip() else {}
    except ExtractError:
        return {"text": text}
    return changes if isinstance(changes, dict) else {"text": text}
