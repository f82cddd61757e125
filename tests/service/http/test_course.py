"""The courses of runs: rendered for all viewers together, and seldom enough."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from markupsafe import Markup

from aeon.domain.errors import ArtefactError
from aeon.service.http import course
from aeon.service.http.course import Courses


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the journals that were rendered, in the place of rendering."""
    sizes: list[int] = []

    def draw(run: Path) -> Markup:
        sizes.append(len((run / "events.jsonl").read_bytes()))
        return Markup(f"{sizes[-1]} bytes")

    monkeypatch.setattr(course, "draw_course", draw)
    return sizes


def write(run: Path, count: int) -> None:
    (run / "events.jsonl").write_text("x" * count)


def test_an_unchanged_run_is_rendered_once_for_all_viewers(tmp_path: Path, drawn: list[int]):
    async def view() -> list[Markup]:
        courses = Courses(seconds_between=0.0)
        return await asyncio.gather(*(courses.draw(tmp_path) for _ in range(20)))

    write(tmp_path, 3)
    assert set(asyncio.run(view())) == {Markup("3 bytes")}
    assert drawn == [3]


def test_viewers_of_a_run_that_goes_on_share_the_next_rendering(tmp_path: Path, drawn: list[int]):
    async def view() -> list[Markup]:
        courses = Courses(seconds_between=0.2)
        write(tmp_path, 1)
        first = await courses.draw(tmp_path)
        write(tmp_path, 2)
        at_once = await courses.draw(tmp_path, is_awaited=False)
        later = await asyncio.gather(*(courses.draw(tmp_path) for _ in range(20)))
        return [first, at_once, *set(later)]

    assert asyncio.run(view()) == ["1 bytes", "1 bytes", "2 bytes"]
    assert drawn == [1, 2]


def test_a_run_that_cannot_be_read_keeps_what_was_shown(
    tmp_path: Path, drawn: list[int], monkeypatch: pytest.MonkeyPatch
):
    def fail(_: Path) -> Markup:
        raise ArtefactError("there is nothing")

    async def view() -> list[Markup]:
        courses = Courses(seconds_between=0.0)
        write(tmp_path, 1)
        first = await courses.draw(tmp_path)
        monkeypatch.setattr(course, "draw_course", fail)
        write(tmp_path, 2)
        return [first, await courses.draw(tmp_path), await courses.draw(tmp_path / "other")]

    assert asyncio.run(view()) == ["1 bytes", "1 bytes", ""]
    assert drawn == [1]


def test_only_the_latest_runs_are_held(tmp_path: Path, drawn: list[int]):
    runs = [tmp_path / str(number) for number in range(course._MOST_DRAWN + 1)]

    async def view() -> None:
        courses = Courses(seconds_between=60.0)
        for run in [*runs, runs[0], runs[-1]]:
            await courses.draw(run)

    for number, run in enumerate(runs):
        run.mkdir()
        write(run, number)
    asyncio.run(view())
    assert drawn == [*range(len(runs)), 0]
