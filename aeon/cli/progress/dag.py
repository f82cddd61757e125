"""A plan's dependencies drawn as text, top to bottom: a line a step, a lane for each output that is still awaited.

    1  ■    read     [read_file] Read the report
       │
    2  ├─●  facts    List the facts
       ● │  claims   List the claims
       │ │
    3  ●─╯  compare  Compare them

A step stands where its own lane begins; the lanes it depends on reach it sideways, or from straight above. A lane ends
with the last step that needs it. `┼` and `┴` join, `─│─` passes by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len, set_cell_size

from aeon.cli.terminal.glyphs import to_ascii
from aeon.cli.terminal.text import one_line, tool_label
from aeon.domain.graph import layers
from aeon.domain.plan import Plan, PlanStep

NODE = "\0"
_MODEL, _TOOL = "●", "■"
_LEAST_LABEL = 36
_LONGEST_ID = 24


@dataclass(frozen=True, slots=True)
class _Row:
    """A line: the lanes, and the step on it with its layer's number where the layer begins."""

    lanes: str
    step: PlanStep | None = None
    layer: int | None = None


def draw(plan: Plan, *, width: int = 80, ascii_only: bool = False) -> str:
    """The plan as text, no line wider than `width` columns (at least 40), a legend last.

    Layers are numbered; a step depends on steps of earlier layers alone. The dependencies of a plan that needs more
    lanes than fit are named instead. Raises PlanError when the dependencies form a cycle.
    """
    width = max(40, width)
    layered = _layered(plan)
    room = width - _LEAST_LABEL - len(str(len(layered))) - 3
    rows: list[_Row] = []
    for gap in (2, 1, 0):
        rows = _rows(layered, gap)
        if _width(rows) <= room:
            break
    steps = [step for layer in layered for step in layer]
    signs = ((_MODEL, "done by the model", False), (_TOOL, "done by a tool", True))
    legend = [f"{sign} {words}" for sign, words, tool in signs if any(bool(step.tool) is tool for step in steps)]
    text = "\n".join((*_labelled(rows, width, named=not gap), "", "   ".join(legend)))
    return to_ascii(text) if ascii_only else text


def outline(plan: Plan) -> list[tuple[str, PlanStep]]:
    """The steps layer by layer, each with its lanes, in which `NODE` stands for the step itself; as wide as the widest.

    Raises PlanError when the dependencies form a cycle.
    """
    rows = _rows(_layered(plan), gap=2)
    lanes = [(row.lanes.replace(_MODEL, NODE).replace(_TOOL, NODE), row.step) for row in rows]
    return [(f"{text:<{_width(rows)}}", step) for text, step in lanes if step is not None]


def _layered(plan: Plan) -> list[list[PlanStep]]:
    return [[plan.step(step_id) for step_id in layer] for layer in layers(plan)]


def _width(rows: Sequence[_Row]) -> int:
    return max((len(row.lanes) for row in rows), default=0)


def _rows(layered: Sequence[Sequence[PlanStep]], gap: int) -> list[_Row]:
    """A row for each step, and one between layers; lanes are `gap` columns apart, none are drawn when it is 0."""
    lanes = _Lanes(layered, gap)
    rows: list[_Row] = []
    for number, layer in enumerate(layered, start=1):
        rows += [_Row(lanes.draw_passing())] if number > 1 else []
        rows += [_Row(lanes.draw_step(step), step, None if place else number) for place, step in enumerate(layer)]
    return rows


@dataclass
class _Lanes:
    """The lanes while the steps are drawn. `columns` holds the step whose output each lane carries, `waiting` how many
    steps still need that of each."""

    layered: Sequence[Sequence[PlanStep]]
    gap: int
    columns: list[str | None] = field(default_factory=list)
    waiting: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        steps = [step for layer in self.layered for step in layer]
        self.waiting = {one.step_id: sum(one.step_id in step.dependencies for step in steps) for one in steps}

    def draw_step(self, step: PlanStep) -> str:
        node = _TOOL if step.tool else _MODEL
        if not self.gap:
            return node
        needed = [one for one in dict.fromkeys(step.dependencies) if one in self.waiting]
        for one in needed:
            self.waiting[one] -= 1
        joined = {self.columns.index(one) for one in needed}
        ended = {self.columns.index(one) for one in needed if not self.waiting[one]}
        column = min(ended) if ended else self._free_column()
        text = self._cells(column, joined, ended, node)
        for place in ended:
            self.columns[place] = None
        self.columns[column] = step.step_id if self.waiting[step.step_id] else None
        while self.columns and self.columns[-1] is None:
            self.columns.pop()
        return text.rstrip()

    def draw_passing(self) -> str:
        return "".join((" " if lane is None else "│").ljust(self.gap) for lane in self.columns).rstrip()

    def _free_column(self) -> int:
        if None not in self.columns:
            self.columns.append(None)
        return self.columns.index(None)

    def _cells(self, column: int, joined: set[int], ended: set[int], node: str) -> str:
        first, last = min({column, *joined}), max({column, *joined})
        text = ""
        for place, lane in enumerate(self.columns):
            if place == column:
                text += node
            elif place in joined:
                sides = "╰╯┴" if place in ended else "├┤┼"
                text += sides[0 if place == first else 1 if place == last else 2]
            elif lane is not None:
                text += "│"
            else:
                text += "─" if first <= place <= last else " "
            text += ("─" if first <= place < last else " ") * (self.gap - 1)
        return text


def _labelled(rows: Sequence[_Row], width: int, *, named: bool) -> list[str]:
    """The rows as lines, each with the step's id and its description, or with the ids it depends on where `named`."""
    numbers = len(str(max((row.layer or 0 for row in rows), default=0)))
    ids = min(_LONGEST_ID, max((cell_len(one_line(row.step.step_id)) for row in rows if row.step), default=0))
    lanes = _width(rows)
    lines = []
    for row in rows:
        line = f"{row.layer or '':>{numbers}}  {row.lanes:<{lanes}}"
        if row.step is not None:
            step_id = set_cell_size(_cut(one_line(row.step.step_id), ids), ids)
            label = tool_label(row.step.tool) + row.step.description
            if named and row.step.dependencies:
                label = f"← {', '.join(row.step.dependencies)}"
            line = f"{line}  {step_id}  {_cut(one_line(label), width - cell_len(line) - ids - 4)}"
        lines.append(line.rstrip())
    return lines


def _cut(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(0, width - 1)).rstrip() + "…" if width > 0 else ""
