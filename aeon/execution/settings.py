"""Settings of a run: its mode, the execution of steps, and the form of the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints

from aeon.domain.profile import SmallTask
from aeon.domain.values import JsonObject, OfRow, Value

MOST_SAMPLES = 64
MOST_TOOL_ROUNDS = 100
Select = Literal["first", "check", "vote", "pairwise"]
Mode = Literal["adaptive", "core", "auto", "single"]
UNJUDGED_MODES: frozenset[Mode] = frozenset({"core", "single"})
"""Modes without assessments: they end when the work is done."""
ONE_STEP = "Do the whole task, and give the complete answer to it."


class ModeSettings(Value):
    """`mode`: `adaptive` runs Phases A to D; `core` one plan, step after step; `auto` is adaptive,
    but a task profiled as `small` gets a plan of the single step that `one_step` describes;
    `single` requests the answer in one call."""

    kind: OfRow[Mode] = "adaptive"
    one_step: str = Field(default=ONE_STEP, min_length=1)
    small: SmallTask = SmallTask.model_construct()


Pattern = Annotated[str, StringConstraints(min_length=1)]
_PATTERNS = {"all": ("*",), "none": ()}


def _read_patterns(given: object) -> Any:
    if isinstance(given, str):
        return _PATTERNS.get(given, (given,))
    return given


class ExecutionSettings(Value):
    """`execution`: how many steps run at once, the most steps of a plan, and the grace period for
    running work when a run ends; how many answers are drawn for the final step, or for every model
    step, and how one is chosen; the tools that the model may call by itself in its steps, as name
    patterns, and in how many rounds of a step."""

    max_parallel: int = Field(default=8, ge=1, le=512)
    max_steps: int = Field(default=100, ge=1)
    grace_seconds: float = Field(default=10.0, ge=0)
    samples: int = Field(default=1, ge=1, le=MOST_SAMPLES)
    select: Select = "first"
    sample_steps: Literal["final", "all"] = "final"
    step_tools: Annotated[
        tuple[Pattern, ...],
        BeforeValidator(_read_patterns, json_schema_input_type=Pattern | tuple[Pattern, ...]),
    ] = ()
    max_tool_rounds: int = Field(default=8, ge=1, le=MOST_TOOL_ROUNDS)

    @property
    def cycles_of_samples(self) -> int:
        """The TTL cycles of one step's samples: one each, and two for each comparison of a
        knock-out."""
        comparisons = self.samples - 1 if self.select == "pairwise" else 0
        return self.samples + 2 * comparisons


class AnswerSettings(Value):
    """`answer`: with a schema, the answer is JSON that satisfies it. `json_schema` is the content
    of `schema_file` (written `answer.schema`), filled in at validation. With `judge`, an answer of
    a mode without assessments is assessed once. `source` (written `answer.from`) is the pass whose
    answer is used; None: the best if checks or a gate judge it, else the latest. With `baseline`,
    one direct call is made at the end and compared with the answer."""

    model_config = ConfigDict(populate_by_name=True)

    schema_file: Path | None = Field(default=None, alias="schema")
    json_schema: JsonObject | None = None
    judge: OfRow[bool] = False
    baseline: bool = False
    source: OfRow[Literal["latest", "best"] | None] = Field(default=None, alias="from")
