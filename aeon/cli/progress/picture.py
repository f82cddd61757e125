"""A run as a picture that fits the terminal. Pure: a view, a size and a time give the picture."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from rich.cells import cell_len
from rich.console import Group
from rich.table import Table
from rich.text import Text

from aeon.cli.progress.dag import NODE, outline
from aeon.cli.progress.view import SCORES, RunView, StepView
from aeon.cli.progress.words import stopping
from aeon.domain.errors import PlanError
from aeon.report.ending import state_of
from aeon.report.words import STATES, count_noun, format_clock, one_line, round_down, tool_label

_LEAST_STEPS, _MOST_STEPS = 4, 14
_DOT, _ARROW = " · ", " → "
_STYLES = {
    "running": "bold cyan",
    "blocked": "yellow",
    "failed": "red",
    "invalid": "red",
    "pending": "dim",
    "complete": "green",
    "replaced": "dim",
}


def picture(view: RunView, now: datetime, width: int, height: int) -> Group:
    """A run as it stands, in at most `height - 1` lines of `width` cells, from 12 lines of 40 cells up."""
    head = _head(view, now, width)
    scores = [Text(""), *(_score(view, name, width) for name in SCORES)] if view.scores else []
    room = height - 1 - len(head) - 2  # around the steps are an empty line, and one that counts them
    if room - len(scores) < _LEAST_STEPS:
        scores = []
    rows = max(1, min(room - len(scores), _MOST_STEPS))
    return Group(*head, *_step_table(view, now, width, rows), *scores)


def _line(text: str, style: str = "") -> Text:
    return Text(text, style, no_wrap=True, overflow="ellipsis")


def _flow(items: Iterable[str], separator: str, width: int, style: str = "") -> list[Text]:
    lines: list[str] = []
    for item in filter(None, items):
        if lines and cell_len(lines[-1] + separator + item) <= width:
            lines[-1] += separator + item
        else:
            lines.append(item)
    return [_line(line, style) for line in lines]


def _head(view: RunView, now: datetime, width: int) -> list[Text]:
    elapsed = now - view.started if view.started else timedelta()
    items = [f"pass {view.pass_number} {view.phase.lower()}" if view.pass_number else view.phase.lower()]
    if view.ttl_allocated:
        expected = f", about {view.expected} expected" if view.expected else ""
        items.append(f"{view.ttl_allocated - view.ttl_remaining} of {view.ttl_allocated} cycles{expected}")
    if not view.recording:
        items.insert(1, format_clock(elapsed))
        items.append(f"{view.tokens:,} tokens" if view.tokens else "")
        items.append(f"cost {view.cost:.4f}" if view.cost else "")
        items.append(f"{len(view.in_flight)} in flight" if view.in_flight else "")
    waits: list[str] = []
    if view.stopped:
        waits = stopping(view, max(0.0, view.grace_seconds - (now - view.stopped).total_seconds()))
    return [
        Text(""),
        _line(f"Aeon  {one_line(view.task, 400)}", "bold"),
        *_flow(items, _DOT, width),
        *(part for line in waits for part in _flow(line.split(" "), " ", width, "bold yellow")[:3]),
    ]


def _step_table(view: RunView, now: datetime, width: int, rows: int) -> list[Text | Table]:
    if not view.steps:
        return []
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=max(8, min(24, width // 3)))
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column(no_wrap=True, justify="right")
    visible = _with_lanes(view, rows, width // 4) or [(NODE, one) for one in _select_steps(view, rows)]
    for lanes, one in visible:
        before, _, after = lanes.partition(NODE)
        state, seconds = state_of(one.step), one.seconds
        style = _STYLES[state]
        if state == "running" and one.started:
            seconds = (now - one.started).total_seconds()
        calling = (f"tool {one_line(one.calling)}  ", "cyan") if one.calling else ""
        label = "" if calling else tool_label(one.step.tool)
        table.add_row(
            Text.assemble((before, "dim"), (STATES[state], style), (after, "dim")),
            Text(one_line(one.step.step_id), style),
            Text.assemble(calling, (label + one_line(one.step.description, 200), "dim")),
            Text("" if seconds is None or state == "pending" or view.recording else f"{seconds:.0f}s", style),
        )
    states = [state_of(one.step) for one in view.steps.values()]
    counts = ", ".join(f"{states.count(state)} {state}" for state in STATES if state in states)
    hidden = f" ({len(states) - len(visible)} not shown)" if len(states) > len(visible) else ""
    return [Text(""), table, _line(f"  {count_noun(len(states), 'step')}: {counts}{hidden}", "dim")]


def _select_steps(view: RunView, rows: int) -> list[StepView]:
    steps = list(view.steps.values())
    places = [place for place, one in enumerate(steps) if state_of(one.step) not in ("complete", "replaced")]
    first = max(0, min(places[0] - 1 if places else len(steps), len(steps) - rows))
    return steps[first : first + rows]


def _with_lanes(view: RunView, rows: int, most: int) -> list[tuple[str, StepView]]:
    steps = tuple(one.step for one in view.steps.values() if state_of(one.step) != "replaced")
    if view.plan is None or not 0 < len(steps) <= rows:
        return []
    try:
        drawn = outline(view.plan.model_copy(update={"steps": steps}))
    except PlanError:
        return []
    return [(lanes, view.steps[step.step_id]) for lanes, step in drawn] if len(drawn[0][0]) <= most else []


def _score(view: RunView, name: str, width: int) -> Text:
    values = [value for scores in view.scores[-3:] if (value := scores[f"{name}_score"]) is not None]
    needed: float | None = getattr(view.thresholds, name) if view.thresholds else None
    value, cells = values[-1] if values else 0.0, max(6, min(24, width - 28))
    style = "green" if needed is None or value >= needed else "yellow"
    full = round(value * cells)
    bar = Text.assemble(("━" * full, style), ("─" * (cells - full), "dim"))
    if needed is not None:
        place = min(cells - 1, round(needed * cells))
        bar = Text.assemble(bar[:place], ("┃", "bold"), bar[place + 1 :])
    earlier = "".join(f"{round_down(one):.2f}{_ARROW}" for one in values[:-1]) if width >= 60 else ""
    least = "" if needed is None else f" of {needed:.2f}"
    latest = (f"{round_down(value):.2f}", f"bold {style}")
    return Text.assemble(f"{name:<13}", bar, " ", (earlier, "dim"), latest, (least, "dim"))
