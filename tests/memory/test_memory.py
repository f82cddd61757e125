import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aeon.memory.interface import Memory
from aeon.memory.run_memory import GuardedMemory
from aeon.memory.settings import MemorySettings, open_memory

Make = Callable[[], Memory]

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
)


@pytest.fixture(params=["in_memory", "sqlite"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    made: list[Any] = []

    def new() -> Memory:
        path = tmp_path / f"{len(made)}.sqlite" if request.param == "sqlite" else None
        made.append(open_memory(MemorySettings(kind=request.param, path=path)))
        return made[-1]

    yield new
    for memory in made:
        memory.close()


def test_what_was_written_is_read(make: Make) -> None:
    memory = make()
    memory.write("a", {"n": [1, 2.5, None, "ü"]})
    assert memory.read("a") == {"n": [1, 2.5, None, "ü"]}


def test_what_was_never_written_is_not_found(make: Make) -> None:
    memory = make()
    memory.write("ab", 1)
    assert memory.read("a") is None
    assert memory.search("b") == {}


def test_writing_again_replaces(make: Make) -> None:
    memory = make()
    memory.write("a", 1)
    memory.write("a", 2)
    assert memory.search("") == {"a": 2}


def test_a_search_finds_what_begins_so_and_sorts_it(make: Make) -> None:
    memory = make()
    for key in (
        "step/b/output",
        "step/a/output",
        "step",
        "Step/a",
        "other",
        "step/a%/x",
        "step/a_/x",
    ):
        memory.write(key, key)
    assert list(memory.search("step/")) == [
        "step/a%/x",
        "step/a/output",
        "step/a_/x",
        "step/b/output",
    ]
    assert list(memory.search("step/a%")) == ["step/a%/x"]
    assert list(memory.search("step/a_")) == ["step/a_/x"]
    assert len(memory.search("")) == 7


@pytest.mark.slow
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40
)
@given(
    st.dictionaries(
        TEXT | st.sampled_from(["\ud7ff", "\ue000", "a\U0010ffff", "\U0010ffff", "a\0b"]), JSON
    ),
    TEXT,
)
def test_any_key_and_value_is_kept_and_found_by_any_prefix(
    make: Make, entries: dict[str, object], prefix: str
) -> None:
    memory = make()
    for key, value in entries.items():
        memory.write(key, value)
    for start in {prefix, "", *(key[:2] for key in entries)}:
        found = memory.search(start)
        assert found == {key: value for key, value in entries.items() if key.startswith(start)}
        assert list(found) == sorted(found)
    memory.close()


def test_nobody_changes_what_another_wrote_or_read(make: Make) -> None:
    memory = make()
    written = {"list": [1]}
    memory.write("a", written)
    written["list"].append(2)
    memory.read("a")["list"].append(3)  # type: ignore[index]
    memory.search("")["a"]["list"].append(4)
    assert memory.read("a") == {"list": [1]}


@pytest.mark.parametrize("value", [object(), {1}, float("nan")], ids=["object", "set", "nan"])
def test_what_json_does_not_have_is_not_kept(make: Make, value: object) -> None:
    memory = make()
    with pytest.raises((TypeError, ValueError)):
        memory.write("a", value)
    assert memory.read("a") is None


def test_many_threads_write_and_read_at_once(make: Make) -> None:
    memory = make()
    failures: list[BaseException] = []

    def work(name: int) -> None:
        try:
            for number in range(25):
                memory.write(f"{name}/{number}", number)
                assert memory.read(f"{name}/{number}") == number
                memory.search(f"{name}/")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(memory.search("")) == 200


def test_behind_its_guard_a_failing_memory_reports_and_goes_on(make: Make) -> None:
    class Broken:
        def write(self, key: str, value: object) -> None:
            raise OSError("disk full")

        def read(self, key: str) -> object:
            raise OSError("disk full")

        def search(self, prefix: str) -> dict[str, object]:
            raise OSError("disk full")

    said: list[str] = []
    guarded = GuardedMemory(Broken(), said.append)
    guarded.write("a", 1)
    assert (guarded.read("a"), guarded.search("a")) == (None, {})
    assert said == ["a could not be stored: disk full"]
    healthy = GuardedMemory(make(), said.append)
    healthy.write("a", 1)
    assert (healthy.read("a"), len(said)) == (1, 1)
