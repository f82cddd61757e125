import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    shutil.which("make") is None or not (ROOT / "Makefile").is_file(),
    reason="needs make and a checkout",
)


@pytest.fixture
def workshop(tmp_path: Path) -> Path:
    """A folder with the Makefile, and an environment whose Python only writes down what it is given."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(
        '#!/bin/sh\necho "$@" > arguments\ncat > task\nexit "${STATUS:-0}"\n', encoding="utf-8"
    )
    python.chmod(0o755)
    for name in ("installed", "installed-dev"):
        stamp = tmp_path / ".venv" / name
        stamp.touch()
        future = (tmp_path / "pyproject.toml").stat().st_mtime + 60
        os.utime(stamp, (future, future))
    return tmp_path


def make(workshop: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = ["make", "--no-print-directory", *arguments]
    variables = {"PATH": os.environ["PATH"], **environment}
    return subprocess.run(
        command, cwd=workshop, env=variables, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "task",
    [
        "design a web application with user authentication",
        "a 'single' and \"double\" quote, `id` and $(shell touch pwned) and ${HOME} $5 $$",
        "# not a comment \\ trailing \\",
        "two\nlines\n",
        "日本語, é & ; | > file",
        "%s %d \\n",
    ],
)
def test_any_task_text_survives_make(workshop: Path, task: str) -> None:
    ended = make(workshop, "run", f"task={task}", "args=convergence=strict ttl.base=5")
    assert ended.returncode == 0
    assert (workshop / "task").read_bytes() == task.encode()
    assert (workshop / "arguments").read_text(
        encoding="utf-8"
    ) == "-m aeon task=- convergence=strict ttl.base=5\n"
    assert not (workshop / "pwned").exists()


def test_a_run_that_did_not_converge_is_said_and_not_hidden(workshop: Path) -> None:
    ended = make(workshop, "run", "task=x", STATUS="3")
    assert ended.returncode != 0
    assert "without converging (exit status 3)" in ended.stderr


def test_without_a_target_make_says_what_there_is(workshop: Path) -> None:
    ended = make(workshop)
    assert ended.returncode == 0
    assert "make run" in ended.stdout
    assert "make test " in ended.stdout
    assert "make test-slow" in ended.stdout


@pytest.mark.parametrize(("target", "those"), [("test", "not slow"), ("test-slow", "slow")])
def test_slow_tests_have_a_target_of_their_own_and_local_ones_are_in_neither(
    workshop: Path, target: str, those: str
) -> None:
    assert make(workshop, target, "args=-k name").returncode == 0
    given = (workshop / "arguments").read_text(encoding="utf-8")
    assert given.startswith("-m pytest --ignore=tests/llm/local ")
    assert given.endswith(f" -m {those} -k name\n")


def test_bytecode_is_kept_whatever_the_environment_says(workshop: Path) -> None:
    python = workshop / ".venv" / "bin" / "python"
    python.write_text(
        '#!/bin/sh\necho "${PYTHONDONTWRITEBYTECODE-unset}" > arguments\n', encoding="utf-8"
    )
    assert make(workshop, "test", PYTHONDONTWRITEBYTECODE="1").returncode == 0
    assert (workshop / "arguments").read_text(encoding="utf-8") == "unset\n"


def test_the_demo_is_a_replay_of_a_recording_that_is_shipped(workshop: Path) -> None:
    ended = make(workshop, "demo", "args=progress=plain")
    assert ended.returncode == 0
    words = (workshop / "arguments").read_text(encoding="utf-8").split()
    assert words[:3] == ["-m", "aeon", "store.mode=replay"]
    assert "progress=plain" in words
    (path,) = (word.partition("=")[2] for word in words if word.startswith("store.path="))
    assert (ROOT / path).is_file()
    assert "make run" in ended.stderr


def test_a_run_without_a_task_says_how_to_give_one(workshop: Path) -> None:
    ended = make(workshop, "run")
    assert ended.returncode != 0
    assert 'make run task="..."' in ended.stderr
    assert not (workshop / "arguments").exists()


def test_a_task_may_come_from_a_file_that_the_arguments_name(workshop: Path) -> None:
    assert make(workshop, "run", "args=task_file=x.md ttl.base=5").returncode == 0
    assert (workshop / "arguments").read_text(
        encoding="utf-8"
    ) == "-m aeon task_file=x.md ttl.base=5\n"


def test_blanks_before_a_task_survive_in_the_environment(workshop: Path) -> None:
    assert make(workshop, "run", task="  x").returncode == 0
    assert (workshop / "task").read_bytes() == b"  x"
