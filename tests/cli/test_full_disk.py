"""What was paid for is never lost: the answer is printed where it cannot be written."""

import errno
import json
import os
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from aeon.app.aeon import Aeon
from aeon.config.load import compose
from aeon.domain.errors import ArtefactError
from aeon.domain.result import SIMULATED_LINE
from aeon.files.jsonl import JsonLines
from aeon.observability import artefacts
from tests.cli.conftest import RunAeon

QUIET = ("provider=simulated", "progress=none", "hydra.run.dir=run")


def no_space(*_: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def journals_full(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = JsonLines.__init__

    def full(lines: JsonLines, path: Path) -> None:
        opened(lines, path)
        lines._file = Mock(wraps=lines._file, closed=False, write=no_space)

    monkeypatch.setattr(JsonLines, "__init__", full)


@pytest.fixture
def artefacts_full(monkeypatch: pytest.MonkeyPatch) -> None:
    full = SimpleNamespace(**{**vars(os), "fsync": no_space})  # of artefacts alone
    monkeypatch.setattr(artefacts, "os", full)


@pytest.mark.slow
@pytest.mark.usefixtures("artefacts_full")
def test_an_answer_that_cannot_be_written_is_printed_and_the_run_ends_with_1(
    aeon: RunAeon, tmp_path: Path
) -> None:
    ended = aeon("task=secret-word", *QUIET)
    assert ended.status == 1
    assert ended.out.startswith(SIMULATED_LINE)
    assert "answer.md cannot be written: No space left" in ended.err
    assert "Error executing job" not in ended.err
    assert "Traceback" not in ended.err
    assert not (tmp_path / "run" / "result.json").exists()


@pytest.mark.usefixtures("artefacts_full")
def test_from_python_the_error_holds_the_result(tmp_path: Path) -> None:
    with (
        Aeon(compose(["provider=simulated", "experiment=quick"]), {}) as aeon,
        pytest.raises(ArtefactError) as raised,
    ):
        aeon.run("x", directory=tmp_path)
    assert raised.value.result.answer.startswith(SIMULATED_LINE)


@pytest.mark.usefixtures("journals_full")
def test_a_run_goes_on_without_journals_and_says_so_once(aeon: RunAeon, tmp_path: Path) -> None:
    ended = aeon("task=x", *QUIET)
    assert ended.status == 0
    assert ended.err.count("events.jsonl cannot be written: No space left") == 1
    assert ended.err.count("cycles.jsonl cannot be written: No space left") == 1
    result = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    assert result["termination_reason"] == "converged"


@pytest.mark.slow
@pytest.mark.usefixtures("artefacts_full")
def test_in_a_multirun_every_answer_is_printed(aeon: RunAeon) -> None:
    ended = aeon(
        "-m",
        "task=x",
        "ttl.base=9,10",
        "hydra.sweep.dir=sweep",
        "provider=simulated",
        "progress=none",
    )
    assert ended.status == 1
    assert ended.out.count(SIMULATED_LINE) == 2
    assert "Error executing job" not in ended.err
