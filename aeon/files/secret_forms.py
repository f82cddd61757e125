"""The forms of a secret in texts, and the values that are masked in all files of a run."""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from html import escape
from pathlib import Path
from urllib.parse import quote, quote_plus

from aeon.files.text import read_linked_file

LEAST_LENGTH = 8
"""Characters; a shorter value may be ordinary text and is not searched for."""
_masks: dict[bytes, bytes] = {}
_NAMING = ("result.json", ".hydra/config.yaml")
_MASKED = re.compile(r"\$\{oc\.env:(\w+)|\[value of (\w+)\]")
_LEAST_BASE64 = 8  # characters: a shorter piece of base64 may be anything


def secret_forms(value: str) -> set[str]:
    """Return the value verbatim, in JSON, in JSON within JSON, in a URL, and in base64 at any
    offset."""
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
    """Yield the value alone in base64, and its invariant part at any offset in a longer text: a
    character is 6 bits."""
    for encode in (b64encode, urlsafe_b64encode):
        yield encode(value).decode()
        for before in range(3):
            whole = encode(b"\0" * before + value).decode().rstrip("=")
            piece = whole[-(-before * 8 // 6) : (before + len(value)) * 8 // 6]
            if len(piece) >= _LEAST_BASE64:
                yield piece


def mask_value(name: str, value: str) -> None:
    """Make files show a variable's name instead of its value from now on, in every form of the
    value. Existing paths are not masked, because files need to name them."""
    if len(value) < LEAST_LENGTH or _is_path(value):
        return
    in_html = escape(value)
    for form in {
        *secret_forms(value),
        in_html,
        in_html.replace("&quot;", "&#34;").replace("&#x27;", "&#39;"),
    }:
        _masks[form.encode("utf-8", "surrogatepass")] = f"[value of {name}]".encode()


def find_masked_names(directory: Path) -> frozenset[str]:
    """Return the variables whose values are masked in the files of a run's directory, as far as
    these exist."""
    names = set[str]()
    for file in _NAMING:
        with suppress(OSError):
            text = read_linked_file(directory / file).decode(errors="replace")
            names |= {read or masked for read, masked in _MASKED.findall(text)}
    return frozenset(names)


def mask_variables(names: Iterable[str], environ: Mapping[str, str]) -> list[str]:
    """Mask the values of variables. Returns the names of those that are not set."""
    found = sorted(names)
    for name in found:
        mask_value(name, environ.get(name, ""))
    return [name for name in found if not environ.get(name)]


def unmask_all() -> None:
    """Stop masking."""
    _masks.clear()


def mask(data: bytes) -> bytes:
    """Return the content of a file with masked values."""
    if not _masks:
        return data
    # The longest first: a short form may be a part of a longer one.
    for form in sorted(_masks, key=len, reverse=True):
        data = data.replace(form, _masks[form])
    return data


def mask_text(text: str) -> str:
    """Return a text with masked values."""
    if not _masks:
        return text
    return mask(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def mask_files(directory: Path, pattern: str) -> None:
    """Write the files of a directory that match a pattern again, with masked values."""
    for path in directory.glob(pattern):
        content = path.read_bytes()
        if (masked := mask(content)) != content:
            path.write_bytes(masked)


def _is_path(value: str) -> bool:
    try:
        return Path(value).is_absolute() and Path(value).exists()
    except (OSError, ValueError):
        return False


_PASSED_ON = ("HOME", "LANG", "LC_ALL", "PATH", "PYTHONPATH", "SYSTEMROOT", "TMPDIR", "VIRTUAL_ENV")
# Numeric libraries reserve memory for each thread.
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def make_environment() -> dict[str, str]:
    """Return the variables that a process which reads files of others needs to find its modules,
    without keys."""
    passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {**passed_on, **_ONE_THREAD}
