"""A run as a picture that fits the terminal. Pure: a view, a size and a time give what is drawn."""

from __future__ import annotations

from datetime import datetime, timedelta

from rich.console import Group
from rich.table import Table
from rich.text import Text

from aeon.cli.progress.fitting import fitted, flow, wrapped
from aeon.cli.progress.steps import step_table
from aeon.cli.progress.view import SCORES, RunView
from aeon.cli.progress.words import cut_short, decisions, notes, notices, open_questions, remarks, step_rows, stopping
from aeon.cli.terminal.glyphs import Glyphs
from aeon.cli.terminal.text import clock, one_line, rounded_down
from aeon.domain.assessment import ConvergenceThresholds

_LEAST_STEPS, _MOST_STEPS = 4, 14
_AROUND_STEPS = 2
_BANNER_LINES = 2
_QUESTIONS, _QUESTION_LINES = 3, 3
_LEAST_OUTPUT, _OUTPUT_TEXT = 3, 8000


def picture(view: RunView, now: datetime, width: int, height: int, signs: Glyphs) -> Group:
    """A run as it stands, in at most `height - 1` lines of `width` cells, from 12 lines of 40 cells up.

    Where there is no room for everything, the newest output gives way first, then the questions, the decisions, the
    scores, the notes, and steps.
    """
    above = [*_banner(view, width, most=1)[:_BANNER_LINES], *_head(view, now, width, signs)]
    room = height - 1 - len(above) - _AROUND_STEPS
    scores, decided, foot = _scores(view, width, signs), _decided(view, width), _foot(view, width, signs)
    asked = _questions(view, width)
    parts = ([*scores, *decided, *asked, *foot], [*scores, *decided, *foot], [*scores, *foot], foot)
    below = next((part for part in parts if room - len(part) >= _LEAST_STEPS), [])
    rows = max(1, min(room - len(below), _MOST_STEPS))
    steps = step_table(view, now, width, rows, signs)
    free = room - len(below) - min(rows, len(view.steps))
    return Group(*above, *steps, *below, *_output(view, width, free))


def trace(view: RunView, width: int) -> Group:
    """What stays on the screen of a run that is over: what its steps gave, and what went on beside them."""
    first = [] if view.finished or not view.newest else [Text(cut_short(view), "bold yellow")]
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, text in [*(step_rows(view) if view.newest else []), *remarks(view)]:
        table.add_row(Text(f"  {name}"), Text(text))
    return Group(*_banner(view, width), *first, *([table] if table.row_count else []))


def _banner(view: RunView, width: int, most: int | None = None) -> list[Text]:
    style = "bold black on yellow"
    said = notices(view.synthetic, view.recording)[:most]
    return [Text(f" {part}".ljust(width), style) for line in said for part in wrapped(line, width - 2)]


def _head(view: RunView, now: datetime, width: int, signs: Glyphs) -> list[Text]:
    elapsed = now - view.started if view.started else timedelta()
    items = [
        f"pass {view.pass_number}" if view.pass_number else "preparing",
        "" if view.recording else clock(elapsed),
        *_cycles(view),
        f"{view.tokens:,} tokens" if view.tokens and not view.recording else "",
        f"cost {view.cost:.4f}" if view.cost and not view.recording else "",
        f"{len(view.in_flight)} in flight" if view.in_flight and not view.recording else "",
    ]
    task = fitted(Text(f"Aeon  {one_line(view.task, 400)}", "bold"), width)
    spinner = signs.spinner[int(elapsed.total_seconds() * 8) % len(signs.spinner)]
    return [task, *flow(items, signs.dot, width), *_trail(view, spinner, width, signs), *_stopping(view, now, width)]


def _cycles(view: RunView) -> list[str]:
    if view.ttl_remaining is None:
        return []
    if view.ttl_allocated is None:
        return [f"TTL {view.ttl_remaining} left"]
    used = f"{view.ttl_allocated - view.ttl_remaining} of {view.ttl_allocated} cycles"
    return [f"{used}, about {view.expected} expected" if view.expected else used]


def _trail(view: RunView, spinner: str, width: int, signs: Glyphs) -> list[Text]:
    """The phases of this pass and how each stands."""
    marks = {"running": spinner, "done": signs.states["complete"], "skipped": "skipped", "unavailable": "unavailable"}
    phases = [f"{phase.lower().replace('_', '-')} {marks.get(state, state)}" for phase, state in view.trail.items()]
    return [Text(str(line), "cyan") for line in flow(phases, signs.arrow, width)]


def _stopping(view: RunView, now: datetime, width: int) -> list[Text]:
    if view.stopped is None:
        return []
    left = max(0.0, view.conditions.grace_seconds - (now - view.stopped).total_seconds())
    return [Text(part, "bold yellow") for line in stopping(view, left) for part in wrapped(line, width, most=3)]


def _scores(view: RunView, width: int, signs: Glyphs) -> list[Text]:
    """Each score as a bar with its threshold on it, and what it was in the passes before, in the order of time."""
    if not view.scores:
        return []
    return [Text(""), *(_score(view, name, width, signs) for name in SCORES)]


def _score(view: RunView, name: str, width: int, signs: Glyphs) -> Text:
    values = [value for scores in view.scores[-3:] if (value := scores[f"{name}_score"]) is not None]
    needed = _needed(view.conditions.thresholds, name)
    value, cells = values[-1] if values else 0.0, max(6, min(24, width - 28))
    style = "green" if needed is None or value >= needed else "yellow"
    head = Text(f"{name:<13}").append_text(_bar(value, needed, cells, style, signs)).append(" ")
    latest = Text(f"{rounded_down(value):.2f}", f"bold {style}")
    before = Text("".join(f"{rounded_down(earlier):.2f}{signs.arrow}" for earlier in values[:-1]), "dim")
    bar = "" if needed is None else f" of {needed:.2f}"
    whole = Text.assemble(head, before, latest, (bar, "dim"))
    return whole if whole.cell_len <= width else fitted(Text.assemble(head, latest, (bar, "dim")), width)


def _bar(value: float, needed: float | None, cells: int, style: str, signs: Glyphs) -> Text:
    full = round(value * cells)
    bar = Text.assemble((signs.full * full, style), (signs.empty * (cells - full), "dim"))
    if needed is None:
        return bar
    place = min(cells - 1, round(needed * cells))
    return Text.assemble(bar[:place], (signs.bar, "bold"), bar[place + 1 :])


def _needed(thresholds: ConvergenceThresholds | None, name: str) -> float | None:
    return None if thresholds is None else float(getattr(thresholds, name))


def _decided(view: RunView, width: int) -> list[Text]:
    """What became of the latest assessment and refinement, each on a line."""
    said = [fitted(Text(line, "dim"), width) for line in decisions(view)]
    return said if view.scores or not said else [Text(""), *said]


def _questions(view: RunView, width: int) -> list[Text]:
    """The latest questions that nobody has answered, whole where they are not long."""
    asked = open_questions(view.questions)[-_QUESTIONS:]
    return [Text(part, "cyan") for one in asked for part in wrapped(f"? {one}", width, most=_QUESTION_LINES)]


def _foot(view: RunView, width: int, signs: Glyphs) -> list[Text]:
    said = flow(notes(view), signs.dot, width)
    last = [fitted(Text(one_line(view.note, 400), "yellow"), width)] if view.note else []
    return [Text(""), *said, *last] if said or last else []


def _output(view: RunView, width: int, free: int) -> list[Text]:
    """The beginning of what a step gave last, in the room that is left; nothing where that is too little."""
    if view.newest is None or free < _LEAST_OUTPUT + 2:
        return []
    text = (view.newest.step_output or "")[:_OUTPUT_TEXT]
    lines = [part for line in text.splitlines() for part in wrapped(one_line(line), width - 2)]
    most = free - 2
    kept = lines if len(lines) <= most else [*lines[: most - 1], "..."]
    title = fitted(Text(f"newest output: {one_line(view.newest.step_id)}", "bold dim"), width)
    return [Text(""), title, *(Text(f"  {line}", "dim") for line in kept)]
