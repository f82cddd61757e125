"""Values that know where they stand in their file."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from aeon.domain.errors import ConfigError
from aeon.files import located_yaml
from aeon.files.located_yaml import LocatedYaml, LongestList, Position, UnreadableFile
from aeon.files.text import format_place

TEXT = """\
a: 1
b:
  - x
  - {c: [y, "z"]}
base: &base {p: 1, q: 2}
more: {<<: *base, q: 3}
"""


def read(folder: Path, text: str, name: str = "my.yaml") -> LocatedYaml:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return LocatedYaml(path)


def test_each_value_and_each_key_has_its_position(tmp_path: Path) -> None:
    document = read(tmp_path, TEXT)
    assert document.value["b"] == ["x", {"c": ["y", "z"]}]
    assert document.position(()) == Position(1, 1)
    assert document.position(("a",)) == Position(1, 4)
    assert document.key_position(("a",)) == Position(1, 1)
    assert document.position(("b", 1, "c", 1)) == Position(4, 13)
    assert document.key_position(("b", 1)) == Position(4, 5)
    assert document.key_position(("b",)) == Position(2, 1)


def test_what_is_not_there_stands_where_the_nearest_thing_around_it_does(tmp_path: Path) -> None:
    assert read(tmp_path, TEXT).position(("b", 1, "nothing", 7)) == Position(4, 5)


def test_json_has_the_same_positions(tmp_path: Path) -> None:
    document = read(tmp_path, '{\n\t"a": {"b":1,\n\t\t"c": [true, null]}\n}', "my.json")
    assert document.value == {"a": {"b": 1, "c": [True, None]}}
    assert document.key_position(("a", "b")) == Position(2, 8)
    assert document.position(("a", "c", 1)) == Position(3, 15)


def test_json_that_yaml_cannot_read_is_read_without_positions(tmp_path: Path) -> None:
    document = read(tmp_path, '{\n"' + "k" * 2000 + '": 1, "a": "\x7f"}', "my.json")
    assert document.value["a"] == "\x7f"
    assert document.position(("a",)) == Position(1, 1)


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    assert read(tmp_path, "\ufeffa: 1").value == {"a": 1}
    assert read(tmp_path, '\ufeff{"a": 1}', "my.json").value == {"a": 1}


@pytest.mark.parametrize("name", ["my.yaml", "my.json"])
def test_a_key_that_stands_twice_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r":2: `a` is repeated here; it is already on line 1"):
        read(tmp_path, '{"b": {"a": 1,\n"a": 2}}', name)


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("a: [1", (1, 6), "expected"),
        ("a: 1\nb: *c", (2, 4), "undefined alias"),
        ("a: !!int x", (1, 1), "not YAML"),
        ("ok: 1\nx: \x01", (1, 1), "special characters are not allowed"),
        ("? [a]\n: b", (1, 3), "unhashable key"),
        ("a: !thing x", (1, 4), "the tag '!thing'"),
    ],
)
def test_what_is_no_yaml_says_where(
    tmp_path: Path, text: str, position: tuple[int, int], problem: str
) -> None:
    with pytest.raises(UnreadableFile) as caught:
        read(tmp_path, text)
    assert caught.value.position == position
    assert problem in caught.value.problem
    assert caught.value.message == f"{tmp_path / 'my.yaml'}:{position[0]}: {caught.value.problem}"


def test_a_place_is_written_as_people_do() -> None:
    assert format_place(("calls", "step", 1, "answer")) == "calls.step[2].answer"
    assert format_place(()) == ""


def test_numbers_that_json_lacks_are_numbers_and_no_text(tmp_path: Path) -> None:
    value = read(
        tmp_path,
        'a: [.inf, -.Inf, +.INF]\nb: [.nan, .NaN, .NAN]\nc: [".nan", .Nan, -.nan, .infinity]\n',
    ).value
    assert value["a"] == [math.inf, -math.inf, math.inf]
    assert all(math.isnan(number) for number in value["b"])
    assert value["c"] == [".nan", ".Nan", "-.nan", ".infinity"]


def test_of_merged_mappings_the_first_one_with_a_key_counts_and_the_own_key_before_all(
    tmp_path: Path,
) -> None:
    text = "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc:\n  <<: [*a, *b]\n  x: 3\nd: {<<: *b}\n"
    path = tmp_path / "m.yaml"
    path.write_text(text)
    value = LocatedYaml(path).value
    assert value["c"] == {"x": 3, "y": 1, "z": 2}
    assert value["d"] == {"y": 2, "z": 2}


@pytest.mark.parametrize("name", ["deep.yaml", "deep.json"])
def test_values_nested_too_deeply_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("[" * 250 + "]" * 250)
    with pytest.raises(ConfigError, match="nested more than 200 levels deep"):
        LocatedYaml(path)


@pytest.mark.parametrize("name", ["my.yaml", "my.json"])
def test_a_list_that_is_too_long_is_refused_where_it_is_and_read_no_further(
    tmp_path: Path, name: str
) -> None:
    text = '{"other": [1, 1, 1, 1],\n"steps": [[1, 1, 1, 1], 1,\n' + '1, "' + "a\\u0000" * 3 + '"]}'
    longest = LongestList("steps", 2, "Write less")
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(UnreadableFile, match="`steps` has more than 2 entries") as caught:
        LocatedYaml(path, longest=longest)
    assert caught.value.position == Position(3, 1)
    assert caught.value.hint == "Write less"
    assert len(LocatedYaml(path, longest=LongestList("steps", 4)).value["steps"]) == 4


def test_a_file_of_very_many_values_is_read_no_further_than_these(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(located_yaml, "MAX_VALUES", 10)
    with pytest.raises(UnreadableFile, match="write less") as caught:
        read(tmp_path, "- 1\n" * 1_000)
    assert caught.value.position == Position(20, 3)


def test_a_file_that_is_too_long_is_refused_before_it_is_read_as_yaml(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match=r"more than 2,000,000 characters \(2,000,001\)"):
        read(tmp_path, "[" + "a" * 2_000_000)
