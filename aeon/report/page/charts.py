"""The scores of a run, pass by pass against their thresholds, and its time line, drawn as SVG.

Positions along the page are percentages: a drawing fills whatever width it is given, and its text
stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from html import escape
from itertools import groupby

from markupsafe import Markup

from aeon.report.items import Item
from aeon.report.scores import AssessedPass
from aeon.report.words import count_noun, format_took, one_line, round_down

_SCORES_HEIGHT = 150
_TOP = 26
_BOTTOM = 122
_LEFT = 16.0
_RIGHT = 93.0
_LANE = 18
_HEAD = 22
_LABEL = 6.0
_AXIS = 24
_MOST_LANES = 24
_MOST_VALUES = 8


def find_floor(scores: Iterable[float]) -> float:
    """Return the lower end of the scale of the scores, for all charts of a run: 0, or 0.5 where
    nothing is below it."""
    return 0.0 if min(scores, default=0.0) < 0.5 else 0.5


def draw_scores(
    name: str, assessed: Sequence[AssessedPass], threshold: float, floor: float
) -> Markup:
    """Draw one score over the passes that have it, on a scale from `floor` to 1, with its threshold
    as a line; the page's script moves that and marks the dots anew. A line joins only passes whose
    answer was whole: before, a higher score shows that steps were finished, not a better answer."""
    scores = {one.pass_number: one.scores[name] for one in assessed}
    numbers = sorted(scores)

    def across(number: int) -> float:
        if len(numbers) < 2:
            return (_LEFT + _RIGHT) / 2
        return _LEFT + (_RIGHT - _LEFT) * numbers.index(number) / (len(numbers) - 1)

    def down(score: float) -> float:
        return _BOTTOM - max(0.0, score - floor) / (1 - floor) * (_BOTTOM - _TOP)

    places = {number: (across(number), down(scores[number])) for number in numbers}
    dots = "".join(
        _dot(one, one.scores[name], threshold, places[one.pass_number], len(numbers))
        for one in assessed
    )
    read = ", ".join(f"pass {number} {round_down(scores[number]):.2f}" for number in numbers)
    bar = down(threshold)
    return Markup(
        f'<svg class="scores" width="100%" height="{_SCORES_HEIGHT}" role="img" '
        f'aria-label="{name} by pass: {read}; threshold {threshold:g}" '
        f'data-score="{name}" data-low="{floor}" data-top="{_TOP}" data-bottom="{_BOTTOM}">'
        f"{_scale(floor, down)}"
        f'<line class="threshold" x1="{_LEFT - 4}%" x2="100%" y1="{bar:.1f}" y2="{bar:.1f}"/>'
        f'<svg width="100%" height="{_SCORES_HEIGHT}" viewBox="0 0 100 {_SCORES_HEIGHT}" preserveAspectRatio="none">'
        f"{_join_whole(assessed, places)}</svg>{dots}</svg>"
    )


def _dot(
    one: AssessedPass, score: float, threshold: float, place: tuple[float, float], dots: int
) -> str:
    x, y = place
    state = "ok" if score >= threshold else "low"
    done = count_noun(one.steps_done, "step")
    title = f"pass {one.pass_number}: {round_down(score):.2f}, {done} done"
    return (
        f'<circle class="dot {state}" cx="{x:.2f}%" cy="{y:.1f}" r="4" '
        f'data-value="{score}"><title>{title}</title></circle>'
        f'<text class="axis" x="{x:.2f}%" y="145" text-anchor="middle">{one.pass_number}</text>'
        f'<text class="value" x="{x:.2f}%" y="{y - 9:.1f}" text-anchor="middle">'
        f"{_value(score, dots)}</text>"
    )


def _join_whole(assessed: Sequence[AssessedPass], places: Mapping[int, tuple[float, float]]) -> str:
    """Draw a line for each stretch of passes whose answer was whole."""
    stretches = [
        [places[one.pass_number] for one in group]
        for is_whole, group in groupby(assessed, key=lambda one: one.answer_complete)
        if is_whole
    ]
    return "".join(
        f'<polyline points="{" ".join(f"{x:.2f},{y:.1f}" for x, y in points)}" '
        'vector-effect="non-scaling-stroke"/>'
        for points in stretches
        if len(points) > 1
    )


def _scale(floor: float, down: Callable[[float], float]) -> str:
    ticks = (floor, (floor + 1) / 2, 1.0)
    return "".join(
        f'<line class="grid" x1="{_LEFT - 4}%" x2="100%" y1="{down(tick):.1f}" y2="{down(tick):.1f}"/>'
        f'<text class="axis" x="8" y="{down(tick) + 4:.1f}">{tick:g}</text>'
        for tick in ticks
    )


def _value(score: float, number: int) -> str:
    """Draw a score at its point; nothing where the points are too near each other."""
    return f"{round_down(score):.2f}" if number <= _MOST_VALUES else ""


def draw_timeline(items: Sequence[Item], critical: Sequence[Item], *, by_order: bool) -> Markup:
    """Draw requests, tool calls and waits along the time, in parallel lanes; `critical` are marked.
    `by_order` gives each the same width, for a recording, which has no times."""
    spans = _in_order(items) if by_order else _in_time(items)
    total = max((end for _, end in spans), default=0.0) or 1.0
    lanes = _lanes(spans)
    marked = set() if by_order else set(map(id, critical))
    height = _HEAD + _LANE * (max(lanes, default=0) + 1) + 4
    axis = "" if by_order else _time_axis(total, height)
    bars = "".join(
        _bar(item, start / total * 100, (end - start) / total * 100, lane, id(item) in marked)
        for item, (start, end), lane in zip(items, spans, lanes, strict=True)
    )
    return Markup(
        f'<svg class="timeline" width="100%" height="{height + (_AXIS if axis else 0)}" role="group" '
        f'aria-label="Time line of {len(items)} requests, tool calls and waits">'
        f"{_pass_bands(items, spans, total, height)}{bars}{axis}</svg>"
    )


def _time_axis(total: float, top: int) -> str:
    """Draw seconds since the first request, at four to ten round places."""
    step = _round_step(total / 4)
    places = [number * step for number in range(int(total / step + 1e-9) + 1)]
    ticks = "".join(_tick(place, place / total, top) for place in places)
    return f'<line class="tick" x1="0" x2="100%" y1="{top}" y2="{top}"/>{ticks}'


def _tick(seconds: float, share: float, top: int) -> str:
    x = f"{share * 100:.2f}%"
    name = format_took(seconds) if seconds else "0"
    return (
        f'<line class="tick" x1="{x}" x2="{x}" y1="{top}" y2="{top + 5}"/>'
        f'<text class="axis" x="{x}" y="{top + 18}" text-anchor="{_anchor(share)}">{name}</text>'
    )


def _round_step(most: float) -> float:
    """Return the largest of 1, 2, 5, 10, ... times a power of ten that is at most this."""
    power: float = 10 ** math.floor(math.log10(most))
    return max(factor * power for factor in (1, 2, 5) if factor * power <= most + 1e-12)


def _anchor(place: float) -> str:
    """Return the alignment of a label at its tick that keeps it within the edges."""
    if place < 0.02:
        return "start"
    return "end" if place > 0.96 else "middle"


def _in_time(items: Sequence[Item]) -> list[tuple[float, float]]:
    began = min((item.start for item in items), default=0.0)  # what came before took no call
    return [(item.start - began, item.end - began) for item in items]


def _in_order(items: Sequence[Item]) -> list[tuple[float, float]]:
    return [(float(place), place + 0.85) for place in range(len(items))]


def _lanes(spans: Sequence[tuple[float, float]]) -> list[int]:
    """Return for each span, in order of its beginning, the first free lane."""
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
    title = escape(
        f"{one_line(item.label, 80)}, pass {item.pass_number}, "
        f"{format_took(item.end - item.start)}{marks}"
    )
    place = f'x="{left:.2f}%" y="{_HEAD + lane * _LANE}" width="{max(width, 0.25):.2f}%"'
    rect = f'<rect class="k-{item.kind}{marks}" {place}><title>{title}</title></rect>'
    return f'<a href="#{item.key}" tabindex="-1">{rect}</a>' if item.key else rect


def _pass_bands(
    items: Sequence[Item], spans: Sequence[tuple[float, float]], total: float, height: int
) -> str:
    """Draw a line where each pass begins, with its number, where there is room for it."""
    begins: dict[int, float] = {}
    for item, (start, _) in zip(items, spans, strict=True):
        begins.setdefault(item.pass_number, start / total * 100)
    drawn = []
    free = 0.0
    for number, left in begins.items():
        drawn.append(f'<line class="pass" x1="{left:.2f}%" x2="{left:.2f}%" y1="0" y2="{height}"/>')
        if left >= free:
            drawn.append(f'<text class="axis" x="{left:.2f}%" dx="3" y="13">pass {number}</text>')
            free = left + _LABEL
    return "".join(drawn)
