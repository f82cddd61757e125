"""What composing has worked out is read again at the next start, for unchanged files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aeon.config.compose import cache
from aeon.config.load import compose

FILES = (("file", "/conf"), ("/conf/config.yaml", 1, 10))
Start = Callable[..., Any]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Start:
    """Asks as a program does that has just started; what is given is `made` only if it was not known."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def ask(made: object, files: tuple[Any, ...] = FILES, key: object = "key") -> Any:
        monkeypatch.setattr(cache, "_made", {})
        return cache.make_once(files, key, lambda: made)

    return ask


def file_in(folder: Path) -> Path:
    [path] = (folder / "aeon").iterdir()
    return path


def test_the_next_start_reads_what_the_one_before_made(start: Start) -> None:
    assert start([1]) == [1]
    assert start([2]) == [1]
    assert start([3], key="other") == [3]
    assert start([4]) == [1]


def test_a_changed_file_makes_all_anew(start: Start) -> None:
    changed = (FILES[0], ("/conf/config.yaml", 2, 10))
    start([1])
    assert start([2], changed) == [2]
    assert start([3]) == [3]


def test_each_caller_has_a_value_of_its_own(start: Start) -> None:
    start([1]).append(2)
    assert start([3]) == [1]


@pytest.mark.parametrize("harm", ["cut", "text", "writable", "folder"])
def test_a_cache_that_cannot_be_trusted_is_none(harm: str, start: Start, tmp_path: Path) -> None:
    start([1])
    path = file_in(tmp_path)
    if harm == "writable":
        path.chmod(0o666)
    elif harm == "folder":
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes(path.read_bytes()[:10] if harm == "cut" else b"no pickle")
    assert start([2]) == [2]


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_no_error(start: Start, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert start([1]) == [1]


@pytest.mark.parametrize("home", ["relative", "/dev/null"])
def test_without_a_cache_folder_all_is_made_anew(
    home: str, start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", home)
    assert [start([1]), start([2])] == [[1], [2]]
    assert list(tmp_path.iterdir()) == []


def test_the_file_stays_small(start: Start, tmp_path: Path) -> None:
    for number in range(40):
        cache.make_once(FILES, number, lambda: "x" * 1000)
    assert file_in(tmp_path).stat().st_size < 20_000
    assert file_in(tmp_path).stat().st_mode & 0o077 == 0


def test_what_an_editor_leaves_beside_a_file_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "limits").mkdir()
    (tmp_path / "limits" / "mine.yaml").write_text("max_passes: 2\n", encoding="utf-8")
    (tmp_path / ".#mine.yaml").symlink_to("nobody@host.1")
    assert compose(["provider=simulated"], tmp_path).provider.kind == "simulated"
