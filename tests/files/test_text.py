"""Text, JSON and YAML in files."""

from pathlib import Path

import pytest

from aeon.domain.errors import ConfigError
from aeon.files.fast_yaml import read_yaml
from aeon.files.text import hold, lock_file


def test_values_of_yaml_are_read_without_positions(tmp_path: Path) -> None:
    path = tmp_path / "values.yaml"
    path.write_text("a: [1, zwölf]\n", encoding="utf-8")
    assert read_yaml(path) == {"a": [1, "zwölf"]}


def test_what_is_no_yaml_is_a_value_error_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "values.yaml"
    path.write_text("a: [1\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"values\.yaml"):
        read_yaml(path)


def test_a_file_is_locked_for_one_at_a_time_until_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "held"
    with path.open("wb") as one:
        assert lock_file(one) is True
        with path.open("rb") as other:
            assert lock_file(other) is False
            assert lock_file(other, shared=True) is False
    with path.open("rb") as one, path.open("rb") as other:
        assert lock_file(one, shared=True) is True
        assert lock_file(other, shared=True) is True


def test_who_finds_a_file_held_is_told_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "held"
    with (
        hold(path, "out=held", ""),
        pytest.raises(ConfigError, match="out=held: another process is writing it") as refused,
        hold(path, "out=held", "Wait for it."),
    ):
        pass
    assert refused.value.hint == "Wait for it."
    with hold(path, "out=held", ""):
        assert path.read_bytes() == b""


def test_a_file_in_a_folder_that_is_not_there_cannot_be_held(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused, hold(tmp_path / "gone" / "held", "out=held", ""):
        pass
    assert f"mkdir -p {tmp_path}/gone" in refused.value.hint


def test_a_file_that_another_process_has_just_replaced_is_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It opened the file before the other put a new one there, and locks it after the other let it go."""
    fcntl = pytest.importorskip("fcntl")
    path, new = tmp_path / "out", tmp_path / "new"
    new.touch()
    monkeypatch.setattr(fcntl, "flock", lambda _file, _how: new.replace(path))
    with pytest.raises(ConfigError, match="another process is writing it"), hold(path, "out", ""):
        pytest.fail("it holds a file that nobody will read")
