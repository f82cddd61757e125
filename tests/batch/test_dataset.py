"""The rows of a dataset, and what is wrong with one."""

from pathlib import Path
from typing import Any

import pytest

from aeon.batch import dataset
from aeon.batch.dataset import Common, Row, open_dataset
from aeon.config.settings import BatchColumns
from aeon.domain.errors import ConfigError


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_json_lines_give_tasks_inputs_ids_and_overrides(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "d.jsonl",
        '{"id": "a", "task": "one", "inputs": {"x": "text"}, "overrides": {"ttl.base": 9, "ttl": "small"}}\n'
        "\n"
        '{"task": "two", "more": 1}\n',
    )
    assert list(open_dataset(path, BatchColumns(), Common()).rows()) == [
        Row(1, 1, "a", "one", {"x": "text"}, ("ttl.base=9", "ttl=small")),
        Row(2, 3, "2", "two"),
    ]


def test_a_text_with_commas_is_one_value_of_an_override(tmp_path: Path) -> None:
    path = written(
        tmp_path, "d.jsonl", '{"task": "t", "overrides": {"a": "x, y", "b": "[x,y]", "c": "x"}}\n'
    )
    (row,) = open_dataset(path, BatchColumns(), Common()).rows()
    assert row.overrides == ("a='x, y'", "b=[x,y]", "c=x")


def test_a_table_is_read_by_its_header_and_the_columns_that_are_named(tmp_path: Path) -> None:
    path = written(tmp_path, "d.csv", '\ufeffkey,question,passage\nk1,"one,\ntwo",p\nk2,three,q\n')
    columns = BatchColumns(id="key", task="question", inputs={"text": "passage"})
    assert list(open_dataset(path, columns, Common()).rows()) == [
        Row(1, 3, "k1", "one,\ntwo", {"text": "p"}),
        Row(2, 4, "k2", "three", {"text": "q"}),
    ]


def test_a_task_given_once_is_that_of_rows_without_one(tmp_path: Path) -> None:
    path = written(tmp_path, "d.tsv", 'id\tinputs\nx\t"{""a"": ""b""}"\n')
    assert list(
        open_dataset(path, BatchColumns(), Common("summarise", {"c": "d", "a": "z"})).rows()
    ) == [Row(1, 2, "x", "summarise", {"c": "d", "a": "b"})]


def test_a_cell_of_blanks_is_no_task_of_its_own(tmp_path: Path) -> None:
    path = written(tmp_path, "d.csv", 'id,task\nx," "\ny,own\n')
    assert [row.task for row in open_dataset(path, BatchColumns(), Common("all")).rows()] == [
        "all",
        "own",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[1]", "line 1: a row is a JSON object, not list"),
        ("{", "line 1: not JSON at column 2: "),
        ('{"task": 5}', "line 1: task: must be a text, not int"),
        ('{"id": "x"}', "line 1: there is no task"),
        ('{"task": "t", "inputs": {"a": 1}}', "line 1: inputs.a: must be a text, not int"),
        (
            '{"task": "t", "overrides": [1]}',
            "line 1: overrides: must be an object of names and values",
        ),
        ('{"task": "t", "input_files": {"a": "/a"}}', "line 1: input_files: a row names no files"),
        ('{"id": [1], "task": "t"}', "line 1: id: must be a text or a number, not list"),
        ('{"id": "\\ud800", "task": "t"}', "line 1: id is not valid Unicode"),
        ('{"task": "\\ud800"}', "line 1: task is not valid Unicode"),
    ],
)
def test_a_row_that_cannot_be_run_says_why_with_its_line(
    tmp_path: Path, text: str, problem: str
) -> None:
    dataset = open_dataset(
        written(tmp_path, "d.jsonl", f'{text}\n{{"task": "good"}}\n'), BatchColumns(), Common()
    )
    bad, good = dataset.rows()
    assert bad.problem.startswith(problem)
    assert (good.task, good.problem, dataset.count) == ("good", "", 2)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "d.jsonl",
            '{"id": 1, "task": "a"}\n{"id": 2 "task": "b"}\n{"id": 3, "task": "c"}\n{"id": 2, "task": "d"}\n',
        ),
        ("d.csv", "id,task\n1,a\n2,b, b\n3,c\n2,d\n"),
    ],
)
def test_a_row_that_cannot_be_read_has_no_id_of_another(
    tmp_path: Path, name: str, text: str
) -> None:
    rows = list(open_dataset(written(tmp_path, name, text), BatchColumns(), Common()).rows())
    assert [row.id for row in rows] == ["1", f"line-{rows[1].line}", "3", "2"]
    assert [bool(row.problem) for row in rows] == [False, True, False, False]


@pytest.mark.parametrize(
    ("name", "text", "columns", "problem"),
    [
        ("d.jsonl", b'{"task": "\xff"}\n', BatchColumns(), "not UTF-8"),
        ("d.jsonl", "\n\n", BatchColumns(), "there are no rows"),
        ("d.xlsx", "", BatchColumns(), r"must be a file \.jsonl"),
        (
            "d.csv",
            'id,task\na,"never closed\nb,two\n',
            BatchColumns(),
            "quotation mark from line 1 on is not closed",
        ),
        (
            "d.csv",
            "key,question\na,b\n",
            BatchColumns(),
            "no row can be run: line 2: there is no task in the column",
        ),
        ("d.csv", "task,task\na,b\n", BatchColumns(), "two columns have the same name"),
        ("d.csv", b"task\na\nb\xff\n", BatchColumns(), "line 3 is not UTF-8"),
        ("d.parquet", "no", BatchColumns(), "cannot be read as Parquet"),
        (
            "d.jsonl",
            '{"id": 1, "task": "a"}\n{"id": 1, "task": "b"}\n',
            BatchColumns(),
            "2: the id '1' is that of line 1",
        ),
        ("d.jsonl", '{"task": "a"}\n', BatchColumns(id="key"), "no row of .* has key"),
        ("d.csv", "task\na\n", BatchColumns(inputs={"x": "text"}), "no row of .* has text"),
    ],
)
def test_a_dataset_that_cannot_be_run_is_refused_whole(
    tmp_path: Path, name: str, text: str | bytes, columns: BatchColumns, problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        open_dataset(written(tmp_path, name, text), columns, Common())


def test_a_row_of_a_table_with_too_many_cells_is_a_row_that_cannot_be_run(tmp_path: Path) -> None:
    bad, good = open_dataset(
        written(tmp_path, "d.csv", "id,task\na,b,c\nd,e\n"), BatchColumns(), Common()
    ).rows()
    assert (
        bad.problem
        == "line 2: 3 cells, and the header has 2; a cell with ',' is written in quotation marks"
    )
    assert good.id == "d"


@pytest.mark.parametrize(
    "text",
    [
        ",id,task\n0,x,one\n1,y,two\n",
        "id,task,\nx,one,\ny,two,\n",
        "id,task,,\nx,one,,\n\ny,two,,\n",
        "id,task\rx,one\ry,two\r",
        "id,task\r\nx,one\r\ny,two",
    ],
)
def test_columns_without_a_name_and_other_ends_of_lines_are_read(tmp_path: Path, text: str) -> None:
    rows = open_dataset(written(tmp_path, "d.csv", text), BatchColumns(), Common()).rows()
    assert [(row.id, row.task) for row in rows] == [("x", "one"), ("y", "two")]


def test_a_cell_keeps_its_ends_of_lines(tmp_path: Path) -> None:
    path = written(tmp_path, "d.csv", 'id,task\r\nx,"a\rb\r\nc\nd"\r\n')
    assert [row.task for row in open_dataset(path, BatchColumns(), Common()).rows()] == [
        "a\rb\r\nc\nd"
    ]


def test_a_spreadsheet_may_put_semicolons_between_cells(tmp_path: Path) -> None:
    (row,) = open_dataset(
        written(tmp_path, "d.csv", "id;task;a, b\na;b, c;\n"), BatchColumns(), Common()
    ).rows()
    assert (row.id, row.task) == ("a", "b, c")


def test_parquet_gives_the_rows_that_json_lines_give(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [
        {"id": 7, "task": "one", "inputs": {"x": "text"}, "n": 5, "overrides": None},
        {"id": 8, "task": "two", "inputs": None, "n": None, "overrides": {"ttl": {"base": 9}}},
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "d.parquet")
    bad_second = open_dataset(
        tmp_path / "d.parquet", BatchColumns(inputs={"number": "n"}), Common()
    )
    first, second = bad_second.rows()
    assert first == Row(1, 1, "7", "one", {"x": "text", "number": "5"})
    assert second.problem == "line 2: n: must be a text, not NoneType"
    assert list(open_dataset(tmp_path / "d.parquet", BatchColumns(), Common()).rows())[
        1
    ].overrides == ("ttl={base: 9}",)


def test_parquet_gives_each_row_its_own_members_of_structs_and_maps(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows: list[dict[str, Any]] = [
        {"id": "a", "task": "t", "inputs": {"x": "1"}, "overrides": {"ttl": {"base": 9}}},
        {
            "id": "b",
            "task": "t",
            "inputs": {"y": "2"},
            "overrides": {"ttl": {"more": 8}, "mode": "core"},
        },
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "struct.parquet")
    kinds = {name: pyarrow.string() for name in ("id", "task")}
    kinds["inputs"] = pyarrow.map_(pyarrow.string(), pyarrow.string())
    table = pyarrow.Table.from_pylist(
        [{**row, "inputs": list(row["inputs"].items())} for row in rows], pyarrow.schema(kinds)
    )
    parquet.write_table(table, tmp_path / "map.parquet")
    structs, maps = (
        list(open_dataset(tmp_path / name, BatchColumns(), Common()).rows())
        for name in ("struct.parquet", "map.parquet")
    )
    assert (
        [row.inputs for row in structs] == [row.inputs for row in maps] == [{"x": "1"}, {"y": "2"}]
    )
    assert [row.overrides for row in structs] == [
        ("ttl={base: 9}",),
        ("ttl={more: 8}", "mode=core"),
    ]


def test_a_name_that_stands_twice_in_a_map_is_refused(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    given = pyarrow.array(
        [[("x", "1"), ("x", "2")]], pyarrow.map_(pyarrow.string(), pyarrow.string())
    )
    parquet.write_table(pyarrow.table({"task": ["t"], "inputs": given}), tmp_path / "d.parquet")
    with pytest.raises(ConfigError, match=r"cannot be read as Parquet.*'x'"):
        open_dataset(tmp_path / "d.parquet", BatchColumns(), Common())


def test_a_dataset_that_changes_while_it_is_read_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, "d.csv", "task\na\nb\n")
    dataset = open_dataset(path, BatchColumns(), Common())
    path.write_text("task\na\nb\nc\n")
    with pytest.raises(ConfigError, match="has changed while the batch was running"):
        list(dataset.rows())


def test_a_cell_of_json_with_a_name_twice_makes_its_row_invalid(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text('task,overrides\na,"{""mode"": ""core"", ""mode"": ""auto""}"\nb,\n')
    first, second = open_dataset(path, BatchColumns(), Common()).rows()
    assert "the name 'mode' is repeated" in first.problem
    assert not second.problem


@pytest.mark.parametrize("depth", [201, 5_000, 100_000])
def test_a_row_that_is_nested_too_deeply_has_that_problem(tmp_path: Path, depth: int) -> None:
    deep = "[" * depth + "]" * depth
    path = written(tmp_path, "d.jsonl", f'{{"task": {deep}}}\n{{"task": "t"}}\n')
    bad, good = open_dataset(path, BatchColumns(), Common()).rows()
    assert bad.problem == "line 1: not JSON: nested more than 200 levels deep"
    assert good.task == "t"


def test_a_long_dataset_is_reported_on_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset, "REPORTED_ROWS", 2)
    path = written(tmp_path, "d.jsonl", '{"task": "t"}\n' * 5)
    reported: list[int] = []
    open_dataset(path, BatchColumns(), Common(), reported.append)
    assert reported == [2, 4]


def test_a_dataset_has_a_most_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "MOST_ROWS", 3)
    path = written(tmp_path, "d.jsonl", '{"task": "t"}\n' * 4)
    with pytest.raises(ConfigError, match="there are more than 3 rows"):
        open_dataset(path, BatchColumns(), Common())
