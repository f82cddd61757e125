"""The result of calling a tool."""

from __future__ import annotations

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
