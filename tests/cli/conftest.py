import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from aeon.cli.main import main

ENVIRONMENT = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "AEON_RUN_ID", "HYDRA_FULL_ERROR")


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str


RunAeon = Callable[..., Ended]


@contextmanager
def logging_restored() -> Iterator[None]:
    """Hydra sets up logging once for a process; here it would go on writing to a stream that is long closed."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers[:], root.level = handlers, level


@pytest.fixture
def aeon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> RunAeon:
    """Runs the program in this process and in an empty directory: `aeon("task=x", "progress=none")`."""
    monkeypatch.chdir(tmp_path)
    for name in ENVIRONMENT:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)

    def run(*arguments: str) -> Ended:
        capsys.readouterr()
        mask = os.umask(0o022)
        try:
            with logging_restored():
                status = main(arguments)
        finally:
            os.umask(mask)
        captured = capsys.readouterr()
        return Ended(status, captured.out, captured.err)

    return run


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """A scenario file whose plan call always fails: a run that ends with status 1."""
    path = tmp_path / "broken.yaml"
    path.write_text("calls:\n  plan:\n    - fail: auth\n", encoding="utf-8")
    return path
