"""Results of a server's tools, as the values that steps work with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock


def output(result: CallToolResult) -> Any:
    """The structured content where there is one, even an empty one, else the content's text."""
    if "structured_content" in result.model_fields_set and result.structured_content is not None:
        return result.structured_content
    return text(result)


def error_text(result: CallToolResult) -> str:
    """The server's message about a call that it reports as failed."""
    return text(result).strip() or "the server reported an error and said nothing about it"


def text(result: CallToolResult) -> str:
    """The text blocks, a line break between them; any other block is described in brackets by its
    kind and size."""
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
            resource: Any = block.resource
            label = f"resource {resource.uri}{_kind(resource.mime_type)}"
            if (written := getattr(resource, "text", None)) is None:
                return f"[{label}, {_count_bytes(resource.blob)} bytes]"
            return f"[{label}, {len(written)} characters]\n{written}"


def _kind(mime_type: str | None) -> str:
    return f" ({mime_type})" if mime_type else ""


def _count_bytes(base64: str) -> int:
    return len(base64.rstrip("=")) * 3 // 4
