"""Figures of runs as drawings: a bar, a strip with a mark for each run, and scores against
tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from statistics import fmean

from markupsafe import Markup

from aeon.report.compare.rows import SCORES, ComparedRun
from aeon.report.words import list_names, round_down

_WIDTH = 640
_HEIGHT = 240
_LEFT = 40
_BOTTOM = 34
_TOP = 12
_RIGHT = 16
_MOST_LABELS = 24


def _svg(kind: str, height: int, shapes: Iterable[str]) -> Markup:
    frame = (
        f'class="{kind}" viewBox="0 0 100 {height}" preserveAspectRatio="none" aria-hidden="true"'
    )
    return Markup(f"<svg {frame}>{''.join(shapes)}</svg>")


def draw_bar(value: float | None, top: float, threshold: float | None = None) -> Markup:
    """Draw a figure as a bar, with a mark at its threshold."""
    if value is None:
        return Markup()
    kind = "short" if threshold is not None and value < threshold else "full"
    shapes = ['<rect class="track" width="100" height="4"/>']
    shapes.append(f'<rect class="{kind}" width="{_across(value, top)}" height="4"/>')
    if threshold is not None:
        shapes.append(
            f'<rect class="threshold" x="{_across(threshold, top) - 1}" width="2" height="4"/>'
        )
    return _svg("bar", 4, shapes)


def draw_strip(values: Sequence[float], top: float) -> Markup:
    """Draw each run as a thin mark, and their mean as a bold one, between 0 and the maximum of all
    runs."""
    if not values:
        return Markup()
    marks = [
        f'<rect class="run" x="{_across(value, top) - 0.75}" y="4" width="1.5" height="10"/>'
        for value in values
    ]
    mean = f'<rect class="mean" x="{_across(fmean(values), top) - 1}" width="2" height="18"/>'
    return _svg("strip", 18, ['<rect class="track" y="8" width="100" height="2"/>', *marks, mean])


def _across(value: float, top: float) -> float:
    return round(100 * min(1.0, max(0.0, value / top)), 2)


def draw_scatter(runs: Sequence[ComparedRun]) -> Markup:
    """Draw the lowest score of each run against its tokens, as dots with the runs' names; nothing
    for fewer than two."""
    points = [point for run in runs if (point := _point(run)) is not None]
    if len(points) < 2:
        return Markup()
    most = max(tokens for tokens, _, _ in points) or 1.0
    dots = "".join(_dot(run, tokens / most, score) for tokens, score, run in points)
    labels = _labels(points, most) if len(points) <= _MOST_LABELS else ""
    return Markup(
        f'<svg class="scatter" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        'aria-label="The lowest score of each run against its tokens">'
        f"{_axes(most)}{labels}{dots}</svg>"
    )


def _point(run: ComparedRun) -> tuple[float, float, ComparedRun] | None:
    scores = [value for name in SCORES if (value := run.figures[name]) is not None]
    tokens = run.figures["tokens"]
    return None if tokens is None or len(scores) < len(SCORES) else (tokens, min(scores), run)


def _axes(most: float) -> str:
    """Draw lines at 0, 0.5 and 1 with their numbers, and the tokens at both ends."""
    lines = []
    for score in (0.0, 0.5, 1.0):
        y = _up(score)
        lines.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>')
        lines.append(f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{score:g}</text>')
    y = _HEIGHT - 8
    lines.append(f'<text x="{_LEFT}" y="{y}">0</text>')
    lines.append(f'<text x="{_WIDTH / 2}" y="{y}" text-anchor="middle">tokens</text>')
    lines.append(f'<text x="{_WIDTH - _RIGHT}" y="{y}" text-anchor="end">{most:,.0f}</text>')
    return "".join(lines)


def _labels(points: Sequence[tuple[float, float, ComparedRun]], most: float) -> str:
    """Draw the names of the runs, grouped where they share a place."""
    names: dict[tuple[float, float], list[str]] = {}
    for tokens, score, run in points:
        names.setdefault((_across_scatter(tokens / most), _up(score)), []).append(run.name)
    return "".join(
        f'<text x="{x - 8}" y="{y + 14}" text-anchor="end">{escape(list_names(of, 3))}</text>'
        for (x, y), of in names.items()
    )


def _dot(run: ComparedRun, share: float, score: float) -> str:
    kind = "good" if run.is_good else "open"
    title = f"{run.name}: lowest score {round_down(score):.2f}, {run.figures['tokens']:,.0f} tokens"
    return (
        f'<circle class="{kind}" cx="{_across_scatter(share)}" cy="{_up(score)}" r="5">'
        f"<title>{escape(title)}, {escape(run.ended)}</title></circle>"
    )


def _across_scatter(share: float) -> float:
    return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)


def _up(score: float) -> float:
    return round(_TOP + (1 - score) * (_HEIGHT - _TOP - _BOTTOM), 1)
