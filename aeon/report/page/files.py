"""The input files of a run on its page: small or shrunk images, and links to all files."""

from __future__ import annotations

import base64
import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pydantic

from aeon.config.origin import RecordedFile
from aeon.files.inputs.extraction import shrink_image
from aeon.files.inputs.stored import FOLDER, name_stored
from aeon.files.text import read_regular_file
from aeon.report.record import Record

MOST_SHOWN_BYTES = 64 * 1024
"""An image of more bytes is shrunk: with a few of them a page would take long to open."""
_MOST_SHRUNK_BYTES = 20 * 10**6
_MOST_PIXELS = 320


class ShownFile(NamedTuple):
    """A file on the page. `address` leads from the page to the file, empty where the file is gone;
    `image` is a small image itself, or a shrunk one, as a data URI."""

    media_type: str
    size: int
    address: str
    image: str


def list_files(record: Record, folder: Path) -> dict[str, ShownFile]:
    """Return the files of a run, by the names of its inputs, for a page in this folder."""
    recorded = record.origin.get("input_files")
    found = recorded.items() if isinstance(recorded, dict) else ()
    shown = {}
    for name, values in found:
        with suppress(pydantic.ValidationError):
            file = RecordedFile.model_validate(values)
            path = record.directory / FOLDER / name_stored(file.as_input())
            shown[str(name)] = _show_file(file, path, folder)
    return shown


def _show_file(file: RecordedFile, path: Path, folder: Path) -> ShownFile:
    address = ""
    if path.is_file():
        beside = os.path.relpath(path.absolute(), folder.absolute())
        address = quote(Path(beside).as_posix())
    return ShownFile(file.media_type, file.size, address, _read_image(file, path))


def _read_image(file: RecordedFile, path: Path) -> str:
    if file.form != "image" or file.size > _MOST_SHRUNK_BYTES:
        return ""
    content = b""
    with suppress(OSError):
        content = read_regular_file(path, file.size)
    if hashlib.sha256(content).hexdigest() != file.sha256:
        return ""
    if file.size <= MOST_SHOWN_BYTES:
        return f"data:{file.media_type};base64,{base64.b64encode(content).decode()}"
    shrunk = shrink_image(content, _MOST_PIXELS)
    return f"data:image/webp;base64,{shrunk}" if shrunk else ""
