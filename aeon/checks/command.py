"""The check that runs a program: in a scratch folder next to the answer, without keys."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from aeon.checks.interface import CheckBroken, CheckContext, CheckResult
from aeon.domain.checks import CommandCheck
from aeon.domain.errors import ConfigError, StopRequested
from aeon.files.pinned import read_named

CONTEXT_FILE = "context.json"
# Variables that programs need to find their parts, without keys.
_PASSED_ON = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "SHELL",
    "SYSTEMROOT",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "VIRTUAL_ENV",
)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[^`]*$")
_POLL_SECONDS = 0.1
_START_SECONDS = 5
_CHUNK = 65_536


def require_command(key: str, settings: CommandCheck) -> None:
    """Raise ConfigError unless the program and files of a check exist."""
    program = settings.value[0]
    if shutil.which(program, path=_search_path()) is None and not _is_beside(program, settings):
        raise ConfigError(
            f"{key}: there is no program {program!r}",
            hint="Install it, or name it by its path, or by the name of one of `files`.",
        )
    names = [path.name for path in settings.files]
    reserved = {settings.file, CONTEXT_FILE}
    for number, path in enumerate(settings.files):
        place = path.expanduser().absolute()
        if not place.is_file():
            what = "is a folder: name its files" if place.is_dir() else "does not exist"
            raise ConfigError(f"{key}: files: {os.path.normpath(place)} {what}")
        if path.name in reserved or path.name in names[:number]:
            raise ConfigError(f"{key}: files: two files would have the name {path.name}")


def _is_beside(program: str, settings: CommandCheck) -> bool:
    return program.removeprefix("./") in [path.name for path in settings.files]


def run_command(
    settings: CommandCheck,
    answer: str,
    context: CheckContext,
    stop: Callable[[], bool] = lambda: False,
) -> CheckResult:
    """Run a program on an answer: exit status 0 passes, and its output is the feedback. Raises
    CheckBroken if it cannot be run or takes too long, StopRequested if `stop` returns True
    meanwhile."""
    with tempfile.TemporaryDirectory(prefix="aeon-check-", ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        try:
            _fill_folder(folder, settings, answer, context)
            status, printed = _run(settings, folder, stop)
        except OSError as error:
            raise CheckBroken(f"{settings.value[0]}: cannot be run: {error}") from None
    # The folder's name differs between runs, and the model sees the output.
    feedback = printed.replace(f"{folder}{os.sep}", "").replace(str(folder), ".").strip()
    return CheckResult(passed=status == 0, feedback=feedback or f"exit status {status}")


def find_code(answer: str) -> str:
    """Return the first code block of an answer without its fences; the answer if it has none."""
    lines = answer.splitlines(keepends=True)
    first = next((number for number, line in enumerate(lines) if _FENCE.match(line)), None)
    if first is None:
        return answer
    fence = lines[first].strip()
    mark = fence[: len(fence) - len(fence.lstrip(fence[0]))]
    code = []
    for line in lines[first + 1 :]:
        if line.strip().startswith(mark) and not line.strip().strip(fence[0]):
            break
        code.append(line)
    return "".join(code)


def _fill_folder(folder: Path, settings: CommandCheck, answer: str, context: CheckContext) -> None:
    for path in settings.files:
        source = path.expanduser()
        target = folder / path.name
        target.write_bytes(read_named(source))
        target.chmod(source.stat().st_mode & 0o777 | 0o600)
    text = find_code(answer) if settings.extract == "code" else answer
    (folder / settings.file).write_text(text, encoding="utf-8", errors="replace")
    (folder / CONTEXT_FILE).write_text(context.model_dump_json(indent=1), encoding="utf-8")


def _run(settings: CommandCheck, folder: Path, stop: Callable[[], bool]) -> tuple[int, str]:
    program, *arguments = settings.value
    found = folder / program if _is_beside(program, settings) else None
    found = found or Path(shutil.which(program, path=_search_path()) or program).absolute()
    process = _start([str(found), *arguments], folder)
    printed = _Printed(settings.max_output_characters)
    assert process.stdout is not None
    reader = threading.Thread(target=printed.read, args=(process.stdout,), daemon=True)
    reader.start()
    try:
        _wait(process, settings.timeout_seconds, stop, printed)
    finally:
        _end_group(process)
        reader.join(timeout=1)
    return process.returncode, printed.text


def _start(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            return subprocess.Popen(
                command,
                cwd=folder,
                env=_make_environment(os.environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            # Another thread that starts a process may hold the new file open for a moment.
            if error.errno != errno.ETXTBSY or time.monotonic() > deadline:
                raise
            time.sleep(_POLL_SECONDS)


def _wait(
    process: subprocess.Popen[bytes], seconds: float, stop: Callable[[], bool], printed: _Printed
) -> None:
    deadline = time.monotonic() + seconds
    while process.poll() is None:
        if stop():
            raise StopRequested("stopped while a check was running")
        if time.monotonic() > deadline:
            said = f", and printed:\n{printed.text}" if printed.text else ""
            raise CheckBroken(f"took longer than {seconds:g} seconds{said}")
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_POLL_SECONDS)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the program and everything it started."""
    with suppress(OSError, AttributeError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(OSError):
        process.kill()
    process.wait()


class _Printed:
    """The beginning and end of a program's output, however long it is."""

    def __init__(self, most: int) -> None:
        self._half = most // 2
        self._head = b""
        self._tail = b""
        self._count = 0

    def read(self, stream: IO[bytes]) -> None:
        """Read a stream to its end."""
        with suppress(OSError, ValueError):
            while chunk := os.read(stream.fileno(), _CHUNK):
                self._count += len(chunk)
                missing = 4 * self._half - len(self._head)
                self._head += chunk[:missing]
                self._tail = (self._tail + chunk[missing:])[-4 * self._half :]
        stream.close()

    @property
    def text(self) -> str:
        """The text, with a note if its middle was cut."""
        head = self._head.decode("utf-8", "replace")
        tail = self._tail.decode("utf-8", "replace")
        whole = head + tail
        if self._count <= len(self._head) + len(self._tail) and len(whole) <= 2 * self._half:
            return whole
        return f"{whole[: self._half]}\n[... cut ...]\n{whole[-self._half :]}"


def _search_path() -> str:
    # Programs installed next to Aeon are found as in its environment.
    return os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))


def _make_environment(environ: Mapping[str, str]) -> dict[str, str]:
    passed_on = {name: environ[name] for name in _PASSED_ON if name in environ}
    # Compiled files would have dates, and their folder is thrown away.
    return {**passed_on, "PATH": _search_path(), "PYTHONDONTWRITEBYTECODE": "1"}
