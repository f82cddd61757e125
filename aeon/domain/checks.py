"""What is found outside the model: by tools, and by checks on an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from aeon.domain.values import Value

ToolErrorKind = Literal[
    "unknown", "invalid_arguments", "refused", "timeout", "raised", "not_json", "invalid_output"
]


class ToolResult(Value):
    """One call of a tool (Sprint 1, FR-022, FR-054, FR-055). `output` is the JSON value it
    returned, `text` the same for a prompt; where it was too long, both are the text, `cut` counts
    the characters left out and `kept` is the limit, the tool's own when `own_limit`. `replayed`:
    the result is that of an earlier call, `repeated`: an earlier call was under way when its run
    was cut off; neither is in an artefact."""

    tool: str
    arguments: dict[str, Any]
    output: Any = None
    text: str = ""
    error: str | None = None
    error_kind: ToolErrorKind | None = None
    seconds: float = 0.0
    cut: int = 0
    kept: int = 0
    own_limit: bool = False
    replayed: bool = Field(default=False, exclude=True)
    repeated: bool = Field(default=False, exclude=True)


class CheckOutcome(Value):
    """What one check found on an answer. A `required` one that did not pass keeps the run from
    converging, and its `name` is the reason code; `weight` counts when answers are compared.
    `feedback` is what the check says, empty where it passed without a word. `measured` is False for
    one that crashed, ran out of time or could not be asked: it has not passed, and `feedback` says
    why."""

    name: str
    type: str
    passed: bool
    score: float | None = None
    feedback: str = ""
    required: bool = True
    weight: float = Field(default=1.0, ge=0)
    measured: bool = True

    @property
    def blocks(self) -> bool:
        """Whether it keeps the run from converging."""
        return self.required and not self.passed


def find_failed_codes(checks: Sequence[CheckOutcome]) -> tuple[str, ...]:
    """The names of the checks that keep a run from converging: its reason codes."""
    return tuple(check.name for check in checks if check.blocks)


def count_passed(checks: Sequence[CheckOutcome]) -> str:
    """How many checks passed, as `2 of 3`."""
    return f"{sum(check.passed for check in checks)} of {len(checks)}"


def weight_passed(checks: Sequence[CheckOutcome]) -> float:
    """The weight of the checks that passed, in all."""
    return sum(check.weight for check in checks if check.passed)
