"""What the prompts page says that tasks cost is what they cost."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARK = runpy.run_path(str(ROOT / "benchmarks" / "calls.py"), run_name="benchmark")


def told() -> dict[str, dict[str, tuple[int, int]]]:
    """Task -> mode -> calls and characters, as the table has them."""
    section = (
        (ROOT / "docs" / "prompts.md")
        .read_text(encoding="utf-8")
        .partition("## What tasks cost")[2]
    )
    rows = [
        line.strip("| ").split(" | ")
        for line in section.partition("\n## ")[0].splitlines()
        if line[:2] == "| "
    ]
    (_, *modes), *tasks = rows
    return {
        task: {
            m: tuple(map(int, re.findall(r"\d+", cell)))
            for m, cell in zip(modes, cells, strict=True)
        }  # type: ignore[misc]
        for task, *cells in tasks
    }


def test_the_table_has_every_task() -> None:
    assert list(told()) == list(BENCHMARK["TASKS"])


@pytest.mark.slow
@pytest.mark.parametrize("task", BENCHMARK["TASKS"])
def test_a_task_costs_what_the_table_says(task: Any) -> None:
    for mode, (calls, characters) in told()[task].items():
        counted, sent = BENCHMARK["measure"](task, mode)
        assert sum(counted.values()) == calls, mode
        # The commas of a prompt may change without the table being wrong.
        assert sum(sent.values()) == pytest.approx(characters, rel=0.03), mode
