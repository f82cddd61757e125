"""The page on what calls are worth shows what the bench of the controller measures."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "worth.md").read_text(encoding="utf-8")
BENCH = runpy.run_path(str(ROOT / "benchmarks" / "controller.py"))
ARMS: dict[str, Any] = {arm.name: arm for arm in BENCH["ARMS"]}


def measure(name: str, tasks: int, **chances: float) -> list[Any]:
    return list(BENCH["run_arm"]((ARMS[name], tasks, 1, BENCH["Chances"](**chances))))


def mean(ended: list[Any]) -> float:
    return float(sum(one.given for one in ended) / len(ended))


def count_changes(ended: list[Any]) -> tuple[int, int]:
    better = sum(one.given > one.first for one in ended)
    return better, sum(one.given < one.first for one in ended)


def test_the_table_has_every_arm() -> None:
    assert [name for name in ARMS if f"\n| {name} | " not in PAGE] == []


def test_the_chances_are_those_of_the_bench() -> None:
    chances = BENCH["Chances"]()
    for value in (chances.improves, chances.spoils, chances.noise):
        assert str(value).rstrip("0") in PAGE


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["single", "passes", "passes, gate, latest", "passes, gate", "6 samples, in pairs"]
)
def test_a_line_is_what_is_measured(name: str) -> None:
    assert BENCH["describe"](ARMS[name], measure(name, 1_000)) in PAGE


@pytest.mark.slow
def test_a_gate_keeps_what_was_gained() -> None:
    by_passes = measure("passes", 1_000)
    gated = measure("passes, gate, patience", 1_000)
    better, worse = count_changes(by_passes)
    gated_better, gated_worse = count_changes(gated)
    assert gated_better / gated_worse > 5 * better / worse
    assert mean(by_passes) >= mean(measure("single", 1_000))
    assert mean(gated) >= 0.95 * mean(measure("passes, oracle", 1_000))


@pytest.mark.slow
def test_passes_are_worse_than_one_call_where_the_worker_spoils_more() -> None:
    worse = {"judge": 0.55, "noise": 0.3, "spoils": 0.5, "improves": 0.2}
    assert "`--judge 0.55 --noise 0.3 --spoils 0.5 --improves 0.2`" in PAGE
    names = ("single", "passes", "passes, gate, latest", "passes, gate")
    means = [f"{mean(measure(name, 1_000, **worse)):.3f}" for name in names]
    assert means == ["0.668", "0.613", "0.643", "0.654"]
    assert [number for number in means if number not in PAGE] == []
