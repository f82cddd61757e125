"""What a person types first: version, help, the task as it is, completion; and a reader that has gone away."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import aeon as package
from aeon.cli.syntax.commands import COMMANDS
from tests.cli.conftest import RunAeon

HEAVY = {"hydra", "omegaconf", "openai", "pydantic", "rich", "jinja2", "jsonschema"}
ENGINE = {"openai", "rich", "jinja2", "jsonschema", "tenacity", "sqlite3", "httpx2", "genai_prices"}


def loaded_by(arguments: list[str], folder: Path) -> set[str]:
    """The packages that a command loads."""
    code = (
        "import sys; from aeon.__main__ import main; main(sys.argv[1:]); "
        "print('loaded', *(name for name in sys.modules if '.' not in name), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.partition("loaded")[2].split())


@pytest.mark.slow
def test_a_run_without_a_plan_file_loads_nothing_that_reads_one(tmp_path: Path) -> None:
    code = (
        "import sys; from aeon.__main__ import main; main(sys.argv[1:]); "
        "read = {f'aeon.plan.workflow.{name}' for name in ('load', 'check', 'models', 'inputs')}; "
        "assert not read & set(sys.modules), read & set(sys.modules)"
    )
    command = [sys.executable, "-c", code, "task=x", "provider=simulated", "limits.max_passes=1"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, timeout=120)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["task=x", "--version"],
        ["--help"],
        ["help"],
        ["help", "plan"],
        ["verify", "--help"],
        ["completion", "bash"],
        ["completion", "--", "provider."],
    ],
    ids=" ".join,
)
def test_what_needs_no_configuration_loads_nothing_that_takes_time(
    arguments: list[str], tmp_path: Path
) -> None:
    assert loaded_by(arguments, tmp_path).isdisjoint(HEAVY)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(
            arguments.split(), id=arguments, marks=() if "bass" in arguments else pytest.mark.slow
        )
        for arguments in ("task=x ttl.bass=1", "provider=nothing", "", "--cfg job")
    ],
)
def test_a_mistake_in_the_configuration_does_not_load_the_engine(
    arguments: list[str], tmp_path: Path
) -> None:
    loaded = loaded_by(arguments, tmp_path)
    assert "hydra" in loaded
    assert loaded.isdisjoint(ENGINE)


def test_the_version_is_the_packages(aeon: RunAeon) -> None:
    assert aeon("--version").out == f"aeon-engine {package.__version__}\n"


@pytest.mark.parametrize("command", sorted(COMMANDS))
@pytest.mark.parametrize("form", ["{} --help", "{} -h", "help {}"])
def test_every_command_has_a_help_of_its_own(aeon: RunAeon, command: str, form: str) -> None:
    ended = aeon(*form.format(command).split())
    assert ended.status == 0
    assert ended.out.startswith(f"usage: aeon {command}")
    assert ended.err == ""


def test_help_is_what_help_prints(aeon: RunAeon) -> None:
    assert aeon("help").out == aeon("--help").out == aeon("-h").out


def test_help_of_what_there_is_not_names_the_nearest(aeon: RunAeon) -> None:
    ended = aeon("help", "pln")
    assert ended.status == 2
    assert "aeon help plan" in ended.err


def test_help_lists_the_options_of_a_folder_of_ones_own(aeon: RunAeon, tmp_path: Path) -> None:
    for name in ("ttl/tiny.yaml", "customer/acme.yaml"):
        (tmp_path / "own" / name).parent.mkdir(parents=True)
        (tmp_path / "own" / name).write_text("{}\n", encoding="utf-8")
    shown = aeon("--help", "--config-dir", "own").out
    groups = [line.split(maxsplit=1) for line in shown.splitlines()]
    assert ["ttl:", "default, large, small, tiny"] in groups
    assert ["customer:", "acme"] in groups
    assert "acme" not in aeon("--help").out


@pytest.mark.parametrize(
    "task", ["name three rivers", "limits.max_passes=3, or what?", "- milk\n- 'eggs'"]
)
def test_ask_takes_a_task_as_it_is(aeon: RunAeon, task: str) -> None:
    assert yaml.safe_load(aeon("ask", task, "--cfg", "job", "ttl=small").out)["task"] == task


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ask"], 'aeon ask "name three rivers"'),
        (["ask", "--multirun", "x"], "takes the task first"),
        (["ask", "name", "three", "mode=core"], "as one argument"),
        (["ask", " "], "the task is empty"),
        (["ask", "x", "task=y"], "the task is given twice"),
    ],
)
def test_ask_says_what_it_needs(
    aeon: RunAeon, tmp_path: Path, arguments: list[str], said: str
) -> None:
    ended = aeon(*arguments)
    assert ended.status == 2
    assert said in ended.err
    assert list(tmp_path.iterdir()) == []


def candidates(aeon: RunAeon, *words: str) -> list[str]:
    ended = aeon("completion", "--", *words)
    assert ended.status == 0
    return ended.out.splitlines()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["do"], ["docs", "doctor"]),
        (["conv"], ["convergence=", "convergence."]),
        (["task"], ["task=", "task_file="]),
        (["convergence=s"], ["convergence=strict"]),
        (["task=x", "ttl.ba"], ["ttl.base="]),
        (["ask", "x", "provider=o"], ["provider=ollama", "provider=openai", "provider=openrouter"]),
        (["roles.grader.m"], ["roles.grader.max_tokens=", "roles.grader.model="]),
        (["help", "che"], ["check"]),
        (["docs", "err"], ["errors"]),
        (["docs", "ttl.ba"], ["ttl.base="]),
        (["render", "conv"], ["convergence"]),
        (["completion", "f"], ["fish"]),
        (["cassette", "ex"], ["export"]),
        (["--config-d"], ["--config-dir"]),
        (["task=any"], []),
        (["plan.yaml"], []),
        (["+mode=c"], ["+mode=core"]),
    ],
)
def test_completion_offers_what_may_stand_there(
    aeon: RunAeon, words: list[str], offered: list[str]
) -> None:
    assert candidates(aeon, *words) == offered


def test_completion_knows_a_folder_of_ones_own(aeon: RunAeon, tmp_path: Path) -> None:
    (tmp_path / "own" / "customer").mkdir(parents=True)
    (tmp_path / "own" / "customer" / "acme.yaml").write_text("{}\n", encoding="utf-8")
    assert candidates(aeon, "--config-dir", "own", "+customer=") == ["+customer=acme"]


def test_a_file_that_is_no_yaml_does_not_disturb_completion(aeon: RunAeon, tmp_path: Path) -> None:
    (tmp_path / "own" / "ttl").mkdir(parents=True)
    (tmp_path / "own" / "ttl" / "broken.yaml").write_text("a: [\n", encoding="utf-8")
    assert "ttl.base=" in candidates(aeon, "--config-dir", "own", "ttl.")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_can_be_had_both_ways(aeon: RunAeon, shell: str) -> None:
    assert "completion --" in aeon("completion", shell).out
    assert aeon("-sc", f"install={shell}").out == aeon("completion", shell).out


@pytest.mark.slow
def test_bash_completes_with_the_script(tmp_path: Path) -> None:
    """The words of a command line, typed so far, as bash hands them to the script."""
    (tmp_path / "aeon").write_text(
        f'#!/bin/sh\nexec {sys.executable} -m aeon "$@"\n', encoding="utf-8"
    )
    (tmp_path / "aeon").chmod(0o755)
    script = """
        eval "$(aeon completion bash)"
        complete_line() { COMP_LINE="$1"; COMP_POINT=${#1}; _aeon_completion; printf '<%s>' "${COMPREPLY[@]}"; echo; }
        complete_line "aeon doct"
        complete_line "aeon ask 'a b' convergence=s"
        complete_line "aeon ttl.ba"
    """
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    assert done.stdout.splitlines() == ["<doctor >", "<strict >", "<ttl.base=>"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "both"),
    [
        (["--info"], False),
        (["--help"], False),
        (["tools", "tools=builtin"], False),
        (["task=x", "provider=simulated", "mode=core"], False),
        (["task=x", "ttl.bass=1"], True),
        (["check", "--nonsense"], True),
    ],
)
def test_a_pipe_that_nobody_reads_is_silent(
    arguments: list[str], both: bool, tmp_path: Path
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    errors = writing if both else subprocess.PIPE
    done = subprocess.run(
        [sys.executable, "-m", "aeon", *arguments],
        stdout=writing,
        stderr=errors,
        cwd=tmp_path,
        check=False,
        text=True,
    )
    os.close(writing)
    assert done.returncode in (0, 2, 3)
    for words in ("Traceback", "BrokenPipe", "Broken pipe", "Logging error", "Exception ignored"):
        assert words not in (done.stderr or "")


def test_what_others_wrote_on_a_pipe_that_nobody_reads_does_not_change_the_exit_status() -> None:
    program = """
import contextlib, sys
from aeon.cli.terminal.streams import own_streams
with own_streams(), contextlib.suppress(OSError):
    sys.stderr.write("usage\\n")
"""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", program], stdout=writing, stderr=writing, check=False
    )
    os.close(writing)
    assert done.returncode == 0


def test_no_library_prints_a_backtrace_of_its_own(tmp_path: Path) -> None:
    code = "import os, aeon.__main__; print(os.environ['RUST_BACKTRACE'])"
    environ = {**os.environ, "RUST_BACKTRACE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environ, capture_output=True, text=True
    )
    assert done.stdout == "0\n"
