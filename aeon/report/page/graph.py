"""A plan drawn as SVG: its steps in layers from left to right, each with its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from markupsafe import Markup

from aeon.domain.errors import PlanError
from aeon.domain.graph import layers
from aeon.domain.plan import Plan, PlanStep, renumber_steps
from aeon.report.words import STATES, one_line

_WIDTH = 196
_HEIGHT = 38
_GAP_X = 40
_GAP_Y = 12
_MARGIN = 6
_LONGEST = 20


def draw_plan(
    steps: Sequence[PlanStep], links: Mapping[str, str], new: frozenset[str] = frozenset()
) -> Markup:
    """Draw the plan of these steps as one `<svg>`. `links` has the anchor of a step's latest
    request, `new` are the steps that are marked as changed since the pass before."""
    try:
        columns = layers(Plan(goal="", steps=renumber_steps(tuple(steps))))
    except PlanError:  # a plan that was not accepted
        columns = tuple((step.step_id,) for step in steps)
    tallest = max(map(len, columns), default=0)
    width = len(columns) * (_WIDTH + _GAP_X) - _GAP_X + 2 * _MARGIN
    height = tallest * (_HEIGHT + _GAP_Y) - _GAP_Y + 2 * _MARGIN
    places = {}
    for column, names in enumerate(columns):
        top = (tallest - len(names)) * (_HEIGHT + _GAP_Y) // 2
        for row, name in enumerate(names):
            places[name] = (
                _MARGIN + column * (_WIDTH + _GAP_X),
                _MARGIN + top + row * (_HEIGHT + _GAP_Y),
            )
    edges = "".join(
        _edge(places[name], places[step.step_id])
        for step in steps
        for name in step.dependencies
        if name in places
    )
    # A line each, so that a page holds a node once that several passes show alike.
    nodes = "\n".join(
        _node(step, places[step.step_id], links.get(step.step_id), step.step_id in new)
        for step in steps
    )
    width = max(width, 1)
    height = max(height, 1)
    return Markup(
        f'<svg class="plan" width="{width}" height="{height}" viewBox="0 '
        f'0 {width} {height}" role="group" aria-label="Plan of {len(steps)} '
        f'steps"><path class="edges" d="{edges}"/>\n{nodes}</svg>'
    )


def _edge(source: tuple[int, int], target: tuple[int, int]) -> str:
    x1 = source[0] + _WIDTH
    y1 = source[1] + _HEIGHT // 2
    x2 = target[0]
    y2 = target[1] + _HEIGHT // 2
    middle = (x1 + x2) // 2
    return f"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}"


def _node(step: PlanStep, place: tuple[int, int], link: str | None, is_new: bool) -> str:
    state = step.state
    name = escape(one_line(step.step_id, _LONGEST))
    title = escape(f"{one_line(step.step_id, 80)}: {state}{', changed' if is_new else ''}")
    where = f'transform="translate({place[0]} {place[1]})" aria-label="{title}"'
    mark = f'<circle cx="{_WIDTH - 8}" cy="0" r="5"/>' if is_new else ""
    inner = (
        f"<title>{title}. {escape(one_line(step.description, 120))}</title>"
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>'
        f'<text x="12" y="24">{STATES[state]}</text><text x="30" y="24">{name}</text>{mark}'
    )
    if link is None:
        return f'<g class="node {state}" {where} role="img">{inner}</g>'
    return f'<a class="node {state}" href="#{link}" {where}>{inner}</a>'


def sign_of(step: PlanStep) -> Markup:
    """Return the state of a step as a sign with its name, for a table."""
    state = step.state
    return Markup('<span class="state {0}"><i aria-hidden="true">{1}</i> {0}</span>').format(
        state, escape(STATES[state])
    )
