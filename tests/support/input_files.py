"""Small files of each kind that a run may be given, made here byte by byte."""

import io
import struct
import wave
import zipfile
import zlib
from collections.abc import Mapping, Sequence

_CONTENT_TYPES = (
    '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" ContentType='
    '"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)
_RELATIONS = (
    '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Target="word/document.xml" Type='
    '"http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"/></Relationships>'
)
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def make_png(width: int = 4, height: int = 3, noise: bytes = b"") -> bytes:
    """A PNG image: red, or of the bytes in `noise`."""
    size = 3 * width
    pixels = noise or bytes((200, 30, 30)) * width * height
    rows = b"".join(b"\0" + pixels[row * size : (row + 1) * size] for row in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_make_chunk(name, data) for name, data in parts)


def _make_chunk(name: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(name + data)
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", checksum)


def make_jpeg() -> bytes:
    """What has the parts of a JPEG image: a header with a length, a scan, and its end."""
    return b"\xff\xd8\xff\xe0\0\x06ab\xff\xd9\xff\xda\0\x04ab" + b"scanned" * 9 + b"\xff\xd9"


def make_webp() -> bytes:
    """What has the parts of a WebP image."""
    return b"RIFF" + struct.pack("<I", 20) + b"WEBPVP8 " + bytes(12)


def make_wav(seconds: float = 0.1) -> bytes:
    """A silent recording."""
    file = io.BytesIO()
    with wave.open(file, "wb") as recording:
        recording.setnchannels(1)
        recording.setsampwidth(2)
        recording.setframerate(8000)
        recording.writeframes(bytes(int(seconds * 8000) * 2))
    return file.getvalue()


def make_pdf(*pages: str, trailer: str = "") -> bytes:
    """A PDF with a line of text on each of its pages."""
    texts = pages or ("Hello from a PDF.",)
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(texts)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(texts)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(texts):
        drawn = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET" if text else ""
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
    return _join_objects(objects, trailer)


def _join_objects(objects: Sequence[str], trailer: str) -> bytes:
    data = b"%PDF-1.4\n"
    places = []
    for number, each in enumerate(objects, start=1):
        places.append(len(data))
        data += f"{number} 0 obj\n{each}\nendobj\n".encode()
    table = len(data)
    entries = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    data += f"xref\n0 {size}\n0000000000 65535 f \n{entries}".encode()
    data += (
        f"trailer\n<< /Size {size} /Root 1 0 R {trailer}>>\nstartxref\n{table}\n%%EOF\n".encode()
    )
    return data


def make_docx(*paragraphs: str, more: Mapping[str, bytes] | None = None) -> bytes:
    """A Word document of these paragraphs, with `more` parts in it."""
    texts = paragraphs or ("Hello from Word.",)
    body = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in texts)
    document = (
        f'<?xml version="1.0"?><w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>'
    )
    parts = {
        "[Content_Types].xml": _CONTENT_TYPES.encode(),
        "_rels/.rels": _RELATIONS.encode(),
        "word/document.xml": document.encode(),
        **(more or {}),
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return file.getvalue()
