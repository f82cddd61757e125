"""What would have been, had a threshold, a limit or a budget been another: nothing is asked until something differs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Ended, RunAeon
from tests.cli.conftest import aeon as aeon
from tests.support.openai_server import OpenAIServer
from tests.support.simulated_server import content_of, simulated

pytestmark = pytest.mark.slow

QUIET = ("progress=none", "execution.max_parallel=4")
# So that completeness alone decides: another reason why a pass is not converged is another prompt for its refinement.
ALONE = ("convergence.coherence=0.1", "convergence.consistency=0.1", "convergence.completeness=0.9")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    with OpenAIServer(simulated()) as running:
        yield running


@pytest.fixture
def recorded(
    aeon: RunAeon, server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A finished run of several passes; the server has forgotten its requests."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    ended = aeon("task=plan a move", *ALONE, *QUIET)
    assert ended.status == 0, ended.err
    (directory,) = tmp_path.glob("outputs/*/*")
    assert result(directory)["passes"] > 2
    server.requests.clear()
    return directory


def result(directory: Path) -> dict[str, Any]:
    return json.loads((directory / "result.json").read_bytes())


def sweep(
    aeon: RunAeon, root: Path, recorded: Path, *arguments: str
) -> tuple[Ended, list[dict[str, Any]]]:
    ended = aeon("-m", f"resume={recorded}", *arguments)
    jobs = sorted(
        root.glob("multirun/*/*/*/result.json"),
        key=lambda path: int(path.parent.name.partition("-")[0]),
    )
    return ended, [result(path.parent) for path in jobs]


def test_a_sweep_of_thresholds_costs_no_call_until_one_differs(
    aeon: RunAeon, server: OpenAIServer, recorded: Path, tmp_path: Path
) -> None:
    whole = result(recorded)
    ended, jobs = sweep(aeon, tmp_path, recorded, "convergence.completeness=0.2,0.9,1.0")
    low, same, high = jobs
    asked = [job["usage"]["total"]["requests"] for job in jobs]
    saved = [job["parent"]["saved"]["model_calls"] for job in jobs]
    before = whole["usage"]["total"]["requests"]
    assert asked[0] < asked[1] == before < asked[2]
    assert saved[:2] == asked[:2]
    assert len(server.requests) == sum(asked) - sum(saved) == asked[2] - saved[2] > 0
    # Until the assessment that had ended it, the run with the highest bar is the recorded one.
    assert saved[2] >= before
    assert low["passes"] < same["passes"] == whole["passes"] < high["passes"]
    assert (same["answer"], same["scores"]) == (whole["answer"], whole["scores"])
    assert {job["parent"]["run_id"] for job in jobs} == {whole["run_id"]}
    assert f"Saved: {asked[0]} calls, " in ended.err


@pytest.mark.parametrize(
    "lower",
    [
        "limits.max_passes=1",
        "limits.max_llm_calls=5",
        "ttl.limit=8",
        "limits.max_tokens=2000",
        "ttl=small",
    ],
)
def test_what_a_tighter_budget_would_have_given_costs_nothing(
    aeon: RunAeon, server: OpenAIServer, recorded: Path, tmp_path: Path, lower: str
) -> None:
    aeon(f"resume={recorded}", lower)
    (second,) = (path for path in tmp_path.glob("outputs/*/*") if path != recorded)
    one, whole = result(second), result(recorded)
    assert server.requests == []
    assert one["parent"]["saved"]["model_calls"] == one["usage"]["total"]["requests"]
    assert one["usage"]["total"]["requests"] <= whole["usage"]["total"]["requests"]
    assert one["hashes"]["configuration"] != whole["hashes"]["configuration"]


@pytest.mark.slow
def test_jobs_that_run_side_by_side_in_a_sweep_ask_only_for_their_own_differences(
    aeon: RunAeon, server: OpenAIServer, recorded: Path, tmp_path: Path
) -> None:
    _, jobs = sweep(
        aeon, tmp_path, recorded, "convergence.coherence=0.5,1.0", "convergence.consistency=0.5,1.0"
    )
    assert len(jobs) == 4
    own = [
        job["usage"]["total"]["requests"] - job["parent"]["saved"]["model_calls"] for job in jobs
    ]
    assert len(server.requests) == sum(own)
    assert all(job["parent"]["saved"]["model_calls"] > 5 for job in jobs)


@pytest.mark.slow
def test_a_sweep_of_a_swept_job_sweeps_what_is_asked_for_today(
    aeon: RunAeon, server: OpenAIServer, recorded: Path, tmp_path: Path
) -> None:
    sweep(
        aeon,
        tmp_path,
        recorded,
        "convergence.completeness=0.5,0.6",
        "sweep=thresholds",
        "limits.max_passes=1",
    )
    before = set(tmp_path.glob("multirun/*/*/*/result.json"))
    assert len(before) == 6
    job = next(path.parent for path in before if path.parent.name.startswith("3-"))
    assert (
        "convergence.completeness=0.6" in json.loads((job / "run.json").read_bytes())["overrides"]
    )
    sweep(aeon, tmp_path, job, "ttl.base=10,11")
    made = set(tmp_path.glob("multirun/*/*/*/result.json")) - before
    assert sorted(result(path.parent)["configuration"]["ttl"]["base"] for path in made) == [10, 11]
    assert {result(path.parent)["parent"]["path"] for path in made} == {str(job)}


def test_another_prompt_is_asked_from_the_first_call_that_it_changes(
    aeon: RunAeon, server: OpenAIServer, recorded: Path, tmp_path: Path
) -> None:
    assert aeon("init", "mine").status == 0
    prompt = tmp_path / "mine" / "prompts" / "default" / "convergence.system.j2"
    prompt.write_text(prompt.read_text() + "\nBe strict.\n")
    ended = aeon(f"resume={recorded}", "prompts.dir=mine/prompts")
    assert (
        f"prompts changed since {recorded}: the calls that it changes are made again" in ended.err
    )
    assert server.names[0] == "convergence"
    assert max(Counter(content_of(request) for request in server.requests).values()) == 1
