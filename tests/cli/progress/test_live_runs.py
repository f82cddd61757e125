"""Whole runs of the program, on a terminal and without one."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pyte
import pytest

from aeon.cli.progress.screen import Screen
from aeon.cli.progress.view import RunView
from tests.cli.progress.test_progress import Terminal
from tests.cli.test_ctrl_c_at_a_question import at_a_terminal
from tests.integration.wire import overrides, script
from tests.observability.support import chain_run
from tests.support import scripted_model as scripted
from tests.support.openai_server import OpenAIServer


class Counting(Terminal):
    def __init__(self) -> None:
        super().__init__()
        self.writes = 0

    def write(self, text: str) -> int:
        self.writes += 1
        return super().write(text)


@pytest.mark.slow
def test_nothing_is_drawn_more_than_eight_times_a_second_however_much_happens() -> None:
    out, told = Counting(), chain_run(40)
    began = time.monotonic()
    with closing(Screen(out, RunView(), colour=True)) as screen:
        for recorded in told:
            screen(recorded)
            time.sleep(0.6 / len(told))
    seconds = time.monotonic() - began
    # Beside the draws: the first and the last one, and hiding and showing the cursor.
    assert 4 <= out.writes <= 8 * seconds + 5


@pytest.mark.slow
def test_a_run_without_a_terminal_writes_plain_lines_and_does_not_load_what_draws(
    tmp_path: Path,
) -> None:
    code = "import sys; from aeon.__main__ import main; main(sys.argv[1:]); print('loaded', *sys.modules, file=sys.stderr)"
    command = [sys.executable, "-c", code, "task=x", "provider=simulated", "limits.max_passes=1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    lines, _, loaded = done.stderr.partition("loaded")
    assert "pass 1  started" in lines
    assert "\x1b" not in lines
    assert {"rich.console", "rich.text", "rich.live", "aeon.cli.progress.screen"}.isdisjoint(
        loaded.split()
    )


@pytest.mark.slow
def test_the_text_of_a_step_stands_on_the_terminal_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    text = "Pack all the rest, room by room. " * 20
    with OpenAIServer(script(step=scripted.clear(text))) as server:
        server.piece_seconds = 0.01
        given = (*overrides(server.url), "progress.stream=true", "task=x", "observability=none")
        with at_a_terminal(tmp_path, *given, shown="live") as terminal:
            terminal.wait_for("│ \x1b[0mPack all the rest, room")
            terminal.wait_for("Converged")
        assert all(request.body["stream"] for request in server.requests)
    screen = pyte.HistoryScreen(80, 24, history=999)
    pyte.Stream(screen).feed(terminal.shown.partition("Converged")[0])
    assert not [line for line in screen.display if line.startswith(("│ ", "budget"))]
