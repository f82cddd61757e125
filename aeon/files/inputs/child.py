"""Extracts the text of a document, or shrinks an image, in a separate process: the file on standard
input, JSON on standard output. It is run by its path and imports nothing of Aeon."""

from __future__ import annotations

import base64
import io
import json
import logging
import sys
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

_CHUNK = 65_536


def limit_resources(memory_bytes: int, seconds: int) -> None:
    """Limit this process to the memory and time that a document needs, if the system can."""
    try:
        import resource  # not on every system
    except ImportError:
        return
    bounds = (
        (resource.RLIMIT_AS, memory_bytes, memory_bytes),
        # The soft limit ends it by a signal that shows the reason.
        (resource.RLIMIT_CPU, seconds, seconds + 1),
        (resource.RLIMIT_CORE, 0, 0),
    )
    for kind, soft, hard in bounds:
        _, most = resource.getrlimit(kind)
        # A process may lower its hard limits, never raise them.
        if most == resource.RLIM_INFINITY or hard <= most:
            resource.setrlimit(kind, (soft, hard))


def read_pdf(content: bytes, most: int) -> dict[str, str]:
    """Extract the text of a PDF, page by page, up to `most` characters; a `lock` instead if it does
    not open without a password."""
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(content))
    if reader.is_encrypted and not reader.decrypt(""):
        return {"lock": "password"}
    pages = reader.pages
    count = len(pages)
    texts: list[str] = []
    size = 0
    for number, page in enumerate(pages, start=1):
        text = page.extract_text().strip()
        texts.append(text)
        size += len(text) + 2
        if size > most and number < count:
            return {"text": "\n\n".join(texts)[:most], "cut": f"on page {number} of {count}"}
    return shorten("\n\n".join(texts), most)


def read_docx(content: bytes, most: int, most_unpacked: int) -> dict[str, str]:
    """Extract the text of a Word document as Markdown."""
    unpack(content, most_unpacked)
    from markitdown import StreamInfo
    from markitdown.converters import DocxConverter

    make_converter: Any = DocxConverter  # it has no types
    converted = make_converter().convert(io.BytesIO(content), StreamInfo(extension=".docx"))
    return shorten(converted.markdown, most)


def unpack(content: bytes, most: int) -> None:
    """Read all parts of an archive once and count bytes: its directory may lie about sizes. Raises
    ValueError."""
    size = 0
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for chunk in _read_parts(archive):
            size += len(chunk)
            if size > most:
                raise ValueError(f"it unpacks to more than {most:,} bytes")


def _read_parts(archive: zipfile.ZipFile) -> Iterator[bytes]:
    for part in archive.infolist():
        with archive.open(part) as file:
            while chunk := file.read(_CHUNK):
                yield chunk


def read_html(content: bytes, most: int) -> dict[str, str]:
    """Extract the text of an HTML page as Markdown."""
    from markitdown import StreamInfo
    from markitdown.converters import HtmlConverter

    about = StreamInfo(extension=".html", charset="utf-8")
    return shorten(HtmlConverter().convert(io.BytesIO(content), about).markdown, most)


def shrink_image(content: bytes, most: int) -> dict[str, str]:
    """Shrink an image to at most `most` pixels a side, as WebP in base64."""
    from PIL import Image, ImageOps

    with Image.open(io.BytesIO(content), formats=("JPEG", "PNG", "WEBP")) as image:
        image.thumbnail((most, most))
        upright = ImageOps.exif_transpose(image)
    file = io.BytesIO()
    upright.save(file, "WEBP")
    return {"image": base64.b64encode(file.getvalue()).decode()}


def shorten(text: str, most: int) -> dict[str, str]:
    """Return at most `most` characters of a text, and a note of how many are left out."""
    left_out = len(text) - most
    return {"text": text[:most], "cut": f"{left_out:,} more are left out" if left_out > 0 else ""}


def main() -> None:
    """Read a file; the arguments are `KIND MOST UNPACKED_BYTES MEMORY_BYTES SECONDS`, of which the
    last four are maxima: `MOST` of characters, or of pixels a side."""
    kind = sys.argv[1]
    most, most_unpacked, memory_bytes, seconds = map(int, sys.argv[2:])
    limit_resources(memory_bytes, seconds)
    # Readers log every oddity of a broken document.
    logging.disable()
    content = sys.stdin.buffer.read()
    readers: dict[str, Callable[[], dict[str, str]]] = {
        "pdf": lambda: read_pdf(content, most),
        "docx": lambda: read_docx(content, most, most_unpacked),
        "html": lambda: read_html(content, most),
        "image": lambda: shrink_image(content, most),
    }
    try:
        found = readers[kind]()
    except (MemoryError, SystemError):  # there may be no memory left to report it
        raise
    except Exception as error:  # a parser can fail in many ways on broken input
        found = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
    sys.stdout.buffer.write(json.dumps(found).encode())


if __name__ == "__main__":
    main()
