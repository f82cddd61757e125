"""The file of a batch: what is taken over from it, and shards put together."""

import json
from pathlib import Path
from typing import Any

import pytest

from aeon.batch.results import Results, in_order, merge
from aeon.domain.errors import ConfigError


def line(row: int, ended: str = "converged", of: int = 3, configuration: str = "c", **more: Any) -> dict[str, Any]:
    return {"id": f"r{row}", "row": row, "of": of, "ended": ended, "configuration": configuration, **more}


def file_of(folder: Path, name: str, *lines: dict[str, Any], tail: str = "") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(one) + "\n" for one in lines) + tail)
    return path


def test_rows_that_are_done_are_taken_over_and_the_others_are_left_out(tmp_path: Path) -> None:
    ends = ("converged", "stalled", "failed", "invalid")
    path = file_of(tmp_path, "out", *(line(n, end) for n, end in enumerate(ends, start=1)), tail='{"id": "r5", "ro')
    results = Results(path, "c")
    assert results.done == {"r1", "r2"}
    results.write(line(3, cost=0.5))
    results.close()
    assert [json.loads(text)["id"] for text in path.read_text().splitlines()] == ["r1", "r2", "r3"]
    assert dict(results.ends) == {"converged": 2, "stalled": 1}
    assert results.cost == 0.5


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (json.dumps(line(1, configuration="other")) + "\n", "another configuration"),
        ('{"a": 1}\n', "out:1: no row of a batch"),
        ("text\n", "out:1: "),
    ],
)
def test_a_file_of_something_else_is_refused_and_stays(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "out"
    path.write_text(text)
    with pytest.raises(ConfigError, match=problem):
        Results(path, "c")
    assert path.read_text() == text
    assert [found.name for found in tmp_path.iterdir()] == ["out"]


def test_shards_are_put_together_in_the_order_of_the_dataset(tmp_path: Path) -> None:
    one, other = file_of(tmp_path, "1", line(3), line(1)), file_of(tmp_path, "2", line(2))
    assert [found["row"] for found in merge([one, other])] == [1, 2, 3]


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([line(1), line(3)], "1 of 3 rows are missing: 2"),
        ([line(1), line(2), line(3), line(2)], "row 2 stands in"),
        ([line(1), line(2), line(3, configuration="d")], "configuration differs"),
        ([line(1), line(2), line(3, of=4)], "of differs"),
    ],
)
def test_gaps_doubles_and_other_batches_are_not_merged(
    tmp_path: Path, lines: list[dict[str, Any]], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        merge([file_of(tmp_path, "1", *lines[:2]), file_of(tmp_path, "2", *lines[2:])])


def test_lines_come_in_the_order_of_their_rows() -> None:
    given = [line(5), line(1), line(3), line(7)]
    assert [found["row"] for found in in_order(given, [1, 3, 5, 7, 9])] == [1, 3, 5, 7]
