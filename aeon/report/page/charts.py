"""The scores of a run, pass by pass against their thresholds, and its time line, drawn as SVG.

Positions along the page are percentages: a drawing fills whatever width it is given, and its text stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from html import escape

from markupsafe import Markup

from aeon.report.items import Item
from aeon.report.words import format_took, one_line, round_down

_SCORES_HEIGHT, _TOP, _BOTTOM = 150, 26, 122
_LANE, _HEAD, _LABEL = 18, 22, 6.0
_MOST_LANES, _MOST_VALUES = 24, 8


def draw_scores(name: str, scores: Mapping[int, float], threshold: float) -> Markup:
    """One score over the passes as a line, with its threshold as another, which the page's script can move."""
    numbers = sorted(scores)
    low = min([*scores.values(), threshold, 0.5])
    low = max(0.0, low - 0.1) if low < 0.6 else 0.5

    def across(number: int) -> float:
        return 50.0 if len(numbers) < 2 else 6 + 88 * (numbers.index(number)) / (len(numbers) - 1)

    def down(score: float) -> float:
        return _BOTTOM - (score - low) / (1 - low) * (_BOTTOM - _TOP)

    points = [(across(number), down(scores[number]), number) for number in numbers]
    line = " ".join(f"{x:.2f},{y:.1f}" for x, y, _ in points)
    dots = "".join(
        f'<circle class="dot {"ok" if scores[number] >= threshold else "low"}" cx="{x:.2f}%" cy="{y:.1f}" r="4">'
        f"<title>pass {number}: {round_down(scores[number]):.2f}</title></circle>"
        f'<text class="axis" x="{x:.2f}%" y="145" text-anchor="middle">{number}</text>'
        f'<text class="value" x="{x:.2f}%" y="{y - 9:.1f}" text-anchor="middle">'
        f"{_value(scores[number], len(points))}</text>"
        for x, y, number in points
    )
    told = ", ".join(f"pass {number} {round_down(scores[number]):.2f}" for number in numbers)
    bar = down(threshold)
    return Markup(
        f'<svg class="scores" width="100%" height="{_SCORES_HEIGHT}" role="img" '
        f'aria-label="{name} by pass: {told}; threshold {threshold:g}" '
        f'data-score="{name}" data-low="{low}" data-top="{_TOP}" data-bottom="{_BOTTOM}">'
        f'<line class="threshold" x1="0" x2="100%" y1="{bar:.1f}" y2="{bar:.1f}"/>'
        f'<svg width="100%" height="{_SCORES_HEIGHT}" viewBox="0 0 100 {_SCORES_HEIGHT}" preserveAspectRatio="none">'
        f'<polyline points="{line}" vector-effect="non-scaling-stroke"/></svg>{dots}</svg>'
    )


def _value(score: float, number: int) -> str:
    """A score as it stands at its point; nothing where the points are too near each other."""
    return f"{round_down(score):.2f}" if number <= _MOST_VALUES else ""


def draw_timeline(items: Sequence[Item], critical: Sequence[Item], *, by_order: bool) -> Markup:
    """Requests, tool calls and waits along the time, side by side where they ran so; `critical` are marked. `by_order`
    gives each the same width, for a recording, which has no times."""
    began = min((item.start for item in items), default=0.0)  # what came before took no call
    spans = (
        _in_order(items) if by_order else [(item.start - began, item.end - began) for item in items]
    )
    total = max((end for _, end in spans), default=0.0) or 1.0
    lanes = _lanes(spans)
    marked = {id(item) for item in critical} if not by_order else set()
    height = _HEAD + _LANE * (max(lanes, default=0) + 1) + 4
    bars = "".join(
        _bar(item, start / total * 100, (end - start) / total * 100, lane, id(item) in marked)
        for item, (start, end), lane in zip(items, spans, lanes, strict=True)
    )
    return Markup(
        f'<svg class="timeline" width="100%" height="{height}" role="group" '
        f'aria-label="Time line of {len(items)} requests, tool calls and waits">'
        f"{_pass_bands(items, spans, total, height)}{bars}</svg>"
    )


def _in_order(items: Sequence[Item]) -> list[tuple[float, float]]:
    return [(float(place), place + 0.85) for place in range(len(items))]


def _lanes(spans: Sequence[tuple[float, float]]) -> list[int]:
    """For each span, in order of its beginning, the first lane that is free."""
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    lanes = []
    for start, end in spans:
        while busy and busy[0][0] <= start + 1e-6:
            heappush(free, heappop(busy)[1])
        lane = heappop(free) if free else len(busy)
        heappush(busy, (end, lane))
        lanes.append(min(lane, _MOST_LANES))
    return lanes


def _bar(item: Item, left: float, width: float, lane: int, is_critical: bool) -> str:
    marks = (" failed" if item.failed else "") + (" critical" if is_critical else "")
    told = escape(
        f"{one_line(item.label, 80)}, pass {item.pass_number}, {format_took(item.end - item.start)}{marks}"
    )
    place = f'x="{left:.2f}%" y="{_HEAD + lane * _LANE}" width="{max(width, 0.25):.2f}%"'
    rect = f'<rect class="k-{item.kind}{marks}" {place}><title>{told}</title></rect>'
    return f'<a href="#{item.key}" tabindex="-1">{rect}</a>' if item.key else rect


def _pass_bands(
    items: Sequence[Item], spans: Sequence[tuple[float, float]], total: float, height: int
) -> str:
    """A line where each pass begins, with its number, where there is room for it."""
    begins: dict[int, float] = {}
    for item, (start, _) in zip(items, spans, strict=True):
        begins.setdefault(item.pass_number, start / total * 100)
    drawn, free = [], 0.0
    for number, left in begins.items():
        drawn.append(f'<line class="pass" x1="{left:.2f}%" x2="{left:.2f}%" y1="0" y2="{height}"/>')
        if left >= free:
            drawn.append(f'<text class="axis" x="{left:.2f}%" dx="3" y="13">pass {number}</text>')
            free = left + _LABEL
    return "".join(drawn)
