"""A result as files: `result.json`, `history.json` and `answer.md`, each there whole or not at all.

`answer.md` is written first, for it is what a person paid for; one file that fails does not keep the next from being
tried, so where all three are, all three are whole. The journals beside them (`events.jsonl`,
`cycles.jsonl`) are written while the run goes on, by `aeon.observability`.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from errno import ENOTEMPTY
from pathlib import Path
from typing import Any
from uuid import uuid4

import pydantic

from aeon.config import origin
from aeon.config.origin import Origin
from aeon.domain.errors import ArtefactError
from aeon.domain.history import ExecutionHistory
from aeon.domain.profile import OWN_LEVELS
from aeon.domain.result import RunResult
from aeon.files.explain import first_mistake
from aeon.files.writing import encode_json, unwritable_error
from aeon.observability.history_file import history_document, restore_document

RESULT, HISTORY, ANSWER = "result.json", "history.json", "answer.md"


def prepare_directory(directory: Path) -> None:
    """Make the output directory, if it is not there, and see that files can be written in it.

    Raises:
        ArtefactError: it cannot be made or written in.
    """
    probe = Path(directory) / f".aeon-{uuid4().hex}"
    with as_artefact_error(directory):
        probe.parent.mkdir(parents=True, exist_ok=True)
        probe.touch(exist_ok=False)
        probe.unlink()


def create_directory(directory: Path, fill: Callable[[Path], None]) -> None:
    """Make a directory that has in it what `fill` puts there from the moment that it is there.

    One that is there already is filled as it is. Raises OSError, and what `fill` raises.
    """
    if directory.exists():
        fill(directory)
        return
    directory.parent.mkdir(parents=True, exist_ok=True)
    staged = directory.with_name(f".{uuid4().hex}")
    try:
        staged.mkdir()
        fill(staged)
        staged.rename(directory)
    except OSError as error:
        # Somebody else has just made it.
        raise FileExistsError(*error.args) if error.errno == ENOTEMPTY else error from None
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def write_origin(of: Origin, directory: Path) -> None:
    """Write `run.json`, whole or not at all, into a directory that is there. Raises ArtefactError."""
    replace_file(directory / origin.FILE, _document(of.model_dump(mode="json")))


def write(result: RunResult, directory: Path) -> None:
    """Write a result into a directory that is there; each file is replaced whole, or left as it was.

    Raises:
        ArtefactError: a file could not be written; it names all of them, with the first one's cause, and holds the
            result. The others are complete.
    """
    directory = Path(directory)
    answer = result.answer if result.answer.endswith("\n") or not result.answer else result.answer + "\n"
    failed: dict[str, ArtefactError] = {}
    contents: tuple[tuple[str, Callable[[], bytes]], ...] = (
        (ANSWER, lambda: answer.encode("utf-8", "backslashreplace")),
        (HISTORY, lambda: _document(history_document(result.history))),
        (RESULT, lambda: _document(_without_history(result))),
    )
    for name, content in contents:
        try:
            replace_file(directory / name, content())
        except ArtefactError as error:
            failed[name] = error
    if failed:
        raise _unwritten(directory, failed, result)


def _unwritten(directory: Path, failed: Mapping[str, ArtefactError], result: RunResult) -> ArtefactError:
    """One error for all files that could not be written."""
    first, *more = failed
    cause = failed[first].__cause__ or failed[first]
    message = (
        failed[first].message
        if not more
        else (f"{directory}: {', '.join(failed)} cannot be written: {getattr(cause, 'strerror', None) or cause}")
    )
    error = ArtefactError(message, hint=failed[first].hint, result=result)
    error.__cause__ = cause
    return error


def read(directory: Path) -> RunResult:
    """The result that `write` put into a directory, equal to the one it was given.

    Raises:
        ArtefactError: a file is missing or cannot be read, or does not hold what it should.
    """
    directory = Path(directory)
    head, history = _loaded(directory / RESULT), _loaded(directory / HISTORY)
    with _of_this_version(directory, "a result"):
        return RunResult.model_validate({**head, "history": restore_document(history)}, context=OWN_LEVELS)


def read_history(path: Path | str) -> ExecutionHistory:
    """The history of a run: of a `history.json`, or of the directory it is in.

    Raises:
        ArtefactError: the file is missing or cannot be read, or does not hold a history.
    """
    path = Path(path)
    path = path / HISTORY if path.is_dir() else path
    document = _loaded(path)
    with _of_this_version(path, "a history"):
        return ExecutionHistory.model_validate(restore_document(document), context=OWN_LEVELS)


def result_json(result: RunResult) -> str:
    """A whole result, its history included, as JSON text with keys in a fixed order (`output=json`)."""
    return encode_json(result.model_dump(mode="json"), indent=2).decode("utf-8")


def _without_history(result: RunResult) -> dict[str, Any]:
    return result.model_dump(mode="json", exclude={"history"})


def _document(value: dict[str, Any]) -> bytes:
    return encode_json(value, indent=2) + b"\n"


def replace_file(path: Path, data: bytes) -> None:
    """Put a whole file in the place of another: written beside it, on disk, then renamed. Raises ArtefactError."""
    beside = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    with as_artefact_error(path):
        try:
            with beside.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
        _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    """Make a rename last; not every file system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _loaded(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise ArtefactError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise ArtefactError(f"{path} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ArtefactError(f"{path} does not hold a JSON object")
    return value


@contextlib.contextmanager
def _of_this_version(path: Path, what: str) -> Iterator[None]:
    """Whatever is wrong with the content of an artefact as an ArtefactError."""
    try:
        yield
    except (pydantic.ValidationError, LookupError, TypeError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}"
        if isinstance(error, pydantic.ValidationError):
            reason = first_mistake(error)
        raise ArtefactError(
            f"{path} does not hold {what} of this version: {reason}",
            hint="Read it with the version of Aeon that wrote it; result.json names it under versions.",
        ) from error


@contextlib.contextmanager
def as_artefact_error(path: Path) -> Iterator[None]:
    """Whatever goes wrong with a file or folder as an ArtefactError."""
    try:
        yield
    except OSError as error:
        raise unwritable_error(Path(path), error) from error
