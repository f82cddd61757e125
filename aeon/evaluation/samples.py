"""How many samples an arm takes for each of its answers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from aeon.batch.dataset import Arm
from aeon.config.settings import Settings

MOST_SAMPLES = 64
"""The most samples of one answer."""


@dataclass(frozen=True, slots=True)
class ArmSamples:
    """How many samples an arm takes for all its answers together, `answers` of them, and what it is
    configured with: `configured` samples for each, a budget of `ttl_base` where its mode has a
    fixed one, and whether it chooses by `vote` since it says no other way."""

    total: int
    answers: int
    configured: int
    ttl_base: int | None = None
    votes: bool = False

    @classmethod
    def of(cls, settings: Settings, answers: int) -> ArmSamples:
        """The samples of an arm as it is configured."""
        execution = settings.execution
        has_fixed_budget = settings.mode.kind in ("single", "core")
        return cls(
            total=execution.samples * answers,
            answers=answers,
            configured=execution.samples,
            ttl_base=settings.ttl.base if has_fixed_budget else None,
            votes=execution.select == "first",
        )

    def count(self, index: int) -> int:
        """The samples of an answer, by its place among those of the arm, from 0: as even as whole
        samples allow."""
        each, more = divmod(self.total, self.answers)
        return each + (index < more)

    def with_total(self, total: int) -> ArmSamples:
        """The same arm with so many samples in all, as far as may be asked for."""
        return replace(self, total=max(self.answers, min(MOST_SAMPLES * self.answers, total)))

    def configure(self, arm: Arm, index: int) -> Arm:
        """The arm as it gives an answer."""
        count = self.count(index)
        if count == self.configured:
            return arm
        more = [f"execution.samples={count}"]
        if self.votes:
            more.append("execution.select=vote")
        if self.ttl_base is not None:
            # What is left behind the samples stays the same, and with it what core mode is shown.
            more.append(f"ttl.base={self.ttl_base + count - self.configured}")
        return Arm(arm.name, (*arm.overrides, *more), f"{arm.configuration} {' '.join(more)}")
