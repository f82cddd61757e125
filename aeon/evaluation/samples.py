"""The number of samples that an arm takes for each of its answers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from aeon.batch.dataset import Arm
from aeon.config.settings import Settings
from aeon.execution.settings import UNJUDGED_MODES, ExecutionSettings

MOST_SAMPLES = 64
"""The most samples of one answer."""


@dataclass(frozen=True, slots=True)
class ArmSamples:
    """The total of samples of an arm for all its `answers`; `execution` is its configuration, `ttl`
    its budget where its mode has a fixed one: base and limit."""

    total: int
    answers: int
    execution: ExecutionSettings
    ttl: tuple[int, int] | None = None

    @classmethod
    def of(cls, settings: Settings, answers: int) -> ArmSamples:
        """Return the configured samples of an arm."""
        has_fixed_budget = settings.mode.kind in UNJUDGED_MODES
        ttl = (settings.ttl.base, settings.ttl.limit) if has_fixed_budget else None
        return cls(settings.execution.samples * answers, answers, settings.execution, ttl)

    @property
    def configured(self) -> int:
        """The configured samples of each answer."""
        return self.execution.samples

    @property
    def most(self) -> int:
        """The most samples that an answer may have, by MOST_SAMPLES and by the budget."""
        if self.ttl is None:
            return MOST_SAMPLES
        base, limit = self.ttl
        counts = range(1, MOST_SAMPLES + 1)
        return max(count for count in counts if count == 1 or base + self._extra(count) <= limit)

    def count(self, index: int) -> int:
        """Return the samples of an answer, by its index among those of the arm, from 0: as even as
        whole samples allow."""
        each, more = divmod(self.total, self.answers)
        return each + (index < more)

    def with_total(self, total: int) -> ArmSamples:
        """Return the same arm with this total of samples, within its bounds."""
        return replace(self, total=max(self.answers, min(self.most * self.answers, total)))

    def configure(self, arm: Arm, index: int) -> Arm:
        """Return the arm as configured for the answer of this index. Without another way to choose,
        its samples vote."""
        count = self.count(index)
        if count == self.configured:
            return arm
        more = [f"execution.samples={count}"]
        if self.execution.select == "first":
            more.append("execution.select=vote")
        if self.ttl is not None:
            # The budget after the samples stays the same, and with it the prompts of core mode.
            more.append(f"ttl.base={self.ttl[0] + self._extra(count)}")
        return Arm(arm.name, (*arm.overrides, *more), f"{arm.configuration} {' '.join(more)}")

    def _extra(self, count: int) -> int:
        """Return how many cycles `count` samples take beyond the configured ones."""
        changed = self.execution.model_copy(update={"samples": count})
        return changed.cycles_of_samples - self.execution.cycles_of_samples
