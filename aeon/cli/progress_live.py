"""A run as a picture that fits the terminal. Pure: a view, a size and a time give what is drawn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from rich.cells import cell_len
from rich.console import Group
from rich.table import Table
from rich.text import Text

from aeon.cli.progress_lines import decisions, facts, headline, notes, notices, step_rows
from aeon.cli.progress_view import SCORES, RunView, StepView, clock, counted, one_line

_STYLES = {
    "complete": "green",
    "running": "bold cyan",
    "blocked": "yellow",
    "failed": "red",
    "invalid": "red",
    "pending": "dim",
    "replaced": "dim",
}
_LEAST_STEPS, _MOST_STEPS = 4, 14
_AROUND_STEPS = 2
_NEXT_PENDING = 2
_BANNER_LINES = 2


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The signs of a terminal: of step states, bars and separators."""

    states: dict[str, str]
    full: str
    empty: str
    dot: str
    arrow: str
    spinner: str


_UNICODE = Glyphs(
    {"complete": "✓", "running": "●", "blocked": "■", "failed": "✗", "invalid": "✗", "pending": "·", "replaced": "↷"},
    "━",
    "─",
    " · ",
    " → ",
    "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏",
)
_ASCII = Glyphs(
    {"complete": "+", "running": ">", "blocked": "!", "failed": "x", "invalid": "x", "pending": ".", "replaced": "-"},
    "#",
    "-",
    ", ",
    " > ",
    "|/-\\",
)


def is_utf(encoding: str) -> bool:
    """Whether an encoding can carry every character."""
    return encoding.lower().replace("-", "").startswith("utf")


def glyphs(encoding: str) -> Glyphs:
    """The signs that an encoding can carry."""
    return _UNICODE if is_utf(encoding) else _ASCII


def picture(view: RunView, now: datetime, width: int, height: int, signs: Glyphs) -> Group:
    """A run as it stands, in at most `height - 1` lines of `width` cells, from 12 lines of 40 cells up.

    Where there is no room for everything, the decisions give way first, then the scores, the notes, and steps.
    """
    above = [*_banner(view, width, most=1)[:_BANNER_LINES], *_head(view, now, width, signs)]
    foot = _foot(view, width, signs)
    room = height - 1 - len(above) - _AROUND_STEPS
    scores, decided = _scores(view, width, signs), _decided(view, width)
    parts = ([*scores, *decided, *foot], [*scores, *foot], foot)
    below = next((part for part in parts if room - len(part) >= _LEAST_STEPS), [])
    rows = max(1, min(room - len(below), _MOST_STEPS))
    return Group(*above, *_steps(view, now, width, rows, signs), *below)


def ending(view: RunView, width: int, signs: Glyphs) -> Group:
    """What stays on the screen when the run is over."""
    good = view.finished is not None and (view.finished.converged or view.finished.termination_reason == "completed")
    sign, style = (signs.states["complete"], "bold green") if good else (signs.states["blocked"], "bold yellow")
    first = Text(f"{sign} {headline(view)}", style)
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, text in [*step_rows(view), *facts(view)]:
        table.add_row(Text(f"  {name}"), Text(text))
    return Group(*_banner(view, width), first, table)


def shown(steps: Iterable[StepView], rows: int) -> list[StepView]:
    """The steps that matter most, in plan order: those that run, have a problem, come next, or ended last."""
    steps = list(steps)
    if len(steps) <= rows:
        return steps
    pending = [view for view in steps if view.state == "pending"]
    upcoming = {view.step.step_id for view in pending[:_NEXT_PENDING]}

    def rank(view: StepView) -> tuple[int, int]:
        if view.state in ("running", "blocked", "failed", "invalid"):
            return (0 if view.state == "running" else 1, 0)
        if view.state == "complete":
            return 3, -view.ended
        return (2 if view.step.step_id in upcoming else 4), 0

    chosen = {view.step.step_id for view in sorted(steps, key=rank)[: rows - 1]}
    return [view for view in steps if view.step.step_id in chosen]


def _banner(view: RunView, width: int, most: int | None = None) -> list[Text]:
    style = "bold black on yellow"
    said = notices(view.synthetic, view.recording)[:most]
    return [Text(f" {part}".ljust(width), style) for line in said for part in _wrapped(line, width - 2)]


def _head(view: RunView, now: datetime, width: int, signs: Glyphs) -> list[Text]:
    elapsed = now - view.started if view.started else timedelta()
    items = [
        f"pass {view.pass_number}" if view.pass_number else "preparing",
        "" if view.recording else clock(elapsed),
        _ttl(view),
        f"{view.tokens:,} tokens" if view.tokens and not view.recording else "",
        counted(len(view.in_flight), "call") + " in flight" if view.in_flight and not view.recording else "",
    ]
    task = _fitted(Text(f"Aeon  {one_line(view.task, 400)}", "bold"), width)
    spinner = signs.spinner[int(elapsed.total_seconds() * 8) % len(signs.spinner)]
    return [task, *_flow(items, signs.dot, width), *_trail(view, spinner, width, signs)]


def _ttl(view: RunView) -> str:
    if view.ttl_remaining is None:
        return ""
    of_all = f" of {view.ttl_allocated}" if view.ttl_allocated is not None else ""
    return f"TTL {view.ttl_remaining}{of_all} left"


def _trail(view: RunView, spinner: str, width: int, signs: Glyphs) -> list[Text]:
    """The phases of this pass and how each stands."""
    marks = {"running": spinner, "done": signs.states["complete"], "skipped": "skipped", "unavailable": "unavailable"}
    phases = [f"{phase.lower().replace('_', '-')} {marks.get(state, state)}" for phase, state in view.trail.items()]
    return [Text(str(line), "cyan") for line in _flow(phases, signs.arrow, width)]


def _steps(view: RunView, now: datetime, width: int, rows: int, signs: Glyphs) -> list[Text | Table]:
    if not view.steps:
        return []
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(width=1, no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=max(8, min(24, width // 3)))
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column(no_wrap=True, justify="right")
    visible = shown(view.steps.values(), rows)
    for step in visible:
        style = _STYLES[step.state]
        name = one_line(step.step.step_id)
        table.add_row(
            Text(signs.states[step.state], style),
            Text(name, style),
            _what(step),
            _time(step, None if view.recording else now),
        )
    return [Text(""), table, _tally(view, len(view.steps) - len(visible), width, signs)]


def _what(view: StepView) -> Text:
    """What a step is about, and what carries it out; a call of a tool that is under way stands out."""
    described = Text(one_line(view.step.description, 200), "dim")
    if view.calling is not None:
        return Text.assemble((f"tool {one_line(view.calling)}", "cyan"), "  ", described)
    return Text(f"[{view.way}] ", "dim").append_text(described) if view.step.tool or view.tool else described


def _tally(view: RunView, hidden: int, width: int, signs: Glyphs) -> Text:
    """How many steps are in each state, in one line: in words where they fit, else in signs."""
    tail = f" ({hidden} not shown)" if hidden else ""
    head = f"  {counted(len(view.steps), 'step')}: "
    words = head + ", ".join(f"{number} {state}" for state, number in view.counts().items()) + tail
    if cell_len(words) > width:
        words = head + " ".join(f"{number}{signs.states[state]}" for state, number in view.counts().items()) + tail
    return _fitted(Text(words, "dim"), width)


def _time(view: StepView, now: datetime | None) -> Text:
    """How long a step takes or took; nothing without a `now`."""
    if now is None:
        return Text("")
    if view.state == "running" and view.started:
        return Text(f"{max(0.0, (now - view.started).total_seconds()):.0f}s", "cyan")
    return Text("" if view.seconds is None or view.state == "pending" else f"{view.seconds:.1f}s", "dim")


def _scores(view: RunView, width: int, signs: Glyphs) -> list[Text]:
    """Each score as a bar, with what it was in the passes before."""
    if not view.scores:
        return []
    cells = max(6, min(24, width - 20))
    rows = [Text("")]
    for name in SCORES:
        values = [scores[f"{name}_score"] for scores in view.scores[-3:]]
        value = values[-1] or 0.0
        full = round(value * cells)
        bar = Text.assemble((signs.full * full, "green"), (signs.empty * (cells - full), "dim"))
        history = signs.arrow.join(f"{earlier:.2f}" for earlier in values[:-1] if earlier is not None)
        row = Text.assemble(f"{name:<13}", bar, f" {value:.2f}")
        before = Text(f"  from {history}" if history else "", "dim")
        rows.append(row.append_text(before) if row.cell_len + before.cell_len <= width else _fitted(row, width))
    return rows


def _decided(view: RunView, width: int) -> list[Text]:
    """What became of the latest assessment and refinement, each on a line."""
    return [_fitted(Text(line, "dim"), width) for line in decisions(view)]


def _foot(view: RunView, width: int, signs: Glyphs) -> list[Text]:
    said = _flow(notes(view), signs.dot, width)
    last = [_fitted(Text(one_line(view.note, 400), "yellow"), width)] if view.note else []
    return [Text(""), *said, *last] if said or last else []


def _flow(items: Iterable[str], separator: str, width: int) -> list[Text]:
    """Items side by side, on as many lines as they need."""
    lines: list[str] = []
    for item in filter(None, items):
        if lines and cell_len(lines[-1] + separator + item) <= width:
            lines[-1] += separator + item
        else:
            lines.append(item)
    return [_fitted(Text(line), width) for line in lines]


def _fitted(text: Text, width: int) -> Text:
    text.truncate(width, overflow="ellipsis")
    return text


def _wrapped(line: str, width: int) -> list[str]:
    return [str(text) for text in _flow(line.split(" "), " ", width)]
