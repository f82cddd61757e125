"""Results of a server's tools: held to their output schemas in bounded time, and as the values that steps work with."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

from aeon.schema.validators import SchemaValidator, compile_schema, find_violations

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock
    from mcp.types import Tool as ListedTool


def bounded_check(tools: Iterable[ListedTool]) -> Callable[[str, CallToolResult], Coroutine[Any, Any, None]]:
    """A replacement of the SDK's `validate_tool_result` for these tools, whose checks end in bounded time.

    It raises RuntimeError, as the SDK's does, for structured content that is missing, violates the tool's output
    schema, or cannot be checked in time, and ConfigError for a schema that cannot be used.
    """
    schemas = {tool.name: tool.output_schema for tool in tools if tool.output_schema is not None}

    @cache
    def validator(name: str) -> SchemaValidator:
        return compile_schema(schemas[name], f"tool {name!r}: output_schema")

    async def check(name: str, result: CallToolResult) -> None:
        if name not in schemas:
            return
        if result.structured_content is None and "structured_content" not in result.model_fields_set:
            raise RuntimeError(f"Tool {name} has an output schema but did not return structured content")
        found = find_violations(validator(name), result.structured_content)
        if found:
            raise RuntimeError(f"Invalid structured content returned by tool {name}: {found[0]}")

    return check


def output(result: CallToolResult) -> Any:
    """The structured content where there is one, even an empty one, else the content's text."""
    if "structured_content" in result.model_fields_set and result.structured_content is not None:
        return result.structured_content
    return text(result)


def error_text(result: CallToolResult) -> str:
    """The server's message about a call that it reports as failed."""
    return text(result).strip() or "the server reported an error and said nothing about it"


def text(result: CallToolResult) -> str:
    """The text blocks, a line break between them; any other block is described in brackets by its kind and size."""
    return "\n".join(_block_text(block) for block in result.content)


def _block_text(block: ContentBlock) -> str:
    """Written over the `type` tags, so that nothing of the SDK is imported to read a result."""
    match block.type:
        case "text":
            return block.text
        case "image" | "audio":
            return f"[{block.type} {block.mime_type}, {_count_bytes(block.data)} bytes]"
        case "resource_link":
            size = f", {block.size} bytes" if block.size is not None else ""
            return f"[link to resource {block.uri}{_kind(block.mime_type)}{size}]"
        case "resource":
            return _resource_text(block.resource)


def _resource_text(resource: Any) -> str:
    label = f"resource {resource.uri}{_kind(resource.mime_type)}"
    written = getattr(resource, "text", None)
    if written is None:
        return f"[{label}, {_count_bytes(resource.blob)} bytes]"
    return f"[{label}, {len(written)} characters]\n{written}"


def _kind(mime_type: str | None) -> str:
    return f" ({mime_type})" if mime_type else ""


def _count_bytes(base64: str) -> int:
    """How many bytes base64 text stands for, without decoding it."""
    return len(base64.rstrip("=")) * 3 // 4
