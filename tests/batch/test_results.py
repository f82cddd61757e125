"""The file of a batch: what is taken over from it, and shards put together."""

import json
import tarfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from aeon.batch import records
from aeon.batch.dataset import Common, Dataset, Row, open_dataset
from aeon.batch.merge import merge
from aeon.batch.results import Results, in_order
from aeon.config.settings import BatchColumns
from aeon.domain.errors import ConfigError


def dataset(folder: Path, count: int = 5, task: str = "task") -> Dataset:
    path = folder / "tasks.csv"
    path.write_text("id,task\n" + "".join(f"r{n},{task} {n}\n" for n in range(1, count + 1)))
    return open_dataset(path, BatchColumns(), Common())


def given(row: int) -> str:
    return Row(row, row, f"r{row}", f"task {row}").given


def opened(path: Path, rows: Dataset, changed: str = "refuse") -> Results:
    return Results(path, "c", rows, changed, lambda _text: True)


def line(
    row: int, ended: str = "converged", of: int = 3, configuration: str = "c", **more: Any
) -> dict[str, Any]:
    return {
        "id": f"r{row}",
        "row": row,
        "of": of,
        "ended": ended,
        "configuration": configuration,
        "given": given(row),
        **more,
    }


def file_of(folder: Path, name: str, *lines: dict[str, Any], tail: str = "") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(one) + "\n" for one in lines) + tail)
    return path


def test_rows_that_are_done_are_taken_over_and_the_others_are_left_out(tmp_path: Path) -> None:
    ends = ("converged", "stalled", "failed", "invalid")
    path = file_of(
        tmp_path,
        "out",
        *(line(n, end) for n, end in enumerate(ends, start=1)),
        tail='{"id": "r5", "ro',
    )
    results = opened(path, dataset(tmp_path))
    assert list(results.done) == [0, 1, 1, 0, 0, 0]
    results.begin()
    results.write(line(3, cost=0.5))
    results.close()
    assert [json.loads(text)["id"] for text in path.read_text().splitlines()] == ["r1", "r2", "r3"]
    assert {json.loads(text)["of"] for text in path.read_text().splitlines()[:2]} == {5}
    assert dict(results.summary.ends) == {"converged": 2, "stalled": 1}
    assert results.summary.cost == 0.5


def test_a_row_that_left_steps_without_a_usable_answer_is_not_done_unless_it_ended_well(
    tmp_path: Path,
) -> None:
    path = file_of(
        tmp_path,
        "out",
        line(1, "step_failed", unusable_calls=["step"]),
        line(2, "converged", unusable_calls=["step"]),
        line(3, "step_failed", unusable_calls=[]),
    )
    results = opened(path, dataset(tmp_path))
    results.begin()
    results.close()
    assert list(results.done) == [0, 0, 1, 1, 0, 0]
    assert [json.loads(text)["id"] for text in path.read_text().splitlines()] == ["r2", "r3"]


def test_a_row_that_asks_for_something_else_is_not_taken_as_done(tmp_path: Path) -> None:
    path = file_of(tmp_path, "out", line(1), line(2))
    before, changed = path.read_bytes(), dataset(tmp_path, task="other")
    with pytest.raises(
        ConfigError, match="2 rows that it has done, the first in line 2 of the dataset"
    ):
        opened(path, changed)
    assert path.read_bytes() == before
    results = opened(path, changed, "again")
    results.begin()
    results.close()
    assert not any(results.done)
    assert path.read_bytes() == b""


def test_rows_may_be_added_to_a_dataset_and_moved_but_not_taken_out(tmp_path: Path) -> None:
    path = file_of(tmp_path, "out", line(1), line(2))
    (tmp_path / "tasks.csv").write_text("id,task\nnew,x\nr2,task 2\nr1,task 1\n")
    results = Results(
        path,
        "c",
        open_dataset(tmp_path / "tasks.csv", BatchColumns(), Common()),
        "refuse",
        lambda _text: True,
    )
    results.begin()
    results.close()
    assert list(results.done) == [0, 0, 1, 1]
    assert [json.loads(text)["row"] for text in path.read_text().splitlines()] == [3, 2]
    (tmp_path / "tasks.csv").write_text("id,task\nr1,task 1\n")
    with pytest.raises(ConfigError, match="it has 1 row that the dataset has not"):
        Results(
            path,
            "c",
            open_dataset(tmp_path / "tasks.csv", BatchColumns(), Common()),
            "refuse",
            lambda _text: True,
        )


def test_a_file_is_as_it_was_until_the_rows_begin(tmp_path: Path) -> None:
    path = file_of(tmp_path, "out", line(1), line(2, "invalid"))
    before = path.read_bytes()
    results = opened(path, dataset(tmp_path))
    assert results.summary.count == 1
    with pytest.raises(ConfigError, match="another process is writing it"):
        opened(path, dataset(tmp_path))
    results.close()
    assert path.read_bytes() == before
    assert sorted(found.name for found in tmp_path.iterdir()) == ["out", "tasks.csv"]


def test_one_process_writes_a_file(tmp_path: Path) -> None:
    first = opened(tmp_path / "out", dataset(tmp_path))
    first.begin()
    with pytest.raises(ConfigError, match="another process is writing it"):
        opened(tmp_path / "out", dataset(tmp_path))
    first.close()
    opened(tmp_path / "out", dataset(tmp_path)).close()


def test_a_link_goes_on_leading_to_the_results(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to(Path("disk", "results"))
    for row in (1, 2):
        results = opened(tmp_path / "out", dataset(tmp_path))
        results.begin()
        results.write(line(row))
        results.close()
    assert (tmp_path / "out").is_symlink()
    assert [path.name for path in (tmp_path / "disk").iterdir()] == ["results"]
    texts = (tmp_path / "disk" / "results").read_text().splitlines()
    assert [json.loads(text)["id"] for text in texts] == ["r1", "r2"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", 7),
        ("row", "1"),
        ("row", 0),
        ("of", 10**12),
        ("given", "xyz"),
        ("configuration", 5),
        ("error", "it failed"),
        ("scores", {"completeness_score": "1"}),
        ("cost", "0.5"),
        ("degraded", 3),
        ("unusable_calls", "step"),
        ("answer", 7),
        ("record", 7),
    ],
)
def test_a_line_of_other_types_is_none_of_a_batch(tmp_path: Path, name: str, value: Any) -> None:
    path = file_of(tmp_path, "out", {**line(1), name: value})
    for read in (
        lambda: opened(path, dataset(tmp_path)),
        lambda: merge([path], tmp_path / "m.csv"),
    ):
        with pytest.raises(ConfigError, match="out: line 1 is no result of a batch"):
            read()


def test_a_line_that_is_nested_without_end_is_none_of_a_batch(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("[" * 100_000 + "\n")
    with pytest.raises(ConfigError, match="out: line 1 is no result of a batch"):
        opened(tmp_path / "out", dataset(tmp_path))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (json.dumps(line(1, configuration="other")) + "\n", "another configuration"),
        ('{"a": 1}\n', "out: line 1 is no result of a batch"),
        ("text\n", "out: line 1 is no result"),
    ],
)
def test_a_file_of_something_else_is_refused_and_stays(
    tmp_path: Path, text: str, problem: str
) -> None:
    path = tmp_path / "out"
    path.write_text(text)
    with pytest.raises(ConfigError, match=problem):
        opened(path, dataset(tmp_path))
    assert path.read_text() == text
    assert sorted(found.name for found in tmp_path.iterdir()) == ["out", "tasks.csv"]


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no folder"):
        opened(tmp_path / "missing" / "out", dataset(tmp_path))
    with pytest.raises(ConfigError, match="Is a directory") as caught:
        opened(tmp_path, dataset(tmp_path))
    assert caught.value.hint == "Free space or choose another place."  # nobody is waited for


def test_lines_come_in_the_order_of_their_rows() -> None:
    come = [line(5), line(1), line(3), line(7)]
    assert [found["row"] for found in in_order(come, [1, 3, 5, 7, 9])] == [1, 3, 5, 7]
    assert [found["row"] for found in in_order([line(9), line(5)], [1, 5, 9])] == [5, 9]


def test_a_record_that_unpacks_without_bound_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as files:
        member = tarfile.TarInfo("run.json")
        member.size = 5000
        files.addfile(member, BytesIO(b" " * 5000))
    place = records.Records(tmp_path / "out")
    named = place.keep("r1", packed.getvalue())
    place.close()
    file_of(tmp_path, "out", line(1, record=named))
    monkeypatch.setattr(records, "MAX_RECORD_BYTES", 4000)
    with pytest.raises(ConfigError, match=r"unpacks to more than 4,000 bytes"):
        records.unpack_record(tmp_path / "out", "r1", tmp_path / "new")
