"""A provider that is down for a while costs a run, a batch and a sweep nothing; one that stays down stops them."""

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aeon.cli.main import main
from tests.integration.faults import CALLS, Recorder, healthy
from tests.support.openai_server import Answer, Failure, OpenAIServer, Received
from tests.support.simulated_server import simulated

QUICK = (
    "provider.retry.initial_seconds=0.02",
    "provider.retry.jitter_seconds=0.02",
    "provider.breaker.open_seconds=0.1",
)
ROWS = 30


class Outage:
    """Answers `first` requests, then fails for `seconds`, or until `ends`; counts what it refused."""

    def __init__(self, status: int, seconds: float, first: int = 0) -> None:
        self.status, self.seconds, self.first = status, seconds, first
        self.refused, self._began, self._asked = 0, 0.0, 0
        self._lock, self._answers = threading.Lock(), simulated()
        self.is_over = False

    def __call__(self, received: Received) -> Answer:
        with self._lock:
            self._asked += 1
            if self._asked > self.first and not self.is_over:
                self._began = self._began or time.monotonic()
                if time.monotonic() - self._began < self.seconds:
                    self.refused += 1
                    return Failure(self.status)
        answer = self._answers[received.name]
        assert callable(answer)
        return answer(received)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    """A server, and a dataset in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    rows = (json.dumps({"id": f"r{n}", "task": f"name {n} lakes"}) for n in range(ROWS))
    Path("tasks.jsonl").write_text("\n".join(rows) + "\n")
    with OpenAIServer(simulated()) as started:
        yield started


def fail(server: OpenAIServer, outage: Outage) -> None:
    server.script = dict.fromkeys(server.script, outage)


def aeon(server: OpenAIServer, *arguments: str) -> int:
    place = ("provider=openai", f"provider.base_url={server.url}", *QUICK)
    return main([*arguments, *place])


def batch(server: OpenAIServer, *overrides: str) -> int:
    return aeon(server, "batch", "dataset=tasks.jsonl", "out=out.jsonl", "mode=core", *overrides)


def rows() -> list[dict[str, Any]]:
    return [json.loads(text) for text in Path("out.jsonl").read_text().splitlines()]


def asked_once(server: OpenAIServer) -> bool:
    answered = Counter(json.dumps(request.body) for request in server.requests)
    return max(answered.values()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("status", [503, 500, 429])
def test_an_outage_costs_a_batch_no_row(
    server: OpenAIServer, capfd: pytest.CaptureFixture[str], status: int
) -> None:
    outage = Outage(status, 1.0, first=20)
    fail(server, outage)
    assert batch(server) == 0
    assert Counter(row["ended"] for row in rows()) == {"completed": ROWS}
    told = capfd.readouterr().err
    if status != 429:  # a busy server is given a moment more before it counts as down
        assert outage.refused < 100
        assert "at most 600 s (batch.patience_seconds)" in told


@pytest.mark.slow
def test_while_the_endpoint_cools_down_no_new_row_is_taken(server: OpenAIServer) -> None:
    outage = Outage(503, 1.0)
    fail(server, outage)
    assert batch(server, "batch.parallel=4") == 0
    firsts = {request.user for request in server.requests[: outage.refused]}
    assert len(firsts) <= 4


@pytest.mark.slow
def test_a_batch_whose_provider_stays_down_stops_and_has_burnt_nothing(
    server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    outage = Outage(503, 10**9, first=20)
    fail(server, outage)
    assert batch(server, "batch.patience_seconds=0.5") == 1
    told = capfd.readouterr().err
    assert "Stopped: " in told
    assert "batch.patience_seconds=0.5" in told
    assert "Repeat the command to resume" in told
    assert {row["ended"] for row in rows()} <= {"completed"}
    answered = len(server.requests) - outage.refused
    server.start_over(simulated())
    assert batch(server) == 0
    assert Counter(row["ended"] for row in rows()) == {"completed": ROWS}
    assert sum(row["calls"] for row in rows()) == len(server.requests) + answered
    assert asked_once(server)


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_whichever_call_meets_the_outage_no_row_is_final_and_nothing_is_asked_twice(
    server: OpenAIServer, call: str
) -> None:
    Path("tasks.jsonl").write_text(json.dumps({"id": "one", "task": "name a lake"}) + "\n")
    is_down = False

    def fail(received: Received) -> Answer | None:
        nonlocal is_down
        is_down = is_down or received.name == call
        return Failure(503) if is_down else None

    before = Recorder(healthy(), fail)
    server.start_over(before.script)
    given = ("mode=adaptive", "tools=builtin", "provider.patience_seconds=0")
    assert batch(server, *given, "batch.patience_seconds=0.1") == 1
    now = Recorder(healthy(), lambda _: None)
    server.start_over(now.script)
    assert batch(server, *given) == 0
    assert [row["ended"] for row in rows()] == ["converged"]
    assert not now.answered & before.answered


@pytest.mark.slow
def test_a_row_whose_request_alone_fails_is_failed_and_the_others_are_done(
    server: OpenAIServer,
) -> None:
    plain = server.script["plan"]
    assert callable(plain)
    poison = "name 7 lakes"
    server.script["plan"] = lambda received: (
        Failure(500) if poison in received.user else plain(received)
    )
    assert batch(server, "batch.parallel=4") == 1
    ended = Counter(row["ended"] for row in rows())
    assert ended == {"completed": ROWS - 1, "failed": 1}


@pytest.mark.slow
@pytest.mark.parametrize("status", [503, 429])
def test_an_outage_costs_a_sweep_no_job(server: OpenAIServer, status: int) -> None:
    fail(server, Outage(status, 1.0, first=3))
    values = ",".join(f"0.{tenth}" for tenth in range(1, 9))
    of_sweep = ("-m", "task=name three lakes", "mode=core", "store.share_in_multirun=false")
    assert aeon(server, *of_sweep, f"convergence.completeness={values}") == 0


@pytest.mark.slow
def test_a_sweep_whose_provider_stays_down_stops_and_goes_on(
    server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    fail(server, Outage(503, 10**9, first=3))
    of_sweep = ("-m", "task=name three lakes", "mode=core", "store.share_in_multirun=false")
    swept = "convergence.completeness=0.1,0.2,0.3,0.4,0.5,0.6"
    assert aeon(server, *of_sweep, swept, "sweep.patience_seconds=0.5") == 1
    told = capfd.readouterr().err
    assert "sweep.patience_seconds=0.5" in told
    [directory] = Path("multirun").glob("*/*")
    server.start_over(simulated())
    assert main([f"sweep.resume={directory}"]) == 0
    statuses = [path.read_text() for path in directory.glob("*/.hydra/exit_status")]
    assert statuses == ["0\n"] * 6


@pytest.mark.slow
@pytest.mark.parametrize("status", [503, 429])
def test_an_outage_costs_a_run_nothing(
    server: OpenAIServer, capfd: pytest.CaptureFixture[str], status: int
) -> None:
    fail(server, Outage(status, 1.0, first=2))
    assert aeon(server, "task=name three lakes", "progress=plain") == 0
    assert "again in" in capfd.readouterr().err


@pytest.mark.slow
def test_a_run_whose_provider_stays_down_ends_failed_when_its_patience_is_over(
    server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    fail(server, Outage(503, 10**9, first=2))
    began = time.monotonic()
    assert aeon(server, "task=name three lakes", "provider.patience_seconds=0.5") == 1
    assert time.monotonic() - began >= 0.5
    told = capfd.readouterr().err
    assert "provider.patience_seconds=0.5" in told
    [directory] = Path("outputs").glob("*/*")
    server.start_over(simulated())
    assert main([f"resume={directory}"]) == 0
    assert asked_once(server)
