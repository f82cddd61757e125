"""The caps of a run, which `stack.limits` and the kernel hold."""

from __future__ import annotations

from pydantic import Field

from aeon.domain.values import Value


class LimitSettings(Value):
    """`limits`: the global resource caps; None is no cap. Seconds of wall time, tokens and calls of one run, cost in
    the
    currency of the price table."""

    max_seconds: float | None = Field(default=None, gt=0)
    max_tokens: int | None = Field(default=None, gt=0)
    max_cost: float | None = Field(default=None, gt=0)
    max_llm_calls: int | None = Field(default=None, gt=0)
    max_passes: int | None = Field(default=20, gt=0)
