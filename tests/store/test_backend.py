"""A store of another kind is one file and one setting."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aeon import Aeon
from aeon.domain.errors import ConfigError
from aeon.domain.result import RunResult
from aeon.store.interface import AnswerStore
from tests.support.dict_store import STORES, DictStore

BACKEND = "store.backend=tests.support.dict_store:DictStore"


@pytest.fixture(autouse=True)
def emptied() -> Iterator[None]:
    STORES.clear()
    yield
    STORES.clear()


def run(directory: Path, *overrides: str, task: str | None = "make tea") -> RunResult:
    with Aeon.from_config(("provider=simulated", BACKEND, *overrides), environ={}) as aeon:
        return aeon.run(task, directory=directory)


def test_it_is_what_the_store_is_expected_to_be(tmp_path: Path) -> None:
    assert isinstance(DictStore(tmp_path), AnswerStore)


def test_a_run_is_recorded_resumed_and_replayed_with_it(tmp_path: Path) -> None:
    first = run(tmp_path / "a")
    resumed = run(tmp_path / "b", f"resume={tmp_path / 'a'}", task=None)
    replayed = run(tmp_path / "c", "store=replay", BACKEND, f"store.path={tmp_path / 'a'}")
    assert first.answer == resumed.answer == replayed.answer
    assert resumed.parent is not None
    assert resumed.parent.saved.model_calls == len(STORES[tmp_path / "a" / "store"]) > 0
    assert not list(tmp_path.rglob("*.sqlite"))


def test_runs_share_it(tmp_path: Path) -> None:
    shared = ("store=cache", BACKEND, f"store.path={tmp_path / 'answers'}")
    runs = [run(tmp_path / name, *shared) for name in "ab"]
    assert runs[1].parent is not None
    assert runs[1].parent.saved.model_calls > 0
    assert set(STORES) == {tmp_path / "answers", tmp_path / "a" / "store", tmp_path / "b" / "store"}


class NoStore:
    def __init__(self, path: Path, *, read_only: bool = False) -> None: ...


class Leaves(DictStore):
    def __init__(self, *_: object, **__: object) -> None:
        raise SystemExit(4)


@pytest.mark.parametrize(
    ("name", "said"),
    [("Path", "TypeError"), ("NoStore", "lacks a method"), ("Leaves", "SystemExit: 4")],
)
def test_what_is_no_store_is_refused(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"store\.backend=tests\.store\.test_backend:{name}: .*{said}"
    ):
        run(tmp_path / "a", f"store.backend=tests.store.test_backend:{name}")


@pytest.mark.parametrize("backend", ["postgres", "tests.support.dict_store:Nothing"])
def test_a_kind_that_is_not_there_is_refused(tmp_path: Path, backend: str) -> None:
    with pytest.raises(ConfigError, match=r"store\.backend"):
        run(tmp_path / "a", f"store.backend={backend}")
