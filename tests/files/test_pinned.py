"""What a person has looked at is what is used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aeon.domain.errors import ConfigError
from aeon.files.pinned import pin_folder, read_file, unpin_folders


@pytest.fixture(autouse=True)
def unpinned() -> Iterator[None]:
    yield
    unpin_folders()


def test_a_pinned_file_is_what_it_was_whatever_becomes_of_it(tmp_path: Path) -> None:
    path = tmp_path / "ttl" / "mine.yaml"
    path.parent.mkdir()
    path.write_bytes(b"later")
    pin_folder(tmp_path, {"ttl/mine.yaml": b"before"})
    assert read_file(path) == read_file(tmp_path / "ttl" / ".." / "ttl" / "mine.yaml") == b"before"
    path.unlink()
    assert read_file(path) == b"before"


def test_a_file_that_was_not_there_is_refused(tmp_path: Path) -> None:
    pin_folder(tmp_path, {})
    (tmp_path / "new.yaml").write_bytes(b"new")
    with pytest.raises(ConfigError, match="none of the files that you have trusted"):
        read_file(tmp_path / "new.yaml")


def test_a_name_that_leads_out_of_a_pinned_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "outside.yaml").write_bytes(b"outside")
    pin_folder(tmp_path / "conf", {})
    assert read_file(tmp_path / "outside.yaml") == b"outside"
    with pytest.raises(ConfigError, match="none of the files"):
        read_file(tmp_path / "conf" / ".." / "outside.yaml", tmp_path / "conf")


def test_other_files_are_read_from_the_disk(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    assert read_file(tmp_path / "a", tmp_path) == b"1"
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "b")
