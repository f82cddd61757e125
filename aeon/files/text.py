"""Text and JSON in files: UTF-8 without lone surrogates, limited nesting, writable files, and
locks."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO

from aeon.domain.errors import ArtefactError, ConfigError, TaskTextError

Place = tuple[str | int, ...]
"""A path to a value in a document: keys, and list positions from 0."""

MAX_DEPTH = 200
"""Most levels of objects and arrays in a value from outside; the writer of results stops at 255."""
MAX_VALUES = 100_000
"""Most values in a YAML file, with aliases and merge keys followed."""
TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"


def format_place(place: Place) -> str:
    """Format a place for people: `calls.step[2].answer`."""
    text = ""
    for part in place:
        if isinstance(part, int):
            text += f"[{part + 1}]"
        else:
            text += f".{part}" if text else part
    return text


def is_too_deep(value: object) -> bool:
    """Whether a JSON value is nested more than MAX_DEPTH levels deep; a value that contains itself
    is."""
    level = [value]
    depth = -1
    while level and depth < MAX_DEPTH:
        outer = [
            each.values() if isinstance(each, dict) else each
            for each in level
            if isinstance(each, dict | list)
        ]
        level = [inner for each in outer for inner in each]
        depth += 1
    return bool(level)


def make_private(path: Path) -> None:
    """Create an empty file that only its owner can read, and its folder, unless they exist. Raises
    OSError."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def create_like_folder(path: str, flags: int) -> int:
    """Open a file, for `open(..., opener=...)`: a new file is readable by whoever can read its
    folder."""
    folder = os.stat(os.path.dirname(path) or ".")  # noqa: PTH116, PTH120
    return os.open(path, flags, folder.st_mode & 0o666)


def load_json(text: str | bytes) -> Any:
    """Parse a JSON text. Raises ValueError, also for text nested too deeply to read."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None


def read_regular_file(path: Path, most: int) -> bytes:
    """Read at most `most` + 1 bytes of a file. Raises OSError, also for a link, a pipe or a
    device."""
    with _open_regular(path, getattr(os, "O_NOFOLLOW", 0)) as file:
        return file.read(most + 1)


def read_linked_file(path: Path) -> bytes:
    """Read a file, or the target of a link. Raises OSError, also for a pipe or a device: a
    stranger's folder may have one in place of a file, and reading it would never end."""
    with open_linked_file(path) as file:
        return file.read()


def open_linked_file(path: Path) -> BinaryIO:
    """Open a file under the same conditions as `read_linked_file`."""
    return _open_regular(path)


def _open_regular(path: Path, more_flags: int = 0) -> BinaryIO:
    # Without waiting: else opening a pipe would wait for a writer, before it is seen to be one.
    more = more_flags | getattr(os, "O_NONBLOCK", 0)
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | more))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(None, "it is no regular file")
    return file


def decode_utf8(data: bytes, name: str) -> str:
    """Decode bytes as UTF-8, without stripping or translating anything. Raises TaskTextError with
    the offset of the first bad byte."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TaskTextError(
            f"{name} is not valid UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}",
            hint="Convert it to UTF-8.",
        ) from None


def require_unicode(text: str, name: str) -> str:
    """Return the text if it can be encoded as UTF-8. Raises TaskTextError for a value that is not
    text or contains a lone surrogate."""
    if not isinstance(text, str):
        raise TaskTextError(f"{name} is no text but of the type {type(text).__name__}")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        problem = f"lone surrogate U+{ord(text[error.start]):04X} at offset {error.start}"
        raise TaskTextError(f"{name} is not valid Unicode: {problem}") from None
    return text


def encode_json(value: object, *, indent: int | None = None, compact: bool = False) -> bytes:
    """Encode JSON as UTF-8, readable in every script; half a surrogate pair, which UTF-8 cannot
    encode, becomes its escape.

    `compact` leaves out the spaces of single-line text, which takes a third of the time. Raises
    ValueError for a number that JSON does not have.
    """
    if indent is not None or compact:
        from pydantic_core import PydanticSerializationError, to_json  # not for what a start reads

        # Several times as fast as the standard encoder, which explains what is wrong with values
        # that this one refuses.
        with suppress(PydanticSerializationError):
            data = to_json(value, indent=indent)
            # This encoder writes both; a text that holds one of them goes the slower way.
            if b"NaN" not in data and b"Infinity" not in data:
                return data
    separators = (",", ":") if compact else None
    text = json.dumps(
        value, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators
    )
    return text.encode("utf-8", "backslashreplace")


IN_RUN = "Free space or choose a folder that can be written, for example hydra.run.dir=/tmp/aeon."


def unwritable_error(
    path: Path, error: OSError, hint: str = "Free space or choose another place."
) -> ArtefactError:
    """Return the error for a file or folder that cannot be written."""
    problem = (
        f"there is no folder {path.parent}"
        if isinstance(error, FileNotFoundError)
        else error.strerror or error
    )
    return ArtefactError(f"{path} cannot be written: {problem}", hint=hint)


def lock_file(file: IO[bytes], *, shared: bool = False) -> bool | None:
    """Lock an open file until it is closed. Returns False if another process holds the lock, and
    None if there are no locks: not every system and disk has them."""
    try:
        from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock

        flock(file, (LOCK_SH if shared else LOCK_EX) | LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return None
    return True


@contextmanager
def hold(path: Path, named: str, hint: str) -> Iterator[None]:
    """Hold a file, which is created if it is missing, during the block; `named` and `hint` are for
    the message of one that is held. Raises ConfigError if it cannot be written, and if another
    process holds it."""
    try:
        file = path.open("ab")
        is_held = lock_file(file) is False
        # Another process may have replaced the file before it released the old one.
        is_held |= os.fstat(file.fileno()).st_ino != path.stat().st_ino
    except OSError as error:
        problem = unwritable_error(path, error)
        way = problem.hint
        if isinstance(error, FileNotFoundError):
            way = f"Make it first (mkdir -p {path.parent}), or name a file in another folder."
        raise ConfigError(problem.message, hint=way) from None
    with file:
        if is_held:
            raise ConfigError(f"{named}: another process is writing it", hint=hint)
        yield
