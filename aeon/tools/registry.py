"""The tools a plan may name (Sprint 1, FR-019 to FR-021)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from aeon.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Tool:
    """A capability: its name, what it does, JSON Schemas of what goes in and out, the function, and example arguments."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]
    invoke: Callable[..., Any] = field(repr=False)
    examples: Sequence[Mapping[str, Any]] = ()

    def describe(self) -> dict[str, Any]:
        """What a model is told of the tool (FR-067)."""
        described: dict[str, Any] = {
            "name": self.name,
            "description": self.description,
            "input_schema": dict(self.input_schema),
            "output_schema": dict(self.output_schema),
        }
        if self.examples:
            described["examples"] = [dict(example) for example in self.examples]
        return described


class ToolRegistry:
    """Tools by name, in order of registration."""

    def __init__(self, tools: Sequence[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self.register(tool)

    def register(self, tool: Tool) -> None:
        """Add a tool. ConfigError when its name is taken or a schema of it is not a JSON Schema."""
        if tool.name in self._tools:
            raise ConfigError(f"a tool named {tool.name!r} is registered already")
        for kind, schema in (("input_schema", tool.input_schema), ("output_schema", tool.output_schema)):
            try:
                Draft202012Validator.check_schema(schema)
            except SchemaError as error:
                raise ConfigError(f"tool {tool.name!r}: {kind}{error.json_path[1:]}: {error.message}") from error
        self._tools[tool.name] = tool

    def get(self, name: str) -> Tool | None:
        """The tool of that name; None when it is not registered."""
        return self._tools.get(name)

    def names(self) -> tuple[str, ...]:
        """All names, in order of registration."""
        return tuple(self._tools)

    def describe(self) -> list[dict[str, Any]]:
        """What a model is told of all tools."""
        return [tool.describe() for tool in self._tools.values()]
