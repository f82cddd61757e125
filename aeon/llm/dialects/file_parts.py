"""Writes files as message parts, for chat requests and for the Responses API. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from aeon.domain.request import InputFile
from aeon.domain.values import JsonMapping, JsonObject


def write_files(files: Sequence[InputFile], content: str | list[JsonObject]) -> list[JsonObject]:
    """Return a chat message's content with its files, each after a line that names it. Files come
    before the text, so that requests about the same files share a prefix."""
    parts: list[JsonObject] = []
    for file in files:
        parts.append({"type": "text", "text": f"Input {file.name} {file.text}:"})
        parts.append(_write_file(file))
    text = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [*parts, *text]


def _write_file(file: InputFile) -> JsonObject:
    if file.form == "audio":
        return {"type": "input_audio", "input_audio": {"data": file.base64, "format": "wav"}}
    address = f"data:{file.media_type};base64,{file.base64}"
    if file.form == "image":
        return {"type": "image_url", "image_url": {"url": address}}
    return {"type": "file", "file": {"filename": f"{file.name}.pdf", "file_data": address}}


def to_input_part(part: JsonMapping) -> JsonObject:
    """Convert a chat message part to one of the Responses API."""
    if part["type"] == "image_url":
        return {"type": "input_image", "image_url": part["image_url"]["url"], "detail": "auto"}
    if part["type"] == "file":
        return {"type": "input_file", **part["file"]}
    return {**part, "type": "input_text"}
