"""The parts of a message: texts, and files, which become inputs of the run."""

from __future__ import annotations

import base64
import binascii
import re
from pathlib import PurePath
from typing import Any

from aeon.domain.values import JsonMapping
from aeon.files.inputs.kinds import DOCX, JPEG, PDF, PNG, WAV, WEBP, UnusableFile, find_kind
from aeon.service.http.errors import ApiError, refuse

_TEXT_PARTS = ("text", "input_text", "output_text", "refusal")
_MOST_FILES = 100
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])", re.IGNORECASE)
"""Names that lead to devices on Windows."""
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_DATA_URL = re.compile(r"data:([^,;]{0,100})[^,]{0,100};base64,", re.IGNORECASE)
_SUFFIXES = {kind.media_type: kind.suffix for kind in (DOCX, PNG, JPEG, WEBP, PDF, WAV)}


class SentFiles:
    """The files of a conversation, by the names of the inputs that they become: the file's name
    where it is valid and unused on every system (upper and lower case count as the same, Windows
    reserves some), else its kind and a number."""

    def __init__(self, reserved: set[str]) -> None:
        self.contents: dict[str, bytes] = {}
        # Folded, because some file systems do not tell cases apart.
        self._taken = {name.casefold() for name in reserved}

    def add(self, noun: str, content: bytes, filename: object, where: str) -> str:
        """Add a file and return the name of its input. Raises ApiError for one too many."""
        if len(self.contents) >= _MOST_FILES:
            raise refuse(f"{where}: more than {_MOST_FILES} files", where)
        stem = _read_name(filename).stem
        number = 1
        while not self._may_have(stem):
            stem = f"{noun}_{number}"
            number += 1
        self._taken.add(stem.casefold())
        self.contents[stem] = content
        return stem

    def _may_have(self, name: str) -> bool:
        is_valid = _NAME.fullmatch(name) is not None and _RESERVED.fullmatch(name) is None
        return is_valid and name.casefold() not in self._taken


def read_content(content: Any, where: str, files: SentFiles) -> str:
    """Return the text of a message, with each file replaced by the name of its input. Raises
    ApiError."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [None]
    whole = ""
    was_text = False
    for place, part in enumerate(parts):
        mapping = part if isinstance(part, dict) else {}
        is_text = mapping.get("type") in _TEXT_PARTS
        if is_text and was_text and not whole.endswith("\n"):
            whole += "\n"
        whole += _read_part(mapping, f"{where}.content[{place}]", files)
        was_text = is_text
    return whole


def _read_part(part: JsonMapping, where: str, files: SentFiles) -> str:
    kind = part.get("type")
    text = part.get("refusal" if kind == "refusal" else "text")
    if kind in _TEXT_PARTS and isinstance(text, str):
        return text
    match kind:
        case "image_url" | "input_image":
            given = part.get("image_url")
            url = given.get("url") if isinstance(given, dict) else given
            name = files.add("image", _decode(url, part, where), None, where)
        case "file" | "input_file":
            file = _get_object(part, "file") if kind == "file" else part
            filename = file.get("filename")
            content = _decode(file.get("file_data"), file, where, _read_name(filename).suffix)
            name = files.add("file", content, filename, where)
        case "input_audio":
            audio = _get_object(part, "input_audio")
            content = _decode(audio.get("data"), part, where, f".{audio.get('format')}")
            name = files.add("recording", content, None, where)
        case _:
            raise refuse(f"{where}: a part is a text, an image, a file or a recording", where)
    return f" [{name}] "


def _read_name(filename: object) -> PurePath:
    return PurePath(filename if isinstance(filename, str) else "")


def _get_object(part: JsonMapping, name: str) -> JsonMapping:
    found = part.get(name)
    return found if isinstance(found, dict) else {}


def _decode(source: object, part: JsonMapping, where: str, suffix: str = "") -> bytes:
    """Return the bytes of a file sent as a data URL, or in base64. Raises ApiError, also for one
    that is not what its `suffix` or its media type says."""
    if part.get("file_id") or part.get("file_url"):
        raise _refuse_elsewhere(where)
    if not isinstance(source, str):
        raise refuse(f"{where}: the file is missing: give it as a data URL", where)
    if _ADDRESS.match(source):
        raise _refuse_elsewhere(where)
    found = _DATA_URL.match(source)
    try:
        content = base64.b64decode(source[found.end() :] if found else source, validate=True)
    except (binascii.Error, ValueError) as error:
        problem = f"{where}: the file is no base64: {error}"
        raise refuse(problem, where) from None
    named = _SUFFIXES.get(found[1].lower(), "") if found else ""
    try:
        for each in dict.fromkeys((suffix, named)):
            find_kind(content, each)
    except UnusableFile as error:
        raise refuse(f"{where}: {error}", where) from None
    return content


def _refuse_elsewhere(where: str) -> ApiError:
    message = f"{where}: nothing is fetched: send the file itself, as a data URL"
    return refuse(message, where, "unsupported_parameter")
