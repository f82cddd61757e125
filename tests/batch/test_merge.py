"""Shards put together: every row once, in the order of the dataset."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from aeon.batch.merge import merge
from aeon.domain.errors import ConfigError
from tests.batch.test_results import file_of, line

FULL: dict[str, Any] = {
    "answer": 'a\n\u2028b,"c"',
    "scores": {"completeness_score": 0.5, "coherence_score": None, "criteria": {}},
    "passes": 2,
    "unusable_steps": ["a", "b"],
    "unusable_calls": ["semantic_validation", "step"],
    "error": {"type": "run", "message": "why"},
}


def shards(folder: Path) -> list[Path]:
    return [file_of(folder, "1", line(3), line(1, **FULL)), file_of(folder, "2", line(2))]


def test_shards_are_put_together_in_the_order_of_the_dataset(tmp_path: Path) -> None:
    summary = merge(shards(tmp_path), tmp_path / "all.jsonl")
    found = [json.loads(text) for text in (tmp_path / "all.jsonl").read_text().split("\n")[:-1]]
    assert found == [line(1, **FULL), line(2), line(3)]
    assert (summary.count, summary.of) == (3, 3)


def test_a_table_has_a_row_for_each(tmp_path: Path) -> None:
    merge(shards(tmp_path), tmp_path / "all.csv")
    with (tmp_path / "all.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == ["r1", "r2", "r3"]
    assert (rows[0]["answer"], rows[0]["completeness_score"], rows[0]["error"]) == (
        FULL["answer"],
        "0.5",
        "why",
    )
    assert (rows[0]["unusable_steps"], rows[0]["unusable_calls"], rows[1]["unusable_steps"]) == (
        "a, b",
        "semantic_validation, step",
        "",
    )


def test_a_table_says_why_a_judgement_is_missing(tmp_path: Path) -> None:
    lost: dict[str, Any] = {
        "scores": None,
        "reason_codes": ["evaluation_unavailable"],
        "degraded": ["review_lost"],
        "degraded_messages": ["Pass 1 lacks an assessment: no JSON", "Tool 'a' is missing"],
    }
    merge(
        [file_of(tmp_path, "1", line(1, **lost), line(3)), file_of(tmp_path, "2", line(2))],
        tmp_path / "all.csv",
    )
    with (tmp_path / "all.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert (rows[0]["reason_codes"], rows[0]["degraded_messages"]) == (
        "evaluation_unavailable",
        "Pass 1 lacks an assessment: no JSON; Tool 'a' is missing",
    )
    assert (rows[1]["reason_codes"], rows[1]["degraded_messages"]) == ("", "")


def test_parquet_has_types(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    merge(shards(tmp_path), tmp_path / "all.parquet")
    rows = parquet.read_table(tmp_path / "all.parquet").to_pylist()
    assert [row["row"] for row in rows] == [1, 2, 3]
    assert (rows[0]["completeness_score"], rows[0]["passes"], rows[1]["passes"]) == (0.5, 2, None)


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([line(1), line(3)], "1 of 3 rows are missing: 2"),
        ([line(1), line(2), line(3), line(2)], "row 2 stands in"),
        ([line(1), line(2), line(3, configuration="d")], "configuration differs"),
        ([line(1), line(2), line(3, of=4)], "of differs"),
        ([line(1), line(2), line(9)], "row 9 is not among the 3"),
    ],
)
def test_gaps_doubles_and_other_batches_are_not_merged(
    tmp_path: Path, lines: list[dict[str, Any]], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        merge(
            [file_of(tmp_path, "1", *lines[:2]), file_of(tmp_path, "2", *lines[2:])],
            tmp_path / "all.jsonl",
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2"]


def test_no_room_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written: there is no folder"):
        merge(shards(tmp_path), tmp_path / "missing" / "all.jsonl")


def test_another_kind_of_file_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"all\.xlsx: a merge writes \.jsonl, \.csv or \.parquet"):
        merge(shards(tmp_path), tmp_path / "all.xlsx")
