"""The recursive planner: makes plans, decomposes steps, proposes changes (FR-009 to FR-016)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from aeon.domain.assessment import ConvergenceAssessment
from aeon.domain.errors import LLMError, PlanError, ValidationError
from aeon.domain.graph import current_outputs
from aeon.domain.plan import EXECUTED, Plan, PlanStep, Subplan
from aeon.domain.refinement import ACTIONS, Refinement, RefinementAction
from aeon.domain.report import SEVERITIES, Severity, ValidationIssue
from aeon.domain.request import CallName, LLMAdapter
from aeon.domain.values import JsonMapping, JsonObject
from aeon.memory.run_memory import ShownMemory
from aeon.plan.structural import MAX_NESTING_DEPTH
from aeon.plan.triggers import WHOLE, Trigger, code_triggers, issue_triggers, show_reasons
from aeon.plan.views import find_drafts, outputs_view, plan_view
from aeon.plan.wire import parse_plan, parse_refinement, parse_subplan, require_answers
from aeon.supervisor.structured import StructuredCaller
from aeon.tools.registry import ToolRegistry

T = TypeVar("T")


class RecursivePlanner:
    """Makes and refines plans with the model; with an `answer_schema`, a plan ends with one
    step."""

    def __init__(
        self,
        llm: LLMAdapter,
        tool_registry: ToolRegistry | None = None,
        max_nesting_depth: int = 5,
        *,
        structured: StructuredCaller | None = None,
        max_steps: int = 100,
        answer_schema: JsonMapping | None = None,
        memory: ShownMemory | None = None,
        binding_severity: Severity = "HIGH",
    ) -> None:
        self._structured = structured or StructuredCaller(llm)
        self._registry = tool_registry or ToolRegistry()
        self.max_nesting_depth = min(max_nesting_depth, MAX_NESTING_DEPTH)
        self._max_steps = max_steps
        self._answer_schema = answer_schema
        self._memory = memory or ShownMemory()
        self._binding = binding_severity

    def __init_subclass__(cls) -> None:
        if "refine_plan" in vars(cls) and "refine" not in vars(cls):
            # The subclass's own `refine_plan` proposes the changes.
            cls.refine = None  # type: ignore[assignment,method-assign]

    def generate_plan(self, task_description: str, context: JsonObject | None = None) -> Plan:
        """Make the initial plan of a task, in one model call (FR-086). Raises LLMError and
        ValidationError."""
        one_final_step = self._answer_schema is not None

        def parse(answer: JsonMapping) -> Plan:
            return parse_plan(
                answer, task_description, max_steps=self._max_steps, one_final_step=one_final_step
            )

        return self._call("plan", {"task": task_description, "context": context}, parse)

    def refine_plan(
        self,
        current_plan: Plan,
        validation_issues: list[ValidationIssue],
        convergence_reason_codes: list[str],
        blocked_steps: list[str],
        executed_step_ids: list[str],
    ) -> list[RefinementAction]:
        """Return the actions of `refine`, without its questions; the codes are those of an
        assessment."""
        triggers = (
            *issue_triggers(validation_issues),
            *(Trigger(kind="blocked_step", about=step_id) for step_id in blocked_steps),
            *code_triggers(convergence_reason_codes),
        )
        refinement = self.refine(current_plan, validation_issues, triggers, executed_step_ids)
        return list(refinement.actions)

    def refine(
        self,
        current_plan: Plan,
        validation_issues: Sequence[ValidationIssue],
        triggers: Sequence[Trigger],
        executed_step_ids: Sequence[str] = (),
        closed_steps: Sequence[str] = (),
        *,
        assessment: ConvergenceAssessment | None = None,
    ) -> Refinement:
        """Propose changes and questions for a plan, in one model call (FR-010 to FR-012, FR-069).

        An answer that ignores an issue of the binding severity or higher is repaired once. Raises
        LLMError and ValidationError.
        """
        variables = {
            **self._show_plan(current_plan, find_drafts(current_plan.steps, validation_issues)),
            "executed_step_ids": list(executed_step_ids),
            "closed_steps": [step_id for step_id in closed_steps if step_id != WHOLE],
            "reasons": show_reasons(triggers, validation_issues, self._binding),
            "issues": [issue.model_dump(exclude_none=True) for issue in validation_issues],
            "decomposes": self.max_nesting_depth > 0,
            "binding": SEVERITIES[SEVERITIES.index(self._binding) :],
            "assessment": _show_assessment(assessment, triggers),
        }
        # If the repair fails too, the first answer counts: its changes are usable, and the issues
        # that it ignores are recorded as unanswered.
        first: list[Refinement] = []

        def parse(answer: JsonMapping) -> Refinement:
            refinement = parse_refinement(answer, validation_issues, closed_steps, self._binding)
            if not first:
                first.append(refinement)
                require_answers(refinement, validation_issues)
            return refinement

        try:
            return self._call(
                "refinement", variables, parse, absent=() if validation_issues else ("issues",)
            )
        except (LLMError, ValidationError):
            if not first:
                raise
            return first[0]

    def create_subplan(
        self, parent_step: PlanStep, parent_plan: Plan, current_depth: int
    ) -> Subplan:
        """Decompose a step, in one model call (FR-009). Raises PlanError, LLMError and
        ValidationError."""
        if current_depth > self.max_nesting_depth:
            raise PlanError(
                f"step {parent_step.step_id!r} cannot be decomposed: level "
                f"{current_depth} is deeper than allowed",
                hint="a person should look at this step, or raise refinement.max_nesting_depth",
            )
        if parent_step.status in EXECUTED:
            raise PlanError(
                f"step {parent_step.step_id!r} cannot be decomposed: it is {parent_step.status}"
            )
        variables = {
            **self._show_plan(parent_plan),
            "parent": parent_step.view,
            "previous_output": parent_step.step_output,
        }
        depth = max(1, current_depth)
        return self._call(
            "subplan", variables, lambda answer: parse_subplan(answer, parent_step, depth)
        )

    def _show_plan(self, plan: Plan, drafts: Collection[str] = ()) -> JsonObject:
        outputs = current_outputs(plan.steps)
        return {
            "task": plan.task,
            "plan": plan_view(plan, outputs),
            "outputs": outputs_view(plan.steps, outputs, self._memory.handoffs(), drafts),
        }

    def _call(
        self,
        name: CallName,
        variables: JsonMapping,
        parse: Callable[[JsonMapping], T],
        absent: Sequence[str] = (),
    ) -> T:
        """Make one call; `absent` names are left out of its schema, as are tools if there are none
        and subplans if nesting is not allowed."""
        tools = self._registry.names()
        left_out = set[str](absent)
        if not tools:
            left_out.add("tools")
        if not self.max_nesting_depth:
            left_out.update(kind for kind, rule in ACTIONS.items() if rule.decomposes)
        return self._structured.call(
            name,
            {
                "tools": self._registry.describe(),
                "answer_schema": self._answer_schema,
                **self._memory.variables(),
                **variables,
            },
            parse,
            role="planner",
            tools=tools,
            absent=frozenset(left_out),
        )


def _show_assessment(
    assessment: ConvergenceAssessment | None, triggers: Sequence[Trigger]
) -> JsonObject | None:
    # Each fault that the assessment found may already be a reason of its own.
    if assessment is None or any(trigger.is_of_assessment for trigger in triggers):
        return None
    return assessment.model_dump(include={"reason_codes", "explanation"}, mode="json")
