"""Input files that models received, in a run's folder: each once, named by the hash of its
content."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from weakref import WeakKeyDictionary

from aeon.domain.errors import ConfigError
from aeon.domain.request import InputFile
from aeon.files.text import create_like_folder, read_regular_file

FOLDER = "files"
_SUFFIXES: Mapping[str, str] = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/webp": ".webp",
    "application/pdf": ".pdf",
    "audio/wav": ".wav",
}
BESIDE = ".files"
"""The suffix that makes a cassette's name the name of the folder with its files."""


_STORED_NAME = re.compile(rf"[0-9a-f]{{64}}({'|'.join(map(re.escape, _SUFFIXES.values()))})")
_stored: WeakKeyDictionary[InputFile, Path] = WeakKeyDictionary()
"""The place where each file was stored last: many rows of a batch may use the same one."""


def name_stored(file: InputFile) -> str:
    """Return the name of a file in the folder: its hash and the usual suffix of its kind."""
    return f"{file.sha256}{_SUFFIXES.get(file.media_type, '')}"


def store_files(recording: Path, files: Iterable[InputFile]) -> None:
    """Store the files of a run, or those next to a cassette; files without content are left out.
    Raises OSError."""
    folder = locate_files(recording)
    with_content = [file for file in files if file.content]
    if with_content:
        folder.mkdir(exist_ok=True)
    for file in with_content:
        path = folder / name_stored(file)
        if path.exists():
            continue
        # Beside, then renamed: whoever sees the name finds the whole file.
        part = path.with_name(f".{path.name}.{os.getpid()}")
        if not _link(_stored.get(file), part):
            with open(part, "wb", opener=create_like_folder) as written:
                written.write(file.content)
        part.replace(path)
        _stored[file] = path


def remove_stored(recording: Path) -> None:
    """Remove the files of a recording, and their folder if nothing else is in it. Raises
    OSError."""
    folder = locate_files(recording)
    if folder.is_symlink() or not folder.is_dir():
        return
    for path in folder.iterdir():
        if _STORED_NAME.fullmatch(path.name):
            path.unlink()
    if not any(folder.iterdir()):
        folder.rmdir()


def _link(earlier: Path | None, path: Path) -> bool:
    """Make `path` a hard link to another run's copy; False if that is impossible."""
    if earlier is None:
        return False
    try:
        path.hardlink_to(earlier)
    except OSError:
        return False
    return True


def find_stored(
    recording: Path | None, file: InputFile, *, packed: str = "", may_be_gone: bool = False
) -> InputFile:
    """Return a described file of a recording with its content: `packed` in it as base64, or in the
    folder of its files; without its content if it `may_be_gone` and is. Raises ConfigError for a
    file that is gone or changed."""
    path = None if recording is None else locate_files(recording) / name_stored(file)
    content, problem = _unpack(packed, file) if packed else _read_stored(path, file)
    if problem and not may_be_gone:
        raise ConfigError(
            f"the file that was the input {file.name} is missing: {problem}",
            hint=f"Give it again: input_files.{file.name}=path",
        )
    return replace(file, content=content)


def locate_files(recording: Path) -> Path:
    """Return the folder of a recording's files; a recording is a run's directory, its store, or a
    cassette."""
    if recording.is_dir():
        return recording / FOLDER
    of_run = recording.parent / FOLDER
    return of_run if recording.suffix == ".sqlite" else Path(f"{recording}{BESIDE}")


def _unpack(packed: str, file: InputFile) -> tuple[bytes, str]:
    """Return the content of a file packed in a recording, or the problem with it."""
    content = b""
    with suppress(ValueError):
        content = base64.b64decode(packed)
    is_whole = hashlib.sha256(content).hexdigest() == file.sha256
    return (content, "") if is_whole else (b"", "it has changed in the recording")


def _read_stored(path: Path | None, file: InputFile) -> tuple[bytes, str]:
    """Return the content of a file, or the problem with it."""
    if path is None:
        return b"", "no folder has it"
    try:
        content = read_regular_file(path, file.size)
    except OSError as error:
        return b"", f"{path} cannot be read: {error.strerror or error}"
    if hashlib.sha256(content).hexdigest() != file.sha256:
        return b"", f"{path} has changed"
    return content, ""
