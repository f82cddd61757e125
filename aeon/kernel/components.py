"""What a run calls: its components, adapted once so that those with the published interface alone work too."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from aeon.adaptive.heuristics import AdaptiveDepth
from aeon.convergence.engine import ConvergenceEngine
from aeon.domain.assessment import ConvergenceAssessment
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.profile import TaskProfile, TTLTable
from aeon.domain.report import SemanticValidationReport, ValidationIssue
from aeon.kernel.executor import StepExecutor
from aeon.memory.interface import Memory
from aeon.refinement.components import Validate, adapt_method
from aeon.refinement.refiner import Refiner


class Assess(Protocol):
    """Judges whether the task is done; `left_to_person` are contradictions that a person knows of."""

    def __call__(
        self,
        validation_report: SemanticValidationReport,
        plan: Plan,
        steps: list[PlanStep],
        outputs: dict[str, Any],
        custom_criteria: dict[str, Any],
        /,
        *,
        left_to_person: Sequence[ValidationIssue],
    ) -> ConvergenceAssessment:
        """The assessment of the outputs."""
        ...


@runtime_checkable
class ByTable(Protocol):
    """An adaptive depth that allocates by a TTL table, at most `limit`."""

    @property
    def table(self) -> TTLTable:
        """The table."""
        ...

    @property
    def limit(self) -> int:
        """The most that any task gets, in LLM cycles."""
        ...


@dataclass(frozen=True, slots=True)
class Depth:
    """An adaptive depth; `table` is None for one that allocates without."""

    infer: Callable[[str, dict[str, Any] | None], TaskProfile]
    allocate: Callable[[TaskProfile, int], int]
    update: Callable[..., TaskProfile | None]
    table: TTLTable | None
    limit: int

    @classmethod
    def of(cls, depth: AdaptiveDepth) -> Depth:
        """The methods of an adaptive depth."""
        by_table = depth if isinstance(depth, ByTable) else None
        return cls(
            infer=depth.infer_task_profile,
            allocate=depth.allocate_ttl,
            update=adapt_method(depth.update_task_profile, AdaptiveDepth.update_task_profile),
            table=by_table.table if by_table else None,
            limit=by_table.limit if by_table else sys.maxsize,
        )


@runtime_checkable
class CostsCycles(Protocol):
    """A convergence engine whose assessment takes more than one structured call, such as judges that vote."""

    @property
    def cycles(self) -> int:
        """The LLM cycles of one assessment, at least one."""
        ...


def assessment_cycles(engine: ConvergenceEngine) -> int:
    """The LLM cycles that one assessment costs."""
    return engine.cycles if isinstance(engine, CostsCycles) else 1


def assess_method(engine: ConvergenceEngine) -> Assess:
    """A convergence engine's `assess`."""
    return adapt_method(engine.assess, ConvergenceEngine.assess)


@dataclass(frozen=True, slots=True)
class Components:
    """Everything that one run calls."""

    generate_plan: Callable[[str, dict[str, Any] | None], Plan]
    validate: Validate
    assess: Assess
    depth: Depth
    refiner: Refiner
    executor: StepExecutor
    memory: Memory
