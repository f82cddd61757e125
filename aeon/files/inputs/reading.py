"""Reads the input files of a run once and within limits, as text or as files for the model."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aeon.domain.errors import ConfigError
from aeon.domain.request import FileForm, InputFile
from aeon.files.inputs.extraction import check_unlocked, extract_text, shorten_text
from aeon.files.inputs.kinds import PDF, TEXT, UnusableFile, find_kind, is_encrypted
from aeon.files.pinned import read_named
from aeon.files.text import decode_utf8

# A path has lost the second slash of the address that it was made of.
_ADDRESS = re.compile(r"(?:^|.*/)([a-z][a-z0-9+.-]+):/(.*)", re.IGNORECASE | re.DOTALL)
_FORMS: Mapping[str, FileForm] = {"image": "image", "pdf": "pdf", "audio": "audio"}


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """The most bytes read of a file, and the most characters used of an extracted text."""

    bytes: int
    characters: int


def read_input(
    name: str, path: Path, limits: ReadingLimits, *, as_text: bool = False
) -> str | InputFile:
    """Read an input from a file: its text, or the file for the model; with `as_text`, the text of a
    document too. Raises ConfigError for an unusable file, TaskTextError for text that is not UTF-8.
    """
    place = f"input_files.{name}={path}"
    if address := _ADDRESS.fullmatch(str(path)):
        raise ConfigError(
            f"input_files.{name}={address[1]}://{address[2]}: an address is not fetched",
            hint="Download it, look at it, and give the file.",
        )
    try:
        content = _read_bounded(path, limits.bytes)
    except OSError as error:
        raise ConfigError(f"{place}: cannot be read: {error.strerror or error}") from None
    except UnusableFile as error:
        raise ConfigError(f"{place}: {error}", hint=error.hint) from None
    return make_input(name, content, place, limits, suffix=path.suffix, as_text=as_text)


def _read_bounded(path: Path, most: int) -> bytes:
    """Read a file of at most `most` bytes. Raises UnusableFile for a longer one."""
    found = path.expanduser()
    status = found.stat()
    if stat.S_ISREG(status.st_mode) and status.st_size <= most:
        return read_named(path)
    if stat.S_ISREG(status.st_mode):
        raise _refuse_length(f"{status.st_size:,}", most)
    # A pipe or a device has no size: it is read up to the limit.
    with found.open("rb", buffering=0) as file:
        content = bytearray()
        while len(content) <= most and (chunk := os.read(file.fileno(), 1 << 20)):
            content += chunk
    if len(content) > most:
        raise _refuse_length(f"more than {most:,}", most)
    return bytes(content)


def _refuse_length(size: str, most: int) -> UnusableFile:
    problem = f"it has {size} bytes, and input_max_bytes={most} is the most of one file"
    return UnusableFile(problem, "Give a part of it, or raise input_max_bytes.")


def make_input(
    name: str,
    content: bytes,
    place: str,
    limits: ReadingLimits,
    *,
    suffix: str = "",
    as_text: bool = False,
) -> str | InputFile:
    """Make an input from the bytes of a file; messages call it `place`. Raises ConfigError and
    TaskTextError."""
    try:
        if len(content) > limits.bytes:
            raise _refuse_length(f"{len(content):,}", limits.bytes)
        kind = find_kind(content, suffix)
        if as_text and kind is not TEXT:
            return extract_text(kind, content, limits.characters)
        if kind is PDF and is_encrypted(content):
            check_unlocked(content)
        if kind.name == "docx":
            raise UnusableFile(
                "it is a Word document, which goes to a model as text", f"input_as.{name}=text"
            )
    except UnusableFile as error:
        raise ConfigError(f"{place}: {error}", hint=error.hint) from None
    form = _FORMS.get(kind.name)
    if form is not None:
        digest = hashlib.sha256(content).hexdigest()
        return InputFile(name, form, kind.media_type, len(content), digest, content)
    text = _decode_text(content, place)
    return shorten_text(text, limits.characters) if as_text else text


def _decode_text(content: bytes, place: str) -> str:
    text = decode_utf8(content, place)
    # An archive of texts that is not compressed is valid UTF-8 too.
    if "\0" in text:
        raise ConfigError(
            f"{place}: it has zero bytes, and is no text",
            hint="Give a file of text; unpack an archive first.",
        )
    return text
