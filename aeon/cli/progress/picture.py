"""A run as a picture that fits the terminal. Pure: computed from a view, a size and a time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from textwrap import wrap

from rich.cells import cell_len, chop_cells
from rich.text import Text

from aeon.cli.progress.dag import NODE, outline
from aeon.cli.progress.estimate import seconds_left
from aeon.cli.progress.view import SCORES, CallView, RunView, StepView
from aeon.cli.progress.words import describe_stop, read_partly
from aeon.domain.errors import PlanError
from aeon.report.words import (
    SPINNER,
    STATES,
    count_noun,
    format_clock,
    format_seconds,
    format_threshold,
    label_worker,
    one_line,
    round_down,
)

_LEAST_STEPS = 4
_MOST_STEPS = 14
_WIDEST = 120
_LEAST_WIDTH_OF_WORDS = 72
_MOST_WAITS = 3
_MOST_TEXTS = 3
_MOST_TEXT_ROWS = 6
_LONGEST_TEXT = 2000
_DOT = " · "
_ARROW = " → "
_TURNS_PER_SECOND = 8
_STYLES = {
    "running": "bold cyan",
    "failed": "red",
    "invalid": "red",
    "blocked": "yellow",
    "queued": "dim",
    "pending": "dim",
    "complete": "green",
    "replaced": "dim",
    "skipped": "dim",
}
"""The styles of the states, in the order in which steps are chosen and counted."""
_RANKS = tuple(_STYLES)
_DOING = {
    "task_profile": "profiling the task",
    "plan": "making the plan",
    "semantic_validation": "reviewing",
    "refinement": "refining the plan",
    "subplan": "splitting a step",
    "convergence": "scoring",
}


def picture(view: RunView, now: datetime, width: int, height: int) -> list[Text]:
    """Draw the present state of a run: at most `height - 1` lines of at most `width` cells, from 12
    lines of 40 cells up."""
    width = min(width, _WIDEST)
    head = _head(view, now, width)
    room = height - 1 - len(head)
    wanted = min(len(view.steps), _MOST_STEPS)
    bars = _draw_bars(view, width)
    # Around the steps are an empty line, and one that counts them.
    room_of_steps = room - 2
    if room_of_steps - len(bars) < min(wanted, _LEAST_STEPS):
        bars = []
    rows = max(1, min(room_of_steps - len(bars), _MOST_STEPS))
    steps = _step_rows(view, now, width, rows)
    return [*head, *steps, *bars, *_texts(view, width, room - len(steps) - len(bars))]


def _flow(items: Iterable[str], separator: str, width: int) -> list[str]:
    lines: list[str] = []
    for item in filter(None, items):
        if lines and cell_len(lines[-1] + separator + item) <= width:
            lines[-1] += separator + item
        else:
            lines.append(item)
    return lines


def _row(left: Text, right: Text, width: int) -> Text:
    """Return both on one line, the right one at its end."""
    room = width - right.cell_len - 1 if right else width
    left.truncate(max(1, room), overflow="ellipsis", pad=bool(right))
    return Text.assemble(left, " ", right) if right else left


def _lines(texts: Iterable[str], width: int, style: str = "") -> list[Text]:
    return [_row(Text(text, style), Text(), width) for text in texts]


def turn(now: datetime) -> str:
    """Return the sign that turns while work is under way."""
    return SPINNER[int(now.timestamp() * _TURNS_PER_SECOND) % len(SPINNER)]


def _head(view: RunView, now: datetime, width: int) -> list[Text]:
    elapsed = now - view.started if view.started else timedelta()
    title = Text.assemble((turn(now), "cyan"), " ", (f"Aeon  {one_line(view.task, 400)}", "bold"))
    most = view.limits.max_seconds
    clock = format_clock(elapsed) + (f" of {format_clock(timedelta(seconds=most))}" if most else "")
    head = [Text(""), _row(title, Text("" if view.recording else clock, "cyan"), width)]
    head += [
        Text.assemble("  ", line)
        for line in _lines(_flow(_course(view, now), _DOT, width - 2), width - 2)
    ]
    head += _lines(_list_waits(view, now), width, "yellow")
    if view.stopped:
        left = max(0.0, view.grace_seconds - (now - view.stopped).total_seconds())
        for line in describe_stop(view, left):
            head += _lines(_flow(line.split(" "), " ", width)[:3], width, "bold yellow")
    return head


def _course(view: RunView, now: datetime) -> list[str]:
    """List the run's phase, the calls under way, its usage, and the estimated rest."""
    phase = view.phase.lower().replace("_", "-")
    items = [f"pass {view.pass_number} {phase}" if view.pass_number else phase]
    for one in view.in_flight.values():
        doing = _DOING.get(one.call)
        if doing is None:
            continue
        if one.since and not view.recording:
            doing += f" {format_seconds((now - one.since).total_seconds())}"
        items.append(doing)
    seconds = seconds_left(view, now)
    items.append("" if seconds is None else f"about {_round_up(seconds)} left")
    return items if view.recording else [*items, *_list_used(view)]


def _list_used(view: RunView) -> Iterator[str]:
    """Yield the usage of the run, each with its cap."""
    caps = view.limits
    if view.tokens:
        yield f"{view.tokens:,}{_of(caps.max_tokens)} tokens"
    if view.cost:
        yield f"cost {view.cost:.4f}{_of(caps.max_cost)}"
    if view.requests:
        requests = count_noun(view.requests, "request")
        yield requests.replace(" ", f"{_of(caps.max_llm_calls)} ")
    if view.fell_back:
        yield f"answered by {one_line(view.endpoint, 24)}"


def _of(cap: float | None) -> str:
    return "" if cap is None else f" of {cap:,}"


def _round_up(seconds: float) -> str:
    """Round up an estimate to its real precision."""
    return f"{math.ceil(seconds / 5) * 5} s" if seconds <= 60 else f"{math.ceil(seconds / 60)} min"


def _wait_text(call: CallView, now: datetime) -> str:
    """Describe the wait of a call; empty when it does not wait, or no longer."""
    if not call.wait or call.until is None:
        return f"waits for {call.wait}" if call.wait else ""
    seconds = (call.until - now).total_seconds()
    return f"waits {math.ceil(seconds)} s: {one_line(call.wait, 200)}" if seconds > 0 else ""


def _step_rows(view: RunView, now: datetime, width: int, rows: int) -> list[Text]:
    if not view.steps:
        return []
    visible = _with_lanes(view, rows, width // 4) or [
        (NODE, one) for one in _select_steps(view, rows)
    ]
    longest = max(cell_len(one_line(one.step.step_id)) for _, one in visible)
    widest = min(longest, max(8, min(24, width // 3)))
    waits = {one.step_id: _wait_text(one, now) for one in view.in_flight.values()}
    found = [
        _step_row(view, one, lanes, (width, widest), now, waits.get(one.step.step_id))
        for lanes, one in visible
    ]
    return [Text(""), *found, *_lines([_count_steps(view, len(visible))], width, "dim")]


def _count_steps(view: RunView, visible: int) -> str:
    """Return the line that counts the steps by their states."""
    states = [one.state for one in view.steps.values()]
    counts = ", ".join(f"{states.count(state)} {state}" for state in _RANKS if state in states)
    shown = f", {visible} shown" if len(states) > visible else ""
    return f"  {count_noun(len(states), 'step')}{shown}: {counts}"


def _step_row(
    view: RunView,
    one: StepView,
    lanes: str,
    widths: tuple[int, int],
    now: datetime,
    wait: str | None,
) -> Text:
    before, _, after = lanes.partition(NODE)
    state = one.state
    seconds = one.seconds
    style = _STYLES[state]
    if state == "running" and one.started:
        seconds = (now - one.started).total_seconds()
    step_id = Text(one_line(one.step.step_id), style)
    step_id.truncate(widths[1], overflow="ellipsis", pad=True)
    timed = seconds is not None and state not in ("pending", "queued") and not view.recording
    again = f"{one.runs}× " if one.runs > 1 else ""
    took = Text(again + format_seconds(seconds or 0.0) if timed else again.rstrip(), style)
    sign = turn(now) if state == "running" else STATES.get(state, STATES["pending"])
    what = (f"↻ {wait}", "yellow") if wait else _describe_work(one)
    left = Text.assemble((before, "dim"), (sign, style), (after, "dim"), " ", step_id, " ", what)
    return _row(left, took, widths[0])


def _describe_work(one: StepView) -> tuple[str, str]:
    """Return what a step does, and the style of that."""
    description = one_line(one.step.description, 200)
    if not one.calling:
        return label_worker(one.step) + description, "dim"
    tools = ", ".join(dict.fromkeys(map(one_line, one.calling.values())))
    return f"tool {tools}  {description}", "cyan"


def _select_steps(view: RunView, rows: int) -> list[StepView]:
    """Choose up to `rows` steps, running ones first, then those with problems, next ones, and done
    ones; return them in the order of the plan."""
    steps = list(view.steps.values())
    ranked = sorted(range(len(steps)), key=lambda place: _RANKS.index(steps[place].state))
    return [steps[place] for place in sorted(ranked[:rows])]


def _with_lanes(view: RunView, rows: int, most: int) -> list[tuple[str, StepView]]:
    steps = tuple(one.step for one in view.steps.values() if one.step.state != "replaced")
    if view.plan is None or not 0 < len(steps) <= rows:
        return []
    try:
        drawn = outline(view.plan.model_copy(update={"steps": steps}))
    except PlanError:
        return []
    if len(drawn[0][0]) > most:
        return []
    return [(lanes, view.steps[step.step_id]) for lanes, step in drawn]


def _list_waits(view: RunView, now: datetime) -> Iterator[str]:
    calls = [one for one in view.in_flight.values() if one.call != "step" and _wait_text(one, now)]
    for one in calls[:_MOST_WAITS]:
        what = one.step_id or _DOING.get(one.call, one.call)
        yield f"  ↻ {what} {_wait_text(one, now)}"


def _texts(view: RunView, width: int, rows: int) -> list[Text]:
    """Return the ends of the step texts being written, the newest steps last, in at most `rows`
    rows."""
    # Each needs an empty line, its step, and one line of it.
    most = min(_MOST_TEXTS, rows // 3)
    shown = _read_texts(view)[-most:] if most > 0 else []
    found: list[Text] = []
    for step_id, text in shown:
        most_lines = min(_MOST_TEXT_ROWS, rows // len(shown) - 2)
        end = [
            part
            for line in text[-_LONGEST_TEXT:].splitlines()
            for part in _fold(one_line(line), width - 2)
        ]
        found += [Text(""), *_lines([one_line(step_id)], width, "cyan")]
        found += [Text.assemble(("│ ", "cyan"), part) for part in end[-most_lines:]]
    return found


def _read_texts(view: RunView) -> list[tuple[str, str]]:
    """Return the step texts being written, each with its step; only those that show anything."""
    texts = [
        (one.step_id, read_partly(one.text))
        for one in view.in_flight.values()
        if one.step_id and one.text
    ]
    return [(step_id, text) for step_id, text in texts if text.strip()]


def _fold(line: str, width: int) -> list[str]:
    # `wrap` counts characters, and some take two cells.
    return wrap(line, width) if line.isascii() else chop_cells(line, width)


def _draw_bars(view: RunView, width: int) -> list[Text]:
    """Draw the budget, and the newest scores with their thresholds."""
    bars = []
    if view.ttl_allocated:
        used = view.ttl_allocated - view.ttl_remaining
        expected = view.expected
        mark = None if expected is None else expected / view.ttl_allocated
        words = f"{used} of {view.ttl_allocated} cycles"
        if expected and width >= _LEAST_WIDTH_OF_WORDS:
            words += f", about {expected} expected"
        share = used / view.ttl_allocated
        bars.append(_bar("budget", share, mark, "cyan", Text(words, "dim"), width))
    if view.scores:
        bars += [_score(view, name, width) for name in SCORES]
    return [Text(""), *bars] if bars else []


def _score(view: RunView, name: str, width: int) -> Text:
    scores = [scores[f"{name}_score"] for scores in view.scores[-3:]]
    values = [value for value in scores if value is not None]
    needed: float | None = getattr(view.thresholds, name) if view.thresholds else None
    value = values[-1] if values else 0.0
    style = "green" if needed is None or value >= needed else "yellow"
    earlier = ""
    if width >= 60:
        earlier = "".join(f"{round_down(one):.2f}{_ARROW}" for one in values[:-1])
    least = "" if needed is None else f" (threshold {format_threshold(needed)})"
    latest = (f"{round_down(value):.2f}", f"bold {style}")
    words = Text.assemble((earlier, "dim"), latest, (least, "dim"))
    return _bar(name, value, needed, style, words, width)


def _bar(name: str, value: float, mark: float | None, style: str, words: Text, width: int) -> Text:
    cells = max(4, min(24, width - 37))
    full = min(cells, round(value * cells))
    bar = Text.assemble(("━" * full, style), ("─" * (cells - full), "dim"))
    if mark is not None:
        place = min(cells - 1, round(mark * cells))
        bar = Text.assemble(bar[:place], ("┃", "bold"), bar[place + 1 :])
    return _row(Text.assemble(f"{name:<13}", bar, " ", words), Text(), width)
