"""From pass 2 on, prompts mostly begin as earlier ones did."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def benchmark() -> dict[str, Any]:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return runpy.run_path(str(BENCHMARKS / "prompts.py"), run_name="benchmark")
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.mark.parametrize(("run", "share"), [("adaptive", 0.6), ("core", 0.5), ("chain", 0.7)])
def test_most_characters_of_later_passes_repeat_a_prefix(
    benchmark: dict[str, Any], run: str, share: float
) -> None:
    assert benchmark["repeated_prefixes"](benchmark["simulated_requests"](run))["share"] >= share


@pytest.mark.parametrize("recording", ["rest-api", "web-architecture"])
def test_so_does_nearly_half_of_those_of_a_run_whose_plan_was_changed_in_most_passes(
    benchmark: dict[str, Any], recording: str
) -> None:
    assert (
        benchmark["repeated_prefixes"](benchmark["recorded_requests"](recording))["share"] >= 0.44
    )
