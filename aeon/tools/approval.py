"""What is put to a person before a tool is called that needs approval."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from aeon.domain.plan import PlanStep
from aeon.tools.registry import Tool

asking_step: ContextVar[PlanStep | None] = ContextVar("asking_step", default=None)
"""The step that the tool call being made in this context is for; None when there is none."""


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A call that waits for a person: the tool, a copy of its arguments, and the step that asks for it, if any."""

    tool: Tool
    arguments: Mapping[str, Any]
    step: PlanStep | None = None


Approve = Callable[[ApprovalRequest], bool]


@contextmanager
def on_behalf_of(step: PlanStep) -> Iterator[None]:
    """Tool calls in this block are made for a step, whatever stands between its worker and the tool."""
    token = asking_step.set(step)
    try:
        yield
    finally:
        asking_step.reset(token)
