"""Tables from strangers: what unpacks without bound, names that stand twice, and texts that would be formulas."""

import csv
from datetime import date
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pytest

from aeon.domain.errors import ConfigError
from aeon.files import tables
from aeon.files.tables import MOST_OF_A_CELL, read_rows, write_csv

LONG = "x" * 1_000_000
LITTLE, ENOUGH = 450_000_000, 750_000_000
"""Bytes of memory for pyarrow, and a hundred or some hundred megabytes of rows."""


def parquet(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pyarrow, writer = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    writer.write_table(pyarrow.table(columns), path, compression="zstd", **options)
    return path


def column_size(path: Path) -> int:
    """The bytes that the only column unpacks to, as the footer has it."""
    metadata = pytest.importorskip("pyarrow.parquet").read_metadata(path)
    return int(metadata.row_group(0).column(0).total_uncompressed_size)


def forge_size(content: bytes, size: int) -> bytes:
    """Replace a size, a number of Thrift, by a small one of as many bytes."""
    digits = bytearray()
    left = size * 2
    while left:
        digits.append(left & 127 | 128)
        left >>= 7
    digits[-1] &= 127
    return content.replace(digits, bytes([144, 144, *[128] * (len(digits) - 3), 0]))


@pytest.mark.slow
def test_a_long_text_that_all_rows_have_is_unpacked_row_by_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MOST_MEMORY", LITTLE)  # all rows at once would be 800 MB
    pyarrow = pytest.importorskip("pyarrow")
    texts = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 400), pyarrow.array([LONG]))
    path = parquet(tmp_path / "d.parquet", {"task": texts})
    assert sum(len(given["task"]) for _, given in read_rows(path)) == 400 * len(LONG)


@pytest.mark.slow
def test_long_texts_within_structs_are_unpacked_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MOST_MEMORY", ENOUGH)
    path = parquet(tmp_path / "d.parquet", {"inputs": [{"passage": LONG}] * 300})
    assert path.stat().st_size < 10_000
    assert sum(len(given["inputs"]["passage"]) for _, given in read_rows(path)) == 300 * len(LONG)


@pytest.mark.slow
def test_a_parquet_file_whose_footer_lies_unpacks_to_no_more_than_its_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("resource")  # elsewhere nothing limits the process
    monkeypatch.setattr(tables, "MOST_MEMORY", LITTLE)
    text = "x" * 200_000_000
    path = parquet(tmp_path / "d.parquet", {"task": [text]}, use_dictionary=False)
    path.write_bytes(forge_size(path.read_bytes(), column_size(path)))
    assert column_size(path) < 10_000
    with pytest.raises(ConfigError, match=r"as Parquet: after 0 rows, it needs more than 2,048 MB"):
        list(read_rows(path))


@pytest.mark.slow
def test_a_parquet_file_that_takes_too_long_for_its_size_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("resource")
    monkeypatch.setattr(tables, "_SECONDS", 1)
    pyarrow = pytest.importorskip("pyarrow")
    texts = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 50_000), pyarrow.array([LONG]))
    path = parquet(tmp_path / "d.parquet", {"task": texts})
    with pytest.raises(ConfigError, match="rows, it takes too long for a file of its size"):
        for _ in read_rows(path):
            pass


def test_a_row_with_very_many_values_is_refused(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    values = pyarrow.array(bytes(2_000_000), pyarrow.int8())
    lists = pyarrow.ListArray.from_arrays(pyarrow.array([0, 2_000_000], pyarrow.int32()), values)
    path = parquet(tmp_path / "d.parquet", {"task": ["a"], "list": lists})
    assert path.stat().st_size < 2_000
    with pytest.raises(ConfigError, match=r"list\S* has 2,000,000 values: 1,000,000 are the most"):
        list(read_rows(path))


def test_values_of_a_parquet_file_are_texts_and_objects(tmp_path: Path) -> None:
    day = date(2025, 1, 2)
    rows = [{"task": "ä", "n": 1, "o": {"at": day, "x": None}}, {"task": None, "n": 2, "o": {}}]
    pyarrow = pytest.importorskip("pyarrow")
    path = parquet(tmp_path / "d.parquet", pyarrow.Table.from_pylist(rows).to_pydict())
    assert [given for _, given in read_rows(path)] == [
        {"task": "ä", "n": "1", "o": {"at": "2025-01-02"}},
        {"n": "2", "o": {}},
    ]


def test_what_is_no_parquet_file_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "d.parquet"
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(ConfigError, match="cannot be read as Parquet: Parquet magic bytes"):
        list(read_rows(path))


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
