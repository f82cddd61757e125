"""A run as a picture that fits the terminal. Pure: a view, a size and a time give the picture."""

from __future__ import annotations

from datetime import datetime, timedelta

from rich.console import Group
from rich.table import Table
from rich.text import Text

from aeon.cli.progress.fitting import fit, flow, wrap_line
from aeon.cli.progress.steps import step_table
from aeon.cli.progress.view import SCORES, RunView
from aeon.cli.progress.words import cut_short, decisions, notes, notices, open_questions, remarks, step_rows, stopping
from aeon.cli.terminal.glyphs import SPINNER, STATES
from aeon.cli.terminal.text import format_clock, one_line, round_down

_LEAST_STEPS, _MOST_STEPS = 4, 14
_AROUND_STEPS = 2
_BANNER_LINES = 2
_QUESTIONS, _QUESTION_LINES = 3, 3
_LEAST_OUTPUT, _OUTPUT_TEXT = 3, 8000
_DOT, _ARROW = " · ", " → "


def picture(view: RunView, now: datetime, width: int, height: int) -> Group:
    """A run as it stands, in at most `height - 1` lines of `width` cells, from 12 lines of 40 cells up.

    Where there is no room for everything, the newest output gives way first, then the questions, the decisions, the
    scores, the notes, and steps.
    """
    above = [*_banner(view, width, most=1)[:_BANNER_LINES], *_head(view, now, width)]
    room = height - 1 - len(above) - _AROUND_STEPS
    scores, decided, foot = _scores(view, width), _decisions(view, width), _foot(view, width)
    choices = ([*scores, *decided, *_questions(view, width), *foot], [*scores, *decided, *foot], [*scores, *foot], foot)
    below = next((lines for lines in choices if room - len(lines) >= _LEAST_STEPS), [])
    rows = max(1, min(room - len(below), _MOST_STEPS))
    free = room - len(below) - min(rows, len(view.steps))
    return Group(*above, *step_table(view, now, width, rows), *below, *_output(view, width, free))


def trace(view: RunView, width: int) -> Group:
    """The lines that replace the picture of a run that is over: outputs of steps, notes and advisories."""
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, text in [*(step_rows(view) if view.newest else []), *remarks(view)]:
        table.add_row(Text(f"  {name}"), Text(text))
    first = [] if view.finished or not view.newest else [Text(cut_short(view), "bold yellow")]
    return Group(*_banner(view, width), *first, *([table] if table.row_count else []))


def _banner(view: RunView, width: int, most: int | None = None) -> list[Text]:
    parts = [part for line in notices(view.synthetic, view.recording)[:most] for part in wrap_line(line, width - 2)]
    return [Text(f" {part}".ljust(width), "bold black on yellow") for part in parts]


def _head(view: RunView, now: datetime, width: int) -> list[Text]:
    elapsed = now - view.started if view.started else timedelta()
    items = [f"pass {view.pass_number}" if view.pass_number else "preparing", _cycles(view)]
    if not view.recording:
        items.insert(1, format_clock(elapsed))
        items.append(f"{view.tokens:,} tokens" if view.tokens else "")
        items.append(f"cost {view.cost:.4f}" if view.cost else "")
        items.append(f"{len(view.in_flight)} in flight" if view.in_flight else "")
    spinner = SPINNER[int(elapsed.total_seconds() * 8) % len(SPINNER)]
    marks = {"running": spinner, "done": STATES["complete"]}
    phases = [f"{phase.lower().replace('_', '-')} {marks.get(state, state)}" for phase, state in view.trail.items()]
    return [
        fit(f"Aeon  {one_line(view.task, 400)}", width, "bold"),
        *flow(items, _DOT, width),
        *flow(phases, _ARROW, width, "cyan"),
        *_stopping(view, now, width),
    ]


def _cycles(view: RunView) -> str:
    if view.ttl_remaining is None:
        return ""
    if view.ttl_allocated is None:
        return f"TTL {view.ttl_remaining} left"
    expected = f", about {view.expected} expected" if view.expected else ""
    return f"{view.ttl_allocated - view.ttl_remaining} of {view.ttl_allocated} cycles{expected}"


def _stopping(view: RunView, now: datetime, width: int) -> list[Text]:
    if view.stopped is None:
        return []
    left = max(0.0, view.conditions.grace_seconds - (now - view.stopped).total_seconds())
    return [Text(part, "bold yellow") for line in stopping(view, left) for part in wrap_line(line, width, most=3)]


def _scores(view: RunView, width: int) -> list[Text]:
    """Each score as a bar with its threshold on it, after its values of the passes before."""
    return [Text(""), *(_score(view, name, width) for name in SCORES)] if view.scores else []


def _score(view: RunView, name: str, width: int) -> Text:
    values = [value for scores in view.scores[-3:] if (value := scores[f"{name}_score"]) is not None]
    thresholds = view.conditions.thresholds
    needed: float | None = getattr(thresholds, name) if thresholds else None
    value, cells = values[-1] if values else 0.0, max(6, min(24, width - 28))
    style = "green" if needed is None or value >= needed else "yellow"
    head = Text(f"{name:<13}").append_text(_bar(value, needed, cells, style)).append(" ")
    earlier = Text("".join(f"{round_down(one):.2f}{_ARROW}" for one in values[:-1]), "dim")
    bar = "" if needed is None else f" of {needed:.2f}"
    latest = Text.assemble((f"{round_down(value):.2f}", f"bold {style}"), (bar, "dim"))
    whole = Text.assemble(head, earlier, latest)
    return whole if whole.cell_len <= width else fit(Text.assemble(head, latest), width)


def _bar(value: float, needed: float | None, cells: int, style: str) -> Text:
    full = round(value * cells)
    bar = Text.assemble(("━" * full, style), ("─" * (cells - full), "dim"))
    if needed is None:
        return bar
    place = min(cells - 1, round(needed * cells))
    return Text.assemble(bar[:place], ("┃", "bold"), bar[place + 1 :])


def _decisions(view: RunView, width: int) -> list[Text]:
    lines = [fit(line, width, "dim") for line in decisions(view)]
    return lines if view.scores or not lines else [Text(""), *lines]


def _questions(view: RunView, width: int) -> list[Text]:
    latest = open_questions(view.questions)[-_QUESTIONS:]
    return [Text(part, "cyan") for one in latest for part in wrap_line(f"? {one}", width, most=_QUESTION_LINES)]


def _foot(view: RunView, width: int) -> list[Text]:
    lines = flow(notes(view), _DOT, width)
    lines += [fit(one_line(view.note, 400), width, "yellow")] if view.note else []
    return [Text(""), *lines] if lines else []


def _output(view: RunView, width: int, free: int) -> list[Text]:
    """The beginning of the newest output, in the room that is left; nothing where that is too little."""
    if view.newest is None or free < _LEAST_OUTPUT + 2:
        return []
    text = (view.newest.step_output or "")[:_OUTPUT_TEXT]
    lines = [part for line in text.splitlines() for part in wrap_line(one_line(line), width - 2)]
    if len(lines) > free - 2:
        lines = [*lines[: free - 3], "..."]
    title = fit(f"newest output: {one_line(view.newest.step_id)}", width, "bold dim")
    return [Text(""), title, *(Text(f"  {line}", "dim") for line in lines)]
