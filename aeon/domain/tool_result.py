"""The result of calling a tool."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from pydantic import Field

from aeon.domain.values import Value

ToolErrorKind = Literal["unknown", "invalid_arguments", "refused", "timeout", "raised", "not_json", "invalid_output"]
"""Why a call gave no usable result.

`unknown`: no such tool; `invalid_arguments`: not as the input schema says; `refused`: not approved; `timeout`: took too
long; `raised`: the tool failed; `not_json`: what it returned cannot be written as JSON; `invalid_output`: not as the
output schema says.
"""


class SchemaViolation(NamedTuple):
    """What is wrong with one place of a value. `pointer` is a JSON pointer (RFC 6901), empty for the whole."""

    pointer: str
    message: str

    def __str__(self) -> str:
        return f"{self.pointer or '(whole value)'}: {self.message}"


class ToolResult(Value):
    """One call of a tool (Sprint 1, FR-022, FR-054, FR-055).

    `output` is the JSON value it returned, and `text` the same for a prompt: a string as it is, anything else as JSON.
    When that is longer than the tool may say, `cut` is the number of characters left out, the text ends with a note of
    it, and `output` is that text: the rest is not kept, and `kept` is the limit in characters, that of the tool itself
    when `own_limit`, else `tools.max_output_characters`. `kept` is 0 when nothing was cut. `error` says what went
    wrong, None when nothing did, and then `error_kind` is None too. After an `invalid_output`, `output` and `text` are
    still what the tool returned. `arguments` are those that were given, `seconds` how long the call took, approval
    included. `replayed`: the tool was not called now, its result is that of an earlier call that a store kept; it is in
    no artefact, since a replayed run has the artefacts of the first one.
    """

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
