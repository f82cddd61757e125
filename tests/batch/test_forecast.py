"""What is said of a batch before its first row."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from aeon import Aeon
from aeon.batch.dataset import Common, open_dataset
from aeon.batch.forecast import forecast_rows
from aeon.config.settings import BatchColumns

SHORT, LONG = "name three rivers", "name three rivers " * 2000


def foreseen(folder: Path, tasks: list[str], *overrides: str) -> str:
    path = folder / "tasks.jsonl"
    path.write_text("".join(json.dumps({"task": task}) + "\n" for task in tasks))
    dataset = open_dataset(path, BatchColumns(), Common())
    with Aeon.from_config(["provider=simulated", *overrides]) as aeon:
        return forecast_rows(aeon, dataset, len(tasks)).words


def tokens(words: str) -> int:
    [found] = re.findall(r"([\d,]+) tokens of prompts", words)
    return int(found.replace(",", ""))


@pytest.mark.parametrize("place", [0, 1, 9])
def test_one_long_row_counts_once_wherever_it_stands(tmp_path: Path, place: int) -> None:
    short, long = (tokens(foreseen(tmp_path, [text])) for text in (SHORT, LONG))
    tasks = [LONG if number == place else SHORT for number in range(10)]
    assert tokens(foreseen(tmp_path, tasks)) == pytest.approx(9 * short + long, rel=0.001)


def test_no_more_calls_are_foreseen_than_a_limit_allows(tmp_path: Path) -> None:
    words = foreseen(tmp_path, [SHORT] * 4, "limits.max_llm_calls=3")
    assert "3 calls each, in all at least 12 calls" in words


@pytest.mark.parametrize(
    ("overrides", "calls"),
    [
        ([], "1 call each"),
        (["execution.samples=5", "execution.select=check"], "1 to 5 calls each"),
        (["execution.samples=4", "execution.select=pairwise"], "1 to 10 calls each"),
        (["answer.judge=true"], "1 to 2 calls each"),
        (["answer.judge=true", "convergence.margin=0.1"], "1 to 4 calls each"),
        (
            ["execution.samples=3", "answer.judge=true", "limits.max_llm_calls=3"],
            "1 to 3 calls each",
        ),
    ],
)
def test_a_single_call_takes_its_samples_and_its_judge(
    tmp_path: Path, overrides: list[str], calls: str
) -> None:
    words = foreseen(tmp_path, [SHORT] * 4, "mode=single", *overrides)
    assert f"4 rows to go: {calls}, in all at least 4 calls" in words
