"""The result of calling a tool."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from aeon.domain.values import Value

ToolErrorKind = Literal["unknown", "invalid_arguments", "refused", "timeout", "raised", "not_json", "invalid_output"]


class ToolResult(Value):
    """One call of a tool (Sprint 1, FR-022, FR-054, FR-055). `output` is the JSON value it returned, also an invalid
    one, and `text` the same for a prompt: a string as it is, anything else as JSON. `cut` is the number of characters
    left out of a text that was too long: then `kept` is the limit, that of the tool itself when `own_limit`, and
    `output` is the text. `seconds` includes the approval. `replayed`: the result is that of an earlier call; in no
    artefact, as a replay has those of the first run."""

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
