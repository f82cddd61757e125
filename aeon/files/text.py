"""Text from files and the command line: UTF-8 without lone surrogates."""

from __future__ import annotations

from aeon.domain.errors import TaskTextError


def decode_utf8(data: bytes, name: str) -> str:
    """The bytes as UTF-8, nothing stripped or translated. TaskTextError names the offset of the first bad byte."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TaskTextError(
            f"{name} is not valid UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}",
            hint="Convert it to UTF-8.",
        ) from None


def require_unicode(text: str, name: str) -> str:
    """The text, if it can be written as UTF-8. Raises TaskTextError naming the offset of the first lone surrogate."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise TaskTextError(
            f"{name} is not valid Unicode: lone surrogate U+{ord(text[error.start]):04X} at offset {error.start}"
        ) from None
    return text
