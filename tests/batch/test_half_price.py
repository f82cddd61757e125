"""Runs through the provider's batch interface: the same answers, in as few batches as there are phases, at half the
price, and none paid for twice."""

import base64
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon
from aeon.cli.main import main
from aeon.domain.result import RunResult
from aeon.kernel.control import RunControl
from tests.support.batch_server import BatchServer, Fate
from tests.support.input_files import make_png
from tests.support.openai_server import Failure
from tests.support.simulated_server import simulated

FAST = ("provider.batch=true", "provider.batch_wait_seconds=2", "provider.batch_poll_seconds=0.1")
PRICES = "provider.prices={scripted-1: {input: 1, output: 10}}"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[BatchServer]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("aeon.llm.openai.batches.rounds._LOOK_SECONDS", 0.05)
    with BatchServer(simulated()) as running:
        running.seconds = 0.05
        yield running


def aeon(url: str, *overrides: str) -> Aeon:
    given = [
        "provider=openai",
        f"provider.base_url={url}",
        "provider.retry.initial_seconds=0.01",
        PRICES,
        *overrides,
    ]
    return Aeon.from_config(given, environ={})


def lines_noted(journal: Path) -> int:
    import sqlite3

    with sqlite3.connect(journal) as file:
        return int(file.execute("SELECT count(*) FROM requests").fetchone()[0])


@pytest.mark.slow
def test_a_run_is_the_same_at_half_the_price(server: BatchServer, tmp_path: Path) -> None:
    with aeon(server.url) as one, aeon(server.url, *FAST) as other:
        whole = one.run("plan a move")
        half = other.run("plan a move", directory=tmp_path / "run")
        assert one.hashes == other.hashes
        assert other.spent.cost == half.usage.total.cost
    assert (half.answer, half.passes, half.scores) == (whole.answer, whole.passes, whole.scores)
    assert whole.usage.total.cost
    assert half.usage.total.cost == pytest.approx(whole.usage.total.cost / 2)
    assert lines_noted(tmp_path / ".aeon" / "batches.sqlite") == 0
    sizes = [made.size for made in server.batches]
    assert max(sizes) > 1  # parallel steps go together
    assert sum(sizes) == whole.usage.total.requests


@pytest.mark.slow
def test_files_go_with_every_request_of_a_batch_and_into_no_journal(
    server: BatchServer, tmp_path: Path
) -> None:
    picture = make_png(noise=os.urandom(36))
    (tmp_path / "photo.png").write_bytes(picture)
    sent = base64.b64encode(picture).decode()
    photo = "input_files.photo=photo.png"
    with aeon(server.url, photo) as one, aeon(server.url, photo, *FAST) as other:
        whole = one.run("plan a move")
        half = other.run("plan a move", directory=tmp_path / "run")
    assert half.answer == whole.answer
    assert half.usage.total.cost == pytest.approx((whole.usage.total.cost or 0) / 2)
    assert len(server.requests) == half.usage.total.requests
    with_files = [line for line in server.requests if f"base64,{sent}" in json.dumps(line)]
    assert len(with_files) == len(server.requests)
    assert {line["body"]["messages"][-1]["content"][1]["type"] for line in with_files} == {
        "image_url"
    }
    left = [*(tmp_path / ".aeon").glob("*.sqlite*"), *(tmp_path / "run").glob("*[el]")]
    assert {path.name for path in left} >= {"batches.sqlite", "store.sqlite", "events.jsonl"}
    assert not [
        path for path in left if path.suffix != ".html" and sent.encode() in path.read_bytes()
    ]


@pytest.mark.slow
def test_a_batch_that_was_under_way_is_gone_on_with_for_the_same_file_alone(
    server: BatchServer, tmp_path: Path
) -> None:
    photo = tmp_path / "photo.png"
    photo.write_bytes(make_png(noise=os.urandom(36)))
    given = ("input_files.photo=photo.png", *FAST)
    server.fates = [Fate(seconds=1.5)] * 3

    def begin_and_stop() -> None:
        made = len(server.batches)
        control = RunControl()
        with aeon(server.url, *given) as one:
            stopper = threading.Thread(
                target=lambda: (
                    _wait_for(lambda: len(server.batches) > made),
                    control.request_stop(),
                )
            )
            stopper.start()
            one.run("plan a move", control=control)
            stopper.join()

    begin_and_stop()
    assert len(server.batches) == 1
    with aeon(server.url, *given) as one:
        assert one.run("plan a move").converged
    first = [batch.lines[0]["body"] for batch in server.batches].count(
        server.batches[0].lines[0]["body"]
    )
    assert first == 1
    photo.write_bytes(make_png(noise=os.urandom(36)))
    with aeon(server.url, *given) as one:
        assert one.run("plan a move").converged
    asked = [json.dumps(line["body"], sort_keys=True) for line in server.requests]
    assert len(set(asked)) == len(asked)


@pytest.mark.slow
def test_failed_lines_and_an_expired_batch_leave_no_trace_in_the_result(
    server: BatchServer,
) -> None:
    with aeon(server.url, *FAST) as one:
        before = [
            result.answer
            for result in one.run_many(["plan a move", "plan a trip"], max_concurrency=2)
        ]
        server.fates = [Fate(seconds=0.05)] * len(server.batches)
        server.fates += [
            Fate(seconds=0.05, failing={1: 500}),
            Fate("expired", 0.05, left=(2,)),
            Fate(lost=(1,)),
        ]
        after = [
            result.answer
            for result in one.run_many(["plan a move", "plan a trip"], max_concurrency=2)
        ]
    assert sorted(map(str, before)) == sorted(map(str, after))


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on_with_the_batch_that_was_under_way(
    server: BatchServer, tmp_path: Path
) -> None:
    server.fates = [Fate(seconds=0.05), Fate(seconds=0.05), Fate(seconds=1.5)]
    control, directory = RunControl(), tmp_path / "stopped"
    with aeon(server.url, *FAST) as one:
        stopper = threading.Thread(
            target=lambda: (_wait_for(lambda: len(server.batches) == 3), control.request_stop())
        )
        stopper.start()
        began: RunResult = one.run("plan a move", directory=directory, control=control)
        stopper.join()
    assert began.termination_reason == "interrupted"
    made = len(server.batches)
    with Aeon.from_config([f"resume={directory}"], environ={}) as two:
        assert two.run(directory=tmp_path / "resumed").converged
    bodies = Counter(json.dumps(line["body"]) for line in server.requests)
    assert made == 3
    assert set(bodies.values()) == {1}


def dataset(folder: Path, count: int) -> Path:
    path = folder / "tasks.jsonl"
    path.write_text(
        "".join(
            json.dumps({"id": f"r{n}", "task": f"plan a move number {n}"}) + "\n"
            for n in range(count)
        )
    )
    return path


def command(server: BatchServer, folder: Path, count: int) -> list[str]:
    return [
        "batch",
        f"dataset={dataset(folder, count)}",
        f"out={folder / 'out.jsonl'}",
        f"batch.parallel={count}",
        "provider=openai",
        f"provider.base_url={server.url}",
        *FAST,
    ]


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in path.read_text().splitlines()]


@pytest.mark.slow
def test_rows_go_through_their_phases_together(
    server: BatchServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(command(server, tmp_path, 50)) == 0
    found, batches = rows(tmp_path / "out.jsonl"), [made.size for made in server.batches]
    assert {row["converged"] for row in found} == {True}
    names = [
        {line["body"]["response_format"]["json_schema"]["name"] for line in made.lines}
        for made in server.batches
    ]
    assert [len(name) for name in names] == [1] * len(names)
    # Steps of a pass are one phase, and each pass has a review and an assessment behind its steps.
    assert len(batches) == 5 + 3 * max(row["passes"] for row in found)
    assert batches[0] == 50
    assert sum(batches) == sum(row["calls"] for row in found)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "out.jsonl",
        "out.jsonl.html",
        "tasks.jsonl",
    ]
    assert "batch_1: completed, 50 of 50 answered" in capfd.readouterr().err


@pytest.mark.slow
def test_an_out_file_of_a_plain_batch_goes_on_with_batches(
    server: BatchServer, tmp_path: Path
) -> None:
    assert main([*command(server, tmp_path, 2), "provider.batch=false"]) == 0
    before = (tmp_path / "out.jsonl").read_bytes()
    assert main(command(server, tmp_path, 2)) == 0
    assert (tmp_path / "out.jsonl").read_bytes() == before
    assert server.batches == []


def _wait_for(condition: Callable[[], Any], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)


def _calls(server: BatchServer, method: str, path: str) -> int:
    return sum(1 for call in server.calls if call == (method, path))


MOMENTS: dict[str, Callable[[BatchServer, int], Any]] = {
    "a file is being uploaded": lambda server, n: _calls(server, "POST", "/v1/files") >= n,
    "a batch is being made": lambda server, n: _calls(server, "POST", "/v1/batches") >= n,
    "a batch is under way": lambda server, n: _calls(server, "GET", "/v1/batches/*") > 3 * n,
    "results are being read": lambda server, n: _calls(server, "GET", "/v1/files/*/content") >= n,
}


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_loses_nothing_and_nothing_is_asked_twice(
    server: BatchServer, tmp_path: Path, moment: str
) -> None:
    asked = [sys.executable, "-m", "aeon", *command(server, tmp_path, 6)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    server.seconds, server.slow = 0.3, 0.05
    ends = []
    for number in (1, 4, 7):
        process = subprocess.Popen(asked, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
        _wait_for(lambda: MOMENTS[moment](server, number) or process.poll() is not None)  # noqa: B023
        process.send_signal(signal.SIGKILL)
        ends.append(process.wait())
    # How many rounds there are depends on the machine: the last may be over before its moment.
    assert ends[0] == -signal.SIGKILL
    assert set(ends) <= {-signal.SIGKILL, 0}
    done = subprocess.run(
        asked, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    found = rows(tmp_path / "out.jsonl")
    assert sorted(row["id"] for row in found) == [f"r{n}" for n in range(6)]
    bodies = Counter(json.dumps(line["body"]) for line in server.requests)
    assert {body[:200]: count for body, count in bodies.items() if count > 1} == {}


INTERFACE = ("POST", "/v1/files")


@pytest.mark.slow
def test_an_interface_that_is_down_for_a_while_costs_no_row_and_each_try_is_shown(
    server: BatchServer,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("aeon.llm.openai.batches.round._FACTOR", 0.01)
    server.trouble[INTERFACE] = [Failure(503)] * 6
    assert main(command(server, tmp_path, 3)) == 0
    assert {row["ended"] for row in rows(tmp_path / "out.jsonl")} == {"converged"}
    assert "retrying: " in capfd.readouterr().err


@pytest.mark.slow
def test_an_interface_that_stays_down_stops_the_batch_and_fails_no_row(
    server: BatchServer,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("aeon.llm.openai.batches.round._FACTOR", 0.01)
    server.trouble[INTERFACE] = [Failure(503)] * 1000
    assert main(command(server, tmp_path, 3)) == 1
    told = capfd.readouterr().err
    assert "Stopped: the batch interface does not answer: " in told
    assert "(tried for " in told
    assert "Repeat the command to resume" in told
    assert rows(tmp_path / "out.jsonl") == []
    tries = 1000 - len(server.trouble[INTERFACE])
    assert tries == 8  # of one round, in which all rows wait

    server.trouble.clear()
    assert main(command(server, tmp_path, 3)) == 0
    assert {row["ended"] for row in rows(tmp_path / "out.jsonl")} == {"converged"}
    bodies = Counter(json.dumps(line["body"]) for line in server.requests)
    assert set(bodies.values()) == {1}
