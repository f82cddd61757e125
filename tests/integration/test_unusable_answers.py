"""An answer that came to nothing is no answer: a run that is resumed asks that call again, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from aeon import Aeon, RunResult
from aeon.llm.dialects.server import forget_servers
from tests.integration.faults import CALLS, FAULTS, Recorder, healthy
from tests.integration.wire import TASK, overrides
from tests.support.openai_server import Answer, Failure, OpenAIServer, Received

USED_IN_CORE = ("plan", "step", "tool_arguments")
QUICK = (("convergence", "refusal"), ("step", "bad JSON"))
CELLS = [
    pytest.param(
        mode,
        call,
        fault,
        id=f"{mode}-{call}-{fault}",
        # The others are much alike.
        marks=()
        if (mode, call) == ("core", "plan") or (call, fault) in QUICK
        else pytest.mark.slow,
    )
    for mode, calls in (("adaptive", CALLS), ("core", USED_IN_CORE), ("single", ("direct",)))
    for call in calls
    for fault in FAULTS
]


@pytest.fixture
def server(start_server) -> OpenAIServer:
    return start_server({})


def run(server: OpenAIServer, directory: Path, *more: str, tools: str = "builtin") -> RunResult:
    forget_servers()  # what an unusable answer says of a server changes what goes over the wire
    is_resumed = any(text.startswith("resume=") for text in more)
    given = overrides(server.url, f"tools={tools}", *more)
    with Aeon.from_config(given, environ={"OPENAI_API_KEY": "sk-test"}) as aeon:
        return aeon.run(None if is_resumed else TASK, directory=directory)


def answer_to(server: OpenAIServer, mode: str, call: str = "", fault: Answer = "") -> Recorder:
    """The server answers well, but for one call."""

    def faulty(request: Received) -> Answer | None:
        return fault if request.name == call else None

    recorder = Recorder(healthy(is_core=mode == "core"), faulty)
    server.start_over(recorder.script)
    return recorder


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "call", "fault"), CELLS)
def test_a_resumed_run_asks_again_what_came_to_nothing_and_nothing_that_was_usable(
    server: OpenAIServer, tmp_path: Path, mode: str, call: str, fault: str
) -> None:
    before = answer_to(server, mode, call, FAULTS[fault])
    tools = "none" if mode == "single" else "builtin"
    first = run(server, tmp_path / "first", f"mode={mode}", tools=tools)
    assert before.unanswered
    now = answer_to(server, mode)
    resumed = run(server, tmp_path / "resumed", f"resume={tmp_path / 'first'}", tools=tools)
    assert resumed.exit_status == 0
    assert not now.answered & before.answered
    assert now.names["repair"] == 0
    if first.exit_status == 0:
        assert not now.names
    else:
        assert any(now.answered & before.unanswered)
    after = answer_to(server, mode)
    third = run(server, tmp_path / "third", f"resume={tmp_path / 'resumed'}", tools=tools)
    assert third.exit_status == 0
    assert not after.names


@pytest.mark.parametrize("mode", ["adaptive", pytest.param("core", marks=pytest.mark.slow)])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_call_whose_repair_came_to_nothing_is_asked_again_with_its_repair(
    server: OpenAIServer, tmp_path: Path, mode: str, fault: str
) -> None:
    def faulty(request: Received) -> Answer | None:
        return {"plan": FAULTS["bad JSON"], "repair": FAULTS[fault]}.get(request.name)

    before = Recorder(healthy(is_core=mode == "core"), faulty)
    server.start_over(before.script)
    assert run(server, tmp_path / "first", f"mode={mode}").exit_status == 1
    assert before.names["repair"]
    now = answer_to(server, mode)
    resumed = run(server, tmp_path / "resumed", f"resume={tmp_path / 'first'}")
    assert resumed.exit_status == 0
    assert now.names["plan"] == 1
    assert not now.answered & before.answered


@pytest.mark.slow
@pytest.mark.parametrize("call", ["task_profile", "semantic_validation"])
def test_what_a_run_that_ended_well_went_without_is_asked_again_only_if_that_is_wanted(
    server: OpenAIServer, tmp_path: Path, call: str
) -> None:
    recorder = Recorder(healthy(), lambda request: _only_first(recorder, request, call))
    server.start_over(recorder.script)
    assert run(server, tmp_path / "first").exit_status == 0
    assert recorder.unanswered
    now = answer_to(server, "adaptive")
    parent = f"resume={tmp_path / 'first'}"
    assert run(server, tmp_path / "same", parent).exit_status == 0
    assert not now.names
    assert run(server, tmp_path / "whole", parent, "store.retry_unusable=all").exit_status == 0
    assert now.names[call] == 1


def _only_first(recorder: Recorder, request: Received, call: str) -> Answer | None:
    return FAULTS["refusal"] if request.name == call and not recorder.names[call] else None


def test_a_replay_gives_what_was_recorded_whether_it_was_usable_or_not(
    server: OpenAIServer, tmp_path: Path
) -> None:
    answer_to(server, "adaptive", "plan", FAULTS["bad JSON"])
    first = run(server, tmp_path / "first")
    asked = len(server.requests)
    replayed = run(server, tmp_path / "again", "store=replay", f"store.path={tmp_path / 'first'}")
    assert replayed.error == first.error
    assert replayed.usage == first.usage
    assert len(server.requests) == asked


def test_an_original_whose_repair_did_not_come_back_is_not_asked_again(
    server: OpenAIServer, tmp_path: Path
) -> None:
    down = Recorder(healthy(), _broken_plan)
    server.start_over(down.script)
    at_once = ("provider.retry.attempts=1", "provider.patience_seconds=0")
    assert run(server, tmp_path / "first", *at_once).exit_status == 1
    up = Recorder({**healthy(), "repair": healthy()["plan"]}, lambda _: None)
    server.start_over(up.script)
    assert run(server, tmp_path / "resumed", f"resume={tmp_path / 'first'}").exit_status == 0
    assert up.names["plan"] == 0
    assert up.names["repair"] == 1


def _broken_plan(request: Received) -> Answer | None:
    return {"plan": '{"tool": "calculator"', "repair": Failure(503)}.get(request.name)


def test_one_empty_answer_is_asked_again_at_once(server: OpenAIServer, tmp_path: Path) -> None:
    recorder = Recorder(
        healthy(is_core=True),
        lambda request: FAULTS["null"] if not recorder.names[request.name] else None,
    )
    server.start_over(recorder.script)
    assert run(server, tmp_path / "run", "mode=core").exit_status == 0
    assert set(recorder.unanswered.values()) == {1}
