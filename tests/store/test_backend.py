"""A store of another kind is one file and one setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from aeon import Aeon
from aeon.domain.errors import ConfigError
from aeon.domain.result import RunResult
from aeon.store.interface import AnswerStore
from tests.support.dict_store import STORES, DictStore

BACKEND = "store.backend=tests.support.dict_store:DictStore"


def run(directory: Path, *overrides: str, task: str | None = "make tea") -> RunResult:
    with Aeon.from_config(("provider=simulated", BACKEND, *overrides), environ={}) as aeon:
        return aeon.run(task, directory=directory)


def test_it_is_what_the_store_is_expected_to_be(tmp_path: Path) -> None:
    assert isinstance(DictStore(str(tmp_path)), AnswerStore)


@pytest.mark.slow
def test_a_run_is_recorded_resumed_and_replayed_with_it(tmp_path: Path) -> None:
    first = run(tmp_path / "a")
    resumed = run(tmp_path / "b", f"resume={tmp_path / 'a'}", task=None)
    replayed = run(tmp_path / "c", "store=replay", BACKEND, f"store.path={tmp_path / 'a'}")
    assert first.answer == resumed.answer == replayed.answer
    assert resumed.parent is not None
    assert resumed.parent.saved.model_calls == len(STORES[str(tmp_path / "a" / "store")]) > 0
    assert not list(tmp_path.rglob("*.sqlite"))


def test_runs_share_it(tmp_path: Path) -> None:
    shared = ("store=cache", BACKEND, f"store.path={tmp_path / 'answers'}")
    runs = [run(tmp_path / name, *shared) for name in "ab"]
    assert runs[1].parent is not None
    assert runs[1].parent.saved.model_calls > 0
    names = ("answers", "a/store", "b/store")
    assert set(STORES) == {str(tmp_path / name) for name in names}


URL = "postgresql://aeon@db.test/answers?sslmode=require"


def test_a_store_behind_a_url_is_given_it_word_for_word(tmp_path: Path) -> None:
    shared = ("store=cache", BACKEND, f"store.path={URL}")
    runs = [run(tmp_path / name, *shared) for name in "ab"]
    assert set(STORES) == {URL}
    assert runs[1].parent is not None
    assert runs[1].parent.saved.model_calls == len(STORES[URL]) > 0
    replayed = run(tmp_path / "c", "store=replay", BACKEND, f"store.path={URL}", "provider.seed=0")
    assert replayed.answer == runs[0].answer


def test_a_run_with_a_url_keeps_its_own_answers_in_its_directory(tmp_path: Path) -> None:
    """So that it goes on when nothing is left behind the URL."""
    first = run(tmp_path / "a", "store=cache", BACKEND, f"store.path={URL}")
    assert (tmp_path / "a" / "store.sqlite").is_file()
    STORES.clear()
    resumed = run(tmp_path / "b", f"resume={tmp_path / 'a'}", task=None)
    assert resumed.answer == first.answer
    assert resumed.parent is not None
    assert resumed.parent.saved.model_calls > 0


def test_a_url_with_a_password_is_refused(tmp_path: Path) -> None:
    """It would stand in the files of every run."""
    with pytest.raises(ConfigError, match=r"store\.path.*holds a password") as refused:
        run(tmp_path / "a", "store=cache", BACKEND, "store.path=postgresql://aeon:secret@db.test/a")
    assert "secret" not in str(refused.value)


def test_a_url_is_for_a_store_of_ones_own(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is an address, and .*=sqlite opens files"):
        run(tmp_path / "a", "store=cache", "store.backend=sqlite", f"store.path={URL}")


def test_options_go_to_the_store(tmp_path: Path) -> None:
    factory = "tests.support.dict_store:DictStore"
    given = f"store.backend={{factory: '{factory}', options: {{url: 'dict://'}}}}"
    first = run(tmp_path / "a", given)
    assert set(STORES) == {f"dict://{tmp_path / 'a' / 'store'}"}
    resumed = run(tmp_path / "b", f"resume={tmp_path / 'a'}", given, task=None)
    assert resumed.answer == first.answer


class NoStore:
    def __init__(self, path: Path, *, read_only: bool = False) -> None: ...


class Leaves(DictStore):
    def __init__(self, *_: object, **__: object) -> None:
        raise SystemExit(4)


@pytest.mark.parametrize(
    ("name", "said"),
    [("URL", "cannot be called"), ("NoStore", "lacks a m"), ("Leaves", "SystemExit: 4")],
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
