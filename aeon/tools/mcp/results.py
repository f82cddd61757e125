"""Structured results of a server's tools, held to their output schemas in bounded time."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

from aeon.schema.validators import compiled, violations

if TYPE_CHECKING:
    from jsonschema.protocols import Validator
    from mcp.types import CallToolResult
    from mcp.types import Tool as ListedTool


def bounded_check(tools: Iterable[ListedTool]) -> Callable[[str, CallToolResult], Coroutine[Any, Any, None]]:
    """What to check results of these tools with, by name, in place of the SDK's `validate_tool_result`.

    It raises RuntimeError, as the SDK's does, for structured content that is missing, is not as the tool's output
    schema says, or cannot be checked in time, and ConfigError for a schema that cannot be used.
    """
    schemas = {tool.name: tool.output_schema for tool in tools if tool.output_schema is not None}

    @cache
    def validator(name: str) -> Validator:
        return compiled(schemas[name], f"tool {name!r}: output_schema")

    async def check(name: str, result: CallToolResult) -> None:
        if name not in schemas:
            return
        if result.structured_content is None and "structured_content" not in result.model_fields_set:
            raise RuntimeError(f"Tool {name} has an output schema but did not return structured content")
        found = violations(validator(name), result.structured_content)
        if found:
            raise RuntimeError(f"Invalid structured content returned by tool {name}: {found[0]}")

    return check
