"""Tables from strangers: what unpacks without bound, names that stand twice, and texts that would be formulas."""

import csv
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pytest

from aeon.domain.errors import ConfigError
from aeon.files.tables import MOST_OF_A_CELL, read_rows, write_csv

LONG = "x" * 1_000_000


def parquet(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pyarrow, writer = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    writer.write_table(pyarrow.table(columns), path, compression="zstd", **options)
    return path


def most_allocated(path: Path) -> int:
    """The most bytes that reading a Parquet file row by row has allocated at once."""
    pool = pytest.importorskip("pyarrow").default_memory_pool()
    before = pool.bytes_allocated()
    return max(pool.bytes_allocated() - before for _ in read_rows(path))


@pytest.mark.slow
def test_a_column_that_unpacks_to_much_more_than_the_file_is_refused(tmp_path: Path) -> None:
    path = parquet(tmp_path / "d.parquet", {"task": ["x" * 100_000_000]}, use_dictionary=False)
    assert path.stat().st_size < 10_000
    with pytest.raises(ConfigError, match=r"task unpacks to 100,000,\d+ bytes"):
        list(read_rows(path))


def test_a_long_text_that_all_rows_have_is_unpacked_row_by_row(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    texts = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 2900), pyarrow.array([LONG]))
    path = parquet(tmp_path / "d.parquet", {"task": texts})
    assert most_allocated(path) < 50_000_000  # 1,000 rows at once, unpacked, would be 1 GB


def test_long_texts_within_structs_are_unpacked_few_at_a_time(tmp_path: Path) -> None:
    path = parquet(tmp_path / "d.parquet", {"inputs": [{"passage": LONG}] * 200})
    assert path.stat().st_size < 10_000
    assert most_allocated(path) < 150_000_000  # all at once would be 200 MB


@pytest.mark.slow
def test_a_cell_of_a_parquet_file_has_a_most(tmp_path: Path) -> None:
    long = "".join(chr(0x4E00 + n % 20_000) for n in range(MOST_OF_A_CELL + 1))
    path = parquet(tmp_path / "d.parquet", {"task": [long]})
    with pytest.raises(ConfigError, match=r"a cell of task has 10,000,001: 10,000,000 characters"):
        list(read_rows(path))


def test_a_row_with_a_name_twice_is_a_problem_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"task": "a", "overrides": {"mode": "core", "mode": "auto"}}\n{"task": "b"}\n')
    [(_, first), (_, second)] = read_rows(path)
    assert isinstance(first, ValueError)
    assert "the name 'mode' is repeated" in str(first)
    assert second == {"task": "b"}


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_a_text_that_a_spreadsheet_takes_for_a_formula_begins_with_an_apostrophe(text: str) -> None:
    file = BytesIO()
    write_csv(file, ["answer", "cost"], [{"answer": text, "cost": -1.5}])
    [row] = csv.DictReader(StringIO(file.getvalue().decode(), newline=""))
    assert row == {"answer": f"'{text}", "cost": "-1.5"}


def test_other_texts_are_as_they_were() -> None:
    file = BytesIO()
    write_csv(file, ["answer"], [{"answer": "1 - 1 = 0"}])
    assert file.getvalue() == b"answer\r\n1 - 1 = 0\r\n"
