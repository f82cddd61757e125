"""The published interfaces of a run's components; further abilities have their own protocols. A
component's results are checked where it is called (`aeon.supervisor.contract`)."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

from aeon.domain.assessment import ConvergenceAssessment
from aeon.domain.errors import ComponentFailed
from aeon.domain.plan import Plan, PlanStep, Subplan
from aeon.domain.profile import TaskProfile, TTLTable
from aeon.domain.refinement import Refinement, RefinementAction
from aeon.domain.report import SemanticValidationReport, ValidationIssue
from aeon.domain.values import JsonObject
from aeon.plan.structural import check_steps
from aeon.supervisor.contract import Contract


class Engine(Protocol):
    """Judges whether a task is done."""

    def assess(
        self,
        validation_report: SemanticValidationReport,
        plan: Plan,
        steps: list[PlanStep],
        outputs: JsonObject,
        custom_criteria: JsonObject | None = None,
    ) -> ConvergenceAssessment:
        """Assess the results of a plan."""


class Validator(Protocol):
    """Reviews plans and their results."""

    def validate(
        self,
        artifact_type: str,
        plan: Plan | None = None,
        steps: list[PlanStep] | None = None,
        outputs: JsonObject | None = None,
        memory_artifacts: JsonObject | None = None,
    ) -> SemanticValidationReport:
        """Review artefacts."""


class Planner(Protocol):
    """Makes plans and proposes changes to them."""

    def generate_plan(self, task_description: str, context: JsonObject | None = None) -> Plan:
        """Make the plan of a task."""

    def refine_plan(
        self,
        current_plan: Plan,
        validation_issues: list[ValidationIssue],
        convergence_reason_codes: list[str],
        blocked_steps: list[str],
        executed_step_ids: list[str],
    ) -> list[RefinementAction]:
        """Propose changes."""

    def create_subplan(
        self, parent_step: PlanStep, parent_plan: Plan, current_depth: int
    ) -> Subplan:
        """Decompose a step."""


class Depth(Protocol):
    """Profiles tasks and allocates their budgets."""

    def infer_task_profile(
        self, task_description: str, context: JsonObject | None = None
    ) -> TaskProfile:
        """Profile a task."""

    def allocate_ttl(self, task_profile: TaskProfile, base_ttl: int = 10) -> int:
        """Return the LLM cycles for a task."""

    def update_task_profile(
        self,
        current_profile: TaskProfile,
        convergence_failure: bool,
        validation_issues: list[ValidationIssue],
        clarity_states: list[str],
        task_description: str,
    ) -> TaskProfile | None:
        """Profile a task again; None keeps the profile."""


@runtime_checkable
class WithCycles(Protocol):
    """An engine that declares the cycles of an assessment."""

    cycles: int


@runtime_checkable
class WithTable(Protocol):
    """A component of adaptive depth that allocates by a table."""

    table: TTLTable


@runtime_checkable
class WithLimit(Protocol):
    """A component of adaptive depth with its own limit."""

    limit: int


@runtime_checkable
class WithNestingDepth(Protocol):
    """A planner with its own limit on the nesting of subplans."""

    max_nesting_depth: int


def find_table(depth: Depth) -> TTLTable | None:
    """Return the table from profiles to TTL; None for a component without one."""
    return depth.table if isinstance(depth, WithTable) else None


def find_limit(depth: Depth, caps: Iterable[int | None]) -> int:
    """Return the most cycles of a run: the lowest of the component's own limit and the caps."""
    own = depth.limit if isinstance(depth, WithLimit) else sys.maxsize
    return min([own, *(cap for cap in caps if cap is not None)])


INFER_PROFILE = Contract("adaptive depth", "infer_task_profile", TaskProfile)
ALLOCATE_TTL = Contract("adaptive depth", "allocate_ttl", int)
UPDATE_PROFILE = Contract("adaptive depth", "update_task_profile", TaskProfile, optional=True)
GENERATE_PLAN = Contract("planner", "generate_plan", Plan)
REFINE_PLAN = Contract("planner", "refine_plan", RefinementAction, many=True)
REFINE = Contract("planner", "refine", Refinement)
CREATE_SUBPLAN = Contract("planner", "create_subplan", Subplan)
VALIDATE = Contract("semantic validator", "validate", SemanticValidationReport)
ASSESS = Contract("convergence engine", "assess", ConvergenceAssessment)


def generate_plan(
    planner: Planner, task: str, context: dict[str, Any] | None, **limits: Any
) -> Plan:
    """Make a plan with a planner. Raises ComponentFailed if its steps are no graph or exceed the
    `limits` of `check_steps`, and what the planner raises."""
    plan: Plan = GENERATE_PLAN.call(planner, task, context)
    if findings := check_steps(plan.steps, **limits):
        name = f"planner: {type(planner).__name__}.generate_plan"
        wrong = "; ".join(finding.message for finding in findings[:3])
        raise ComponentFailed(f"{name} returned a plan that cannot be carried out: {wrong}")
    return plan
