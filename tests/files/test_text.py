"""Text, JSON and YAML in files."""

from pathlib import Path

import pytest

from aeon.files.fast_yaml import read_yaml


def test_values_of_yaml_are_read_without_positions(tmp_path: Path) -> None:
    path = tmp_path / "values.yaml"
    path.write_text("a: [1, zwölf]\n", encoding="utf-8")
    assert read_yaml(path) == {"a": [1, "zwölf"]}


def test_what_is_no_yaml_is_a_value_error_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "values.yaml"
    path.write_text("a: [1\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"values\.yaml"):
        read_yaml(path)
