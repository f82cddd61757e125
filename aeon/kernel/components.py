"""What a run calls: its components, adapted once so that those with the published interface alone work too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aeon.adaptive.heuristics import AdaptiveDepth
from aeon.domain.assessment import ConvergenceAssessment
from aeon.domain.plan import Plan
from aeon.domain.profile import TaskProfile
from aeon.kernel.executor import StepExecutor
from aeon.memory.interface import Memory
from aeon.refinement.components import Validate
from aeon.refinement.refiner import Refiner


@dataclass(frozen=True, slots=True)
class Components:
    """Everything that one run calls."""

    generate_plan: Callable[[str, dict[str, Any] | None], Plan]
    validate: Validate
    assess: Callable[..., ConvergenceAssessment]
    depth: AdaptiveDepth
    update_profile: Callable[..., TaskProfile | None]
    refiner: Refiner
    executor: StepExecutor
    memory: Memory
