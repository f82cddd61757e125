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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len, set_cell_size

from aeon.cli.terminal.text import one_line
from aeon.domain.graph import layers
from aeon.domain.plan import Plan, PlanStep

_UNICODE = {
    "llm": "●",
    "tool": "■",
    "down": "│",
    "across": "─",
    "left": "├",
    "left_end": "╰",
    "right": "┤",
    "right_end": "╯",
    "join": "┼",
    "join_end": "┴",
    "more": "…",
    "needs": "←",
}
_ASCII = {
    "llm": "o",
    "tool": "#",
    "down": "|",
    "across": "-",
    "left": "+",
    "left_end": "`",
    "right": "+",
    "right_end": "'",
    "join": "+",
    "join_end": "^",
    "more": "~",
    "needs": "<-",
}
_LEAST_LABEL = 36
_LONGEST_ID = 24


def draw(plan: Plan, *, width: int = 80, ascii_only: bool = False) -> str:
    """The plan as text, no line wider than `width` columns (at least 40), a legend last.

    Layers are numbered; a step depends on steps of earlier layers alone. Plans that need more lanes than fit have their
    dependencies named in place of drawn. Raises PlanError when the dependencies form a cycle.
    """
    glyphs = _ASCII if ascii_only else _UNICODE
    width = max(40, width)
    layered = [[plan.step(step_id) for step_id in layer] for layer in layers(plan)]
    room = width - _LEAST_LABEL - len(str(len(layered))) - 3
    for gap in (2, 1):
        picture = _Lanes(plan, glyphs, gap)
        rows = picture.rows(layered)
        if picture.width <= room:
            return _text(rows, layered, picture.width, width, glyphs)
    return _text(_named(layered, glyphs), layered, 1, width, glyphs)


NODE = "\0"


def outline(plan: Plan, *, ascii_only: bool = False) -> list[tuple[str, PlanStep]]:
    """The steps layer by layer, each with its lanes, in which `NODE` stands for the step itself; as wide as the widest.

    Raises PlanError when the dependencies form a cycle.
    """
    glyphs = {**(_ASCII if ascii_only else _UNICODE), "llm": NODE, "tool": NODE}
    picture = _Lanes(plan, glyphs, gap=2)
    rows = picture.rows([[plan.step(step_id) for step_id in layer] for layer in layers(plan)])
    return [(f"{row.lanes:<{picture.width}}", row.step) for row in rows if row.step is not None]


@dataclass(frozen=True, slots=True)
class _Row:
    """A line: the lanes, and the step on it with its layer's number where the layer begins."""

    lanes: str
    step: PlanStep | None = None
    layer: int | None = None
    needs: str = ""


@dataclass
class _Lanes:
    """The lanes while the steps are drawn. `columns` holds the step whose output each lane carries."""

    plan: Plan
    glyphs: Mapping[str, str]
    gap: int
    columns: list[str | None] = field(default_factory=list)
    width: int = 0

    def rows(self, layered: Sequence[Sequence[PlanStep]]) -> list[_Row]:
        """A row for each step, and one between layers."""
        known = {step.step_id for step in self.plan.steps}
        waiting = {one: sum(one in step.dependencies for step in self.plan.steps) for one in known}
        rows: list[_Row] = []
        for number, layer in enumerate(layered, start=1):
            if number > 1:
                rows.append(_Row(self._passing()))
            for place, step in enumerate(layer):
                needed = [d for d in dict.fromkeys(step.dependencies) if d in known]
                for dependency in needed:
                    waiting[dependency] -= 1
                ending = {d for d in needed if not waiting[d]}
                lanes = self._step(step, needed, ending, awaited=waiting[step.step_id] > 0)
                rows.append(_Row(lanes, step, None if place else number))
        return rows

    def _step(self, step: PlanStep, needed: Sequence[str], ending: set[str], *, awaited: bool) -> str:
        joined = {self.columns.index(dependency) for dependency in needed}
        ended = {self.columns.index(dependency) for dependency in ending}
        column = min(ended) if ended else self._free()
        cells = self._cells(column, joined, ended, self.glyphs["tool" if step.tool else "llm"])
        for one in ended:
            self.columns[one] = None
        self.columns[column] = step.step_id if awaited else None
        while self.columns and self.columns[-1] is None:
            self.columns.pop()
        return self._noted(cells)

    def _free(self) -> int:
        if None not in self.columns:
            self.columns.append(None)
        return self.columns.index(None)

    def _cells(self, column: int, joined: set[int], ended: set[int], node: str) -> str:
        first, last = min({column, *joined}), max({column, *joined})
        text = ""
        for place, lane in enumerate(self.columns):
            inside = first <= place <= last
            if place == column:
                text += node
            elif place in joined:
                side = "left" if place == first else "right" if place == last else "join"
                text += self.glyphs[f"{side}_end" if place in ended else side]
            elif lane is not None:
                text += self.glyphs["down"]
            else:
                text += self.glyphs["across"] if inside else " "
            text += (self.glyphs["across"] if first <= place < last else " ") * (self.gap - 1)
        return text

    def _passing(self) -> str:
        blank = " " * (self.gap - 1)
        return self._noted("".join((" " if lane is None else self.glyphs["down"]) + blank for lane in self.columns))

    def _noted(self, text: str) -> str:
        text = text.rstrip()
        self.width = max(self.width, len(text))
        return text


def _named(layered: Sequence[Sequence[PlanStep]], glyphs: Mapping[str, str]) -> list[_Row]:
    """The steps with what they depend on in words."""
    rows: list[_Row] = []
    for number, layer in enumerate(layered, start=1):
        rows += [_Row("")] if number > 1 else []
        for place, step in enumerate(layer):
            needs = f"{glyphs['needs']} {', '.join(step.dependencies)}" if step.dependencies else ""
            rows.append(_Row(glyphs["tool" if step.tool else "llm"], step, None if place else number, needs))
    return rows


def _text(
    rows: Sequence[_Row], layered: Sequence[Sequence[PlanStep]], lanes: int, width: int, glyphs: Mapping[str, str]
) -> str:
    numbers = len(str(len(layered)))
    ids = [one_line(step.step_id) for layer in layered for step in layer]
    id_width = min(_LONGEST_ID, max(map(cell_len, ids), default=0))
    lines = []
    for row in rows:
        line = f"{row.layer or '':>{numbers}}  {row.lanes:<{lanes}}"
        if row.step is not None:
            name = _fitted(one_line(row.step.step_id), id_width, glyphs)
            tool = f"[{row.step.tool}] " if row.step.tool else ""
            label = one_line(row.needs or f"{tool}{row.step.description}")
            line = f"{line}  {name}  {_cut(label, width - cell_len(line) - id_width - 4, glyphs)}"
        lines.append(line.rstrip())
    return "\n".join((*lines, "", _legend(layered, glyphs)))


def _legend(layered: Sequence[Sequence[PlanStep]], glyphs: Mapping[str, str]) -> str:
    steps = [step for layer in layered for step in layer]
    said = [
        f"{glyphs['llm']} done by the model" if any(not step.tool for step in steps) else "",
        f"{glyphs['tool']} done by a tool" if any(step.tool for step in steps) else "",
    ]
    return "   ".join(part for part in said if part)


def _fitted(text: str, width: int, glyphs: Mapping[str, str]) -> str:
    """The text in exactly so many columns; wide characters count two."""
    return set_cell_size(_cut(text, width, glyphs), width)


def _cut(text: str, width: int, glyphs: Mapping[str, str]) -> str:
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(0, width - 1)).rstrip() + glyphs["more"] if width > 0 else ""
