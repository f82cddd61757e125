"""What configures the kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field

from aeon.domain.assessment import ConvergenceSettings
from aeon.domain.plan import Plan
from aeon.domain.values import Value
from aeon.llm.stack.limits import LimitSettings

Mode = Literal["adaptive", "core", "auto"]
ONE_STEP = "Do the whole task, and give the complete answer to it."


class ExecutionSettings(Value):
    """`execution`: how many steps run at once, how many a plan has, what running work gets when a run is ended."""

    max_parallel: int = Field(default=8, ge=1, le=512)
    max_steps: int = Field(default=100, ge=1)
    grace_seconds: float = Field(default=10.0, ge=0)


class ModeSettings(Value):
    """`mode`: `adaptive` is Phases A to D, `core` one plan, step after step; `auto` is adaptive, but a task profiled as
    small gets a plan of the one step that `one_step` describes."""

    kind: Mode = "adaptive"
    one_step: str = Field(default=ONE_STEP, min_length=1)


class AnswerSettings(Value):
    """`answer`: with a schema, the answer is JSON that satisfies it. `json_schema` is what `schema_file`, written
    `answer.schema`, holds; filled in when the settings are validated."""

    model_config = ConfigDict(populate_by_name=True)

    schema_file: Path | None = Field(default=None, alias="schema")
    json_schema: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How runs go. `base_ttl` is the base of the TTL table, in core mode the whole TTL. `plan` is run instead of a
    generated one. `requires_final_step`: the answer must be one step's output. `answer_mark` is put before every
    answer."""

    mode: Mode = "adaptive"
    one_step: str = ONE_STEP
    plan: Plan | None = None
    execution: ExecutionSettings = field(default_factory=ExecutionSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    base_ttl: int = 10
    ttl_limit: int | None = None
    convergence: ConvergenceSettings = field(default_factory=ConvergenceSettings)
    requires_final_step: bool = False
    answer_mark: str = ""
    configuration: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_core(self) -> bool:
        """Whether there are no passes, only one plan, step after step."""
        return self.mode == "core"
