"""What a person has looked at is what is used."""

from __future__ import annotations

from pathlib import Path

import pytest

from aeon.domain.errors import ConfigError
from aeon.files.pinned import Pinned, check_program, pin, read_file, read_named, unpin_all


def test_a_pinned_file_is_what_it_was_whatever_becomes_of_it(tmp_path: Path) -> None:
    path = tmp_path / "ttl" / "mine.yaml"
    path.parent.mkdir()
    path.write_bytes(b"later")
    pin(Pinned(tmp_path, {"ttl/mine.yaml": b"before"}, frozenset()))
    assert read_file(path) == read_file(tmp_path / "ttl" / ".." / "ttl" / "mine.yaml") == b"before"
    path.unlink()
    assert read_file(path) == b"before"


def test_a_file_that_was_not_there_is_refused(tmp_path: Path) -> None:
    pin(Pinned(tmp_path, {}, frozenset({tmp_path})))
    (tmp_path / "new.yaml").write_bytes(b"new")
    with pytest.raises(ConfigError, match="none of the files that you have trusted"):
        read_file(tmp_path / "new.yaml")


def test_a_name_that_leads_out_of_a_pinned_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "outside.yaml").write_bytes(b"outside")
    pin(Pinned(tmp_path, {}, frozenset({tmp_path / "conf"})))
    assert read_file(tmp_path / "outside.yaml") == b"outside"
    with pytest.raises(ConfigError, match="none of the files"):
        read_file(tmp_path / "conf" / ".." / "outside.yaml", tmp_path / "conf")


def test_other_files_are_read_from_the_disk(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    assert read_file(tmp_path / "a", tmp_path) == b"1"
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "b")


def test_besides_a_closed_folder_only_what_is_open_is_read(tmp_path: Path) -> None:
    project, given, other = tmp_path / "project", tmp_path / "given", tmp_path / "other"
    for folder in (project, given, other):
        folder.mkdir()
        (folder / "a.yaml").write_bytes(b"1")
    pin(Pinned(project, {}, frozenset(), open_to=(given,)))
    assert read_file(given / "a.yaml") == b"1"
    for folder in (project, other):
        with pytest.raises(ConfigError, match="none of the files"):
            read_file(folder / "a.yaml")
    assert read_named(other / "a.yaml") == b"1"


def test_a_program_that_a_command_names_is_what_it_was(tmp_path: Path) -> None:
    script = tmp_path / "tools" / "server.py"
    script.parent.mkdir()
    script.write_bytes(b"1")
    commands = (
        ["python", "tools/server.py"],
        ["sh", "-c", "exec 'tools/server.py' --port=1"],
        ["python", "-m", "tools.server"],
        [str(script)],
    )
    pin(Pinned(tmp_path, {"tools/server.py": b"1"}, frozenset(), open_to=()))
    for command in commands:
        check_program(command, tmp_path)
    script.write_bytes(b"2")
    for command in commands:
        with pytest.raises(ConfigError, match="not as you have trusted it"):
            check_program(command, tmp_path)
    unpin_all()
    check_program(commands[0], tmp_path)
