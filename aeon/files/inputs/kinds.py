"""Finds the kind of a file by its first bytes and structure, whatever its name says."""

from __future__ import annotations

import io
import re
import struct
import wave
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

MOST_UNPACKED_BYTES = 100 * 10**6
"""Most unpacked bytes of a Word document's parts."""
_MOST_PARTS = 10_000
_WORD_PARTS = frozenset({"[Content_Types].xml", "word/document.xml"})
_END_OF_PDF = re.compile(rb"startxref\s+(\d{1,12})\s+%%EOF")
_TAIL_OF_PDF = 2048
_PADDING = b"\0\t\n\f\r "
_PDF = re.compile(rb"\s{0,1024}%PDF-")
# `zipfile`'s errors for damaged archives and unsupported versions.
_UNREADABLE_ARCHIVE = (zipfile.BadZipFile, struct.error, ValueError, RuntimeError)
_HTML = re.compile(rb"\s*(<!doctype\s+html|<html[\s>])", re.IGNORECASE)
_AGAIN = "Download or save it again."
_JPEG_WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xD9)})
_JPEG_SCAN = 0xDA
_NO_FILL = re.compile(rb"[^\xff]")
_JPEG_END = b"\xff\xd9"


class UnusableFile(Exception):
    """A file that cannot be given to a model; `hint` says what to do."""

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file: how a model gets it, its media type, its suffix, and its name in messages."""

    name: Literal["text", "html", "docx", "image", "pdf", "audio"]
    media_type: str
    suffix: str
    noun: str


TEXT = FileKind("text", "text/plain", ".txt", "text")
HTML = FileKind("html", "text/html", ".html", "an HTML page")
DOCX = FileKind(
    "docx",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".docx",
    "a Word document",
)
PNG = FileKind("image", "image/png", ".png", "a PNG image")
JPEG = FileKind("image", "image/jpeg", ".jpg", "a JPEG image")
WEBP = FileKind("image", "image/webp", ".webp", "a WebP image")
PDF = FileKind("pdf", "application/pdf", ".pdf", "a PDF")
WAV = FileKind("audio", "audio/wav", ".wav", "a WAV recording")
_SUFFIXES: Mapping[str, FileKind] = {
    **{kind.suffix: kind for kind in (DOCX, PNG, JPEG, WEBP, PDF, WAV)},
    ".jpeg": JPEG,
}
_PROGRAM = "Give a file of text, an image, a PDF, or a Word document."
_TO_PNG = "Convert it to PNG or JPEG."
_UNPACK = "Unpack it, and give the files that are in it."
_OTHER_ARCHIVES: Mapping[str, tuple[str, str]] = {
    "xl/workbook.xml": ("it is an Excel workbook", "Save its sheets as CSV, or as a PDF."),
    "ppt/presentation.xml": ("it is a presentation", "Save it as a PDF."),
    "mimetype": ("it is an OpenDocument file or an e-book", "Save it as .docx or PDF."),
}
"""Archives mistaken for documents, by a part that identifies each."""
_FOREIGN: tuple[tuple[bytes, str, str], ...] = (
    (b"MZ", "a program for Windows", _PROGRAM),
    (b"\x7fELF", "a program", _PROGRAM),
    (b"\xcf\xfa\xed\xfe", "a program for macOS", _PROGRAM),
    (b"\xca\xfe\xba\xbe", "a program", _PROGRAM),
    (b"GIF8", "a GIF image", _TO_PNG),
    (b"BM", "a bitmap image", _TO_PNG),
    (b"II*\0", "a TIFF image", _TO_PNG),
    (b"MM\0*", "a TIFF image", _TO_PNG),
    (b"\x1f\x8b", "an archive", _UNPACK),
    (b"7z\xbc\xaf", "an archive", _UNPACK),
    (b"Rar!", "an archive", _UNPACK),
    (b"\xd0\xcf\x11\xe0", "an Office file of an old format", "Save it as .docx or PDF."),
    (b"SQLite format 3\0", "a database", "Export what matters as CSV."),
)


def find_kind(content: bytes, suffix: str = "") -> FileKind:
    """Return the kind of a complete file with that `suffix`. Raises UnusableFile for a file that is
    cut off or broken, that no model accepts, or that does not match its name."""
    for begins, kind, check in _STRUCTURES:
        if begins(content):
            check(content)
            return kind
    _refuse_foreign(content)
    named = _SUFFIXES.get(suffix.lower())
    if named is not None:
        raise UnusableFile(
            f"it is named like {named.noun} but is none",
            "The content decides, not the name: give the right file, or rename a text to .txt.",
        )
    return HTML if _HTML.match(content) else TEXT


def _refuse_foreign(content: bytes) -> None:
    """Raise UnusableFile for a file that starts like another kind and is no text."""
    for signature, noun, hint in _FOREIGN:
        if content.startswith(signature) and not _is_plain_text(content):
            raise UnusableFile(f"it is {noun}", hint)
    if content[4:8] == b"ftyp":
        raise UnusableFile("it is a video, or an image as telephones make them (HEIC)", _TO_PNG)


def _is_plain_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode("utf-8")
    except UnicodeDecodeError:
        return False


def _begins_with(signature: bytes, at_8: bytes = b"") -> Callable[[bytes], bool]:
    def begins(content: bytes) -> bool:
        return content.startswith(signature) and content[8:].startswith(at_8)

    return begins


def _check_png(content: bytes) -> None:
    """Check a PNG image: each part has its length and checksum; the last one is IEND."""
    place = 8
    while place + 12 <= len(content):
        length, name = struct.unpack_from(">I4s", content, place)
        end = place + 8 + length
        if end + 4 > len(content):
            break
        checksum = struct.unpack_from(">I", content, end)[0]
        if zlib.crc32(memoryview(content)[place + 4 : end]) != checksum:
            raise UnusableFile("it is a PNG image that is damaged", _AGAIN)
        if name == b"IEND":
            return
        place = end + 4
    raise UnusableFile("it is a PNG image that is cut off", _AGAIN)


def _check_jpeg(content: bytes) -> None:
    """Check a JPEG image: parts with their lengths, then the scan, up to an end mark."""
    place = 2
    while place + 4 <= len(content) and content[place] == 0xFF:
        place = _find_mark(content, place)
        mark = content[place + 1]
        if mark == _JPEG_SCAN and content.find(_JPEG_END, place) >= 0:
            return
        if mark == _JPEG_SCAN:
            break
        is_bare = mark in _JPEG_WITHOUT_LENGTH or place + 4 > len(content)
        place += 2 if is_bare else 2 + struct.unpack_from(">H", content, place + 2)[0]
    raise UnusableFile("it is a JPEG image that is cut off", _AGAIN)


def _find_mark(content: bytes, place: int) -> int:
    """Return the position of the last fill byte before a mark; there may be many."""
    found = _NO_FILL.search(content, place)
    return found.start() - 1 if found else len(content) - 2


def _check_riff(content: bytes) -> None:
    if len(content) < 8 + struct.unpack_from("<I", content, 4)[0]:
        raise UnusableFile("it is a WebP image that is cut off", _AGAIN)


def _check_wav(content: bytes) -> None:
    try:
        with wave.open(io.BytesIO(content)) as recording:
            frames = recording.readframes(recording.getnframes())
            whole = recording.getnframes() * recording.getnchannels() * recording.getsampwidth()
    except (wave.Error, EOFError, struct.error) as error:
        problem = f"it is a WAV recording that cannot be read: {error}"
        raise UnusableFile(problem, "Save it again, as PCM of 16 bits.") from None
    if len(frames) < whole:
        raise UnusableFile("it is a WAV recording that is cut off", _AGAIN)


def _begins_pdf(content: bytes) -> bool:
    # Readers find the beginning after some empty lines too.
    return _PDF.match(content) is not None


def _check_pdf(content: bytes) -> None:
    """Check a PDF: its end says where its table of contents is; readers tolerate a small error."""
    if _find_table(content) >= len(content):
        raise UnusableFile("it is a PDF that is cut off or damaged", _AGAIN)


def is_encrypted(pdf: bytes) -> bool:
    """Whether the table of contents of a complete PDF names an encryption, whose password may be
    empty."""
    return b"/Encrypt" in pdf[_find_table(pdf) :]


def _find_table(pdf: bytes) -> int:
    """Return the position of a PDF's table of contents; its length if its end is missing."""
    ends = list(_END_OF_PDF.finditer(pdf.rstrip(_PADDING)[-_TAIL_OF_PDF:]))
    return int(ends[-1][1]) if ends else len(pdf)


def _check_docx(content: bytes) -> None:
    """Check a Word document by its archive's directory of parts and sizes; nothing is unpacked
    here."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = archive.infolist()
    except _UNREADABLE_ARCHIVE as error:
        raise UnusableFile(
            f"it is an archive that is cut off or damaged: {error}", _AGAIN
        ) from None
    names = {part.filename for part in parts}
    if not names >= _WORD_PARTS:
        found = (known for name, known in _OTHER_ARCHIVES.items() if name in names)
        raise UnusableFile(*next(found, ("it is an archive, and no Word document", _UNPACK)))
    unpacked = sum(part.file_size for part in parts)
    if unpacked > MOST_UNPACKED_BYTES or len(parts) > _MOST_PARTS:
        raise UnusableFile(
            f"it is a Word document of {len(parts):,} parts that unpack to {unpacked:,} bytes, "
            f"and at most {_MOST_PARTS:,} parts and {MOST_UNPACKED_BYTES:,} bytes are unpacked",
            "Save what matters of it as a smaller document, or as a PDF.",
        )


_STRUCTURES: tuple[tuple[Callable[[bytes], bool], FileKind, Callable[[bytes], None]], ...] = (
    (_begins_with(b"\x89PNG\r\n\x1a\n"), PNG, _check_png),
    (_begins_with(b"\xff\xd8\xff"), JPEG, _check_jpeg),
    (_begins_with(b"RIFF", b"WEBP"), WEBP, _check_riff),
    (_begins_with(b"RIFF", b"WAVE"), WAV, _check_wav),
    (_begins_pdf, PDF, _check_pdf),
    (_begins_with(b"PK\x03\x04"), DOCX, _check_docx),
)
