"""Resumes of resumes: a run stands on the answers of every run before it, wherever these are now."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from aeon import Aeon, RunResult
from aeon.domain.errors import ConfigError
from aeon.files.jsonl import JsonLines
from aeon.store.opening import open_source
from tests.support.killed_chains import LENGTH, Spec, kill_chains
from tests.support.openai_server import OpenAIServer
from tests.support.simulated_server import asker_of, simulated

ENVIRON = {"OPENAI_API_KEY": "never-sent"}


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(simulated()) as running:
        yield running


@pytest.fixture
def first(server: OpenAIServer, tmp_path: Path) -> Path:
    """A run that ended after eight answers."""
    overrides = ["provider=openai", f"provider.base_url={server.url}", "limits.max_llm_calls=8"]
    with Aeon.from_config(overrides, environ=ENVIRON) as aeon:
        aeon.run("compare three teas", directory=tmp_path / "runs" / "first")
    assert len(server.requests) == 8
    return tmp_path / "runs" / "first"


def begun(of: Path, name: str, *more: str) -> Path:
    """A run that resumes another and was killed before its first call."""
    directory = of.parent / name
    with Aeon.from_config([f"resume={of}", *more], environ=ENVIRON) as aeon:
        aeon.prepare_run().begin(directory)
    return directory


def ended(of: Path, directory: Path) -> tuple[RunResult, tuple[str, ...]]:
    overrides = [f"resume={of}", "limits.max_llm_calls=null", "limits.max_passes=null"]
    with Aeon.from_config(overrides, environ=ENVIRON) as aeon:
        return aeon.run(directory=directory), aeon.warnings


def asked_twice(server: OpenAIServer) -> int:
    bodies = [json.dumps(request.body, sort_keys=True) for request in server.requests]
    return len(bodies) - len(set(bodies))


def test_a_run_that_is_still_running_is_not_resumed(server: OpenAIServer, first: Path) -> None:
    (first / "result.json").unlink()
    with (
        closing(JsonLines(first / "events.jsonl")),
        pytest.raises(ConfigError, match="this run is still running"),
    ):
        begun(first, "second")
    assert not (first.parent / "second").exists()
    assert begun(first, "third").is_dir()


@pytest.mark.slow
def test_resumes_that_were_killed_at_once_lose_nothing(
    server: OpenAIServer, first: Path, tmp_path: Path
) -> None:
    last = begun(begun(begun(first, "second"), "third"), "fourth")
    result, warnings = ended(last, tmp_path / "end")
    assert result.error is None
    assert result.parent is not None
    assert result.parent.saved.model_calls == 8
    assert asked_twice(server) == 0
    assert warnings == ()
    said = json.loads((tmp_path / "end" / "run.json").read_bytes())
    assert said["parent"]["path"] == str(last)
    assert [Path(run["path"]).name for run in said["ancestors"]] == ["third", "second", "first"]


def test_runs_that_have_moved_together_are_found_again(
    server: OpenAIServer, first: Path, tmp_path: Path
) -> None:
    last = begun(begun(first, "second"), "third")
    moved = tmp_path / "elsewhere" / "deep" / "down"
    moved.parent.mkdir(parents=True)
    shutil.move(first.parent, moved)
    result, warnings = ended(moved / last.name, tmp_path / "end")
    assert result.parent is not None
    assert (result.parent.saved.model_calls, asked_twice(server), warnings) == (8, 0, ())


@pytest.mark.parametrize("place", ["renamed", "../another day/renamed"])
def test_a_run_that_was_renamed_close_by_is_found_by_its_id(
    server: OpenAIServer, first: Path, tmp_path: Path, place: str
) -> None:
    last = begun(begun(first, "second"), "third")
    there = first.parent / place
    there.parent.mkdir(exist_ok=True)
    first.rename(there)
    result, warnings = ended(last, tmp_path / "end")
    assert result.parent is not None
    assert (result.parent.saved.model_calls, asked_twice(server), warnings) == (8, 0, ())


def test_a_chain_holds_when_a_run_in_its_middle_is_gone_which_is_said(
    server: OpenAIServer, first: Path, tmp_path: Path
) -> None:
    second = begun(first, "second")
    last = begun(second, "third")
    shutil.rmtree(second)
    result, warnings = ended(last, tmp_path / "end")
    assert result.parent is not None
    assert (result.parent.saved.model_calls, asked_twice(server)) == (8, 0)
    assert [f"it was {second}" in warning for warning in warnings] == [True]


def test_another_run_in_the_place_of_one_that_is_gone_is_not_taken_for_it(
    server: OpenAIServer, first: Path, tmp_path: Path
) -> None:
    last = begun(first, "second")
    shutil.rmtree(first)
    overrides = ["provider=openai", f"provider.base_url={server.url}", "limits.max_llm_calls=1"]
    with Aeon.from_config(overrides, environ=ENVIRON) as aeon:
        aeon.run("another task", directory=first)
    result, warnings = ended(last, tmp_path / "end")
    assert result.parent is not None
    assert result.parent.saved.model_calls == 0
    assert [f"it was {first}" in warning for warning in warnings] == [True]


def test_a_parent_whose_answers_are_gone_names_the_run_before_it(first: Path) -> None:
    second = begun(first, "second")
    (second / "store.sqlite").unlink()
    with pytest.raises(Exception, match="its answers cannot be read") as raised:
        begun(second, "third")
    assert f"resume={first}" in raised.value.hint  # type: ignore[attr-defined]


def test_what_an_earlier_run_had_beyond_the_end_of_the_last_one_is_not_asked_again(
    server: OpenAIServer, first: Path, tmp_path: Path
) -> None:
    whole, _ = ended(first, first.parent / "whole")
    asked = len(server.requests)
    with Aeon.from_config(
        [f"resume={first.parent / 'whole'}", "limits.max_passes=1"], environ=ENVIRON
    ) as aeon:
        aeon.run(directory=first.parent / "short")
    result, _ = ended(first.parent / "short", tmp_path / "end")
    assert whole.usage.total.requests > 8
    assert (result.answer, len(server.requests)) == (whole.answer, asked)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_chains_of_resumes_killed_at_any_point_of_their_start_ask_nothing_twice(
    server: OpenAIServer, tmp_path: Path
) -> None:
    overrides = [
        "provider=openai",
        f"provider.base_url={server.url}",
        "provider.model=scripted",
        "task=three teas",
    ]
    chains = kill_chains(
        Spec([*overrides, "limits.max_passes=1"], str(tmp_path), answers=8, after=3)
    )
    asked = Counter(asker_of(request) for request in server.requests)
    kept = {path.name: kept_in(path) for path in tmp_path.iterdir() if (path / "run.json").exists()}
    assert len(kept["first"]) == 8
    for chain in chains:
        runs = [*(f"{chain}-{number}" for number in range(1, LENGTH + 1)), f"{chain}-end"]
        known, in_flight = kept["first"], asked["first"] - 8
        for run in runs:
            fresh = kept.get(run, frozenset()) - known
            known |= fresh
            in_flight += asked[run] - len(fresh)
        assert asked["first"] + sum(asked[run] for run in runs) == asked["whole"] + in_flight, chain
        assert in_flight <= asked["first"] - 8 + LENGTH, chain


def kept_in(directory: Path) -> frozenset[str]:
    with closing(open_source(directory)) as source:
        return frozenset(entry.request.key for entry in source.entries())
