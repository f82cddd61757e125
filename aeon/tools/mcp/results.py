"""Converts results of a server's tools to the values that steps use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock


def output(result: CallToolResult) -> Any:
    """Return the structured content if there is any, even if empty, else the content's text."""
    if "structured_content" in result.model_fields_set and result.structured_content is not None:
        return result.structured_content
    return text(result)


def error_text(result: CallToolResult) -> str:
    """Return the server's message about a call that it reports as failed."""
    return text(result).strip() or "the server reported an error and said nothing about it"


def text(result: CallToolResult) -> str:
    """Join the text blocks with line breaks; other blocks are described in brackets by kind and
    size."""
    return "\n".join(_block_text(block) for block in result.content)


def _block_text(block: ContentBlock) -> str:
    """Return the text of a block, found by its `type` tag, so that reading a result imports nothing
    of the SDK."""
    match block.type:
        case "text":
            return block.text
        case "image" | "audio":
            return f"[{block.type} {block.mime_type}, {_count_bytes(block.data)} bytes]"
        case "resource_link":
            size = f", {block.size} bytes" if block.size is not None else ""
            return f"[link to resource {block.uri}{_kind(block.mime_type)}{size}]"
        case "resource":
            resource: Any = block.resource
            label = f"resource {resource.uri}{_kind(resource.mime_type)}"
            if (written := getattr(resource, "text", None)) is None:
                return f"[{label}, {_count_bytes(resource.blob)} bytes]"
            return f"[{label}, {len(written)} characters]\n{written}"


def _kind(mime_type: str | None) -> str:
    return f" ({mime_type})" if mime_type else ""


def _count_bytes(base64: str) -> int:
    return len(base64.rstrip("=")) * 3 // 4
