import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from aeon.config.load import compose
from aeon.domain.errors import ConfigError
from aeon.memory import sqlite
from aeon.memory.run_memory import GuardedMemory, InMemory
from aeon.memory.settings import MemorySettings, open_memory
from aeon.memory.sqlite import SqliteMemory


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "memory.sqlite"


def test_the_file_and_its_new_folder_are_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "memory.sqlite"
    with closing(SqliteMemory(path)) as memory:
        memory.write("guest", "Ada")
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_was_written_outlasts_the_run(path: Path) -> None:
    first = SqliteMemory(path)
    first.write("a", {"n": 1})
    first.close()
    second = SqliteMemory(path)
    assert second.read("a") == {"n": 1}
    second.close()


def test_runs_do_not_see_each_other_unless_they_share_a_name(path: Path) -> None:
    apart = MemorySettings(kind="sqlite", path=path)
    shared = MemorySettings(kind="sqlite", path=path, namespace="project")
    memories = [
        open_memory(apart, "r1"),
        open_memory(apart, "r2"),
        open_memory(shared, "r1"),
        open_memory(shared, "r2"),
    ]
    for number, memory in enumerate(memories[:3]):
        memory.write("step/s1/output", number)
    assert [memory.search("step/") for memory in memories] == [
        {"step/s1/output": n} for n in (0, 1, 2, 2)
    ]
    for memory in memories:
        memory.close()


@pytest.mark.slow
def test_several_processes_write_at_once_and_see_what_the_others_wrote(path: Path) -> None:
    script = (
        "import sys, pathlib\n"
        "from aeon.memory.sqlite import SqliteMemory\n"
        "memory = SqliteMemory(pathlib.Path(sys.argv[1]))\n"
        "[memory.write(f'{sys.argv[2]}/{n:03}', n) for n in range(100)]\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", script, str(path), name]) for name in "abcd"]
    assert [process.wait(60) for process in running] == [0, 0, 0, 0]
    memory = SqliteMemory(path)
    assert list(memory.search("a/").values()) == list(range(100))
    assert len(memory.search("")) == 400
    memory.close()


def test_a_key_is_a_value_and_never_sql(path: Path) -> None:
    memory = SqliteMemory(path)
    key = "x'); DROP TABLE memory; --"
    memory.write(key, 1)
    assert (memory.read(key), memory.search("x')")) == (1, {key: 1})
    memory.close()


def test_a_memory_that_was_closed_fails_and_its_guard_says_so(path: Path) -> None:
    said: list[str] = []
    memory = SqliteMemory(path)
    memory.close()
    memory.close()
    GuardedMemory(memory, said.append).write("a", 1)
    assert said == ["a could not be stored: Cannot operate on a closed database."]
    with pytest.raises(sqlite3.Error):
        memory.read("a")


def test_a_key_that_is_no_text_cannot_be_stored(path: Path) -> None:
    said: list[str] = []
    memory = SqliteMemory(path)
    GuardedMemory(memory, said.append).write("\ud800", 1)
    assert len(said) == 1
    memory.close()


def test_a_file_that_cannot_be_used_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "no.sqlite").write_text(
        "this is no database, and long enough to be sure of it" * 100
    )
    (tmp_path / "file").touch()
    for path in (tmp_path / "no.sqlite", tmp_path, tmp_path / "file" / "memory.sqlite"):
        with pytest.raises(ConfigError, match=r"memory\.path=.*cannot be used"):
            open_memory(MemorySettings(kind="sqlite", path=path))


def test_it_is_chosen_by_configuration(tmp_path: Path) -> None:
    chosen = compose(
        ["memory=sqlite", f"memory.path={tmp_path}/m.sqlite", "memory.namespace=project"]
    ).memory
    assert (chosen.kind, chosen.path, chosen.namespace) == (
        "sqlite",
        tmp_path / "m.sqlite",
        "project",
    )
    memory = open_memory(chosen, "r1")
    assert isinstance(memory, SqliteMemory)
    memory.close()
    other = open_memory(compose().memory, "r1")
    assert isinstance(other, InMemory)
    other.close()


@pytest.mark.parametrize(
    "overrides", [["memory=sqlite", "memory.path=null"], ["memory.path=x.sqlite"]]
)
def test_a_path_goes_with_a_file(overrides: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"memory\.path"):
        compose(overrides)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another program in the middle of a long change."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.close()


def test_a_locked_file_is_told_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_BUSY_SECONDS", 0.1)
    said: list[str] = []
    memory = SqliteMemory(path)
    guarded = GuardedMemory(memory, said.append)
    with locked(path):
        for number in range(2):
            guarded.write(f"step/{number}/output", number)
    assert said == ["step/0/output could not be stored: database is locked"]
    guarded.write("free", 1)
    assert memory.search("") == {"free": 1}
    memory.close()
