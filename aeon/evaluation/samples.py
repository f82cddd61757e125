"""How many samples an arm takes for each of its answers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from aeon.batch.dataset import Arm
from aeon.config.settings import Settings
from aeon.execution.settings import UNJUDGED_MODES, ExecutionSettings

MOST_SAMPLES = 64
"""The most samples of one answer."""


@dataclass(frozen=True, slots=True)
class ArmSamples:
    """How many samples an arm takes for all its answers together, `answers` of them; `execution` is
    how it is configured, `ttl` its budget where its mode has a fixed one: base and limit."""

    total: int
    answers: int
    execution: ExecutionSettings
    ttl: tuple[int, int] | None = None

    @classmethod
    def of(cls, settings: Settings, answers: int) -> ArmSamples:
        """The samples of an arm as it is configured."""
        has_fixed_budget = settings.mode.kind in UNJUDGED_MODES
        ttl = (settings.ttl.base, settings.ttl.limit) if has_fixed_budget else None
        return cls(settings.execution.samples * answers, answers, settings.execution, ttl)

    @property
    def configured(self) -> int:
        """The samples of each answer by the settings of the arm."""
        return self.execution.samples

    @property
    def most(self) -> int:
        """The most samples that an answer may have, by what is allowed and by the budget."""
        if self.ttl is None:
            return MOST_SAMPLES
        base, limit = self.ttl
        counts = range(1, MOST_SAMPLES + 1)
        return max(count for count in counts if count == 1 or base + self._extra(count) <= limit)

    def count(self, index: int) -> int:
        """The samples of an answer, by its place among those of the arm, from 0: as even as whole
        samples allow."""
        each, more = divmod(self.total, self.answers)
        return each + (index < more)

    def with_total(self, total: int) -> ArmSamples:
        """The same arm with so many samples in all, as far as may be asked for."""
        return replace(self, total=max(self.answers, min(self.most * self.answers, total)))

    def configure(self, arm: Arm, index: int) -> Arm:
        """The arm as it gives an answer. One that says no other way to choose lets its samples
        vote."""
        count = self.count(index)
        if count == self.configured:
            return arm
        more = [f"execution.samples={count}"]
        if self.execution.select == "first":
            more.append("execution.select=vote")
        if self.ttl is not None:
            # What is left behind the samples stays the same, and with it what core mode is shown.
            more.append(f"ttl.base={self.ttl[0] + self._extra(count)}")
        return Arm(arm.name, (*arm.overrides, *more), f"{arm.configuration} {' '.join(more)}")

    def _extra(self, count: int) -> int:
        """How many cycles so many samples take beyond those that are configured."""
        changed = self.execution.model_copy(update={"samples": count})
        return changed.cycles_of_samples - self.execution.cycles_of_samples
