"""A plan's dependencies drawn as text, top to bottom: a line a step, a lane for each output that is
still awaited.

    1  ■    read     [read_file] Read the report
       │
    2  ├─●  facts    List the facts
       ● │  claims   List the claims
       │ │
    3  ●─╯  compare  Compare them

A lane ends with the last step that needs it. `┼` and `┴` join, `─│─` passes by."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.text import Text

from aeon.domain.graph import layers
from aeon.domain.plan import Plan, PlanStep
from aeon.report.words import label_worker, one_line, to_ascii

NODE = "\0"
_MODEL = "●"
_TOOL = "■"
_PERSON = "◆"
_LEAST_LABEL = 36
_LONGEST_ID = 24
_WIDEST = 120


def draw(plan: Plan, *, width: int = 0, ascii_only: bool = False) -> str:
    """Return the plan as text, no line wider than `width` columns (at least 40; 0: the terminal's,
    at most 120), its layers numbered, a legend last. Dependencies that need too many lanes are
    named instead. Raises PlanError when they form a cycle."""
    width = max(40, width or min(_WIDEST, shutil.get_terminal_size((80, 24)).columns))
    rows = _rows(plan)
    lanes = max((len(text) for text, _, _ in rows), default=0)
    named = lanes > width - _LEAST_LABEL - 4
    if named:
        lanes = 1
        rows = [(NODE, step, number) for _, step, number in rows if step]
    longest = max((cell_len(one_line(step.step_id)) for step in plan.steps), default=0)
    digits = len(str(len(plan.steps)))
    lines = []
    for text, step, number in rows:
        line = f"{number or '':>{digits}}  {text:<{lanes}}"
        if step is not None:
            named_step = _name_step(step, min(_LONGEST_ID, longest), dependencies=named)
            whole = Text(f"{line.replace(NODE, _sign(step))}  {named_step}")
            whole.truncate(width, overflow="ellipsis")
            line = whole.plain
        lines.append(line.rstrip())
    drawing = "\n".join((*lines, "", _legend(plan)))
    return to_ascii(drawing) if ascii_only else drawing


def _name_step(step: PlanStep, id_width: int, *, dependencies: bool) -> str:
    """Return a step's id and description; or, where no lane shows them, its dependencies."""
    label = f"{label_worker(step)}{''.join(_describe_course(step))}{step.description}"
    if dependencies and step.dependencies:
        label = f"← {', '.join(step.dependencies)}"
    step_id = Text(one_line(step.step_id))
    step_id.truncate(id_width, overflow="ellipsis", pad=True)
    return f"{step_id}  {one_line(label)}"


def _describe_course(step: PlanStep) -> Iterator[str]:
    """Yield the conditions of a step in its plan file: when, for each of which items, and until
    when it runs."""
    if step.when:
        yield f"(when {step.when}) "
    if step.for_each:
        yield f"(for each of {step.for_each.items}) "
    if step.repeat:
        yield f"(until {step.repeat.until}, at most {step.repeat.at_most} times) "


def _legend(plan: Plan) -> str:
    signs = {_MODEL: "done by the model", _TOOL: "done by a tool", _PERSON: "done by a person"}
    used = {_sign(step) for step in plan.steps}
    return "   ".join(f"{sign} {words}" for sign, words in signs.items() if sign in used)


def outline(plan: Plan) -> list[tuple[str, PlanStep]]:
    """Return the steps layer by layer, each with its lanes, all as wide as the widest; `NODE`
    stands for the step itself. Raises PlanError for a cycle."""
    rows = _rows(plan)
    width = max((len(text) for text, _, _ in rows), default=0)
    return [(text.ljust(width), step) for text, step, _ in rows if step is not None]


def _sign(step: PlanStep) -> str:
    if step.is_for_person:
        return _PERSON
    return _TOOL if step.tool else _MODEL


def _rows(plan: Plan) -> list[tuple[str, PlanStep | None, int | None]]:
    """Return the lanes of each line with its step, and its layer's number where the layer begins;
    no step between layers."""
    layered = [[plan.step(step_id) for step_id in layer] for layer in layers(plan)]
    lanes = _Lanes([step for layer in layered for step in layer])
    rows: list[tuple[str, PlanStep | None, int | None]] = []
    for number, layer in enumerate(layered, start=1):
        if number > 1:
            rows.append((lanes.draw_passing(), None, None))
        rows += [
            (lanes.draw_step(step), step, None if place else number)
            for place, step in enumerate(layer)
        ]
    return rows


@dataclass
class _Lanes:
    """The lanes while the steps are drawn: `columns` holds the id of the step whose output each
    lane carries."""

    steps: Sequence[PlanStep]
    columns: list[str | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.last_user = {
            needed: step.step_id for step in self.steps for needed in step.dependencies
        }

    def draw_step(self, step: PlanStep) -> str:
        joined = {place for place, one in enumerate(self.columns) if one in step.dependencies}
        ended = {
            place for place in joined if self.last_user[self.columns[place] or ""] == step.step_id
        }
        if not ended and None not in self.columns:
            self.columns.append(None)
        column = min(ended) if ended else self.columns.index(None)
        text = self._draw_cells(column, joined, ended)
        for place in ended:
            self.columns[place] = None
        self._begin_lane(column, step.step_id)
        return text.rstrip()

    def _begin_lane(self, column: int, step_id: str) -> None:
        """Let the output of a step go on in a column, if a later step needs it."""
        self.columns[column] = step_id if step_id in self.last_user else None
        while self.columns and self.columns[-1] is None:
            self.columns.pop()

    def draw_passing(self) -> str:
        return " ".join(" " if lane is None else "│" for lane in self.columns)

    def _draw_cells(self, column: int, joined: set[int], ended: set[int]) -> str:
        first = min({column, *joined})
        last = max({column, *joined})
        text = ""
        for place, lane in enumerate(self.columns):
            if place == column:
                text += NODE
            elif place in joined:
                sides = "╰╯┴" if place in ended else "├┤┼"
                text += _pick_side(sides, is_first=place == first, is_last=place == last)
            elif lane:
                text += "│"
            else:
                text += "─" if first <= place <= last else " "
            text += "─" if first <= place < last else " "
        return text


def _pick_side(sides: str, *, is_first: bool, is_last: bool) -> str:
    """Return the sign of a joined lane: at the left end, at the right end, or between."""
    if is_first:
        return sides[0]
    return sides[1] if is_last else sides[2]
