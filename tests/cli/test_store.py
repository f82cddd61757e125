"""The store on the command line."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from aeon import Aeon
from aeon.domain.errors import ConfigError
from tests.cli.conftest import RunAeon

QUIET = ("provider=simulated", "progress=none", "task=make tea")


def run(aeon: RunAeon, directory: Path, *more: str) -> None:
    assert aeon(*QUIET, f"hydra.run.dir={directory}", *more).status == 0


@pytest.mark.slow
def test_a_run_can_be_replayed_and_a_miss_shows_the_difference(
    aeon: RunAeon, tmp_path: Path
) -> None:
    run(aeon, tmp_path / "a")
    run(aeon, tmp_path / "b", "store=replay", "store.path=a")
    assert (tmp_path / "a" / "answer.md").read_bytes() == (
        tmp_path / "b" / "answer.md"
    ).read_bytes()
    given = (
        "provider=simulated",
        "progress=none",
        "task=make coffee",
        "store=replay",
        "store.path=a",
    )
    ended = aeon(*given, "hydra.run.dir=c")
    assert ended.status == 1
    assert "\n-make tea\n+make coffee\n" in ended.err
    assert "store.match=order" in ended.err


@pytest.mark.slow
def test_a_plan_is_made_from_what_is_kept(aeon: RunAeon, tmp_path: Path) -> None:
    run(aeon, tmp_path / "a")
    made = aeon("plan", *QUIET)
    assert aeon("plan", *QUIET, "store=replay", "store.path=a").out == made.out
    aeon("plan", *QUIET, "store=cache", "store.path=shared.sqlite")
    connection = sqlite3.connect(tmp_path / "shared.sqlite")
    calls = {call for (call,) in connection.execute("SELECT call FROM answers")}
    connection.close()
    assert {"task_profile", "plan", "semantic_validation"} <= calls


@pytest.mark.parametrize("more", [(), ("store.path=nothing",), ("store.path=broken.aeon",)])
def test_what_cannot_be_replayed_is_refused_before_a_directory_is_made(
    aeon: RunAeon, tmp_path: Path, more: tuple[str, ...]
) -> None:
    (tmp_path / "broken.aeon").write_text("no cassette")
    ended = aeon(*QUIET, "store=replay", *more, "hydra.run.dir=a")
    assert ended.status == 2
    assert "store.path" in ended.err
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("more", [(), ("-m", "ttl.base=9,10"), ("plan",)])
def test_a_run_that_is_to_record_elsewhere_is_refused_before_a_directory_is_made(
    aeon: RunAeon, tmp_path: Path, more: tuple[str, ...]
) -> None:
    ended = aeon(*more, *QUIET, "store.mode=record", "store.path=x.sqlite")
    assert ended.status == 2
    assert (
        "store.mode=record store.path=x.sqlite: a run records its answers in its own directory"
        in ended.err
    )
    assert not list(tmp_path.iterdir())


def test_from_python_it_is_refused_too(tmp_path: Path) -> None:
    overrides = ["provider=simulated", f"store.path={tmp_path / 'x.sqlite'}"]
    with (
        Aeon.from_config(overrides, environ={}) as made,
        pytest.raises(ConfigError, match="in its own directory"),
    ):
        made.run("x", directory=tmp_path / "a")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_replay_with_questions_needs_no_terminal(aeon: RunAeon, tmp_path: Path) -> None:
    run(aeon, tmp_path / "a")
    assert aeon(*QUIET, "interaction=ask", "hydra.run.dir=b").status == 2
    run(aeon, tmp_path / "b", "interaction=ask", "store=replay", "store.path=a")


@pytest.mark.slow
def test_off_leaves_no_store(aeon: RunAeon, tmp_path: Path) -> None:
    run(aeon, tmp_path / "a", "store=off")
    assert not (tmp_path / "a" / "store.sqlite").exists()
    run(aeon, tmp_path / "b")
    names = {file.name for file in (tmp_path / "b").iterdir() if file.name.startswith("store")}
    assert names == {"store.sqlite"}
