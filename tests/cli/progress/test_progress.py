import io
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from aeon.cli.progress.display import progress_for
from aeon.cli.progress.picture import picture
from aeon.cli.progress.view import RunView, StepView
from aeon.cli.progress.words import lines
from aeon.domain import events as e
from aeon.domain.assessment import (
    AnswerComparison,
    ComparedWithEarlier,
    ConvergenceThresholds,
)
from aeon.domain.history import Advisory
from aeon.domain.request import CallSite
from aeon.llm.stack.limits import LimitSettings
from aeon.report.words import SPINNER, count_noun, format_clock, format_seconds, one_line
from tests.cli.conftest import RunAeon
from tests.integration.wire import script
from tests.observability.support import PLAN, START, Story, chain_run, feed, realistic_run, step
from tests.plan import builders

XTERM = {"TERM": "xterm-256color"}
ESCAPE = "\x1b"


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def shown_by(
    kind: str,
    told: Sequence[e.Recorded],
    stream: io.StringIO | None = None,
    environ: dict[str, str] | None = None,
) -> str:
    stream = stream or io.StringIO()
    with progress_for(kind, stream, XTERM if environ is None else environ) as subscriber:
        feed(subscriber, told)
    return stream.getvalue()


def drawn(view: RunView, width: int, height: int = 24, after: float = 0) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, height=height, color_system=None, highlight=False)
    now = (view.now or START) + timedelta(seconds=after)
    console.print(*picture(view, now, width, height), sep="\n")
    return out.getvalue().splitlines()


def seen(told: Sequence[e.Recorded], view: RunView | None = None) -> RunView:
    view = view or RunView()
    for recorded in told:
        view(recorded)
    return view


def until(told: Sequence[e.Recorded], kind: type[e.Event], number: int = 1) -> Sequence[e.Recorded]:
    """The run up to and with the n-th event of a kind."""
    places = [index for index, recorded in enumerate(told) if isinstance(recorded.event, kind)]
    return told[: places[number - 1] + 1]


def without_times(text: str) -> str:
    return re.sub(r"\d+\.\ds|\d\d:\d\d", "T", text)


def test_a_run_in_plain_lines_reads_from_top_to_bottom() -> None:
    text = without_times(shown_by("plain", realistic_run()))
    assert text == (Path(__file__).parent / "progress_plain.txt").read_text(encoding="utf-8")


def test_plain_lines_hold_no_control_code_whatever_a_model_writes() -> None:
    hostile = "\x1b[31mred\x1b[0m\r\n\x07[bold]bell[/bold]\u202e"
    story = Story()
    story.tell(e.RunStarted(run_id="r", task=hostile, provider="openai", synthetic=False))
    odd = PLAN.with_steps(
        step("gather").model_copy(update={"description": hostile, "step_id": "gather"})
    )
    story.tell(e.PlanMade(plan=odd, layers=3, expected_calls=9))
    story.tell(
        e.AdvisoryRaised(
            advisory=Advisory(kind="conflict", message=hostile, pass_number=1, step_id=hostile)
        )
    )
    story.tell(e.RetryScheduled(site=CallSite(), call="plan", attempt=1, seconds=1, error=hostile))
    text = shown_by("plain", story.told)
    assert not [ch for ch in text if not ch.isprintable() and ch != "\n"]
    assert "[bold]bell[/bold]" in text
    view = seen(story.told)
    assert not [ch for line in drawn(view, 80) for ch in line if not ch.isprintable()]
    assert any("[bold]bell" in line for line in drawn(view, 80))


@pytest.mark.parametrize("kind", ["auto", "live", "plain", "none"])
@pytest.mark.parametrize("terminal", [True, False])
def test_a_run_without_a_model_says_so_first_whatever_is_shown(kind: str, terminal: bool) -> None:
    text = shown_by(kind, realistic_run(synthetic=True), Terminal() if terminal else io.StringIO())
    first = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).strip(" =\n\r")
    assert first.startswith("SIMULATED: no model is called.")


def test_a_run_with_a_model_says_nothing_of_it() -> None:
    for kind in ("auto", "plain", "none"):
        assert "SIMULATED" not in shown_by(kind, realistic_run())
    assert shown_by("none", realistic_run()) == ""


@pytest.mark.parametrize(
    ("kind", "terminal", "environ", "live"),
    [
        ("auto", True, XTERM, True),
        ("auto", False, XTERM, False),
        ("auto", True, {**XTERM, "NO_COLOR": "1"}, True),
        ("auto", True, {**XTERM, "NO_COLOR": ""}, True),
        ("auto", True, {"TERM": "dumb"}, False),
        ("auto", True, {}, False),
        ("live", True, {**XTERM, "NO_COLOR": "1"}, True),
        ("live", False, XTERM, False),
        ("live", True, {"TERM": "dumb"}, False),
        ("plain", True, XTERM, False),
        ("none", True, XTERM, False),
        ("auto", True, {**XTERM, "CI": "true"}, False),
        ("auto", True, {**XTERM, "JPY_PARENT_PID": "7"}, False),
        ("live", True, {**XTERM, "CI": "true"}, True),
    ],
)
def test_a_picture_is_drawn_only_where_it_can_be_seen(
    kind: str, terminal: bool, environ: dict[str, str], live: bool
) -> None:
    text = shown_by(kind, realistic_run(), Terminal() if terminal else io.StringIO(), environ)
    assert (ESCAPE in text) is live


@pytest.mark.parametrize("kind", ["auto", "live"])
def test_no_colour_is_used_under_no_color(kind: str) -> None:
    text = shown_by(kind, realistic_run(synthetic=True), Terminal(), {**XTERM, "NO_COLOR": "1"})
    codes = {
        int(code)
        for found in re.findall(r"\x1b\[([0-9;]*)m", text)
        for code in found.split(";")
        if code
    }
    assert not {code for code in codes if 30 <= code <= 49 or code >= 90}


@pytest.mark.parametrize("width", [80, 40, 20])
@pytest.mark.parametrize("height", [24, 12])
@pytest.mark.parametrize("synthetic", [True, False])
def test_every_moment_of_a_run_fits_the_width_of_the_terminal(
    width: int, height: int, synthetic: bool
) -> None:
    view = RunView()
    for recorded in realistic_run(synthetic=synthetic):
        view(recorded)
        assert all(len(line) <= width for line in drawn(view, width, height))


@pytest.mark.parametrize("told", [realistic_run(synthetic=True), chain_run(100)])
@pytest.mark.parametrize("width", [80, 40])
@pytest.mark.parametrize("height", [50, 24, 18, 12])
def test_every_moment_of_a_run_fits_the_height_of_the_terminal(
    told: Sequence[e.Recorded], width: int, height: int
) -> None:
    view = RunView()
    for number, recorded in enumerate(told):
        view(recorded)
        if number % 11 == 0:
            assert len(drawn(view, width, height)) < height


def test_the_picture_shows_what_runs_what_is_blocked_and_what_is_left() -> None:
    lines = drawn(seen(until(realistic_run(), e.StepFinished, 3)), 80)
    text = "\n".join(lines)
    assert "pass 1" in text
    assert "6 of 34 cycles, about 18 expected" in text
    assert any(line.startswith("■ │ auth ") for line in lines)
    assert any(line.startswith("·─╯ combine ") for line in lines)
    assert "4 steps: 1 blocked, 1 pending, 2 complete" in text


def test_a_step_that_runs_shows_how_long() -> None:
    view = seen(until(realistic_run(), e.StepStarted))
    assert any(
        re.match(rf"[{SPINNER}]   gather .* 1m05s$", line) for line in drawn(view, 80, after=65)
    )
    assert drawn(view, 80, after=65)[1].split()[-1].startswith("01:")


THRESHOLDS = ConvergenceThresholds(completeness=0.98, coherence=0.9, consistency=0.9)


@pytest.mark.parametrize(
    ("thresholds", "most", "told"),
    [
        (
            THRESHOLDS,
            2,
            "; it takes 3 passes, limits.max_passes=2 allows 2: raise it to at least 3",
        ),
        (THRESHOLDS, 3, ""),
        (THRESHOLDS, None, ""),
        (None, 3, "; it takes 4 passes, limits.max_passes=3 allows 3: raise it to at least 4"),
    ],
)
@pytest.mark.parametrize("brief", [True, False])
def test_a_plan_that_takes_more_passes_than_there_are_says_so(
    thresholds: ConvergenceThresholds | None, most: int | None, told: str, brief: bool
) -> None:
    view = RunView(thresholds=thresholds, limits=LimitSettings(max_passes=most))
    diamond = builders.plan_of(
        builders.step("a"),
        builders.step("b", "a"),
        builders.step("c", "a"),
        builders.step("d", "c"),
    )
    first, *_ = lines(e.PlanMade(plan=diamond, layers=3, expected_calls=9), view, brief=brief)
    assert first.endswith(f"plan  4 steps in 3 layers, about 9 LLM cycles expected{told}")


def rows_of(view: RunView, name: str, width: int) -> Text:
    (row,) = [line for line in picture(view, START, width, 40) if line.plain.startswith(name)]
    return row


def test_the_lines_stay_when_the_picture_goes() -> None:
    text = shown_by("live", realistic_run(), Terminal())
    for line in (
        "output  gather  output of gather",
        "question  Which identity provider?",
        "finished  TTL 21",
    ):
        assert line in text


def test_scores_are_bars_with_their_threshold_and_their_values_in_the_order_of_time() -> None:
    view = seen(realistic_run(), RunView(thresholds=THRESHOLDS))
    assert (
        rows_of(view, "completeness", 80).plain
        == f"completeness {'━' * 23}┃ 0.62 → 0.97 (threshold 0.98)"
    )
    assert (
        rows_of(view, "coherence", 80).plain
        == f"coherence    {'━' * 22}┃─ 0.80 → 0.94 (threshold 0.90)"
    )
    assert rows_of(
        view, "completeness", 40
    ).plain == f"completeness {'━' * 4} 0.97 (threshold 0.98)".replace("━ 0", "┃ 0")


def test_a_bar_is_green_only_above_its_threshold() -> None:
    view = seen(realistic_run(), RunView(thresholds=THRESHOLDS))
    styles = {
        name: {str(span.style) for span in rows_of(view, name, 80).spans}
        for name in ("completeness", "coherence")
    }
    assert "green" in styles["coherence"]
    assert "green" not in styles["completeness"]
    assert "yellow" in styles["completeness"]


def test_of_a_long_plan_the_steps_are_shown_that_are_not_done() -> None:
    states = ["complete"] * 60 + ["running", "failed"] + ["pending"] * 38
    view = RunView()
    view.steps = {f"s{n}": StepView(step(f"s{n}", status=state)) for n, state in enumerate(states)}
    lines = drawn(view, 80, 12)
    assert [line.split()[1] for line in lines if " Do s" in line] == [
        f"s{n}" for n in range(60, 67)
    ]
    assert "100 steps, 7 shown: 1 running, 1 failed, 38 pending, 60 complete" in "\n".join(lines)


def test_a_run_that_is_stopping_says_what_it_waits_for_and_how_long() -> None:
    view = seen(until(realistic_run(), e.StepStarted, 2))
    view.stopped = view.now
    text = " ".join(" ".join(drawn(view, 40, 40, after=3)).split())
    assert (
        "Stopping: nothing new is started. Work that is under way has 7 s to end: step data-model."
        in text
    )
    assert "Ctrl-C again ends at once" in text


def test_without_progress_a_run_that_is_stopping_says_so_too() -> None:
    told = until(realistic_run(), e.StepStarted, 2)
    with progress_for("none", io.StringIO(), XTERM) as display:
        feed(display, told)
        expected = "Work that is under way has 10 s to end: step data-model."
        assert expected in display.describe_stop()


def waiting(call: str, step_id: str | None = None) -> RunView:
    """A run whose call waits four seconds."""
    story = Story()
    story.tell(e.RunStarted(run_id="r", task="t", provider="openai", synthetic=False))
    story.tell(e.PlanMade(plan=PLAN, layers=3, expected_calls=9))
    site = story.dispatch(call, "EXECUTE", 1, step_id=step_id)
    story.tell(
        e.RetryScheduled(
            site=site, call=call, attempt=1, seconds=4, error="RateLimited: slow\x1b down"
        ),
        site,
    )
    return seen(story.told)


def test_what_a_call_waits_for_is_shown_where_it_is_made_until_it_is_made_again() -> None:
    view = waiting("convergence")
    assert "  ↻ scoring waits 3 s: RateLimited: slow down" in drawn(view, 80, after=1.5)
    assert "RateLimited" not in "\n".join(drawn(view, 80, after=4.1))
    (row,) = [line for line in drawn(waiting("step", "gather"), 80, after=1) if " gather " in line]
    assert "↻ waits 3 s: RateLimited: slow down" in row


def test_who_answers_is_named_once_another_endpoint_stands_in() -> None:
    story = Story()
    story.tell(e.RunStarted(run_id="r", task="t", provider="openai", synthetic=False))
    site = story.dispatch("plan", "PLAN", 0)
    error = "CircuitOpen: first is busy (429) and is not asked for 30 s"
    story.tell(
        e.FallbackUsed(site=site, call="plan", failed="first", endpoint="second", error=error), site
    )
    story.answer(site, "plan")
    answered = story.told[-1]
    story.told[-1] = replace(answered, event=replace(answered.event, endpoint="second"))  # type: ignore[call-arg]
    assert "answered by second" in "\n".join(drawn(seen(story.told), 80))
    assert "answered by" not in "\n".join(drawn(seen([story.told[0], story.told[-1]]), 80))


def test_caps_stand_beside_what_they_cap() -> None:
    caps = LimitSettings(max_seconds=120, max_tokens=20_000, max_cost=0.5, max_llm_calls=60)
    lines = drawn(seen(realistic_run(), RunView(cost_at=lambda _: 0.0123, limits=caps)), 100)
    assert lines[1].endswith(" of 02:00")
    assert (
        "  pass 2 refine · 18,000 of 20,000 tokens · cost 0.0123 of 0.5 · 15 of 60 requests"
        in lines
    )


def test_cost_so_far_stands_in_the_picture() -> None:
    view = seen(realistic_run(), RunView(cost_at=lambda _: 0.0123))
    assert "cost 0.0123" in "\n".join(drawn(view, 80))


def test_a_plan_too_long_for_its_lanes_is_shown_without() -> None:
    lines = drawn(seen(until(chain_run(100), e.PlanMade)), 80, 24)
    assert any(line.startswith("· s") for line in lines)


def test_without_thresholds_scores_are_bars_alone() -> None:
    row = next(line for line in drawn(seen(realistic_run()), 80) if line.startswith("completeness"))
    assert row.rstrip() == f"completeness {'━' * 23}─ 0.62 → 0.97"


def test_steps_stay_known_when_a_refinement_changes_the_plan() -> None:
    view = seen(until(realistic_run(), e.Refined, 2))
    assert view.steps["gather"].seconds == pytest.approx(1.7)
    assert view.steps["auth"].step.description == "Design sign-in with e-mail and password"
    assert [one.step.state for one in view.steps.values()].count("pending") == 2


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        ("better", "the changed answer is better than the one before"),
        ("as_good", "the changed answer is as good as the one before"),
        ("worse", "the changed answer is worse than the one before"),
        ("unknown", "the changed answer could not be compared with the one before"),
    ],
)
def test_each_comparison_of_a_changed_answer_is_a_line(
    outcome: ComparedWithEarlier, told: str
) -> None:
    compared = e.AnswerCompared(pass_number=2, comparison=AnswerComparison(outcome=outcome))
    (line,) = lines(compared, RunView(thresholds=ConvergenceThresholds()))
    assert line.endswith(f"pass 2  comparison  {told}")


def test_of_a_baseline_the_answer_of_the_run_is_compared_with_the_direct_one() -> None:
    compared = e.AnswerCompared(pass_number=1, comparison=AnswerComparison(outcome="worse"))
    (line,) = lines(compared, RunView())
    assert line.endswith("the answer of the run is worse than the direct one")


def test_a_long_plan_is_not_listed_whole_in_plain_lines() -> None:
    text = shown_by("plain", until(chain_run(100), e.PlanMade))
    assert "100 steps in 100 layers" in text
    assert text.rstrip().endswith("and 80 more")


def test_an_error_of_the_run_passes_through() -> None:
    def run(kind: str) -> None:
        with progress_for(kind, Terminal(), XTERM) as subscriber:
            subscriber(realistic_run()[0])
            raise RuntimeError("of the run")

    for kind in ("plain", "live", "none"):
        with pytest.raises(RuntimeError, match="of the run"):
            run(kind)


def test_nothing_is_drawn_while_a_person_is_asked_something() -> None:
    stream = Terminal()
    with progress_for("live", stream, XTERM) as subscriber:
        told = realistic_run()
        feed(subscriber, told[:30])
        telling = threading.Thread(target=lambda: feed(subscriber, told[30:]))
        with subscriber.pause():
            before = stream.getvalue()
            telling.start()
            time.sleep(0.3)
            assert stream.getvalue() == before
        telling.join()
        assert len(stream.getvalue()) > len(before)
    assert "output of gather" in stream.getvalue()


def test_small_words() -> None:
    assert [
        count_noun(1, "retry"),
        count_noun(2, "retry"),
        count_noun(2, "pass"),
        count_noun(1200, "token"),
    ] == [
        "1 retry",
        "2 retries",
        "2 passes",
        "1,200 tokens",
    ]
    assert format_clock(timedelta(seconds=3723)) == "1:02:03"
    assert format_clock(timedelta(seconds=-1)) == "00:00"
    assert [format_seconds(one) for one in (0.04, 9.94, 9.96, 59.6, 64, 7500)] == [
        *("0.0s", "9.9s", "10s", "1m00s", "1m04s", "2h05m")
    ]
    assert one_line("a\n\tb\x00c", 4) == "a b…"
    assert datetime.fromisoformat(realistic_run()[0].time) == START


def test_the_first_line_names_the_endpoint_that_was_chosen(aeon: RunAeon, start_server):
    server = start_server(script())
    for command in ((), ("plan",)):
        ended = aeon(
            *command,
            "task=x",
            "provider=ollama",
            "provider.model=m",
            f"provider.base_url={server.url}",
        )
        assert "  provider ollama  task: x" in ended.err
