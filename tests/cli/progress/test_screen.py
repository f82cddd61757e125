"""The terminal as a person sees it: what is written goes through an emulator of one."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing

import pyte
import pytest

from aeon.cli.progress.screen import Screen
from aeon.cli.progress.view import RunView
from aeon.domain import events as e
from tests.cli.progress.test_progress import THRESHOLDS, Terminal, until
from tests.observability.support import chain_run, realistic_run

HEIGHT = 30


@pytest.fixture(autouse=True)
def _drawn_by_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", lambda _: None)
    monkeypatch.setenv("LINES", str(HEIGHT))


def frames(
    told: Sequence[e.Recorded], widths: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[list[str], pyte.HistoryScreen]]:
    """The terminal after every event and at the end, while its width goes through `widths`."""
    out, shown = Terminal(), pyte.HistoryScreen(widths[0], HEIGHT, history=9999)
    shown.set_mode(pyte.modes.LNM)
    stream = pyte.Stream(shown)
    with closing(Screen(out, RunView(thresholds=THRESHOLDS), colour=True)) as screen:
        for number, recorded in enumerate(told):
            width = widths[number * len(widths) // len(told)]
            monkeypatch.setenv("COLUMNS", str(width))
            shown.resize(HEIGHT, width)
            screen(recorded)
            screen._draw()
            stream.feed(out.getvalue())
            out.seek(0)
            out.truncate()
            yield [line.rstrip() for line in shown.display], shown
    stream.feed(out.getvalue())
    yield [line.rstrip() for line in shown.display], shown


@pytest.mark.slow
@pytest.mark.parametrize("width", [40, 60, 80, 200])
@pytest.mark.parametrize(
    "told", [realistic_run(synthetic=True), chain_run(12)], ids=["realistic", "chain"]
)
def test_the_picture_stands_once_on_the_terminal_and_is_gone_at_the_end(
    told: Sequence[e.Recorded], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    *during, (end, shown) = frames(told, [width], monkeypatch)
    for lines, _ in during:
        assert sum(line.startswith("budget ") for line in lines) <= 1
        assert sum(" steps: " in line for line in lines) <= 1
    assert sum(" steps: " in line for line in during[-1][0]) == 1
    assert not [line for line in end if line.startswith("budget ") or " steps: " in line]
    above = ["".join(line[place].data for place in range(width)) for line in shown.history.top]
    assert not [line for line in above if line.startswith("budget ") or " steps: " in line]


@pytest.mark.slow
def test_a_terminal_that_becomes_wider_and_narrower_shows_the_picture_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for lines, _ in frames(realistic_run(), [80, 200, 60, 80], monkeypatch):
        assert sum(line.startswith("budget ") for line in lines) <= 1


def test_lines_broken_by_a_narrower_terminal_are_erased_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out, told = Terminal(), until(realistic_run(), e.StepStarted)
    monkeypatch.setenv("COLUMNS", "100")
    screen = Screen(out, RunView(), colour=False)
    for recorded in told:
        screen(recorded)
    screen._draw()
    before = list(screen._cells)
    rows = sum(max(1, -(-cells // 40)) for cells in before)
    assert rows > len(before)
    out.seek(0)
    out.truncate()
    monkeypatch.setenv("COLUMNS", "40")
    screen._draw()
    assert f"\x1b[{rows - 1}A" in out.getvalue()


def test_a_terminal_without_unicode_gets_ascii_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    class Latin(Terminal):
        encoding = "latin-1"

    monkeypatch.setenv("COLUMNS", "80")
    out = Latin()
    screen = Screen(out, RunView(thresholds=THRESHOLDS), colour=True)
    for recorded in until(realistic_run(), e.StepStarted, 4):
        screen(recorded)
        screen._draw()
    assert out.getvalue().isascii()
    assert "2x" in out.getvalue()
