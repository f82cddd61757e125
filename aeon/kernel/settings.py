"""Settings of the kernel."""

from __future__ import annotations

from dataclasses import dataclass, field

from aeon.domain.assessment import ConvergenceSettings
from aeon.domain.plan import Plan
from aeon.domain.profile import DEFAULT_PROFILE, SmallTask, TaskProfile
from aeon.domain.values import JsonMapping
from aeon.execution.settings import ONE_STEP, UNJUDGED_MODES, ExecutionSettings, Mode
from aeon.llm.stack.limits import LimitSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of runs. `base_ttl` is the base of the TTL table, in core mode the whole TTL;
    `least_after_update` is the fewest cycles left by a changed profile. `default_profile` is used
    if none could be inferred. `plan` replaces a generated one. `requires_final_step`: the answer
    must be one step's output. `answer_mark` precedes every answer. `judges_answer`: the answer of a
    mode without assessments is assessed once, for comparison. `takes_best`: the answer is the best
    pass's, not the latest's."""

    mode: Mode = "adaptive"
    one_step: str = ONE_STEP
    small: SmallTask = field(default_factory=SmallTask)
    plan: Plan | None = None
    execution: ExecutionSettings = field(default_factory=ExecutionSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    base_ttl: int = 10
    ttl_limit: int | None = None
    default_profile: TaskProfile = DEFAULT_PROFILE
    least_after_update: int = 3
    convergence: ConvergenceSettings = field(default_factory=ConvergenceSettings)
    skip_judge_when_checks_fail: bool = False
    evaluates_whole_answers: bool = False
    requires_final_step: bool = False
    judges_answer: bool = False
    takes_best: bool = False
    answer_mark: str = ""
    configuration: JsonMapping = field(default_factory=dict)

    @property
    def is_core(self) -> bool:
        """Whether there are no passes, only one plan, step after step."""
        return self.mode in UNJUDGED_MODES
