"""Settings of the tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AnyHttpUrl,
    Field,
    StringConstraints,
    TypeAdapter,
    field_validator,
    model_validator,
)

from aeon.domain.values import StartsCode, Taken, Unneeded, Value

Approval = Literal["never", "ask", "always"]
Word = Annotated[str, StringConstraints(min_length=1)]
ServerName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,32}$")]
Prefix = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{0,32}$")]
Host = Annotated[
    str, StringConstraints(pattern=r"^(\[[0-9A-Fa-f:.]+\]|[^/@*?#\s:\[\]]+)(:[0-9]{1,5})?$")
]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]

MOST_TIMEOUT_SECONDS = 86_400

_URL: TypeAdapter[AnyHttpUrl] = TypeAdapter(AnyHttpUrl)


class McpServer(Value):
    """`tools.mcp.servers.NAME`: a `command` that speaks stdio, or the `url` of a streamable HTTP
    endpoint. Secrets are named by environment variable and never stored here: `env` (a command's
    variables, passed on by name), `headers_env` (header -> the variable with its whole value),
    `bearer_env` (the variable with a bearer token)."""

    command: StartsCode[tuple[Word, ...]] = ()
    args: tuple[str, ...] = ()
    cwd: str | None = None
    env: tuple[Variable, ...] = ()
    url: str | None = None
    headers_env: dict[Word, Variable] = Field(default_factory=dict)
    bearer_env: Variable | None = None
    prefix: Prefix | None = None
    allow: tuple[Word, ...] = ("*",)
    deny: tuple[Word, ...] = ()
    start_timeout_seconds: float = Field(default=30, gt=0, le=600)
    call_timeout_seconds: float = Field(default=60, gt=0, le=3600)
    max_restarts: int = Field(default=3, ge=0, le=100)

    @field_validator("command", mode="before")
    @classmethod
    def _a_lone_command_is_one_word(cls, given: object) -> Any:
        return (given,) if isinstance(given, str) else given

    @field_validator("url")
    @classmethod
    def _a_web_address_without_credentials(cls, given: str | None) -> str | None:
        if given is not None:
            address = _URL.validate_python(given)
            if address.username or address.password:
                raise ValueError(
                    "holds credentials; name their environment variable in bearer_env or "
                    "headers_env"
                )
        return given

    @model_validator(mode="after")
    def _one_way_to_reach_it(self) -> Self:
        if bool(self.command) == bool(self.url):
            raise ValueError("give either command (a server over stdio) or url (streamable HTTP)")
        for name in ("args", "cwd", "env") if self.url else ("headers_env", "bearer_env"):
            if getattr(self, name):
                raise ValueError(
                    f"{name} cannot be combined with {'url' if self.url else 'command'}"
                )
        return self


class McpSettings(Value):
    """`tools.mcp`: the MCP servers whose tools steps may use, by name."""

    servers: dict[ServerName, McpServer] = Field(default_factory=dict)


class BuiltinSettings(Value):
    """`tools.builtin`: the tools that come with Aeon; `only` these, None for all. `read_file` and
    `list_files` see the folder `root`; `http_get` may fetch from `allowed_hosts`, such as
    `example.com` or `example.com:8080`. Sizes are in bytes. Files that usually hold keys (`.env`,
    `id_rsa`, `*.pem`) are read only if `allowed_secret_files` names them."""

    only: Taken[tuple[str, ...] | None] = None
    root: Path | None = None
    max_file_bytes: Taken[int] = Field(default=1_000_000, ge=1)
    allowed_secret_files: tuple[Word, ...] = ()
    allowed_hosts: Taken[tuple[Host, ...]] = ()
    http_timeout_seconds: Unneeded[float] = Field(default=20, gt=0, le=3600)
    max_response_bytes: Taken[int] = Field(default=1_000_000, ge=1)


class ToolSettings(Value):
    """`tools`: the tools that steps may use. `functions` are your own tools by name:
    `package.module:object`. `approval` says for name patterns whether a tool is called; the first
    match decides (docs/tools.md). `timeout_seconds` limits a call, `max_output_characters` its
    output; a tool may set its own limits. `missing` says what happens to a step whose tool is
    missing: the model does it, or it fails."""

    builtin: BuiltinSettings | None = None
    mcp: McpSettings | None = None
    functions: StartsCode[dict[str, str]] = Field(default_factory=dict)
    approval: Taken[dict[str, Approval]] = Field(default_factory=dict)
    timeout_seconds: Taken[float] = Field(default=30, gt=0, le=MOST_TIMEOUT_SECONDS)
    max_output_characters: Taken[int] = Field(default=20_000, ge=1)
    missing: Taken[Literal["fallback", "fail"]] = "fallback"
