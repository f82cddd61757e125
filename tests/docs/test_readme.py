"""What the README shows is what a person gets."""

from __future__ import annotations

import os
import pty
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

import pytest

from aeon.store.cassette import read
from tests.docs.test_tutorial import has_lines
from tests.support.openai_server import Answer, Completion, OpenAIServer

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COLUMNS = 90
PRICE = "{input: 0.25, output: 2.0}"
CODES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def test_the_readme_has_at_most_120_lines() -> None:
    assert len(README.splitlines()) <= 120


def test_the_costs_are_those_of_the_page_that_measures_them() -> None:
    measured = (ROOT / "docs" / "prompts.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| (.+? calls?,.*?) \|$", README, re.MULTILINE)
    assert len(rows) == 2
    for task, cells in rows:
        figures = [re.sub(r" calls?|(?<=\d),(?=\d)", "", cell) for cell in cells.split(" | ")]
        single, core, auto, adaptive = figures
        assert f"| {task} | {single} | {core} | {adaptive} | {auto} |" in measured


@contextmanager
def answered_by_hand(name: str) -> Iterator[OpenAIServer]:
    """A server that gives the answers of a recording, in their order, with their tokens."""
    script: dict[str, list[Answer]] = {}
    for entry in read(ROOT / "examples" / "cassettes" / f"{name}.aeon").answers:
        usage = entry.answer["usage"]
        tokens = {
            "prompt_tokens": usage["input_tokens"],
            "completion_tokens": usage["output_tokens"],
            "total_tokens": usage["input_tokens"] + usage["output_tokens"],
        }
        answer = Completion(entry.answer["text"], usage=tokens)
        script.setdefault(entry.request.path.call, []).append(answer)
    with OpenAIServer(script) as server:
        yield server


def shown_on_a_terminal(command: list[str], folder: Path, environ: dict[str, str]) -> list[str]:
    master, terminal = pty.openpty()
    ioctl(terminal, TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    streams = {"stdin": terminal, "stdout": terminal, "stderr": terminal}
    process = subprocess.Popen(command, cwd=folder, env=environ, **streams)
    os.close(terminal)
    shown = b""
    try:
        while piece := os.read(master, 65536):
            shown += piece
    except OSError:  # on Linux the end of what the other side wrote
        pass
    finally:
        os.close(master)
    assert process.wait() == 0
    return CODES.sub("", shown.decode()).replace("\r\n", "\n").split("\n")


@pytest.mark.slow
def test_asking_shows_the_card_of_the_readme(tmp_path: Path) -> None:
    (task,) = re.findall(
        r'^\$ aeon ask "(.+?)" mode=adaptive limits.max_cost=0.50$', README, re.MULTILINE
    )
    (card,) = (
        block for block in re.findall(r"```text\n(.*?)```", README, re.DOTALL) if "✓" in block
    )
    with answered_by_hand("web-architecture") as server:
        environ = {
            **{name: value for name, value in os.environ.items() if name != "CI"},
            **{"TERM": "xterm-256color", "NO_COLOR": "1", "COLUMNS": str(COLUMNS)},
            **{"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": server.url},
        }
        words = [
            *(task, "mode=adaptive", "limits.max_cost=0.50", "progress=live"),
            # The answers come in the order of the recording, and cost what they would at OpenAI.
            *("execution.max_parallel=1", "provider.structured_output=json_schema"),
            f"provider.prices={{gpt-5-mini: {PRICE}, scripted-1: {PRICE}}}",
        ]
        command = [sys.executable, "-m", "aeon", "ask", *words]
        shown = shown_on_a_terminal(command, tmp_path, environ)
    assert has_lines(shown, ["...", *card.splitlines()[1:]]), "\n".join(shown[-30:])
