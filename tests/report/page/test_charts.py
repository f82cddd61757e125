"""The time line with its axis, and the scale of the scores."""

from __future__ import annotations

import re
from typing import Any

import pytest

from aeon.report.page.charts import draw_scores, draw_timeline, find_floor
from aeon.report.scores import AssessedPass
from tests.report.diagnosis.builders import a_call


def ticks(drawing: str) -> list[tuple[str, str]]:
    """Where the labels of the time axis stand, and what they say."""
    axis = drawing[drawing.rindex('<line class="tick" x1="0" x2="100%"') :]
    return re.findall(r'<text class="axis" x="([\d.]+)%"[^>]*>([^<]+)</text>', axis)


def timeline(*spans: tuple[float, float], **given: Any) -> str:
    """A time line of requests, each from its beginning for so many seconds."""
    items = [
        a_call("step", seconds, begins=begin, number=n)
        for n, (begin, seconds) in enumerate(spans, 1)
    ]
    return str(draw_timeline(items, [], **{"by_order": False, **given}))


@pytest.mark.parametrize(
    ("seconds", "labels"),
    [
        (8, ["0", "2.0 s", "4.0 s", "6.0 s", "8.0 s"]),
        (0.9, ["0", "200 ms", "400 ms", "600 ms", "800 ms"]),
        (250, ["0", "50.0 s", "100 s", "150 s", "200 s", "250 s"]),
        (0.004, ["0", "1.0 ms", "2.0 ms", "3.0 ms", "4.0 ms"]),
    ],
)
def test_the_time_axis_has_round_places(seconds: float, labels: list[str]) -> None:
    assert [label for _, label in ticks(timeline((0, seconds)))] == labels


@pytest.mark.parametrize("seconds", [0.01, 0.7, 3, 19, 1000, 86_400])
def test_the_time_axis_has_four_to_ten_places_after_its_start(seconds: float) -> None:
    assert 4 <= len(ticks(timeline((0, seconds)))) - 1 <= 10


def test_a_bar_and_a_tick_of_one_time_stand_at_one_place() -> None:
    drawing = timeline((10, 8), (12, 2), (14, 1))  # the time begins with the first request
    bars = re.findall(r'<rect class="k-step" x="([\d.]+)%" y="\d+" width="([\d.]+)%"', drawing)
    assert bars == [("0.00", "100.00"), ("25.00", "25.00"), ("50.00", "12.50")]
    assert ticks(drawing)[1] == ("25.00", "2.0 s")
    assert ticks(drawing)[2] == ("50.00", "4.0 s")


def test_requests_side_by_side_stand_below_each_other() -> None:
    drawing = timeline((0, 4), (1, 2), (4, 1))
    assert re.findall(r'y="(\d+)" width', drawing) == ["22", "40", "22"]


def test_a_recording_has_no_time_axis_and_bars_of_one_width() -> None:
    drawing = timeline((0, 4), (1, 2), by_order=True)
    assert "tick" not in drawing
    assert len(set(re.findall(r'width="([\d.]+)%"><title>', drawing))) == 1


@pytest.mark.parametrize(("scores", "floor"), [((0.5, 0.9), 0.5), ((0.49, 0.9), 0.0), ((), 0.5)])
def test_the_scale_begins_at_0_or_at_0_5(scores: tuple[float, ...], floor: float) -> None:
    assert find_floor((*scores, 0.95)) == floor


def test_a_score_stands_by_its_height_and_is_marked_by_its_threshold() -> None:
    passes = [judged(1, 0.5), judged(2, 1.0), judged(3, 0.75)]
    drawing = str(draw_scores("completeness", passes, 0.75, 0.5))
    dots = re.findall(r'class="dot (\w+)" cx="[\d.]+%" cy="([\d.]+)"', drawing)
    assert dots == [("low", "122.0"), ("ok", "26.0"), ("ok", "74.0")]
    assert 'class="threshold" x1="12.0%" x2="100%" y1="74.0"' in drawing


def judged(number: int, score: float, *, steps: int = 1, whole: bool = True) -> AssessedPass:
    return AssessedPass(
        pass_number=number,
        scores={"completeness": score},
        steps_done=steps,
        answer_complete=whole,
    )


def test_a_line_joins_only_passes_whose_answer_was_whole() -> None:
    passes = [
        judged(1, 0.5, whole=False),
        judged(2, 0.6),
        judged(3, 0.7),
        judged(4, 0.7, whole=False),
        judged(5, 0.9),
    ]
    (line,) = re.findall(
        r'<polyline points="([^"]+)"', str(draw_scores("completeness", passes, 0.75, 0.5))
    )
    assert len(line.split()) == 2


def test_a_point_says_how_many_steps_were_done() -> None:
    drawing = str(draw_scores("completeness", [judged(1, 0.5, steps=3)], 0.75, 0.5))
    assert "<title>pass 1: 0.50, 3 steps done</title>" in drawing
