"""A result as files: `result.json`, `history.json` and `answer.md`, each written completely or not
at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import pydantic

from aeon.domain.errors import ArtefactError
from aeon.domain.history import ExecutionHistory
from aeon.domain.profile import OWN_LEVELS
from aeon.domain.result import RunResult
from aeon.domain.values import JsonObject
from aeon.files.explain import first_mistake
from aeon.files.secret_forms import mask
from aeon.files.text import (
    IN_RUN,
    create_like_folder,
    encode_json,
    load_json,
    read_linked_file,
    unwritable_error,
)
from aeon.observability.plan_delta import history_document, restore_document

RESULT = "result.json"
HISTORY = "history.json"
ANSWER = "answer.md"
BASELINE = "baseline"
"""The folder, in the run's directory, of the direct call for a run's task; with a number if it
exists already."""
_FILES_OF_A_RUN = 10  # its journals, its store with what belongs to it, a connection


def allow_files(runs: int) -> None:
    """Raise the limit on open files (RLIMIT_NOFILE) so that `runs` runs fit, as far as the hard
    limit allows."""
    count = _FILES_OF_A_RUN * runs + 256
    with suppress(ImportError, OSError, ValueError):
        import resource  # not on every system

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY and soft < count:
            # Only the soft limit: a process cannot raise its hard one.
            most = count if hard == resource.RLIM_INFINITY else min(count, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def create_directory(
    directory: Path, fill: Callable[[Path], None], *, private: bool = False
) -> None:
    """Create a directory that already has its content when it appears; `fill` writes the content.
    If `private`, only its owner can access it. An existing directory is filled in place. Raises
    OSError, and what `fill` raises."""
    if directory.is_dir():
        fill(directory)
        return
    directory.parent.mkdir(parents=True, exist_ok=True)
    # Beside the directory, since only within one disk a rename is one step.
    staged = directory.with_name(f".{uuid4().hex}")
    try:
        staged.mkdir(mode=0o700 if private else 0o777)
        fill(staged)
        staged.rename(directory)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def write(result: RunResult, directory: Path) -> None:
    """Write a result into an existing directory; each file is replaced completely or left
    unchanged. Raises ArtefactError, which holds the result, for the first file that cannot be
    written."""
    answer = result.answer
    if answer and not answer.endswith("\n"):
        answer += "\n"
    contents = {
        ANSWER: answer.encode("utf-8", "backslashreplace"),
        RESULT: write_json(result.model_dump(mode="json", exclude={"history"})),
        HISTORY: write_json(history_document(result.history)),
    }
    try:
        for name, content in contents.items():
            replace_file(directory / name, content, IN_RUN)
    except ArtefactError as error:
        error.result = result
        raise


def write_json(value: JsonObject) -> bytes:
    """Encode a value as a JSON file for people to read."""
    return encode_json(value, indent=2) + b"\n"


def load(directory: Path | str) -> RunResult:
    """Load the result of a finished run from its directory, equal to the one passed to `write`.
    Raises ArtefactError."""
    path = Path(directory).expanduser() / RESULT
    if not path.exists():
        what = "holds no result" if path.parent.is_dir() else "there is no such folder"
        cut_off = f"The run is under way or was cut off; to resume it: `aeon resume={directory}`"
        no_run = "Give a run's directory, such as outputs/DATE/TIME-ID; `aeon runs` lists them."
        hint = cut_off if path.with_name("run.json").exists() else no_run
        raise ArtefactError(f"{directory}: {what}", hint=hint)
    with _explain_errors(path, "a result"):
        head = load_json(read_linked_file(path))
        return RunResult.model_validate(
            {**head, "history": read_history(path.parent)}, context=OWN_LEVELS
        )


def read_history(path: Path | str) -> ExecutionHistory:
    """Read a run's history from a `history.json` or its directory. Raises ArtefactError."""
    path = Path(path)
    path = path / HISTORY if path.is_dir() else path
    with _explain_errors(path, "a history"):
        return ExecutionHistory.model_validate(
            restore_document(load_json(read_linked_file(path))), context=OWN_LEVELS
        )


@contextmanager
def _explain_errors(path: Path, what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ArtefactError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        reason = first_mistake(error) if isinstance(error, pydantic.ValidationError) else str(error)
        raise ArtefactError(
            f"{path} does not hold {what} of this version: {reason}",
            hint="Read it with the version of Aeon that wrote it; result.json names it "
            "under versions.",
        ) from error


def replace_file(path: Path, data: bytes, *hint: str) -> None:
    """Replace a file as a whole: write a masked temporary file next to it, sync it to disk and
    rename it. Raises ArtefactError."""
    beside = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    with as_artefact_error(path, *hint):
        try:
            with open(beside, "xb", opener=create_like_folder) as file:
                file.write(mask(data))
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)


@contextmanager
def as_artefact_error(path: Path, *hint: str) -> Iterator[None]:
    """Raise OSErrors of a file or folder as ArtefactError."""
    try:
        yield
    except OSError as error:
        raise unwritable_error(Path(path), error, *hint) from error
