import resource
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from aeon.domain.errors import StoreFailed
from aeon.store import sqlite_store
from aeon.store.interface import AnswerStore
from aeon.store.sqlite_store import SqliteStore, create_file
from tests.store.entries import SYSTEM, asked, entry


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "store.sqlite"


def run(script: str, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE, text=True
    )


def test_it_is_what_the_store_is_expected_to_be(path: Path) -> None:
    store = SqliteStore(path)
    assert isinstance(store, AnswerStore)
    store.close()


def test_the_file_and_its_new_folder_are_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "store.sqlite"
    with closing(SqliteStore(path)) as store:
        store.put(entry("tea"))
        modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert set(modes.values()) == {0o600}
    create_file(tmp_path / "empty.sqlite")
    assert (tmp_path / "empty.sqlite").stat().st_mode & 0o777 == 0o600


def test_an_answer_comes_back_whole_by_its_key_and_by_what_was_asked(path: Path) -> None:
    kept = entry(
        "ask é 世界\n",
        step="s2",
        attempt=2,
        occurrence=3,
        strict=True,
        parameters={"temperature": 0.5},
    )
    store = SqliteStore(path)
    store.put(kept)
    store.close()
    again = SqliteStore(path)
    assert again.get(kept.request.key) == kept
    assert again.by_content(kept.request.content) == kept
    assert again.get(asked("something else").key) is None
    assert again.by_content(asked("something else").content) is None
    again.close()


def test_the_digests_of_an_answer_that_is_read_are_those_of_what_it_says(path: Path) -> None:
    store = SqliteStore(path)
    store.put(entry("what is asked"))
    found = next(store.entries())
    assert (found.request.key, found.request.content) == (
        asked("what is asked").key,
        asked("what is asked").content,
    )
    store.close()


def test_the_first_answer_under_a_key_stays(path: Path) -> None:
    store = SqliteStore(path)
    for text in ("first", "second"):
        store.put(entry(text=text))
    assert [kept.answer["text"] for kept in store.entries()] == ["first"]
    store.close()


def test_the_first_answer_to_a_request_is_that_of_wherever_it_was_asked_first(path: Path) -> None:
    store = SqliteStore(path)
    for number in (2, 1):
        store.put(entry(text=f"in pass {number}", pass_number=number))
    found = store.by_content(asked().content)
    assert found is not None
    assert found.answer["text"] == "in pass 2"
    store.close()


def test_answers_are_listed_by_pass_and_then_as_they_came(path: Path) -> None:
    store = SqliteStore(path)
    for number, user in ((1, "b"), (0, "z"), (1, "a"), (0, "y")):
        store.put(entry(user, text=user, pass_number=number))
    assert [kept.answer["text"] for kept in store.entries()] == ["z", "y", "b", "a"]
    store.close()


def test_a_text_that_many_requests_hold_is_kept_once(path: Path) -> None:
    store = SqliteStore(path)
    for number in range(20):
        store.put(entry(f"short {number}"))
    store.close()
    with sqlite3.connect(path) as connection:
        texts = [text for (text,) in connection.execute("SELECT text FROM texts")]
        requests = [text for (text,) in connection.execute("SELECT request FROM answers")]
    connection.close()
    assert len(texts) == 2
    assert len(requests) == 20
    assert not any(SYSTEM[:30] in request for request in requests)


def test_what_no_encoding_has_is_kept_all_the_same(path: Path) -> None:
    odd = entry(
        "half \ud800 pair " * 50,
        text="\ud83d \x00 \u2028",
        tool={"$ref": "x" * 300, "a": ["y" * 300, None]},
    )
    store = SqliteStore(path)
    store.put(odd)
    assert store.get(odd.request.key) == odd
    store.close()


def test_what_is_kept_is_on_the_disk_whatever_becomes_of_the_process(path: Path) -> None:
    script = (
        "import os, pathlib, signal, sys\n"
        "from aeon.store.sqlite_store import SqliteStore\n"
        "from tests.store.entries import entry\n"
        "store = SqliteStore(pathlib.Path(sys.argv[1]))\n"
        "[store.put(entry(str(n))) for n in range(5)]\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    process = run(script, str(path))
    process.communicate(timeout=60)
    assert process.returncode == -9
    store = SqliteStore(path, read_only=True)
    assert len(list(store.entries())) == 5
    assert store._reader is not None
    store.close()


def test_the_file_of_an_empty_store_is_that_which_opening_makes(tmp_path: Path) -> None:
    create_file(tmp_path / "created")
    SqliteStore(tmp_path / "opened").close()
    created, opened = ((tmp_path / name).read_bytes() for name in ("created", "opened"))
    counters = {*range(24, 28), *range(92, 100)}  # of changes, and the version of SQLite
    assert {
        place for place, pair in enumerate(zip(created, opened, strict=True)) if pair[0] != pair[1]
    } <= counters
    with closing(sqlite3.connect(tmp_path / "created")) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_put_survives_the_process_and_waits_for_no_disk(path: Path) -> None:
    store = SqliteStore(path)
    assert store._writer is not None
    normal = 1
    assert store._writer.execute("PRAGMA synchronous").fetchone() == (normal,)
    assert store._writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    store.close()


@pytest.mark.slow
def test_several_processes_that_make_and_share_a_store_lose_nothing(path: Path) -> None:
    script = (
        "import pathlib, sys\n"
        "from aeon.store.sqlite_store import SqliteStore\n"
        "from tests.store.entries import asked, entry\n"
        "store = SqliteStore(pathlib.Path(sys.argv[1]))\n"
        "for n in range(60):\n"
        "    store.put(entry(f'own {sys.argv[2]} {n}'))\n"
        "    store.put(entry(f'common {n}', text=sys.argv[2]))\n"
        "    assert store.get(asked(f'common {n}').key)\n"
        "print('done')\n"
    )
    running = [run(script, str(path), name) for name in "abcd"]
    assert [process.communicate(timeout=100)[0] for process in running] == ["done\n"] * 4
    store = SqliteStore(path)
    assert len(list(store.entries())) == 4 * 60 + 60
    store.close()


def test_threads_that_keep_answers_at_once_lose_none(path: Path) -> None:
    store = SqliteStore(path)
    start = threading.Barrier(16)

    def keep(name: int) -> None:
        start.wait()
        for number in range(20):
            store.put(entry(f"{name} {number}"))
            assert store.get(asked(f"{name} {number}").key)

    threads = [threading.Thread(target=keep, args=(name,)) for name in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list(store.entries())) == 16 * 20
    store.close()


def test_whoever_reads_does_not_wait_for_one_who_writes(path: Path) -> None:
    store = SqliteStore(path)
    store.put(entry())
    with store._writing:
        assert store.get(asked().key)
        assert store.by_content(asked().content)
        assert len(list(store.entries())) == 1
    store.close()


def test_a_closed_store_keeps_nothing_more_without_complaint_and_cannot_be_read(path: Path) -> None:
    store = SqliteStore(path)
    store.close()
    store.close()
    store.put(entry())
    with pytest.raises(StoreFailed, match=r"cannot be read: .* closed"):
        store.get("k")
    again = SqliteStore(path)
    assert list(again.entries()) == []
    again.close()


def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("my notes, dear to me\n" * 100)
    for read_only in (False, True):
        with pytest.raises(StoreFailed, match="file is not a database") as raised:
            SqliteStore(path, read_only=read_only)
        assert f"move {path} away" in raised.value.hint
    assert path.read_text() == "my notes, dear to me\n" * 100


def test_a_database_of_something_else_is_refused_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE answers (mine TEXT)")
    other.close()
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(StoreFailed, match="an SQLite file of something else") as raised:
            SqliteStore(path, read_only=read_only)
        assert "store.path" in raised.value.hint
    assert path.read_bytes() == before


def test_a_store_of_a_newer_aeon_is_refused(path: Path) -> None:
    SqliteStore(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(
        StoreFailed, match=r"a newer Aeon has written it \(version 7, this one knows 3\)"
    ):
        SqliteStore(path)


def test_a_damaged_store_is_told_when_it_is_read(path: Path) -> None:
    store = SqliteStore(path)
    for number in range(200):
        store.put(entry(f"number {number} " * 40))
    store.close()
    damaged = bytearray(path.read_bytes())
    damaged[4096 * 3 :] = b"\x07" * (len(damaged) - 4096 * 3)
    path.write_bytes(damaged)
    with pytest.raises(StoreFailed, match="cannot be") as raised:
        list(SqliteStore(path, read_only=True).entries())
    assert "damaged" in raised.value.hint


def test_an_answer_whose_text_is_gone_is_told(path: Path) -> None:
    store = SqliteStore(path)
    store.put(entry())
    store.close()
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM texts")
    connection.commit()
    connection.close()
    again = SqliteStore(path)
    with pytest.raises(StoreFailed, match=r"the text [0-9a-f]{32} is missing"):
        again.get(asked().key)
    again.close()


def test_a_directory_in_the_place_of_the_file_is_told(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(StoreFailed, match="unable to open database file") as raised:
        SqliteStore(path)
    assert "writable" in raised.value.hint


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreFailed, match=r"cannot be opened: (File exists|Not a directory)"):
        SqliteStore(tmp_path / "file" / "store.sqlite")


@pytest.fixture
def guest() -> Iterator[Path]:
    """A store with one answer, in a folder that nobody may write, and everybody may read."""
    # Not below pytest's own folders, which each start of pytest closes to others.
    with tempfile.TemporaryDirectory() as outer:
        folder = Path(outer) / "deep"
        path = folder / "store.sqlite"
        store = SqliteStore(path)
        store.put(entry())
        store.close()
        path.chmod(0o444)
        folder.chmod(0o555)
        Path(outer).chmod(0o755)
        yield path
        folder.chmod(0o755)


AS_NOBODY = (
    "import os, pathlib, sys\n"
    "from aeon.domain.errors import StoreFailed\n"
    "from aeon.store.sqlite_store import SqliteStore\n"
    "from tests.store.entries import asked, entry\n"
    "entry()  # whatever is imported or built at the first use, while everything may be read\n"
    "if os.getuid() == 0:\n"
    "    os.setuid(65534)\n"
    "path = pathlib.Path(sys.argv[1])\n"
)


def test_a_store_in_a_folder_that_cannot_be_written_can_be_read(guest: Path) -> None:
    script = (
        AS_NOBODY
        + "store = SqliteStore(path, read_only=True)\nprint(store.get(asked().key).answer['text'])\n"
    )
    assert run(script, str(guest)).communicate(timeout=60)[0] == "done\n"


def test_a_store_that_cannot_be_written_is_told_before_anything_is_kept(guest: Path) -> None:
    script = (
        AS_NOBODY
        + "try:\n    SqliteStore(path)\nexcept StoreFailed as error:\n    print(error.message, error.hint)\n"
    )
    said = run(script, str(guest)).communicate(timeout=60)[0]
    assert "cannot be opened" in said
    assert "writable" in said


def test_a_full_disk_is_told_and_what_was_kept_stays(path: Path) -> None:
    script = (
        "import pathlib, resource, sys\n"
        "from aeon.domain.errors import StoreFailed\n"
        "from aeon.store.sqlite_store import SqliteStore\n"
        "from tests.store.entries import asked, entry\n"
        "store = SqliteStore(pathlib.Path(sys.argv[1]))\n"
        "store.put(entry('before'))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))\n"
        "try:\n"
        "    [store.put(entry(str(n) * 50_000)) for n in range(9)]\n"
        "except StoreFailed as error:\n"
        "    print(error.message)\n"
        "    print(error.hint)\n"
        "assert store.get(asked('before').key)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "store.put(entry('after'))\n"
        "assert store.get(asked('after').key)\n"
    )
    process = run(script, str(path))
    said = process.communicate(timeout=60)[0]
    assert process.returncode == 0
    assert "cannot be written" in said
    assert "full" in said
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_a_file_for_which_there_was_no_room_is_made_once_there_is(path: Path) -> None:
    script = (
        "import pathlib, resource, signal, sys\n"
        "from aeon.domain.errors import StoreFailed\n"
        "from aeon.store.sqlite_store import SqliteStore, create_file\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "create_file(path.with_name('other'))\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (9_000, resource.RLIM_INFINITY))\n"
        "try:\n"
        "    create_file(path)\n"
        "except StoreFailed as error:\n"
        "    print(error.message)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "create_file(path)\n"
        "SqliteStore(path).close()\n"
    )
    path.parent.mkdir()
    process = run(script, str(path))
    assert "cannot be opened: File too large" in process.communicate(timeout=60)[0]
    assert process.returncode == 0


def test_a_file_that_somebody_keeps_locked_is_told_and_written_again_once_it_is_free(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aeon.store.sqlite_store.BUSY_SECONDS", 0.2)
    store = SqliteStore(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreFailed, match="database is locked") as raised:
        store.put(entry("locked"))
    assert "another program" in raised.value.hint
    other.execute("ROLLBACK")
    other.close()
    store.put(entry("free again"))
    assert [kept.request.body["messages"][1]["content"] for kept in store.entries()] == [
        "free again"
    ]
    store.close()


def test_what_is_open_for_reading_is_never_written(path: Path) -> None:
    SqliteStore(path).close()
    store = SqliteStore(path, read_only=True)
    with pytest.raises(StoreFailed, match="open for reading"):
        store.put(entry())
    store.close()


@pytest.mark.parametrize("name", ["a b#c?.sqlite", "100%.sqlite", "é'\".sqlite"])
def test_any_name_of_a_file_will_do(tmp_path: Path, name: str) -> None:
    store = SqliteStore(tmp_path / name)
    store.put(entry())
    store.close()
    again = SqliteStore(tmp_path / name, read_only=True)
    assert again.get(asked().key)
    again.close()
    assert name in {file.name for file in tmp_path.iterdir()}


def test_reading_leaves_nothing_beside_the_file_and_the_file_as_it_was(path: Path) -> None:
    store = SqliteStore(path)
    store.put(entry())
    store.close()
    before = path.read_bytes()
    for _ in range(2):
        reader = SqliteStore(path, read_only=True)
        assert reader.get(asked().key) is not None
        reader.close()
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == before


def test_what_somebody_is_writing_is_read_and_left_to_them(path: Path) -> None:
    writer = SqliteStore(path)
    reader = SqliteStore(path, read_only=True)
    writer.put(entry())
    assert reader.get(asked().key) is not None
    reader.close()
    writer.put(entry("another"))
    assert len(list(writer.entries())) == 2
    writer.close()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_what_a_killed_program_left_is_read_and_stays_as_it_is(path: Path) -> None:
    script = (
        "import os, pathlib, sys\n"
        "from aeon.store.sqlite_store import SqliteStore\n"
        "from tests.store.entries import entry\n"
        "SqliteStore(pathlib.Path(sys.argv[1])).put(entry())\n"
        "os._exit(0)\n"
    )
    run(script, str(path)).communicate(timeout=60)
    journal = path.with_name("store.sqlite-wal")
    before = path.read_bytes(), journal.read_bytes()
    reader = SqliteStore(path, read_only=True)
    assert reader.get(asked().key) is not None
    reader.close()
    assert (path.read_bytes(), journal.read_bytes()) == before


def test_an_answer_that_came_to_nothing_is_kept_marked_until_a_usable_one_replaces_it(
    path: Path,
) -> None:
    store = SqliteStore(path)
    first, other = entry("asked"), entry("asked", text="another answer")
    unusable = first.model_copy(update={"usable": False})
    store.put(first)
    store.put(unusable)
    assert store.get(first.request.key) == unusable
    store.put(unusable)
    store.put(other)
    assert store.get(first.request.key) == other
    store.put(unusable)  # of another process, about an answer that is not the one stored here
    assert list(store.entries()) == [other]


def test_of_equal_requests_the_usable_answer_is_found_first(path: Path) -> None:
    store = SqliteStore(path)
    first, second = entry("asked", step="a"), entry("asked", step="b")
    store.put(first)
    assert store.by_content(first.request.content) == first
    store.put(first.model_copy(update={"usable": False}))
    store.put(second)
    assert store.by_content(first.request.content) == second


def test_a_store_without_marks_is_brought_up_to_date_by_many_processes_at_once(path: Path) -> None:
    SqliteStore(path).close()
    connection = sqlite3.connect(path)
    connection.execute("ALTER TABLE answers DROP COLUMN usable")
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    with ThreadPoolExecutor(8) as threads:
        stores = list(threads.map(SqliteStore, [path] * 8))
    for store in stores:
        store.put(entry("asked").model_copy(update={"usable": False}))
        store.close()
    assert [one.usable for one in SqliteStore(path).entries()] == [False]


_WITH_FEW_FILES = """
import resource, sys
from pathlib import Path
from aeon.domain.errors import StoreFailed
from aeon.store.sqlite_store import SqliteStore
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
folder = Path(sys.argv[1])
for most in range(3, 16):
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    try:
        SqliteStore(folder / f"{most}.sqlite").close()
        print("opened")
    except StoreFailed as error:
        print(error.message, error.hint)
"""


def test_a_store_that_lacks_file_handles_says_so(tmp_path: Path) -> None:
    code = [sys.executable, "-c", _WITH_FEW_FILES, str(tmp_path)]
    ended = subprocess.run(code, capture_output=True, text=True, timeout=60, check=True)
    lines = ended.stdout.splitlines()
    failed = [line for line in lines if line != "opened"]
    assert len(failed) >= 2
    assert lines[-1] == "opened"
    assert all("too many files are open" in line for line in failed)
    assert all("ulimit -n" in line for line in failed)


def test_a_folder_in_the_place_of_a_store_is_no_lack_of_file_handles(tmp_path: Path) -> None:
    (tmp_path / "store.sqlite").mkdir()
    with pytest.raises(StoreFailed, match="unable to open") as raised:
        SqliteStore(tmp_path / "store.sqlite")
    assert "ulimit" not in raised.value.hint


def test_requests_that_unpack_to_too_much_together_are_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_store, "MAX_STORE_CHARACTERS", 1_000_000)
    store = SqliteStore(path)
    for number in range(60):
        store.put(entry(f"{number}", step=f"s{number}"))
    assert len(list(store.entries())) == 60
    connection = sqlite3.connect(path)
    rows = [("0", f"={'x' * 1000}"), *((str(n), f"*{n - 1} {n - 1}") for n in range(1, 13))]
    rows.append(("whole", "*open 12 open"))
    connection.executemany("INSERT INTO texts VALUES (?, ?)", [*rows, ("open", '="')])
    connection.execute("""UPDATE answers SET places = '[[["messages", 0, "content"], "whole"]]'""")
    connection.commit()
    (size,) = connection.execute(sqlite_store._SIZE).fetchone()
    connection.close()
    with pytest.raises(StoreFailed, match=f"together are longer than the allowed {500 * size:,}"):
        list(store.entries())
    one = store.get(asked("1", step="s1").key)
    assert one is not None
    assert len(one.request.body["messages"][0]["content"]) == 4096 * 1000
    store.close()
