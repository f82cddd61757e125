"""Folders that last as long as their process."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from aeon.batch.passing import make_passing_folder


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_is_gone_with_its_block(place: Path) -> None:
    with make_passing_folder() as folder:
        (folder / "of the batch").write_text("x")
    assert list(place.iterdir()) == []


def test_a_folder_whose_process_lives_stays() -> None:
    with make_passing_folder() as first:
        with make_passing_folder() as second:
            assert first.is_dir()
            assert second.is_dir()
        assert first.is_dir()


def test_what_a_killed_process_left_is_removed_by_the_next(place: Path) -> None:
    pytest.importorskip("fcntl")
    code = "import os\nfrom aeon.batch.passing import make_passing_folder\nwith make_passing_folder(): os._exit(9)"
    environ = {**os.environ, "TMPDIR": str(place)}
    subprocess.run([sys.executable, "-c", code], env=environ, check=False, timeout=60)
    [left] = place.iterdir()
    with make_passing_folder():
        assert not left.exists()


def test_another_programs_folder_is_left_alone(place: Path) -> None:
    (place / "aeon-batch-of-another").mkdir()
    with make_passing_folder():
        assert (place / "aeon-batch-of-another").is_dir()
