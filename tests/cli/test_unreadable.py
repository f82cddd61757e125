"""Files of one's own that cannot be read, and streams that are closed: status 2 or 1, and never a surprise."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import RunAeon

QUIET = ("provider=simulated", "progress=none", "experiment=quick")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"# fine\nbase: [\n", "ttl/mine.yaml:3: expected the node content"),
        (
            b"base: 3\nlimit: 9\nbase: 4\n",
            "ttl/mine.yaml:3: `base` is repeated here; it is already on line 1",
        ),
        (b"# fine\nbase: 3 # \xe9\n", "ttl/mine.yaml:2: not UTF-8 text"),
        (b"base: 3\n\x00", "ttl/mine.yaml:1: not YAML: unacceptable character"),
        (b"base: *nothing\n", "ttl/mine.yaml:1: found undefined alias"),
    ],
)
@pytest.mark.parametrize("showing", [(), ("--cfg", "job"), ("-m",)])
def test_a_configuration_file_that_cannot_be_read_names_file_and_line(
    aeon: RunAeon, tmp_path: Path, content: bytes, said: str, showing: tuple[str, ...]
) -> None:
    (tmp_path / "own" / "ttl").mkdir(parents=True)
    (tmp_path / "own" / "ttl" / "mine.yaml").write_bytes(content)
    ended = aeon("task=x", "--config-dir", "own", "ttl=mine", *showing)
    assert (ended.status, ended.out) == (2, "")
    assert said in ended.err
    assert "unexpectedly" not in ended.err
    assert not (tmp_path / "outputs").exists()


def test_a_file_of_another_search_path_is_named_too(aeon: RunAeon, tmp_path: Path) -> None:
    (tmp_path / "far" / "ttl").mkdir(parents=True)
    (tmp_path / "far" / "ttl" / "mine.yaml").write_bytes(b"# \xe9")
    ended = aeon("task=x", f"hydra.searchpath=[file://{tmp_path}/far]", "ttl=mine")
    assert ended.status == 2
    assert "far/ttl/mine.yaml:1: not UTF-8" in ended.err


@pytest.mark.parametrize(
    "content",
    [b"GOOD=1\nOPENAI_API_KEY=sk-secret\xe9\n", b"GOOD=1\nOPENAI_API_KEY=sk-secret\x00\n"],
)
def test_a_dotenv_file_that_cannot_be_read_is_named_and_nothing_of_it_shown(
    aeon: RunAeon, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / ".env").write_bytes(content)
    ended = aeon("task=x", *QUIET)
    assert ended.status == 2
    assert ".env" in ended.err
    assert "sk-secret" not in ended.err
    assert "unexpectedly" not in ended.err


def shell(directory: Path, redirected: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The program as a shell starts it, with some of its streams redirected or closed."""
    environment = {**os.environ, "AEON": sys.executable}
    command = ["/bin/sh", "-c", f'"$AEON" -m aeon "$@" {redirected}', "aeon", *arguments]
    return subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False
    )


needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no /dev/full")


@pytest.mark.slow
def test_a_task_from_a_closed_standard_input_is_bad_usage(tmp_path: Path) -> None:
    ended = shell(tmp_path, "<&-", "task=-", *QUIET)
    assert ended.returncode == 2
    assert "task=-: standard input is closed" in ended.stderr


@pytest.mark.parametrize(
    ("redirected", "said"),
    [
        pytest.param(">&-", "closed", marks=pytest.mark.slow),
        pytest.param("> /dev/full", "No space left", marks=needs_full),
    ],
)
def test_an_answer_that_cannot_be_printed_is_in_the_artefacts_and_the_run_ends_with_1(
    tmp_path: Path, redirected: str, said: str
) -> None:
    ended = shell(tmp_path, redirected, "task=x", "hydra.run.dir=run", *QUIET)
    assert ended.returncode == 1
    assert f"Artefacts: {tmp_path / 'run'}" in ended.stderr
    assert said in ended.stderr
    assert "unexpectedly" not in ended.stderr
    assert "Exception ignored" not in ended.stderr
    assert (tmp_path / "run" / "answer.md").read_text(encoding="utf-8").startswith("[SIMULATED")


@pytest.mark.slow
def test_a_closed_standard_output_lends_its_number_to_no_file(tmp_path: Path) -> None:
    shell(tmp_path, ">&-", "task=x", "hydra.run.dir=run", *QUIET)
    lines = (tmp_path / "run" / "events.jsonl").read_bytes().splitlines()
    assert all(line.startswith(b"{") for line in lines)


@pytest.mark.slow
def test_with_standard_error_closed_nothing_but_the_answer_is_printed(tmp_path: Path) -> None:
    ended = shell(tmp_path, "2>&-", "task=x", "hydra.run.dir=run", *QUIET)
    assert ended.returncode in (0, 3)
    assert ended.stdout == (tmp_path / "run" / "answer.md").read_text(encoding="utf-8")


@needs_full
@pytest.mark.parametrize(
    "arguments",
    [
        ("--version",),
        *(
            pytest.param(a, marks=pytest.mark.slow)
            for a in (("--cfg", "job"), ("--help",), ("render", "plan", "task=x"))
        ),
    ],
)
def test_what_is_shown_into_a_full_device_is_one_sentence(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    ended = shell(tmp_path, "> /dev/full", *arguments)
    assert ended.returncode == 1
    assert ended.stderr == "Error: standard output cannot be written: No space left on device\n"


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("--cfg", "job"), ("--help",)])
def test_a_reader_that_goes_away_is_no_error_whatever_is_shown(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "aeon", *arguments]
    ended = subprocess.run(
        command, stdout=writing, stderr=subprocess.PIPE, cwd=tmp_path, check=False, text=True
    )
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, "")
