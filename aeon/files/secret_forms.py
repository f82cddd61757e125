"""The forms that a secret may have in a text."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

_LEAST_BASE64 = 8  # characters: a shorter piece of base64 may be anything


def secret_forms(value: str) -> set[str]:
    """The value as it is, in JSON, in JSON inside that, in a URL, and in base64 wherever it begins."""
    forms = {value}
    for _ in range(2):
        forms |= {
            json.dumps(form, ensure_ascii=ascii_only)[1:-1]
            for form in forms
            for ascii_only in (True, False)
        }
    forms |= {quote(value), quote(value, safe=""), quote_plus(value)}
    return forms | set(_base64_forms(value.encode("utf-8", "surrogatepass")))


def _base64_forms(value: bytes) -> Iterator[str]:
    """The value alone, and what is the same of it wherever it begins in a longer text: a character is 6 bits."""
    for encode in (b64encode, urlsafe_b64encode):
        yield encode(value).decode()
        for before in range(3):
            whole = encode(b"\0" * before + value).decode().rstrip("=")
            piece = whole[-(-before * 8 // 6) : (before + len(value)) * 8 // 6]
            if len(piece) >= _LEAST_BASE64:
                yield piece
