"""Text and tables fit a terminal, and are whole in a pipe."""

from __future__ import annotations

import io

import pytest

from aeon.cli.terminal.width import fit_rows, fit_text, terminal_width


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon.cli.terminal.width.stdout", Terminal)
    monkeypatch.setenv("COLUMNS", "40")


ROW = "  planner    yes   0.21  a model with a rather long name"


@pytest.mark.usefixtures("narrow")
def test_on_a_terminal_a_row_goes_on_below() -> None:
    assert terminal_width() == 40
    assert fit_rows(ROW, 4).splitlines() == [
        "  planner    yes   0.21  a model with a",
        "    rather long name",
    ]


def test_in_a_pipe_a_row_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon.cli.terminal.width.stdout", io.StringIO)
    monkeypatch.setenv("COLUMNS", "40")
    assert terminal_width() is None
    assert fit_rows(ROW, 4) == ROW


@pytest.mark.usefixtures("narrow")
def test_text_for_reading_keeps_paragraphs_columns_and_commands() -> None:
    text = """\
A paragraph over
two lines that are joined and wrapped to the terminal.

  --open    open the page in the browser
  aeon ask "a command that is copied stays on its line"
"""
    assert (
        fit_text(text)
        == """\
A paragraph over two lines that are
joined and wrapped to the terminal.

  --open    open the page in the browser
  aeon ask "a command that is copied stays on its line\""""
    )


@pytest.mark.usefixtures("narrow")
def test_the_text_of_a_row_stays_in_its_column() -> None:
    row = "  limit=N   so many; by default fifty of them"
    assert fit_text(row).splitlines() == [
        "  limit=N   so many; by default fifty of",
        "            them",
    ]
