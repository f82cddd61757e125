"""What configures the tools."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from aeon.domain.values import Taken, Unneeded, Value
from aeon.tools.mcp_settings import McpSettings

LONGEST_CALL = 86_400
"""The most seconds that a call of a tool may be allowed to take: a day."""

Approval = Literal["never", "ask", "always"]
BuiltinName = Literal[
    "echo",
    "calculator",
    "current_time",
    "read_file",
    "list_files",
    "http_get",
    "memory_read",
    "memory_search",
    "memory_write",
]


class BuiltinSettings(Value):
    """`tools.builtin`: the tools that come with Aeon.

    `only` are the names to offer, None for all. `read_file` and `list_files` exist when there is a `root`, the folder
    outside of which they see nothing; `http_get` when `allowed_hosts` names at least one host, as `example.com` (the
    scheme's own port) or `example.com:8080`. Sizes are in bytes of a file or an answer.
    """

    only: Taken[tuple[BuiltinName, ...] | None] = None
    root: Path | None = None
    max_file_bytes: Taken[int] = Field(default=1_000_000, ge=1)
    allowed_hosts: Taken[tuple[str, ...]] = ()
    http_timeout_seconds: Unneeded[float] = Field(default=20, gt=0, le=3600)
    max_response_bytes: Taken[int] = Field(default=1_000_000, ge=1)

    @field_validator("allowed_hosts")
    @classmethod
    def _no_addresses(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        for host in hosts:
            if not host.strip() or set(host) & set("/@*?# "):
                raise ValueError(f"{host!r} is not a host: write example.com or example.com:8080")
        return hosts


class ToolSettings(Value):
    """`tools`: which tools steps may use, and under which conditions.

    `functions` are tools of one's own, by name: `package.module:object`, a Python function with type hints and a
    docstring. `approval` says for patterns of names (`*`, `?`, `[...]`) whether a tool is called: `always`; `ask`, the
    person at the terminal decides, and it is refused when there is nobody to ask; `never`, it is refused. The first
    pattern that matches decides; what none matches is called, but for `memory_write`, which a person is asked about.
    `timeout_seconds` is how long a call may take, at most `LONGEST_CALL`, `max_output_characters` how much of what it
    returns is kept; a tool may have its own.
    """

    builtin: BuiltinSettings | None = None
    mcp: McpSettings | None = None
    functions: dict[str, str] = Field(default_factory=dict)
    approval: Taken[dict[str, Approval]] = Field(default_factory=dict)
    timeout_seconds: Taken[float] = Field(default=30, gt=0, le=LONGEST_CALL)
    max_output_characters: Taken[int] = Field(default=20_000, ge=1)
