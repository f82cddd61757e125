import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from aeon.app.aeon import Aeon
from aeon.cli.terminal.lines import ending
from aeon.cli.terminal.output import write_answer
from aeon.cli.terminal.streams import report
from aeon.config.load import compose
from aeon.domain.errors import ConfigError
from aeon.domain.history import RunError
from aeon.domain.result import ParentRun, RunResult, Saved


@pytest.fixture(scope="module")
def result() -> RunResult:
    with Aeon(compose(["provider=simulated", "experiment=quick"]), {}) as aeon:
        return aeon.run("été 日本 🎉")


def written(result: RunResult, form: str, encoding: str, monkeypatch: pytest.MonkeyPatch) -> bytes:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, errors="backslashreplace", newline="\n")
    monkeypatch.setattr(sys, "stdout", stream)
    write_answer(result, form)
    return raw.getvalue()


def test_the_answer_ends_with_one_newline(
    result: RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = result.model_copy(update={"answer": "two\nlines"})
    assert written(answer, "answer", "utf-8", monkeypatch) == b"two\nlines\n"
    ended = result.model_copy(update={"answer": "one\n"})
    assert written(ended, "answer", "utf-8", monkeypatch) == b"one\n"


def test_no_answer_prints_nothing(result: RunResult, monkeypatch: pytest.MonkeyPatch) -> None:
    assert written(result.model_copy(update={"answer": ""}), "answer", "utf-8", monkeypatch) == b""


def test_a_terminal_that_lacks_a_character_gets_an_escape(
    result: RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = result.model_copy(update={"answer": "été 日"})
    assert written(answer, "answer", "latin-1", monkeypatch) == b"\xe9t\xe9 \\u65e5\n"


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ascii"])
def test_json_is_json_in_every_encoding(
    result: RunResult, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    data = written(result, "json", encoding, monkeypatch)
    assert json.loads(data.decode(encoding))["task"] == "été 日本 🎉"
    assert data.count(b"\n") == 1


def test_the_ending_names_verdict_figures_and_artefacts(result: RunResult, tmp_path: Path) -> None:
    line = ending(result, tmp_path)
    assert str(tmp_path) in line
    assert f"TTL {result.ttl.used} of {result.ttl.allocated}" in line
    assert "\n" not in line.partition("Artefacts")[0]
    expired = result.model_copy(update={"converged": False, "termination_reason": "ttl_expired"})
    assert ending(expired, tmp_path).startswith(
        "Finished without converging: the TTL is spent (ttl_expired)."
    )


def test_the_ending_of_a_failed_run_says_why_and_what_to_do(
    result: RunResult, tmp_path: Path
) -> None:
    error = RunError(type="AuthenticationFailed", message="the key was refused", hint="Check it.")
    failed = result.model_copy(
        update={"converged": False, "termination_reason": "failed", "error": error}
    )
    assert ending(failed, tmp_path).splitlines()[:2] == ["Error: the key was refused", "Check it."]
    assert "Failed." in ending(failed, tmp_path)


@pytest.mark.parametrize(
    ("calls", "saved", "said"),
    [
        (27, Saved(), ", 27 calls, 500 tokens"),
        (1, Saved(), ", 1 call, 500 tokens"),
        (
            27,
            Saved(model_calls=20, total_tokens=300, cost=0.5),
            "Saved: 20 calls, 300 tokens, cost 0.5000.",
        ),
        (0, Saved(tool_calls=2), "Saved: 2 tool calls."),
    ],
)
def test_the_ending_says_how_many_calls_the_store_answered(
    result: RunResult, tmp_path: Path, calls: int, saved: Saved, said: str
) -> None:
    total = result.usage.total.model_copy(update={"requests": calls, "total_tokens": 500})
    ended = result.model_copy(
        update={
            "usage": result.usage.model_copy(update={"total": total}),
            "parent": ParentRun(path="/elsewhere", saved=saved),
        }
    )
    assert said in ending(ended, tmp_path)
    assert ("Saved:" in ending(ended, tmp_path)) == (saved != Saved())


def test_an_error_is_reported_with_its_hint_on_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report(ConfigError("what", hint="how"))
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "Error: what\nhow\n")


@pytest.mark.slow
def test_a_reader_that_has_gone_away_is_no_error(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [
        sys.executable,
        "-m",
        "aeon",
        "task=x",
        "provider=simulated",
        "experiment=quick",
        "output=json",
    ]
    ended = subprocess.run(
        command, stdout=writing, stderr=subprocess.PIPE, cwd=tmp_path, check=False, text=True
    )
    os.close(writing)
    assert ended.returncode in (0, 3)
    assert "Traceback" not in ended.stderr
    assert "BrokenPipe" not in ended.stderr


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


STEERING = "a\x1b[2J\tb\r\x9b1m\nété\x7f"


def test_a_terminal_is_shown_control_characters_as_escapes(
    result: RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    steering = result.model_copy(update={"answer": STEERING})
    write_answer(steering, "answer")
    assert terminal.getvalue() == "a\\x1b[2J\tb\\x0d\\x9b1m\nété\\x7f\n"
    terminal.truncate(0)
    terminal.seek(0)
    write_answer(steering, "json")
    assert "\x9b" not in terminal.getvalue()
    assert json.loads(terminal.getvalue())["answer"] == STEERING


def test_a_terminal_shows_a_text_in_the_order_that_it_has(
    result: RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    turned = result.model_copy(update={"answer": "user\u202etxt.exe \u2066x\u2069 \u200e"})
    write_answer(turned, "answer", markdown=True)
    assert terminal.getvalue() == "user\\u202etxt.exe \\u2066x\\u2069 \\u200e\n"


def test_a_very_long_answer_is_not_rendered(
    result: RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    long = result.model_copy(update={"answer": "# x\n" * 50_001})
    write_answer(long, "answer", markdown=True)
    assert terminal.getvalue() == "# x\n" * 50_001


def test_a_pipe_gets_the_answer_byte_for_byte(
    result: RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    steering = result.model_copy(update={"answer": STEERING})
    assert written(steering, "answer", "utf-8", monkeypatch) == f"{STEERING}\n".encode()
