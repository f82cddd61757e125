"""Extracts the text of a document, or shrinks an image, in a separate process with limits on memory
and time: the file may come from a stranger."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from aeon.files.inputs.kinds import MOST_UNPACKED_BYTES, PDF, PNG, FileKind, UnusableFile
from aeon.files.secret_forms import make_environment

_CHILD = Path(__file__).with_name("child.py")
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "pdf": ("pypdf",),
    "docx": ("markitdown", "mammoth"),
    "html": ("markitdown",),
}
_OUT_OF_MEMORY = ("MemoryError", "SystemError")
"""How Python ends without memory; the second if C code gets none."""
_SIMPLER = "Save it again as a PDF or as plain text, and give that."


@dataclass(frozen=True, slots=True)
class ExtractionLimits:
    """Limits for reading a document: memory in bytes, CPU seconds, seconds in total, and the
    unpacked size of its parts."""

    memory_bytes: int = 2 * 2**30
    seconds: int = 60
    longest_seconds: float = 90
    unpacked_bytes: int = MOST_UNPACKED_BYTES


_LIMITS = ExtractionLimits()
_IMAGE_LIMITS = ExtractionLimits(seconds=10, longest_seconds=15)


def extract_text(
    kind: FileKind, content: bytes, most: int, limits: ExtractionLimits = _LIMITS
) -> str:
    """Extract at most `most` characters of a document's text, with a note of what was cut. Raises
    UnusableFile for a document that cannot be read, has no text, or exceeds its limits, and if its
    reader is not installed."""
    if kind.name not in _NEEDED:
        raise UnusableFile(
            f"it is {kind.noun}, of which no text is extracted",
            "Leave out input_as: a model that accepts such files gets the file itself.",
        )
    found = _extract(kind, content, most, limits)
    text = str(found["text"])
    if not text.strip():
        raise UnusableFile(
            f"it is {kind.noun} without any text, such as a scan",
            "Leave out input_as, so that the model gets its pages, or make its text with OCR.",
        )
    # A character that a broken font names may be half of one.
    return _note_cut(text.encode("utf-8", "replace").decode(), found.get("cut", ""))


def check_unlocked(pdf: bytes, limits: ExtractionLimits = _LIMITS) -> None:
    """Open an encrypted PDF and read its first page. Raises UnusableFile if that needs a password
    or fails, and if its reader is not installed."""
    _extract(PDF, pdf, 0, limits)


def shrink_image(content: bytes, most: int) -> str:
    """Shrink an image to at most `most` pixels a side, as WebP in base64; empty if Pillow is not
    installed or cannot read it."""
    if find_spec("PIL") is None:
        return ""
    with suppress(UnusableFile, OSError):
        done = _run_child(PNG, content, most, _IMAGE_LIMITS)  # the same for each kind of image
        return _read_answer(done, _IMAGE_LIMITS).get("image", "")
    return ""


def _extract(kind: FileKind, content: bytes, most: int, limits: ExtractionLimits) -> dict[str, str]:
    missing = [name for name in _NEEDED[kind.name] if find_spec(name) is None]
    if missing:
        raise UnusableFile(
            f"to read {kind.noun} needs {missing[0]}, which is not installed",
            "pip install 'aeon-engine[files]'",
        )
    done = _run_child(kind, content, most, limits)
    found = _read_answer(done, limits)
    if "lock" in found:
        raise UnusableFile(
            f"it is {kind.noun} that a password locks", "Save it without its password."
        )
    if problem := found.get("error"):
        raise UnusableFile(f"it is {kind.noun} that cannot be read: {problem}", _SIMPLER)
    return found


def shorten_text(text: str, most: int) -> str:
    """Return at most `most` characters of a text, with a note of how many were cut."""
    left_out = len(text) - most
    return _note_cut(text[:most], f"{left_out:,} more are left out" if left_out > 0 else "")


def _note_cut(text: str, cut: str) -> str:
    return f"{text}\n[cut after {len(text):,} characters: {cut}]" if cut else text


def _run_child(
    kind: FileKind, content: bytes, most: int, limits: ExtractionLimits
) -> subprocess.CompletedProcess[bytes]:
    # `-P`: modules next to the child must not replace the standard library's.
    bounds = (most, limits.unpacked_bytes, limits.memory_bytes, limits.seconds)
    command = [sys.executable, "-P", str(_CHILD), kind.name, *map(str, bounds)]
    longest = limits.longest_seconds
    with tempfile.TemporaryDirectory(prefix="aeon-extract-", ignore_cleanup_errors=True) as folder:
        try:
            return subprocess.run(
                command,
                input=content,
                capture_output=True,
                cwd=folder,
                env=make_environment(),
                timeout=longest,
                check=False,
            )
        except subprocess.TimeoutExpired:
            problem = f"it is {kind.noun} that takes more than {longest:g} seconds to read"
            raise UnusableFile(problem, _SIMPLER) from None


def _read_answer(
    done: subprocess.CompletedProcess[bytes], limits: ExtractionLimits
) -> dict[str, str]:
    try:
        found = json.loads(done.stdout)
    except ValueError:
        found = None
    if isinstance(found, dict):
        return found
    return {"error": _explain_end(done, limits)}


def _explain_end(done: subprocess.CompletedProcess[bytes], limits: ExtractionLimits) -> str:
    """Return why the process ended without an answer."""
    if done.returncode == -getattr(signal, "SIGXCPU", 0):
        return f"it takes more than {limits.seconds} seconds of computing"
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    if lines and lines[-1].startswith(_OUT_OF_MEMORY):
        return f"it needs more than {limits.memory_bytes // 2**20} MB of memory"
    return lines[-1][:300] if lines else f"what reads it ended with status {done.returncode}"
