"""A sweep's jobs side by side in one process, asked of a real server: what they share, what stops them, going on."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aeon.config.compose import hydra_private
from aeon.domain.errors import StoreFailed
from aeon.files.text import hold
from aeon.store.models import Entry
from aeon.store.sqlite_store import SqliteStore
from tests.cli.conftest import RunAeon
from tests.support.batch_server import BatchServer
from tests.support.openai_server import Failure, OpenAIServer
from tests.support.simulated_server import simulated

SWEEP = ("-m", "task=x", "hydra.sweep.dir=sweep", "progress=none", "provider.require_key=false")


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(simulated(delay=0.05)) as running:
        yield running


def at(server: OpenAIServer) -> tuple[str, ...]:
    return *SWEEP, "provider=openai", f"provider.base_url={server.url}"


def bodies(server: OpenAIServer) -> Counter[str]:
    return Counter(json.dumps(request.body, sort_keys=True) for request in server.requests)


def results(root: Path) -> dict[int, dict[str, Any]]:
    found = root.glob("sweep/[0-9]*/result.json")
    return {
        int(path.parent.name.partition("-")[0]): json.loads(path.read_bytes()) for path in found
    }


@pytest.mark.slow
@pytest.mark.parametrize("store", ["record", "cache"])
def test_what_jobs_ask_alike_at_the_same_moment_is_asked_once(
    aeon: RunAeon, server: OpenAIServer, tmp_path: Path, store: str
) -> None:
    ended = aeon(*at(server), f"store={store}", "limits.max_passes=1,1,1,1,1,1", "sweep.parallel=6")
    assert ended.status == 3
    assert max(bodies(server).values()) == 1
    calls = [job["usage"]["total"]["requests"] for job in results(tmp_path).values()]
    assert len(set(calls)) == 1
    assert len(server.requests) == calls[0]


@pytest.mark.slow
def test_jobs_of_several_models_keep_the_limit_of_their_one_server(
    aeon: RunAeon, server: OpenAIServer
) -> None:
    asked = (
        *at(server),
        "provider.model=a,b,c,d",
        "limits.max_passes=1",
        "provider.max_concurrency=2",
    )
    assert aeon(*asked).status == 3
    assert {request.body["model"] for request in server.requests} == set("abcd")
    assert server.max_in_flight == 2


@pytest.mark.slow
def test_a_cap_on_calls_holds_for_all_jobs_together_and_the_rest_is_done_by_going_on(
    aeon: RunAeon, server: OpenAIServer, tmp_path: Path
) -> None:
    ended = aeon(*at(server), "store.sample=0,1,2,3", "sweep.max_llm_calls=20", "sweep.parallel=2")
    assert ended.status == 3
    assert len(server.requests) == 20
    assert "Stopping: sweep.max_llm_calls=20 is reached (20 used)" in ended.err
    assert re.search(r"^0 .* sweep\.max_llm_calls ", ended.err, re.MULTILINE)
    assert re.search(r"^3 .* not started ", ended.err, re.MULTILINE)
    assert (
        "To run the jobs that are missing, failed or waiting: python -m aeon sweep.resume=sweep"
        in ended.err
    )
    assert "aeon resume=" not in ended.err
    assert set(results(tmp_path)) == {0, 1}
    assert {job["termination_reason"] for job in results(tmp_path).values()} == {"interrupted"}
    assert aeon("sweep.resume=sweep", "sweep.max_llm_calls=null").status == 0
    assert [job["converged"] for _, job in sorted(results(tmp_path).items())] == [True] * 4
    assert (
        max(bodies(server).values()) == 4
    )  # as often as there are samples, which the server does not see


def test_a_cap_on_cost_needs_prices(aeon: RunAeon, server: OpenAIServer, tmp_path: Path) -> None:
    ended = aeon(
        *at(server), "ttl.base=9,10", "sweep.max_cost=1", "provider.model=nobody-sells-this"
    )
    assert ended.status == 2
    assert "sweep.max_cost=1: no price is configured for nobody-sells-this" in ended.err
    assert "or set sweep.max_cost to null" in ended.err
    assert not (tmp_path / "sweep").exists()
    assert not server.requests


@pytest.mark.slow
def test_a_cap_on_cost_stops_all_jobs_once_they_have_spent_it(
    aeon: RunAeon, server: OpenAIServer, tmp_path: Path
) -> None:
    prices = "provider.prices={*: {input: 0, output: 1000}}"  # 0.02 a call
    ended = aeon(
        *at(server), "store.sample=0,1,2,3", "sweep.max_cost=0.3", "sweep.parallel=2", prices
    )
    assert ended.status == 3
    assert "Stopping: sweep.max_cost=0.3 is reached (0.3" in ended.err
    assert re.search(r"^0  .* sweep\.max_cost ", ended.err, re.MULTILINE)
    cost = sum(job["usage"]["total"]["cost"] for job in results(tmp_path).values())
    assert (
        0.3 <= cost <= 0.3 + 2 * 8 * 0.02
    )  # what was under way: of each of two jobs, at most its steps
    assert len(results(tmp_path)) == 2


@pytest.mark.slow
def test_jobs_go_through_the_providers_batches_together(aeon: RunAeon, tmp_path: Path) -> None:
    with BatchServer(simulated()) as server:
        server.seconds = 0.05
        words = (
            *SWEEP,
            "provider=openai",
            f"provider.base_url={server.url}",
            "provider.batch=true",
        )
        words += (
            "provider.batch_wait_seconds=2",
            "provider.batch_poll_seconds=0.1",
            "sweep.parallel=3",
        )
        ended = aeon(*words, "store.sample=0,1,2")
        sizes = [made.size for made in server.batches]
    assert ended.status == 0
    requests = sum(job["usage"]["total"]["requests"] for job in results(tmp_path).values())
    assert sum(sizes) == requests
    assert len(sizes) < requests / 2  # of one job, most batches would have a single request


@pytest.mark.slow
def test_with_fail_fast_nothing_is_started_after_a_failure_and_only_what_failed_is_run_again(
    aeon: RunAeon, server: OpenAIServer, tmp_path: Path
) -> None:
    good = server.script["plan"]
    server.script["plan"] = Failure(400)
    first = aeon(*at(server), "ttl.base=9,10,11", "sweep.fail_fast=true", "sweep.parallel=1")
    assert first.status == 1
    assert "Stopping: sweep.fail_fast: job 0 failed. Nothing new is started." in first.err
    assert set(results(tmp_path)) == {0}
    server.script["plan"] = good
    assert aeon("sweep.resume=sweep").status == 0
    before = (
        len(server.requests),
        {number: job["run_id"] for number, job in results(tmp_path).items()},
    )
    again = aeon("sweep.resume=sweep")
    assert again.status == 0
    assert (
        len(server.requests),
        {number: job["run_id"] for number, job in results(tmp_path).items()},
    ) == before
    assert "Every job is done: nothing is run." in again.err
    assert "3 of 3 runs converged. " in again.err
    assert (tmp_path / "sweep" / ".before").is_dir()


@pytest.mark.slow
def test_a_full_disk_stops_all_jobs_before_more_is_paid_for(
    aeon: RunAeon, server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: SqliteStore, __: Entry) -> None:
        raise StoreFailed("the store cannot be written: no space left")

    with monkeypatch.context() as full:
        full.setattr(SqliteStore, "put", fail)
        ended = aeon(*at(server), "ttl.base=9,10,11", "sweep.parallel=1")
    assert ended.status == 1
    assert "Stopping: job 0: the store cannot be written: no space left" in ended.err
    assert set(results(tmp_path)) == {0}
    assert len(server.requests) == 1
    assert aeon("sweep.resume=sweep").status == 0
    assert set(results(tmp_path)) == {0, 1, 2}


@pytest.mark.slow
def test_a_job_that_ended_for_a_step_without_a_usable_answer_goes_on_with_the_multirun(
    aeon: RunAeon, server: OpenAIServer, tmp_path: Path
) -> None:
    server.start_over({**simulated(), "step": "no JSON", "repair": "no JSON"})
    first = aeon(*at(server), "mode=core", "ttl.base=9,10")
    assert first.status == 3
    assert (
        "To run the jobs that are missing, failed or waiting: python -m aeon sweep.resume=sweep"
        in first.err
    )
    assert all(job["unusable_steps"] for job in results(tmp_path).values())
    server.start_over(dict(simulated()))
    assert aeon("sweep.resume=sweep").status == 0
    assert {request.name for request in server.requests} == {"step"}


@pytest.mark.slow
def test_without_fail_fast_the_others_go_on_and_the_error_is_told_with_its_job(
    aeon: RunAeon, scenario: Path, tmp_path: Path
) -> None:
    ended = aeon(
        "-m", "task=x", "provider=simulated", f"provider.scenario={scenario},null", "progress=plain"
    )
    assert ended.status == 1
    lines = ended.err.splitlines()
    assert "job 0  Error: simulated by the scenario: auth" in lines
    assert any(line.startswith("job 1  Converged.") for line in lines)


@pytest.mark.slow
def test_a_multirun_that_was_killed_goes_on_and_no_answered_call_is_made_again(
    aeon: RunAeon, server: OpenAIServer, tmp_path: Path
) -> None:
    arguments = (
        *at(server),
        "ttl.base=9,10,11,12,13,14",
        "store.share_in_multirun=false",
        "sweep.parallel=2",
    )
    with subprocess.Popen(
        [sys.executable, "-m", "aeon", *arguments], cwd=tmp_path, stderr=subprocess.PIPE
    ) as process:
        while len(server.requests) < 60 and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    done = {number: job["run_id"] for number, job in results(tmp_path).items()}
    asked = len(server.requests)
    assert 0 < len(done) < 6
    ended = aeon("sweep.resume=sweep")
    assert ended.status == 0
    left = results(tmp_path)
    assert {number: left[number]["run_id"] for number in done} == done
    assert [job["converged"] for _, job in sorted(left.items())] == [True] * 6
    whole = sum(job["usage"]["total"]["requests"] for job in left.values())
    assert (
        asked <= len(server.requests) <= whole + 2 * 8
    )  # what was in flight: of each of two jobs, at most a batch


OPTION = """# @package limits
max_passes: {}
"""


@pytest.mark.slow
def test_the_jobs_that_are_left_have_the_settings_that_the_multirun_was_started_with(
    aeon: RunAeon, tmp_path: Path
) -> None:
    option = tmp_path / "conf" / "limits" / "mine.yaml"
    option.parent.mkdir(parents=True)
    option.write_text(OPTION.format(1), encoding="utf-8")
    given = (*SWEEP[:4], "provider=simulated", "limits=mine", "mode=core,adaptive")
    assert aeon("--config-dir", "conf", *given).status == 3
    shutil.rmtree(next(tmp_path.glob("sweep/1-*")))
    option.write_text(OPTION.format(2), encoding="utf-8")
    assert aeon("sweep.resume=sweep").status == 3
    again = results(tmp_path)[1]["configuration"]
    assert (again["limits"]["max_passes"], again["mode"]["kind"]) == (1, "adaptive")


@pytest.mark.slow
def test_a_multirun_whose_jobs_would_be_others_is_not_gone_on_with(
    aeon: RunAeon, tmp_path: Path
) -> None:
    options = tmp_path / "conf" / "limits"
    options.mkdir(parents=True)
    for name in ("few", "more"):
        (options / f"{name}.yaml").write_text(OPTION.format(1), encoding="utf-8")
    given = (*SWEEP[:4], "provider=simulated", "limits=glob([few,more,most])")
    assert aeon("--config-dir", "conf", *given).status == 3
    (options / "most.yaml").write_text(OPTION.format(2), encoding="utf-8")
    ended = aeon("sweep.resume=sweep")
    assert ended.status == 2
    assert "its jobs would differ" in ended.err


@pytest.mark.slow
def test_a_multirun_that_another_process_carries_out_is_left_to_it(
    aeon: RunAeon, tmp_path: Path
) -> None:
    assert aeon(*SWEEP[:4], "provider=simulated", "ttl.base=9,10").status == 0
    assert (
        f"Resume a multirun with sweep.resume={tmp_path}/sweep. Did you mean resume="
        in aeon("resume=sweep").err
    )
    with hold(tmp_path / "sweep" / "multirun.yaml", "", ""):
        ended = aeon("sweep.resume=sweep")
    assert ended.status == 2
    assert (
        f"sweep.resume={tmp_path}/sweep: another process is writing it\nWait for its end"
        in ended.err
    )


def test_a_multirun_stopped_before_its_first_job_leaves_nothing_and_promises_nothing(
    aeon: RunAeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(hydra_private, "start_multirun", interrupt)
    ended = aeon(*SWEEP[:4], "provider=simulated", "ttl.base=9,10")
    assert ended.status == 130
    assert ended.err.splitlines()[-1] == "Interrupted."
    assert "sweep.resume" not in ended.err
    assert not list((tmp_path / "sweep").iterdir())


@pytest.mark.slow
def test_a_multirun_stopped_when_all_was_done_has_nothing_to_go_on_with(
    aeon: RunAeon, monkeypatch: pytest.MonkeyPatch
) -> None:
    carry_out = hydra_private.start_multirun

    def interrupt_at_the_end(*arguments: Any) -> None:
        carry_out(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(hydra_private, "start_multirun", interrupt_at_the_end)
    ended = aeon(*SWEEP[:4], "provider=simulated", "ttl.base=9,10")
    assert ended.status == 130
    assert "2 of 2 runs converged. " in ended.err
    assert "To run the jobs that are missing" not in ended.err


@pytest.mark.slow
def test_ctrl_c_stops_all_jobs_and_says_how_to_go_on(server: OpenAIServer, tmp_path: Path) -> None:
    arguments = (*at(server), "ttl.base=9,10,11,12", "sweep.parallel=2")
    with subprocess.Popen(
        [sys.executable, "-m", "aeon", *arguments], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as process:
        while len(server.requests) < 10 and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Stopping: nothing new is started. Work that is under way has 10 s to end." in err
    assert "python -m aeon sweep.resume=sweep" in err
    assert "Traceback" not in err
    assert {job["termination_reason"] for job in results(tmp_path).values()} == {"interrupted"}
    assert len(results(tmp_path)) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("-m", "task=x", "sweep.parallel=1,2"),
            "sweep.parallel: applies to all jobs, and takes one value",
        ),
        (("-m", "task=x", "ttl.base=9,10", "sweep.parallel=0"), "sweep.parallel=0"),
        (
            ("-m", "task=x", "ttl.base=9,10", "hydra/launcher=basic", "sweep.max_cost=1"),
            "sweep.max_cost: only the",
        ),
        (
            ("-m", "task=x", "ttl.base=9,10", "hydra.job.chdir=true"),
            "hydra.job.chdir: the jobs of this launcher",
        ),
        (("sweep.resume=nowhere",), "is not a multirun's directory (No such file or directory)"),
        (("sweep.resume=no=where",), "no=where: is not a multirun's directory"),
        (
            ("sweep.resume=.", "ttl.base=3"),
            "ttl.base=3: a multirun resumes with its recorded configuration",
        ),
    ],
)
def test_what_cannot_be_is_told_with_status_2(
    aeon: RunAeon, arguments: tuple[str, ...], said: str
) -> None:
    ended = aeon(
        *arguments,
        *(() if arguments[0].startswith("sweep.") else ("provider=simulated", "progress=none")),
    )
    assert ended.status == 2
    assert said in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.slow
def test_jobs_one_after_the_other_in_directories_of_their_own_are_still_hydras(
    aeon: RunAeon, tmp_path: Path
) -> None:
    arguments = (
        "-m",
        "task=x",
        "hydra/launcher=basic",
        "hydra.sweep.dir=sweep",
        "ttl.base=1,10",
        "progress=none",
    )
    assert aeon(*arguments, "provider=simulated").status == 3
    assert sorted(path.name for path in (tmp_path / "sweep").glob("*-*")) == [
        "0-base=1",
        "1-base=10",
    ]


@pytest.mark.slow
def test_a_key_of_sweeps_does_not_change_the_hash_of_the_configuration(aeon: RunAeon) -> None:
    one, other = (
        json.loads(aeon("task=x", "provider=simulated", "output=json", "progress=none", *more).out)[
            "hashes"
        ]
        for more in ((), ("sweep.parallel=9", "sweep.max_cost=3"))
    )
    assert one["configuration"] == other["configuration"]
