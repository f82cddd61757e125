"""What the providers page says that marked prompts are billed is what a server bills."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
RUNS = ("rest-api", "web-architecture", "adaptive", "chain")
BOUND = 0.80


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        benchmark = runpy.run_path(str(BENCHMARKS / "prompt_cache.py"), run_name="benchmark")
        measured: dict[str, Any] = benchmark["measure"]()
        return measured
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("implicit", ["unless_explicit", "never", "always"])
def test_marked_input_is_billed_at_most_four_fifths_of_the_plain_price(
    figures: dict[str, Any], run: str, implicit: str
) -> None:
    assert figures[run][implicit]["marked"]["share"] <= BOUND


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
def test_without_marks_nothing_is_read_and_all_is_written(
    figures: dict[str, Any], run: str
) -> None:
    unmarked = figures[run]["unless_explicit"]["unmarked"]
    assert unmarked["hits"] == 0
    assert unmarked["share"] > 1.1


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
def test_the_page_has_these_figures(figures: dict[str, Any], run: str) -> None:
    lines = (ROOT / "docs" / "providers.md").read_text(encoding="utf-8").splitlines()
    [row] = [line for line in lines if line.startswith(f"| `{run}` |")]
    _, requests, *shares = row.strip("| ").split(" | ")
    figure = figures[run]
    measured = [
        figure["unless_explicit"]["unmarked"]["share"],
        *(figure[kind]["marked"]["share"] for kind in ("unless_explicit", "never", "always")),
    ]
    assert int(requests) == figure["requests"]
    assert [float(share) for share in shares] == pytest.approx(measured, abs=0.006)


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("implicit", ["unless_explicit", "never", "always"])
def test_what_aeon_counts_is_what_the_price_list_says(
    figures: dict[str, Any], run: str, implicit: str
) -> None:
    for figure in figures[run][implicit].values():
        assert figure["cost"] == pytest.approx(figure["published"], abs=1e-5)
        assert figure["published"] > 0
