"""What a server answered to a call, as the value a step works with. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock

_NO_TEXT = "the server reported an error and said nothing about it"


def output(result: CallToolResult) -> Any:
    """The structured content where there is one, else the content's text.

    An empty structured content counts; a result of nothing at all is the empty text.
    """
    if "structured_content" in result.model_fields_set and result.structured_content is not None:
        return result.structured_content
    return text(result)


def error_text(result: CallToolResult) -> str:
    """What the server says of a call that it reports as failed."""
    return text(result).strip() or _NO_TEXT


def text(result: CallToolResult) -> str:
    """The text blocks, a line break between them; anything else is described in brackets by its kind and size."""
    return "\n".join(_block_text(block) for block in result.content)


def _block_text(block: ContentBlock) -> str:
    """Written over the `type` tags, so that nothing of the SDK is imported to read a result."""
    match block.type:
        case "text":
            return block.text
        case "image" | "audio":
            return f"[{block.type} {block.mime_type}, {_bytes(block.data)} bytes]"
        case "resource_link":
            size = f", {block.size} bytes" if block.size is not None else ""
            return f"[link to resource {block.uri}{_kind(block.mime_type)}{size}]"
        case "resource":
            return _resource_text(block.resource)


def _resource_text(resource: Any) -> str:
    label = f"resource {resource.uri}{_kind(resource.mime_type)}"
    written = getattr(resource, "text", None)
    if written is None:
        return f"[{label}, {_bytes(resource.blob)} bytes]"
    return f"[{label}, {len(written)} characters]\n{written}"


def _kind(mime_type: str | None) -> str:
    return f" ({mime_type})" if mime_type else ""


def _bytes(base64: str) -> int:
    """How many bytes base64 text stands for, without decoding it."""
    return len(base64.rstrip("=")) * 3 // 4
