"""What configures the tools of MCP servers."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import AnyHttpUrl, Field, StringConstraints, TypeAdapter, field_validator, model_validator

from aeon.domain.values import Value

Word = Annotated[str, StringConstraints(min_length=1)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,32}$")]
Prefix = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{0,32}$")]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]

_URL: TypeAdapter[AnyHttpUrl] = TypeAdapter(AnyHttpUrl)


class McpServer(Value):
    """`tools.mcp.servers.NAME`: a `command` spoken to over stdio, or the `url` of a streamable HTTP endpoint.

    Secrets are named by environment variable and never held here: `env` (a command's variables, passed on by name),
    `headers_env` (header -> the variable with its whole value), `bearer_env` (the variable with a bearer token).
    """

    command: tuple[Word, ...] = ()
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
    def _a_lone_command_is_one_word(cls, given: Any) -> Any:
        return (given,) if isinstance(given, str) else given

    @field_validator("url")
    @classmethod
    def _a_web_address_without_credentials(cls, given: str | None) -> str | None:
        if given is not None:
            address = _URL.validate_python(given)
            if address.username or address.password:
                raise ValueError("holds credentials; name their environment variable in bearer_env or headers_env")
        return given

    @model_validator(mode="after")
    def _one_way_to_reach_it(self) -> Self:
        if bool(self.command) == bool(self.url):
            raise ValueError("give either command (a server over stdio) or url (streamable HTTP)")
        of_a_command = {"args": self.args, "cwd": self.cwd, "env": self.env}
        of_a_url = {"headers_env": self.headers_env, "bearer_env": self.bearer_env}
        misplaced = [name for name, value in (of_a_command if self.url else of_a_url).items() if value]
        if misplaced:
            raise ValueError(f"{misplaced[0]} does not go with {'url' if self.url else 'command'}")
        return self


class McpSettings(Value):
    """`tools.mcp`: the MCP servers whose tools steps may use, by name."""

    servers: dict[Name, McpServer] = Field(default_factory=dict)
