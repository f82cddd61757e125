"""An answer that came to nothing is no answer in batches and sweeps either: the next start asks that call again, and
nothing else. Each row, and each job, meets one fault in one call; the server counts what it is asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aeon.cli.main import main
from aeon.llm.dialects.server import forget_servers
from tests.integration.faults import CALLS, FAULTS, Recorder, healthy
from tests.support.openai_server import Answer, OpenAIServer, Received

TASKS = {fault: f"task that meets {fault.replace(' ', '_')} and goes on" for fault in FAULTS}
CELLS = [
    pytest.param(mode, call, id=f"{mode}-{call}")
    for mode, calls in (
        ("adaptive", CALLS),
        ("core", ("plan", "step", "tool_arguments")),
        ("single", ("direct",)),
    )
    for call in calls
]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with OpenAIServer({}) as started:
        yield started


def answer_to(server: OpenAIServer, mode: str, call: str = "") -> Recorder:
    """The server answers well, but for one call, which it answers each task with the fault that the task names."""

    def faulty(request: Received) -> Answer | None:
        return FAULTS[fault_of(request.user)] if request.name == call else None

    recorder = Recorder(healthy(is_core=mode == "core"), faulty)
    server.start_over(recorder.script)
    forget_servers()
    return recorder


def fault_of(text: str) -> str:
    (fault,) = (fault for fault, task in TASKS.items() if task in text)
    return fault


def asked_for(server: OpenAIServer) -> set[str]:
    """The faults whose tasks the server was asked for, repairs aside: they do not repeat the task."""
    return {fault_of(request.user) for request in server.requests if request.name != "repair"}


def overrides(server: OpenAIServer, mode: str) -> list[str]:
    quick = ["provider.retry.initial_seconds=0", "provider.retry.jitter_seconds=0"]
    place = ["provider=openai", f"provider.base_url={server.url}", "provider.model=scripted"]
    tools = "none" if mode == "single" else "builtin"
    return [*place, *quick, f"tools={tools}", f"mode={mode}", "progress=none"]


def ends_of_rows() -> dict[str, bool]:
    """Whether each row of `out.jsonl` ended well, by its fault."""
    lines = [json.loads(text) for text in Path("out.jsonl").read_text().splitlines()]
    return {line["id"]: line["ended"] in ("converged", "completed") for line in lines}


def ends_of_jobs() -> dict[str, bool]:
    """Whether each job of `sweep` ended well, by its fault."""
    found = {}
    for path in Path("sweep").glob("[0-9]*"):
        task = json.loads((path / "run.json").read_text())["task"]
        found[fault_of(task)] = (path / ".hydra" / "exit_status").read_text() == "0\n"
    return found


def batch(server: OpenAIServer, mode: str) -> tuple[int, dict[str, bool]]:
    rows = (json.dumps({"id": fault, "task": task}) for fault, task in TASKS.items())
    Path("tasks.jsonl").write_text("\n".join(rows) + "\n")
    status = main(["batch", "dataset=tasks.jsonl", "out=out.jsonl", *overrides(server, mode)])
    return status, ends_of_rows()


def sweep(server: OpenAIServer, mode: str) -> tuple[int, dict[str, bool]]:
    if Path("sweep").exists():
        return main(["sweep.resume=sweep"]), ends_of_jobs()
    files = []
    for fault, task in TASKS.items():
        files.append(f"{fault.replace(' ', '_')}.md")
        Path(files[-1]).write_text(task)
    given = ["-m", f"task_file={','.join(files)}", "hydra.sweep.dir=sweep"]
    return main([*given, *overrides(server, mode)]), ends_of_jobs()


@pytest.mark.parametrize("run", [batch, sweep])
@pytest.mark.parametrize(("mode", "call"), CELLS)
def test_the_next_start_asks_again_what_came_to_nothing_and_nothing_that_was_usable(
    server: OpenAIServer, run: Callable[..., tuple[int, dict[str, bool]]], mode: str, call: str
) -> None:
    before = answer_to(server, mode, call)
    _, first = run(server, mode)
    assert set(first) == set(FAULTS)
    assert before.unanswered

    now = answer_to(server, mode)
    assert run(server, mode) == (0, dict.fromkeys(FAULTS, True))
    assert not now.answered & before.answered
    assert now.names["repair"] == 0
    assert asked_for(server) == {fault for fault, ended_well in first.items() if not ended_well}

    after = answer_to(server, mode)
    assert run(server, mode)[0] == 0
    assert not after.names


def batch_of_one(server: OpenAIServer) -> None:
    Path("tasks.jsonl").write_text(json.dumps({"id": "one", "task": TASKS["refusal"]}) + "\n")
    given = ["dataset=tasks.jsonl", "out=out.jsonl", "limits.max_passes=1"]
    assert main(["batch", *given, *overrides(server, "adaptive")]) == 3


def sweep_of_one(server: OpenAIServer) -> None:
    if Path("sweep").exists():
        assert main(["sweep.resume=sweep"]) == 3
        return
    given = ["-m", f"task={TASKS['refusal']}", "hydra.sweep.dir=sweep", "limits.max_passes=1"]
    assert main([*given, *overrides(server, "adaptive")]) == 3


@pytest.mark.parametrize("run", [batch_of_one, sweep_of_one])
def test_a_lost_review_alone_is_asked_for_again(
    server: OpenAIServer, run: Callable[[OpenAIServer], None]
) -> None:
    def lose_first(request: Received) -> Answer | None:
        is_first = request.name == "semantic_validation" and not before.names[request.name]
        return FAULTS["refusal"] if is_first else None

    before = Recorder(healthy(), lose_first)
    server.start_over(before.script)
    run(server)
    assert before.unanswered

    now = answer_to(server, "adaptive")
    run(server)
    assert now.names["semantic_validation"]
    assert not now.answered & before.answered

    after = answer_to(server, "adaptive")
    run(server)
    assert not after.names
