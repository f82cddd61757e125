"""What a batch comes to in words, and the page: steps left, equal errors together, the way to a record."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from aeon.batch.summary import Summary, describe_good_ends, write_page
from tests.batch.test_results import line


def summary_of(*lines: dict[str, Any]) -> Summary:
    summary = Summary(len(lines))
    for one in lines:
        summary.add(one)
    return summary


def failed(row: int, message: str, **given: Any) -> dict[str, Any]:
    return line(row, ended="failed", error={"type": "ServerFailed", "message": message}, **given)


def test_converged_rows_with_steps_left_are_counted_beside_the_converged() -> None:
    lines = [line(row, ended="converged", steps_left=row % 2) for row in range(1, 5)]
    found = str(summary_of(*lines, failed(5, "no")))
    assert found.startswith("5 of 5 rows: 4 converged, 2 with steps left, 1 failed.")


def test_nothing_is_said_of_steps_where_none_is_left() -> None:
    found = str(summary_of(line(1, ended="converged", steps_left=0), line(2, ended="converged")))
    assert found.startswith("2 of 2 rows: 2 converged.")


def test_rows_that_did_without_something_are_counted() -> None:
    found = summary_of(line(1, ended="converged", degraded=["tool_missing"]))
    assert "1 row lacked something that was configured" in str(found)


def test_errors_that_differ_in_numbers_alone_are_one_group() -> None:
    lines = [failed(row, f"not asked for {row}.5 s") for row in range(1, 8)]
    lines.append(line(9, ended="invalid", error={"type": "row", "message": "line 9: no task"}))
    lines.append(line(10, ended="invalid", error={"type": "row", "message": "line 10: no task"}))
    groups = summary_of(*lines).errors()
    assert [(group.count, group.rows) for group in groups] == [(7, [1, 2, 3, 4, 5]), (2, [9, 10])]
    assert groups[0].message == "not asked for 1.5 s"


def test_errors_that_are_all_different_are_bounded() -> None:
    summary = Summary(10**6)
    for row in range(1, 1001):
        summary.add(failed(row, "e" * row))
    groups = summary.errors()
    assert len(groups) == 201
    assert (groups[0].message, groups[0].count) == ("other errors", 800)


def test_the_page_links_a_group_to_its_rows_and_a_row_to_its_record(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    rows = [failed(row, "gone", record=f"{out}.records#r{row}") for row in (1, 2)]
    page = write_page(summary_of(*rows), out).read_text()
    anchors = set(re.findall(r'id="([^"]+)"', page))
    links = set(re.findall(r'href="#([^"]+)"', page))
    assert links <= anchors
    assert {"row-1", "record-1", "row-2", "record-2"} <= links
    assert '<th scope="row" class="number">2</th>' in page
    assert "batch record" in page


@pytest.mark.parametrize(
    ("ends", "sentence"),
    [
        (("converged", "failed"), "1 of 2 rows converged"),
        (("completed",), "1 of 1 row completed"),
        (("max_passes", "failed"), "0 of 2 rows converged or completed"),
        (("failed", "failed"), "2 of 2 rows failed"),
        (("failed", "step_failed"), "0 of 2 rows converged or completed"),
        (("check_failed",), "0 of 1 row converged or completed"),
        (("ttl_expired", "ttl_expired"), "0 of 2 rows converged or completed"),
        (("converged", "completed", "failed"), "1 converged and 1 completed, of 3 rows"),
    ],
)
def test_the_headline_counts_the_rows_that_ended_well(ends: tuple[str, ...], sentence: str) -> None:
    found = summary_of(*(line(row, ended=end) for row, end in enumerate(ends, 1)))
    assert describe_good_ends(found) == sentence


def test_a_row_leads_to_its_whole_error_and_answer(tmp_path: Path) -> None:
    message = "one\n" + "two " * 500
    page = write_page(summary_of(failed(1, message, answer="# Head")), tmp_path / "o.jsonl")
    (block,) = re.findall(
        r'<details class="folded" id="record-1">(.*?)</details>', page.read_text(), re.S
    )
    assert message.strip() in block
    assert "# Head" in block
    assert "batch record" not in block  # it has no record


def test_lines_of_before_are_read_too() -> None:
    old = json.loads(json.dumps(line(1, ended="converged")))
    assert "steps_left" not in old
    assert summary_of(old).with_steps_left == 0
