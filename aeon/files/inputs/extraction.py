"""The text of a document that somebody else may have made: extracted in a process of its own, with
limits on its memory and its time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from aeon.files.inputs.kinds import MOST_UNPACKED_BYTES, FileKind, UnusableFile

SECONDS = 90.0
_CHILD = Path(__file__).with_name("child.py")
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "pdf": ("pypdf",),
    "docx": ("markitdown", "mammoth"),
    "html": ("markitdown",),
}
_PASSED_ON = ("HOME", "LANG", "LC_ALL", "PATH", "PYTHONPATH", "SYSTEMROOT", "TMPDIR", "VIRTUAL_ENV")
# Libraries of numbers that the converter imports reserve memory for each thread.
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
_SIMPLER = "Save it again as a PDF or as plain text, and give that."


def extract_text(kind: FileKind, content: bytes, most: int, seconds: float = SECONDS) -> str:
    """The text of a document, at most `most` characters of it, with a note of what was cut. Raises
    UnusableFile for a document that cannot be read, has no text, or needs more memory or more than
    `seconds`, and where what reads it is not installed."""
    if kind.name not in _NEEDED:
        raise UnusableFile(
            f"it is {kind.noun}, of which no text is extracted",
            "Leave input_as away: a model that takes such files is given the file itself.",
        )
    missing = [name for name in _NEEDED[kind.name] if find_spec(name) is None]
    if missing:
        raise UnusableFile(
            f"to read {kind.noun} needs {missing[0]}, which is not installed",
            "pip install 'aeon-engine[files]'",
        )
    found = _read_answer(_run_child(kind, content, most, seconds))
    if problem := found.get("error"):
        raise UnusableFile(f"it is {kind.noun} that cannot be read: {problem}", _SIMPLER)
    text = str(found["text"])
    if not text.strip():
        raise UnusableFile(
            f"it is {kind.noun} without any text in it, as one that was scanned",
            "Leave input_as away, so that the model is given its pages, or make its text with OCR.",
        )
    # What a broken font names as a character may be half of one.
    return _note_cut(text.encode("utf-8", "replace").decode(), found.get("cut", ""))


def shorten_text(text: str, most: int) -> str:
    """At most `most` characters of a text, with a note of how many were cut."""
    left_out = len(text) - most
    return _note_cut(text[:most], f"{left_out:,} more are left out" if left_out > 0 else "")


def _note_cut(text: str, cut: str) -> str:
    return f"{text}\n[cut after {len(text):,} characters: {cut}]" if cut else text


def _run_child(
    kind: FileKind, content: bytes, most: int, seconds: float
) -> subprocess.CompletedProcess[bytes]:
    # `-P`: the modules beside the child are not in the place of the standard library's.
    command = [sys.executable, "-P", str(_CHILD), kind.name, str(most), str(MOST_UNPACKED_BYTES)]
    with tempfile.TemporaryDirectory(prefix="aeon-extract-", ignore_cleanup_errors=True) as folder:
        try:
            return subprocess.run(
                command,
                input=content,
                capture_output=True,
                cwd=folder,
                env=_make_environment(),
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            problem = f"it is {kind.noun} that takes more than {seconds:g} seconds to read"
            raise UnusableFile(problem, _SIMPLER) from None


def _make_environment() -> dict[str, str]:
    """What the process needs to find its parts, and no key."""
    passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {**passed_on, **_ONE_THREAD}


def _read_answer(done: subprocess.CompletedProcess[bytes]) -> dict[str, str]:
    try:
        found = json.loads(done.stdout)
    except ValueError:
        found = None
    if isinstance(found, dict):
        return found
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    ended = lines[-1][:300] if lines else f"what reads it ended with status {done.returncode}"
    return {"error": ended}
