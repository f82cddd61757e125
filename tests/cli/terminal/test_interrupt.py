import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aeon.cli.terminal.status import INTERRUPTED, handle_interrupts, run_guarded
from aeon.domain.errors import ConfigError
from aeon.kernel.control import RunControl
from tests.cli.test_ctrl_c_at_a_question import at_a_terminal

SLOW = ("task=x", "provider=simulated", "progress=plain", "hydra.run.dir=run")


@contextmanager
def running(directory: Path, *overrides: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "aeon", *SLOW, *overrides]
    with subprocess.Popen(
        command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_what_a_library_makes_of_ctrl_c_is_an_interruption_all_the_same() -> None:
    def program() -> int:
        try:
            raise KeyboardInterrupt
        except BaseException:
            raise ConfigError("a key") from None

    told: list[str] = []
    assert run_guarded(program, told.append) == INTERRUPTED
    assert told == ["Interrupted."]


def wait_for(process: subprocess.Popen[str], text: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if text in line:
            return
    raise AssertionError(f"{text} was never said")


@pytest.mark.slow
def test_ctrl_c_ends_at_a_safe_boundary_with_the_result_written(tmp_path: Path) -> None:
    with running(tmp_path, "provider.latency_seconds=0.05", "execution.grace_seconds=5") as process:
        wait_for(process, "EXECUTE")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    result = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    assert result["termination_reason"] == "interrupted"
    assert (tmp_path / "run" / "history.json").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_end_a_run_as_ctrl_c_does(tmp_path: Path, number: signal.Signals) -> None:
    with running(tmp_path, "provider.latency_seconds=0.05", "execution.grace_seconds=5") as process:
        wait_for(process, "EXECUTE")
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "resume=" in err
    result = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    assert result["termination_reason"] == "interrupted"


def test_a_hangup_that_is_to_be_ignored_is_ignored(tmp_path: Path) -> None:
    program = """
import os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_IGN)
import aeon.cli.main
aeon.cli.main.main = lambda arguments: os.kill(os.getpid(), signal.SIGHUP) or 7
from aeon.__main__ import main
sys.exit(main([]))
"""
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, timeout=60, check=False)
    assert ended.returncode == 7


@pytest.mark.parametrize("ignored", [True, False])
def test_sigterm_ends_what_does_not_listen_to_ctrl_c(tmp_path: Path, ignored: bool) -> None:
    program = f"""
import os, signal, sys
{"signal.signal(signal.SIGINT, signal.SIG_IGN)" if ignored else ""}
import aeon.cli.main
aeon.cli.main.main = lambda arguments: os.kill(os.getpid(), signal.SIGTERM) or signal.pause()
from aeon.__main__ import main
sys.exit(main([]))
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, timeout=60, check=False
    )
    assert ended.returncode == 130


AT_THE_END = """
import atexit, os, signal, sys, threading
def interrupt():
    os.kill(os.getpid(), signal.NUMBER)
class Last:
    def __del__(self, interrupt=interrupt):
        interrupt()
def wait_for_main():
    threading.main_thread().join()
    interrupt()
import aeon.cli.main
aeon.cli.main.main = lambda arguments: 7
from aeon.__main__ import main
status = main([])
WHEN
sys.exit(status)
"""


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ("interrupt()", 130),
        ("threading.Thread(target=wait_for_main).start()", 130),
        ("atexit.register(interrupt)", 130),
        ("Last.kept = Last()", 7),
    ],
    ids=["returned", "threads", "atexit", "last"],
)
def test_a_signal_in_the_last_moments_ends_as_documented(
    when: str, expected: int, number: str
) -> None:
    program = AT_THE_END.replace("NUMBER", number).replace("WHEN", when)
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (expected, "")


def test_ctrl_c_within_a_text_that_is_executed_ends_as_documented(tmp_path: Path) -> None:
    """As in a dataclass that is being made while a library is loaded."""
    program = """
import sys
import aeon.cli.main
def interrupted(arguments):
    try:
        exec("raise KeyboardInterrupt")
    except KeyboardInterrupt:
        return 130
aeon.cli.main.main = interrupted
from aeon.__main__ import main
sys.exit(main([]))
"""
    (tmp_path / "interrupted.py").write_text(program)
    command = [sys.executable, "-m", "interrupted"]
    assert subprocess.run(command, cwd=tmp_path, timeout=60, check=False).returncode == 130


@pytest.mark.slow
def test_a_second_ctrl_c_ends_at_once(tmp_path: Path) -> None:
    with running(tmp_path, "provider.latency_seconds=60", "execution.grace_seconds=60") as process:
        wait_for(process, "PROFILE")
        process.send_signal(signal.SIGINT)
        wait_for(process, "Ctrl-C again ends at once")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"Ended at once. What was written is in {tmp_path / 'run'}" in err
    assert "python -m aeon resume=run\n" in err


@pytest.mark.slow
def test_ctrl_c_says_what_is_waited_for(tmp_path: Path) -> None:
    with running(tmp_path, "provider.latency_seconds=60", "execution.grace_seconds=42") as process:
        wait_for(process, "PROFILE")
        process.send_signal(signal.SIGINT)
        wait_for(
            process,
            "Stopping: nothing new is started. Work that is under way has 42 s to end: task_profile.",
        )


@pytest.mark.slow
def test_ctrl_c_in_the_picture_is_shown_in_it_and_a_second_leaves_the_way_back(
    tmp_path: Path,
) -> None:
    slow = ("task=x", "provider=simulated", "provider.latency_seconds=60", "progress=live")
    slow += ("execution.grace_seconds=60",)
    with at_a_terminal(tmp_path, *slow) as terminal:
        terminal.wait_for("profile")
        terminal.type("\r\x03")
        terminal.wait_for("Ctrl-C again ends at once")
        terminal.wait_for("Work that is under way has 5")  # of the 60 s
        assert "^C" not in terminal.shown
        # The picture is drawn over itself: between two of its heads the cursor goes up.
        frames = terminal.shown.split("Aeon  x")[1:]
        assert all(re.search(r"\x1b\[\d+A", frame) for frame in frames[:-1])
        terminal.type("\x03")
        terminal.wait_for("python -m aeon resume=run\r\n")
        assert terminal.process.wait(timeout=60) == 130
        assert "\x1b[?25h" in terminal.shown


@pytest.mark.slow
def test_the_echo_of_the_terminal_is_back_when_the_program_has_ended(tmp_path: Path) -> None:
    with at_a_terminal(tmp_path, "task=x", "provider=simulated", "progress=live") as terminal:
        terminal.wait_for("run/answer.md")
        terminal.process.wait(timeout=60)
        assert terminal.echoes


@pytest.mark.slow
def test_ctrl_c_in_a_multirun_starts_no_further_job(tmp_path: Path) -> None:
    sweep = (
        "--multirun",
        "ttl.base=9,10",
        "hydra.sweep.dir=sweep",
        "provider.latency_seconds=0.5",
    )
    with running(tmp_path, *sweep, "sweep.parallel=1") as process:
        wait_for(process, "started")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert re.search(r"^0 +9 +interrupted .*\n1 +10 +not started ", err, re.MULTILINE)
    assert (tmp_path / "sweep" / "0-base=9" / "result.json").is_file()
    assert not (tmp_path / "sweep" / "1-base=10").exists()


def test_the_first_signal_throws_the_switch_and_the_handler_is_restored(
    capfd: pytest.CaptureFixture[str],
) -> None:
    before, control = signal.getsignal(signal.SIGINT), RunControl()
    with handle_interrupts(control, lambda: "at a safe boundary", str):
        assert not control.stop_requested
        os.kill(os.getpid(), signal.SIGINT)
        assert control.stop_requested
    assert signal.getsignal(signal.SIGINT) is before
    assert "safe boundary" in capfd.readouterr().err


def test_outside_the_main_thread_there_is_a_control_and_no_handler() -> None:
    before, seen = signal.getsignal(signal.SIGINT), []

    def work() -> None:
        control = RunControl()
        with handle_interrupts(control, str, str):
            seen.append((control.stop_requested, signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(False, before)]


INTERRUPTED_AT = """
import os, runpy, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == where:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
where, sys.argv = sys.argv[1], ["aeon", "task=x", "provider=simulated", "progress=none"]
{start}
"""
STARTS = (
    'runpy.run_module("aeon", run_name="__main__")',
    "from aeon.__main__ import main\nsys.exit(main())",
)


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(STARTS[0], id="module"),
        pytest.param(STARTS[1], id="console-script", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("module", ["threading", "aeon.cli.main", "pydantic", "hydra", "omegaconf"])
def test_ctrl_c_while_the_program_is_loaded_leaves_no_traceback(
    tmp_path: Path, module: str, start: str
) -> None:
    command = [sys.executable, "-c", INTERRUPTED_AT.replace("{start}", start), module]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "Interrupted.\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_terminal_that_is_closed_ends_a_run_with_its_result_written(tmp_path: Path) -> None:
    slow = ("task=x", "provider=simulated", "provider.latency_seconds=0.2", "hydra.run.dir=run")
    with at_a_terminal(tmp_path, *slow, "progress=plain") as terminal:
        terminal.wait_for("pass 1")
        terminal.hang_up()
        assert terminal.process.wait(30) == 130
    result = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    assert result["termination_reason"] == "interrupted"
