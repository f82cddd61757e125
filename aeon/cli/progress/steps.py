"""The steps of a run as rows of its picture: lanes of dependencies, state, name, description, duration."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from aeon.cli.progress.dag import NODE, outline
from aeon.cli.progress.fitting import fit
from aeon.cli.progress.view import RunView, StepView
from aeon.cli.terminal.glyphs import STATES
from aeon.cli.terminal.text import count_noun, one_line
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
_URGENCY = {"running": 0, "blocked": 1, "failed": 1, "invalid": 1, "complete": 3, "pending": 4, "replaced": 4}
_NEXT, _NEXT_URGENCY = 2, 2


def step_table(view: RunView, now: datetime, width: int, rows: int) -> list[Text | Table]:
    """The steps in at most `rows` rows, and a line that counts them; nothing before there is a plan."""
    if not view.steps:
        return []
    visible = _with_lanes(view, rows, width // 4) or [(NODE, one) for one in select_steps(view.steps.values(), rows)]
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=max(8, min(24, width // 3)))
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column(no_wrap=True, justify="right")
    for lanes, step in visible:
        before, _, after = lanes.partition(NODE)
        style = _STYLES[step.state]
        marked = Text.assemble((before, "dim"), (STATES[step.state], style), (after, "dim"))
        duration = Text("") if view.recording else _duration(step, now)
        table.add_row(marked, Text(one_line(step.step.step_id), style), _description(step), duration)
    return [Text(""), table, _tally(view, len(view.steps) - len(visible), width)]


def select_steps(steps: Iterable[StepView], rows: int) -> list[StepView]:
    """The steps that matter most, in plan order: those that run, have a problem, come next, or ended last."""
    steps = list(steps)
    if len(steps) <= rows:
        return steps
    upcoming = {one.step.step_id for one in [one for one in steps if one.state == "pending"][:_NEXT]}

    def rank(one: StepView) -> tuple[int, int]:
        return _NEXT_URGENCY if one.step.step_id in upcoming else _URGENCY[one.state], -one.ended

    chosen = {one.step.step_id for one in sorted(steps, key=rank)[: rows - 1]}
    return [one for one in steps if one.step.step_id in chosen]


def _with_lanes(view: RunView, rows: int, most: int) -> list[tuple[str, StepView]]:
    """The steps with their lanes, without those that others have replaced; none where they do not all fit."""
    steps = tuple(one.step for one in view.steps.values() if one.state != "replaced")
    if view.plan is None or not 0 < len(steps) <= rows:
        return []
    try:
        drawn = outline(view.plan.model_copy(update={"steps": steps}))
    except PlanError:
        return []
    return [(lanes, view.steps[step.step_id]) for lanes, step in drawn] if cell_len(drawn[0][0]) <= most else []


def _description(view: StepView) -> Text:
    """The description of a step, after the tool that is being called for it or carried it out."""
    described = Text(one_line(view.step.description, 200), "dim")
    if view.calling is not None:
        return Text.assemble((f"tool {one_line(view.calling)}", "cyan"), "  ", described)
    return Text(f"[{view.way}] ", "dim").append_text(described) if view.step.tool or view.tool else described


def _tally(view: RunView, hidden: int, width: int) -> Text:
    """The number of steps in each state, in words where they fit in a line, else in signs."""
    tail = f" ({hidden} not shown)" if hidden else ""
    head, counts = f"  {count_noun(len(view.steps), 'step')}: ", view.counts().items()
    words = head + ", ".join(f"{number} {state}" for state, number in counts) + tail
    signs = head + " ".join(f"{number}{STATES[state]}" for state, number in counts) + tail
    return fit(words if cell_len(words) <= width else signs, width, "dim")


def _duration(view: StepView, now: datetime) -> Text:
    if view.state == "running" and view.started:
        return Text(f"{max(0.0, (now - view.started).total_seconds()):.0f}s", "cyan")
    return Text("" if view.seconds is None or view.state == "pending" else f"{view.seconds:.1f}s", "dim")
