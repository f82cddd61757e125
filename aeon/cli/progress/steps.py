"""The steps of a run as rows of its picture: lanes of dependencies, state, name, what it is about, how long it took."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from aeon.cli.progress.dag import NODE, outline
from aeon.cli.progress.fitting import fitted
from aeon.cli.progress.view import RunView, StepView
from aeon.cli.terminal.glyphs import Glyphs
from aeon.cli.terminal.text import counted, one_line
from aeon.domain.errors import PlanError

_STYLES = {
    "complete": "green",
    "running": "bold cyan",
    "blocked": "yellow",
    "failed": "red",
    "invalid": "red",
    "pending": "dim",
    "replaced": "dim",
}
_NEXT_PENDING = 2


def step_table(view: RunView, now: datetime, width: int, rows: int, signs: Glyphs) -> list[Text | Table]:
    """The steps in at most `rows` rows, and a line that counts them; nothing before there is a plan."""
    if not view.steps:
        return []
    visible = _laned(view, rows, width // 4, signs) or [(NODE, step) for step in shown(view.steps.values(), rows)]
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=max(8, min(24, width // 3)))
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column(no_wrap=True, justify="right")
    for lanes, step in visible:
        name = Text(one_line(step.step.step_id), _STYLES[step.state])
        table.add_row(_marked(lanes, step, signs), name, _what(step), _time(step, None if view.recording else now))
    return [Text(""), table, _tally(view, len(view.steps) - len(visible), width, signs)]


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


def _laned(view: RunView, rows: int, most: int, signs: Glyphs) -> list[tuple[str, StepView]]:
    """The steps with their lanes, without those that others have replaced; none where they do not all fit."""
    kept = [step.step for step in view.steps.values() if step.state != "replaced"]
    if view.plan is None or not kept or len(kept) > rows:
        return []
    try:
        drawn = outline(view.plan.model_copy(update={"steps": tuple(kept)}), ascii_only=signs.ascii_only)
    except PlanError:
        return []
    return [(lanes, view.steps[step.step_id]) for lanes, step in drawn] if cell_len(drawn[0][0]) <= most else []


def _marked(lanes: str, step: StepView, signs: Glyphs) -> Text:
    before, _, after = lanes.partition(NODE)
    return Text.assemble((before, "dim"), (signs.states[step.state], _STYLES[step.state]), (after, "dim"))


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
    return fitted(Text(words, "dim"), width)


def _time(view: StepView, now: datetime | None) -> Text:
    """How long a step takes or took; nothing without a `now`."""
    if now is None:
        return Text("")
    if view.state == "running" and view.started:
        return Text(f"{max(0.0, (now - view.started).total_seconds()):.0f}s", "cyan")
    return Text("" if view.seconds is None or view.state == "pending" else f"{view.seconds:.1f}s", "dim")
