"""The card at the end of a run on a terminal, and what of the answer a terminal shows."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest

from aeon.cli.job.card import card
from aeon.cli.terminal.output import write_answer
from aeon.domain.history import RunError
from aeon.domain.result import RunResult
from tests.cli.job.test_forward import BLOCKED, LOW, QUESTION, RESUME, configured, converged, ended  # noqa: F401
from tests.cli.progress.test_progress import Terminal

DIRECTORY = Path("/runs/one")
CODES = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)


def shown(result: RunResult) -> str:
    return CODES.sub("", card(result, DIRECTORY))


def test_a_card_has_the_verdict_the_cost_the_folder_and_the_next_command(
    converged: RunResult,
) -> None:
    scores = LOW.model_copy(update={"completeness_score": 0.8})
    run = converged.model_copy(update={"scores": scores})
    text = shown(run)
    assert "\n✓ Converged  00:0" in text
    assert re.search(r"\n  completeness \d\.\d\d \(threshold \d\.\d\d\) *\n  coherence    \d", text)
    assert f"TTL {run.ttl.used} of {run.ttl.allocated}" in text
    assert "cost 0.0000" in text
    assert "\n  answer       /runs/one/answer.md\n  folder       /runs/one\n" in text
    assert f"\n    {RESUME} convergence.completeness=0.9\n" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_a_card_of_a_run_that_did_not_converge_says_what_is_open_and_what_helps(
    converged: RunResult,
) -> None:
    low = configured(converged, limits={"max_passes": 3}, convergence={"completeness": 0.95})
    run = ended(
        converged,
        "max_passes",
        BLOCKED,
        scores=LOW,
        follow_up_questions=(QUESTION,),
        configuration=low,
    )
    text = shown(run)
    assert (
        "\n■ Finished without converging: limits.max_passes was reached (max_passes)  00:0" in text
    )
    assert re.search(r"completeness +0.92 \(threshold 0.95\)", text)
    assert re.search(r"blocked +rate: The bank is not known", text)
    assert re.search(r"question +Which currency\? \(assumed: Euro\)", text)
    assert f"To answer the questions:\n    {RESUME} interaction=ask\n" in text
    assert (
        f'To give the step what it misses (repeats every call):\n    {RESUME} inputs.NAME="..."'
        in text
    )


def test_a_card_of_a_failed_run_has_the_error_and_its_hint(converged: RunResult) -> None:
    error = RunError(type="AuthenticationFailed", message="the key was refused", hint="Check it.")
    text = shown(ended(converged, "failed", error=error))
    assert re.search(r"error +the key was refused *\n +Check it\.", text)


def test_a_command_is_one_line_however_narrow_the_terminal(
    converged: RunResult,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    long = Path("/runs") / ("x" * 60)
    text = CODES.sub("", card(ended(converged, "interrupted"), long))
    assert f"\n    python -m aeon resume={long}\n" in text


def test_no_colour_is_used_under_no_color(
    converged: RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    coloured = re.compile(r"\x1b\[[0-9;]*3[0-7]m")
    assert coloured.search(card(converged, DIRECTORY))
    monkeypatch.setenv("NO_COLOR", "1")
    assert not coloured.search(card(converged, DIRECTORY))


@pytest.mark.parametrize(
    ("form", "markdown", "terminal", "is_rendered"),
    [
        ("answer", True, True, True),
        ("answer", False, True, False),
        ("answer", True, False, False),
        ("json", True, True, False),
    ],
)
def test_markdown_is_rendered_on_a_terminal_alone(
    converged: RunResult,
    form: str,
    markdown: bool,
    terminal: bool,
    is_rendered: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    write_answer(converged.model_copy(update={"answer": "Say **this**"}), form, markdown=markdown)
    assert ("**" not in stream.getvalue()) is is_rendered
    assert "this" in stream.getvalue()
