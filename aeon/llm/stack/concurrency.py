"""How many requests may be under way at once: fewer when the server says that it is too many, and back again."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Window:
    """A window of concurrency: additive increase, multiplicative decrease.

    It begins at `most`, the configured bound. 429 halves what was under way; requests that were sent together are one
    signal, however many of them are refused. Each answer widens it by a fraction, so that a whole window of answers
    makes room for one more. A server that fails is no pressure: it leaves the window alone. `cut_at` is the number of
    the request that was sent last when the window was cut, `cuts` how often it was since the last answer.
    """

    most: int
    width: float
    cut_at: int = 0
    cuts: int = 0

    @classmethod
    def open(cls, most: int) -> Window:
        """A window as wide as it may be."""
        return cls(most, float(most))

    @property
    def slots(self) -> int:
        """How many requests may be under way, at least one."""
        return max(1, int(self.width))

    def answered(self) -> Window:
        """After an answer."""
        if self.width >= self.most and not self.cuts:
            return self
        return replace(self, width=min(self.most, self.width + 1 / self.width), cuts=0)

    def throttled(self, number: int, under_way: int, newest: int) -> Window:
        """After a 429 to request `number`, when `under_way` were under way and `newest` was the last one sent."""
        if number <= self.cut_at:
            return self
        return replace(self, width=max(1.0, min(self.width, under_way) / 2), cut_at=newest, cuts=self.cuts + 1)
