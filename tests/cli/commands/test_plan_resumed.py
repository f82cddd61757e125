"""`aeon plan` interrupted, killed or out of budget: what was paid is kept, and taken up again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aeon.plan.workflow.load import load_workflow
from tests.cli.conftest import RunAeon
from tests.integration.faults import FAULTS, Recorder, healthy
from tests.support.openai_server import Failure, OpenAIServer, Received
from tests.support.simulated_server import content_of, simulated

QUICK = ("provider.retry.initial_seconds=0", "provider.retry.jitter_seconds=0")
CALLS = ["task_profile", "plan", "semantic_validation", "refinement", "semantic_validation"]


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(simulated()) as running:
        yield running


@pytest.fixture
def given(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    monkeypatch.setenv("OPENAI_API_KEY", "never-sent")
    return (
        "plan",
        "task=three teas",
        "provider=openai",
        f"provider.base_url={server.url}",
        "progress=none",
    )


def directory_in(root: Path) -> Path:
    (found,) = root.glob("outputs/*/*/run.json")
    return found.parent


def interrupting(server: OpenAIServer, call: str) -> None:
    """The server interrupts the program when a call comes for the first time."""
    usual: Any = server.script[call]
    once = threading.Event()

    def answer(received: Received) -> Any:
        if not once.is_set():
            once.set()
            os.kill(os.getpid(), signal.SIGINT)
        return usual(received)

    server.script[call] = answer


def asked_twice(server: OpenAIServer) -> list[str]:
    seen: set[str] = set()
    return [r.name for r in server.requests if content_of(r) in seen or seen.add(content_of(r))]  # type: ignore[func-returns-value]


def test_a_plan_whose_making_is_interrupted_is_left_as_far_as_it_came_and_taken_up_again(
    aeon: RunAeon, server: OpenAIServer, given: tuple[str, ...], tmp_path: Path
) -> None:
    interrupting(server, "semantic_validation")
    ended = aeon(*given, "out=mine.yaml", "execution.grace_seconds=30")
    directory = directory_in(tmp_path)
    assert ended.status == 130
    assert not (tmp_path / "mine.yaml").exists()
    assert "# Cut short: interrupted." in (directory / "plan.yaml").read_text()
    assert load_workflow(directory / "plan.yaml").content.steps
    assert f"python -m aeon plan resume={directory.relative_to(tmp_path)}" in ended.err
    ended = aeon("plan", f"resume={directory}", "out=mine.yaml")
    assert ended.status == 0
    assert [r.name for r in server.requests] == CALLS
    assert "Cut short" not in (tmp_path / "mine.yaml").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("call", ["task_profile", "plan", "semantic_validation", "refinement"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_plan_asks_again_what_came_to_nothing_and_nothing_that_was_usable(
    aeon: RunAeon,
    server: OpenAIServer,
    given: tuple[str, ...],
    tmp_path: Path,
    call: str,
    fault: str,
) -> None:
    before = Recorder(healthy(), lambda request: FAULTS[fault] if request.name == call else None)
    server.start_over(before.script)
    first = aeon(*given, "tools=builtin", *QUICK)
    assert before.unanswered
    assert "python -m aeon plan resume=" in first.err
    now = Recorder(healthy(), lambda _: None)
    server.start_over(now.script)
    ended = aeon("plan", f"resume={directory_in(tmp_path)}", "out=mine.yaml")
    assert ended.status == 0
    assert load_workflow(tmp_path / "mine.yaml").content.steps
    assert not now.answered & before.answered
    assert now.names[call]


@pytest.mark.parametrize("call", ["task_profile", "plan", "semantic_validation", "refinement"])
def test_a_key_that_is_refused_while_a_plan_is_made_ends_it_with_the_words_of_the_server(
    aeon: RunAeon, server: OpenAIServer, given: tuple[str, ...], call: str
) -> None:
    server.script[call] = Failure(401, body={"error": {"message": "no such key"}})
    ended = aeon(*given, *QUICK)
    assert ended.status == 1
    assert "no such key" in ended.err
    assert "python -m aeon plan resume=" in ended.err


def test_before_there_is_a_plan_the_way_on_is_said(
    aeon: RunAeon, server: OpenAIServer, given: tuple[str, ...], tmp_path: Path
) -> None:
    interrupting(server, "task_profile")
    ended = aeon(*given)
    directory = directory_in(tmp_path)
    assert (ended.status, ended.out) == (130, "")
    assert not (directory / "plan.yaml").exists()
    assert f"python -m aeon plan resume={directory.relative_to(tmp_path)}" in ended.err


def test_a_plan_that_a_cap_cut_short_goes_on_for_what_is_missing(
    aeon: RunAeon, server: OpenAIServer, given: tuple[str, ...], tmp_path: Path
) -> None:
    assert aeon(*given, "limits.max_llm_calls=2").status == 3
    ended = aeon("plan", f"resume={directory_in(tmp_path)}", "limits.max_llm_calls=null")
    assert ended.status == 0
    assert [r.name for r in server.requests] == CALLS


@pytest.mark.slow
def test_a_run_goes_on_from_the_making_of_a_plan(
    aeon: RunAeon, server: OpenAIServer, given: tuple[str, ...], tmp_path: Path
) -> None:
    assert aeon(*given).status == 0
    assert aeon(f"resume={directory_in(tmp_path)}").status == 0
    assert [r.name for r in server.requests][: len(CALLS) + 1] == [*CALLS, "step"]
    assert asked_twice(server) == []


@pytest.mark.slow
def test_the_command_of_a_resumed_plan_runs_it_with_what_it_was_first_given(
    aeon: RunAeon, server: OpenAIServer, given: tuple[str, ...], tmp_path: Path
) -> None:
    assert aeon(*given, "inputs.a=some text", "limits.max_llm_calls=2").status == 3
    ended = aeon(
        "plan", f"resume={directory_in(tmp_path)}", "limits.max_llm_calls=null", "out=mine.yaml"
    )
    command = ended.err.split("Run it: python -m aeon ")[1].split()
    assert command[0] == "plan_file=mine.yaml"
    assert aeon(*command).status == 0
    assert "some text" in str(server.requests[-1].body["messages"])


@pytest.mark.slow
def test_a_plan_whose_maker_is_killed_is_there_and_taken_up_again(
    aeon: RunAeon,
    server: OpenAIServer,
    given: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual: Any = server.script["semantic_validation"]
    asked, killed = threading.Event(), threading.Event()

    def hang(received: Received) -> Any:
        asked.set()
        killed.wait(60)
        return usual(received)

    server.script["semantic_validation"] = hang
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    program = subprocess.Popen([sys.executable, "-m", "aeon", *given], stdout=subprocess.DEVNULL)
    directory = None
    assert asked.wait(60)
    while not list(tmp_path.glob("outputs/*/*/plan.yaml")):
        assert program.poll() is None
    program.kill()
    program.wait()
    killed.set()
    directory = directory_in(tmp_path)
    assert load_workflow(directory / "plan.yaml").content.steps
    server.script["semantic_validation"] = usual
    assert aeon("plan", f"resume={directory}").status == 0
    assert [r.name for r in server.requests] == [*CALLS[:3], *CALLS[2:]]
