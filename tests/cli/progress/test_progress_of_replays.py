"""What is shown of a replay: that it is one, of what, and nothing that a recording cannot show."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from aeon.cli.progress.display import progress_for
from aeon.cli.progress.view import RunView
from aeon.cli.progress.words import banner
from aeon.cli.terminal.lines import ending as last_line
from aeon.domain.result import ParentRun, RunResult, TokenUsage, UsageReport
from aeon.store.cassette import Provenance
from tests.cli.progress.test_progress import XTERM, Terminal, drawn
from tests.observability.support import feed, realistic_run

DAY = Provenance(
    answered_by="hand, with care (no model)",
    usage="estimated",
    first="2026-11-21",
    last="2026-11-21",
)
DAYS = DAY.model_copy(
    update={"answered_by": "m-1 (provider openai)", "usage": "reported", "last": "2026-11-23T08:00"}
)
TIMES = re.compile(r"\d\d:\d\d|\d\.\ds\b|\b\d+s\b")


def shown(
    kind: str, recording: Provenance | None, *, terminal: bool = False, synthetic: bool = False
) -> str:
    stream = Terminal() if terminal else io.StringIO()
    with progress_for(kind, stream, XTERM, RunView(recording=recording)) as subscriber:
        feed(subscriber, realistic_run(synthetic=synthetic))
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", stream.getvalue())


def viewed(recording: Provenance | None = DAY) -> RunView:
    view = RunView(recording=recording)
    feed(view, realistic_run())
    return view


@pytest.mark.parametrize("kind", ["auto", "live", "plain", "none"])
@pytest.mark.parametrize("terminal", [True, False])
def test_a_replay_says_first_that_it_is_one_and_by_what_it_was_answered(
    kind: str, terminal: bool
) -> None:
    first = " ".join(shown(kind, DAY, terminal=terminal).strip(" =\n\r").split())
    assert first.startswith(
        "RECORDING, no model is called: answered on 2026-11-21 by hand, with care (no model)."
    )


def test_a_recording_of_several_days_names_the_first_and_the_last() -> None:
    said = " ".join(banner(False, DAYS))
    assert "answered from 2026-11-21 to 2026-11-23 by m-1 (provider openai)." in said


def test_a_recording_of_a_simulated_run_says_both() -> None:
    said = shown("plain", DAY, synthetic=True)
    assert said.index("RECORDING") < said.index("SIMULATED") < said.index("run ")


def test_a_banner_is_as_wide_as_a_narrow_terminal_whoever_answered() -> None:
    long = DAY.model_copy(update={"answered_by": "somebody \x1b[31m " * 40})
    lines = banner(True, long)
    assert max(map(len, lines)) <= 78
    assert not any("\x1b" in line for line in lines)
    assert banner(False, None) == []


@pytest.mark.parametrize("kind", ["plain", "live"])
def test_a_replay_shows_no_time_and_another_run_does(kind: str) -> None:
    assert TIMES.search(shown(kind, None, terminal=kind == "live"))
    # There are no retries in a replay, and no seconds until one.
    replay = re.sub(r"again in \d\.\ds", "", shown(kind, DAY, terminal=kind == "live"))
    assert not TIMES.search(replay)


def test_every_moment_of_a_replay_is_drawn_without_a_time_and_within_the_terminal() -> None:
    long = DAY.model_copy(update={"answered_by": "somebody who has a very long name " * 9})
    view = RunView(recording=long)
    for recorded in realistic_run():
        feed(view, [recorded])
        lines = drawn(view, 40, 12, after=5)
        assert len(lines) <= 11
        assert all(len(line) <= 40 for line in lines)
        assert not TIMES.search("\n".join(lines))
        assert not any("in flight" in line for line in lines)


@pytest.fixture
def replayed(tmp_path: Path) -> RunResult:
    from aeon import Aeon

    with Aeon.from_config(["provider=simulated"], environ={}) as aeon:
        result = aeon.run("name three rivers")
    usage = UsageReport(total=TokenUsage(requests=25, total_tokens=75_682, cost=0.5))
    configuration = {
        **result.configuration,
        "store": {**result.configuration["store"], "mode": "replay"},
    }
    return result.model_copy(update={"usage": usage, "configuration": configuration})


def test_the_last_line_of_a_replay_tells_neither_cost_nor_calls(
    replayed: RunResult, tmp_path: Path
) -> None:
    line = last_line(replayed, tmp_path)
    assert "25 answers from a recording." in line
    assert "cost" not in line
    assert "tokens" not in line
    assert "differ" not in line


@pytest.mark.parametrize(
    ("number", "said"), [(1, "had been recorded: 1."), (7, "had been recorded: 7.")]
)
def test_a_replay_by_order_says_what_has_changed_since(
    number: int, said: str, replayed: RunResult, tmp_path: Path
) -> None:
    result = replayed.model_copy(update={"parent": ParentRun(path="a.aeon", differing=number)})
    assert said in last_line(result, tmp_path)
