"""What a run calls: its components, adapted once so that those with the published interface alone work too."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aeon.adaptive.heuristics import AdaptiveDepth
from aeon.convergence.engine import ConvergenceEngine
from aeon.domain.assessment import ConvergenceAssessment
from aeon.domain.plan import Plan
from aeon.domain.profile import TaskProfile, TTLTable
from aeon.kernel.executor import StepExecutor
from aeon.memory.interface import Memory
from aeon.refinement.components import Validate, adapt_method
from aeon.refinement.refiner import Refiner


class Depth:
    """An adaptive depth; `table` is None for one that allocates without, `limit` the most that any task gets."""

    def __init__(self, depth: AdaptiveDepth) -> None:
        self.infer: Callable[[str, dict[str, Any] | None], TaskProfile] = depth.infer_task_profile
        self.allocate: Callable[[TaskProfile, int], int] = depth.allocate_ttl
        self.update: Callable[..., TaskProfile | None] = adapt_method(
            depth.update_task_profile, AdaptiveDepth.update_task_profile
        )
        self.table: TTLTable | None = getattr(depth, "table", None)
        self.limit: int = getattr(depth, "limit", sys.maxsize)


class Judge:
    """A convergence engine; `cycles` is what one assessment costs, more than one for judges that vote."""

    def __init__(self, engine: ConvergenceEngine) -> None:
        self.assess: Callable[..., ConvergenceAssessment] = adapt_method(engine.assess, ConvergenceEngine.assess)
        self.cycles: int = getattr(engine, "cycles", 1)


@dataclass(frozen=True, slots=True)
class Components:
    """Everything that one run calls."""

    generate_plan: Callable[[str, dict[str, Any] | None], Plan]
    validate: Validate
    judge: Judge
    depth: Depth
    refiner: Refiner
    executor: StepExecutor
    memory: Memory
