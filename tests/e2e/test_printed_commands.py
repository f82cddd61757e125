"""A command that is printed is one that works as typed, where no environment is activated, as after `make run`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import RunAeon
from tests.cli.conftest import aeon as aeon

PATH = os.pathsep.join(folder for folder in ("/usr/bin", "/bin") if Path(folder).is_dir())
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}


def run(command: list[str] | str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=ENVIRONMENT | {"PATH": PATH},
        shell=isinstance(command, str),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_next_command_of_a_run_is_run_by_a_shell_as_it_stands(tmp_path: Path) -> None:
    words = ["ask", "name three rivers", "provider=simulated", "limits.max_passes=1"]
    stopped = run([sys.executable, "-m", "aeon", *words], tmp_path)
    assert stopped.returncode == 3
    (command,) = re.findall(r"^To continue with higher limits: (.+)$", stopped.stderr, re.MULTILINE)
    went_on = run(command, tmp_path)
    assert went_on.returncode in (0, 3), went_on.stderr
    assert "Passes: 2" in went_on.stderr


@pytest.mark.parametrize(
    "mistake",
    [
        ["help", "nothing"],
        ["docs", "qwertz"],
        ["inspect", "nothing"],
        ["render", "nothing"],
        ["schema", "ttl", "limits"],
        ["completion", "nothing"],
        ["compare"],
        ["trust"],
        ["batch"],
    ],
)
def test_a_command_that_helps_after_a_mistake_names_this_program(
    aeon: RunAeon, mistake: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", PATH)
    ended = aeon(*mistake)
    assert ended.status == 2
    (hint,) = ended.err.splitlines()[1:]
    assert f"{sys.executable} -m aeon " in hint
    assert not re.search(r"(?<!-m )\baeon \w", hint)
