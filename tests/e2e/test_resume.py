"""Going on with a run: what it was given, what today's overrides change, and what is not asked again."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon, RunResult
from aeon.app.job import resolve_job
from aeon.config.load import compose
from aeon.kernel.control import RunControl
from aeon.llm.dialects.server import forget_servers
from tests.cli.conftest import Ended, RunAeon
from tests.cli.conftest import aeon as aeon
from tests.support.compared import artefacts, differences
from tests.support.openai_server import Answer, Completion, Failure, OpenAIServer, Received
from tests.support.scripted_model import clear
from tests.support.simulated_server import simulated

HARD = "make, 'tea' \"for\" ${two} #now\nand = more"
Runs = Callable[..., tuple[Ended, Path]]


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(simulated()) as running:
        yield running


@pytest.fixture
def runs(
    aeon: RunAeon, server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Runs:
    """Runs the program against the server; how it ended, and the newest directory of a run."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-test")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)

    def run(*arguments: str) -> tuple[Ended, Path]:
        ended = aeon(*arguments, "progress=none")
        return ended, newest(tmp_path)

    return run


def newest(root: Path) -> Path:
    made = [path.parent for path in root.rglob("run.json")]
    return max(made, key=lambda path: (path / "run.json").stat().st_mtime_ns)


def result(directory: Path) -> dict[str, Any]:
    return json.loads((directory / "result.json").read_bytes())


def origin(directory: Path) -> dict[str, Any]:
    return json.loads((directory / "run.json").read_bytes())


def limited(runs: Runs, *more: str) -> Path:
    """A run that a limit ended before its time."""
    ended, directory = runs("limits.max_llm_calls=6", *(more or ("task=x",)))
    assert ended.status == 3
    return directory


# What a run was given


@pytest.mark.slow
def test_a_run_goes_on_with_the_task_and_inputs_it_was_given_by_files_that_are_gone(
    runs: Runs, tmp_path: Path
) -> None:
    (tmp_path / "task.md").write_bytes(HARD.encode())
    (tmp_path / "a.md").write_bytes(b"input, one\r\n")
    directory = limited(runs, "task_file=task.md", "input_files.a=a.md", "inputs.b=b")
    (tmp_path / "task.md").unlink()
    (tmp_path / "a.md").write_text("something else")
    ended, second = runs(f"resume={directory}", "limits.max_llm_calls=null")
    assert ended.status == 0
    assert (result(second)["task"], origin(second)["inputs"]) == (
        HARD,
        {"a": "input, one\r\n", "b": "b"},
    )
    assert result(second)["hashes"]["inputs"] == result(directory)["hashes"]["inputs"]


@pytest.mark.slow
def test_a_task_from_standard_input_is_not_asked_for_again(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(HARD.encode())))
    directory = limited(runs, "task=-")
    ended, second = runs(f"resume={directory}", "limits.max_llm_calls=null")
    assert (ended.status, result(second)["task"]) == (0, HARD)


@pytest.mark.slow
def test_todays_task_and_inputs_win_over_the_recorded_ones(runs: Runs, tmp_path: Path) -> None:
    directory = limited(runs, "task=x", "inputs.a=old", "inputs.b=b")
    (tmp_path / "a.md").write_text("new")
    _, second = runs(f"resume={directory}", "task=another", "input_files.a=a.md")
    assert (origin(second)["task"], origin(second)["inputs"]) == ("another", {"a": "new", "b": "b"})


@pytest.mark.slow
def test_the_settings_are_the_recorded_ones_and_todays_overrides_come_after_them(
    runs: Runs,
) -> None:
    directory = limited(
        runs,
        "task=x",
        "ttl=small",
        "convergence=strict",
        "convergence.completeness=0.8",
        "ttl.base=9",
    )
    _, second = runs(f"resume={directory}", "convergence.completeness=0.7", "ttl.limit=77")
    now, before = result(second)["configuration"], result(directory)["configuration"]
    assert now["convergence"] == {**before["convergence"], "completeness": 0.7}
    assert now["ttl"] == {**before["ttl"], "limit": 77}
    _, third = runs(f"resume={second}", "ttl=large")
    now = result(third)["configuration"]
    assert now["convergence"]["completeness"] == 0.7
    assert now["ttl"] == compose(["ttl=large"]).ttl.model_dump(mode="json")


@pytest.mark.slow
def test_an_override_that_adds_or_deletes_is_replaced_by_todays(runs: Runs) -> None:
    directory = limited(
        runs, "task=x", "convergence.criteria.cited=old words", "+provider.extra_body.top_k=4"
    )
    _, second = runs(
        f"resume={directory}",
        "convergence.criteria.cited=new words",
        "+provider.extra_body.top_k=5",
    )
    configuration = result(second)["configuration"]
    assert configuration["convergence"]["criteria"] == {"cited": "new words"}
    assert configuration["provider"]["extra_body"] == {"top_k": 5}


@pytest.mark.slow
def test_auto_stays_what_it_was(
    aeon: RunAeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert aeon("task=x", "progress=none", "provider.latency_seconds=0").status == 0
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-test")
    first = newest(tmp_path)
    assert aeon(f"resume={first}", "progress=none").status == 0
    assert result(newest(tmp_path))["provider"]["kind"] == "simulated"


@pytest.mark.slow
def test_the_address_of_auto_stays_where_the_environment_names_no_other(
    runs: Runs, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = limited(runs)
    monkeypatch.delenv("OPENAI_BASE_URL")
    ended, second = runs(f"resume={directory}", "limits.max_llm_calls=null")
    assert (ended.status, result(second)["provider"]["base_url"]) == (0, server.url)


@pytest.mark.slow
def test_paths_are_those_of_the_folder_that_the_run_was_started_in(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "criteria.yaml").write_text("cited: Every claim names its source.\n")
    directory = limited(runs, "task=x", "convergence.criteria_file=criteria.yaml")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    _, second = runs(f"resume={directory}")
    assert "cited" in result(second)["configuration"]["convergence"]["criteria"]


@pytest.mark.slow
def test_a_folder_of_configuration_is_looked_in_again(runs: Runs, tmp_path: Path) -> None:
    own = tmp_path / "own" / "ttl"
    own.mkdir(parents=True)
    (own / "mine.yaml").write_text("defaults: [default]\nbase: 13\n")
    _, directory = runs("--config-dir", "own", "task=x", "ttl=mine", "limits.max_llm_calls=2")
    _, second = runs(f"resume={directory}")
    assert result(second)["configuration"]["ttl"]["base"] == 13
    (own / "other.yaml").write_text("defaults: [default]\nbase: 17\n")
    _, third = runs(f"resume={directory}", "ttl=other")
    assert result(third)["configuration"]["ttl"]["base"] == 17


@pytest.mark.slow
def test_a_folder_of_configuration_that_is_gone_is_not_needed(runs: Runs, tmp_path: Path) -> None:
    own = tmp_path / "own" / "ttl"
    own.mkdir(parents=True)
    (own / "mine.yaml").write_text("defaults: [default]\nbase: 13\n")
    _, directory = runs("--config-dir", "own", "task=x", "ttl=mine", "limits.max_llm_calls=2")
    shutil.rmtree(tmp_path / "own")
    _, second = runs(f"resume={directory}")
    assert result(second)["configuration"]["ttl"]["base"] == 13


# What is not asked again


@pytest.mark.slow
def test_a_finished_run_costs_nothing_again_and_ends_the_same(
    runs: Runs, server: OpenAIServer
) -> None:
    first_ended, directory = runs("task=x")
    asked = len(server.requests)
    ended, second = runs(f"resume={directory}")
    assert (len(server.requests), ended.out, ended.status) == (
        asked,
        first_ended.out,
        first_ended.status,
    )
    assert not differences(artefacts(directory), artefacts(second))
    parent = result(second)["parent"]
    assert (parent["path"], parent["run_id"]) == (str(directory), result(directory)["run_id"])
    assert (parent["saved"]["model_calls"], parent["saved"]["total_tokens"]) == (asked, asked * 120)
    assert origin(second)["parent"] == {
        "path": str(directory),
        "run_id": result(directory)["run_id"],
    }
    assert f"Saved: {asked} calls, {asked * 120} tokens" in ended.err


@pytest.mark.slow
def test_a_run_that_a_limit_ended_goes_on_as_one_that_had_none(
    runs: Runs, server: OpenAIServer
) -> None:
    _, whole = runs("task=x", "limits.max_llm_calls=null")
    asked = len(server.requests)
    directory = limited(runs)
    _, second = runs(f"resume={directory}", "limits.max_llm_calls=null")
    assert len(server.requests) == 2 * asked
    assert not differences(artefacts(whole), artefacts(second))


@pytest.mark.slow
def test_a_chain_of_runs_needs_only_the_last_of_them(runs: Runs, server: OpenAIServer) -> None:
    first = limited(runs)
    _, second = runs(f"resume={first}", "limits.max_llm_calls=9")
    shutil.rmtree(first)
    before = len(server.requests)
    assert before == 9
    ended, third = runs(f"resume={second}", "limits.max_llm_calls=null")
    assert ended.status == 0
    assert result(third)["parent"]["saved"]["model_calls"] == 9
    assert len(server.requests) == result(third)["usage"]["total"]["requests"]


@pytest.mark.slow
def test_a_run_that_failed_goes_on_where_it_failed(runs: Runs, server: OpenAIServer) -> None:
    answers = dict(server.script)
    server.script["convergence"] = Failure(401)
    ended, directory = runs("task=x")
    assert ended.status == 1
    before = [request.name for request in server.requests].index("convergence")
    server.script = answers
    ended, second = runs(f"resume={directory}")
    assert ended.status == 0
    # What follows the assessment that failed is given the one that did not, and may be asked anew.
    assert result(second)["parent"]["saved"]["model_calls"] >= before > 0


@pytest.mark.slow
def test_a_run_that_was_interrupted_goes_on(
    runs: Runs, server: OpenAIServer, tmp_path: Path
) -> None:
    control = RunControl()

    def stop_at_the_first_step(recorded: Any) -> None:
        if type(recorded.event).__name__ == "StepFinished":
            control.request_stop()

    with Aeon.from_config(["provider=openai", f"provider.base_url={server.url}"]) as aeon:
        stopped = aeon.run(
            "x", directory=tmp_path / "one", control=control, observers=[stop_at_the_first_step]
        )
    assert stopped.termination_reason in ("interrupted", "converged")
    asked = len(server.requests)
    ended, second = runs(f"resume={tmp_path / 'one'}")
    assert ended.status == 0
    assert result(second)["parent"]["saved"]["model_calls"] == asked


@pytest.mark.slow
def test_core_mode_and_a_plan_of_ones_own_go_on(
    runs: Runs, server: OpenAIServer, tmp_path: Path
) -> None:
    server.script["step"] = clear("said")
    steps = [{"id": name, "description": f"do {name}", "agent": "llm"} for name in "abc"]
    (tmp_path / "plan.json").write_text(
        json.dumps({"goal": "tea", "task": "make tea", "steps": steps})
    )
    first, directory = runs("mode=core", "plan_file=plan.json", "limits.max_passes=2")
    assert first.status == 3
    ended, second = runs(f"resume={directory}", "limits.max_passes=null")
    assert (ended.status, result(second)["task"], len(server.requests)) == (0, "make tea", 3)
    assert result(second)["parent"]["saved"]["model_calls"] == 2


@pytest.mark.slow
def test_a_plan_file_that_has_changed_is_said_and_asked_anew(
    runs: Runs, server: OpenAIServer, tmp_path: Path
) -> None:
    server.script["step"] = clear("said")
    path = tmp_path / "plan.json"
    steps = [{"id": name, "description": f"do {name}", "agent": "llm"} for name in "ab"]
    path.write_text(json.dumps({"goal": "tea", "steps": steps}))
    _, directory = runs("mode=core", "plan_file=plan.json")
    steps[1]["description"] = "do something else"
    path.write_text(json.dumps({"goal": "tea", "steps": steps}))
    ended, second = runs(f"resume={directory}")
    assert f"plan_file={path} changed since {directory}" in ended.err
    assert (
        result(second)["parent"]["saved"]["model_calls"] == 0
    )  # the worker is shown the whole plan
    assert result(second)["termination_reason"] == "completed"


@pytest.mark.slow
def test_another_plan_file_of_today_brings_its_own_task(runs: Runs, tmp_path: Path) -> None:
    steps = [{"id": "a", "description": "do a", "agent": "llm"}]
    for name in ("one", "other"):
        (tmp_path / f"{name}.json").write_text(
            json.dumps({"goal": "tea", "task": f"task {name}", "steps": steps})
        )
    _, directory = runs("mode=core", "plan_file=one.json")
    assert result(directory)["task"] == "task one"
    _, second = runs(f"resume={directory}", "plan_file=other.json")
    assert result(second)["task"] == "task other"


@pytest.mark.slow
def test_a_job_of_a_multirun_goes_on_whatever_its_directory_is_called(
    runs: Runs, server: OpenAIServer
) -> None:
    odd = "hydra.sweep.subdir='${hydra.job.override_dirname}'"
    swept = ("limits.max_llm_calls=4,5", "convergence.completeness=0.75,0.8", "sweep.parallel=1")
    _, directory = runs("-m", "task=x", "ttl.base=10", *swept, odd)
    assert "," in directory.name
    assert "=" in directory.name
    before = len(server.requests)
    ended, second = runs(f"resume={directory}", "limits.max_llm_calls=null")
    assert (ended.status, second.parent.parent.name) == (0, "outputs")
    assert result(second)["parent"]["saved"]["model_calls"] == 5
    assert len(server.requests) == before + result(second)["usage"]["total"]["requests"] - 5


@pytest.mark.slow
def test_what_has_already_been_answered_needs_no_order(runs: Runs, server: OpenAIServer) -> None:
    _, directory = runs("task=x", "execution.max_parallel=1")
    asked = len(server.requests)
    _, second = runs(f"resume={directory}", "execution.max_parallel=8")
    assert len(server.requests) == asked
    assert result(second)["parent"]["saved"]["model_calls"] == asked


@pytest.mark.slow
def test_a_program_that_was_killed_goes_on_where_it_was(
    runs: Runs, server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, whole = runs("task=x", "execution.max_parallel=4")
    once = len(server.requests)
    server.requests.clear()
    step = server.script["step"]
    killed = threading.Event()

    def hang(received: Received) -> Any:
        killed.wait(60)
        return step(received)  # type: ignore[operator]

    server.script["step"] = hang
    command = [
        sys.executable,
        "-m",
        "aeon",
        "task=x",
        "execution.max_parallel=4",
        "progress=none",
        "hydra.run.dir=one",
    ]
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    program = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: len(server.of("step")) > 0)
    program.kill()
    program.wait()
    killed.set()
    server.script["step"] = step
    in_flight, asked = len(server.of("step")), len(server.requests)
    ended, second = runs("resume=one")
    assert ended.status == 0
    assert len(server.requests) - asked == once - (asked - in_flight)
    assert not differences(artefacts(whole), artefacts(second))


def wait_until(true: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


# From Python


def test_from_python_a_run_goes_on_with_what_it_was_given(
    server: OpenAIServer, tmp_path: Path
) -> None:
    overrides = ["provider=openai", f"provider.base_url={server.url}"]
    environ = {"OPENAI_API_KEY": "sk-of-the-test"}
    with Aeon.from_config(overrides, environ=environ) as aeon:
        one = aeon.run(
            HARD, inputs={"the name": "a"}, context={"known": [1]}, directory=tmp_path / "one"
        )
    asked = len(server.requests)
    with Aeon.from_config([f"resume={tmp_path / 'one'}"], environ=environ) as aeon:
        two = aeon.run(directory=tmp_path / "two")
        assert aeon.settings.resume == tmp_path / "one"
    assert len(server.requests) == asked
    assert (two.task, two.answer, two.hashes) == (one.task, one.answer, one.hashes)
    assert saved(two) == asked
    assert one.parent is None


def test_settings_made_in_a_program_are_made_again_with_the_parent_in_them(
    server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {"OPENAI_API_KEY": "sk-of-the-test"}
    settings = compose(["provider=openai", f"provider.base_url={server.url}"])
    with Aeon(settings, environ) as aeon:
        aeon.run("x", directory=tmp_path / "one")
    asked = len(server.requests)
    with Aeon(settings.model_copy(update={"resume": tmp_path / "one"}), environ) as aeon:
        assert saved(aeon.run()) == asked
    assert len(server.requests) == asked


def saved(result: RunResult) -> int:
    assert result.parent is not None
    return result.parent.saved.model_calls


# What is shown


def test_what_resume_composes_is_shown_without_a_run(runs: Runs, tmp_path: Path) -> None:
    directory = limited(runs, "task=x", "ttl.base=13")
    shown, _ = runs("--cfg", "job", "--package", "ttl", f"resume={directory}", "ttl.limit=30")
    assert shown.status == 0
    assert "base: 13" in shown.out
    assert "limit: 30" in shown.out
    rendered, _ = runs("render", "task_profile", f"resume={directory}")
    assert rendered.status == 0
    assert list(tmp_path.glob("outputs/*/*")) == [directory]


@pytest.mark.slow
def test_a_run_that_was_cut_short_says_how_it_goes_on(runs: Runs, server: OpenAIServer) -> None:
    server.script["plan"] = Failure(401)
    ended, directory = runs("task=x", "hydra.run.dir='a b'")
    assert ended.status == 1
    assert directory.name == "a b"
    assert "To resume from the stored answers: python -m aeon resume='a b'" in ended.err
    ended, _ = runs("task=x", "store=off")
    assert "To resume" not in ended.err


def test_a_run_in_which_nothing_was_answered_has_nothing_to_go_on_from(
    runs: Runs, server: OpenAIServer
) -> None:
    server.script["plan"] = Failure(401)
    ended, _ = runs("task=x", "mode=core")
    assert ended.status == 1
    assert "To resume" not in ended.err


# run.json


def test_run_json_is_there_before_the_first_call_and_holds_no_key(
    runs: Runs, server: OpenAIServer, tmp_path: Path
) -> None:
    seen: list[dict[str, Any]] = []
    profile = server.script["task_profile"]

    def look(received: Any) -> Any:
        seen.append(origin(newest(tmp_path)))
        return profile(received)  # type: ignore[operator]

    server.script["task_profile"] = look
    _, directory = runs(
        "task=x", "inputs.a=b", "ttl.base=9", "hydra.job.chdir=false", "provider.effort=low"
    )
    one = origin(directory)
    assert seen[0] == one
    assert one["format"] == "aeon.run/2"
    settings = one["settings"]
    assert (settings["ttl"]["base"], settings["provider"]["effort"]) == (9, "low")
    assert not {"task", "inputs", "resume"} & set(settings)
    assert one["overrides"] == ["ttl.base=9", "provider.effort=low", "progress=none"]
    assert (one["task"], one["inputs"], one["parent"]) == ("x", {"a": "b"}, None)
    provider = {
        "kind": "openai",
        "model": "gpt-5-mini",
        "base_url": server.url,
        "api_key_env": "OPENAI_API_KEY",
    }
    assert one["provider"] == {**provider, "adapter": None}
    assert one["run_id"] == result(directory)["run_id"]
    assert one["hashes"]["configuration"] == result(directory)["hashes"]["configuration"]
    assert "sk-of-the-test" not in (directory / "run.json").read_text()


# What cannot be resumed


def bad(root: Path, what: str) -> str:
    """A directory that cannot be resumed."""
    directory = newest(root)
    if what == "store":
        (directory / "store.sqlite").unlink()
    elif what == "no database":
        (directory / "store.sqlite").write_bytes(b"nothing of the kind" * 100)
    elif what == "run.json":
        (directory / "run.json").unlink()
    elif what == "format":
        (directory / "run.json").write_text(
            '{"format": "aeon.run/9", "versions": {"aeon-engine": "9.0"}}'
        )
    elif what == "earlier":
        values = {"format": "aeon.run/1", "overrides": ["provider=simulated"]}
        (directory / "run.json").write_text(json.dumps(values))
    elif what == "no json":
        (directory / "run.json").write_text("{")
    elif what == "parent":
        return str(directory.parent)
    elif what == "file":
        return str(directory / "result.json")
    elif what == "missing":
        return str(directory / "nowhere")
    elif what == "empty":
        (root / "empty").mkdir()
        return str(root / "empty")
    return str(directory)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("missing", ["this is not a run's directory"]),
        ("file", ["this is not a run's directory"]),
        ("empty", ["this is not a run's directory", "run.json"]),
        ("parent", ["this is not a run's directory", "Did you mean resume="]),
        ("run.json", ["run.json cannot be read"]),
        ("no json", ["Invalid JSON"]),
        ("format", ["run.json: format", "'aeon.run/2'"]),
        ("earlier", ["aeon.run/1", "Start the run again", "store.mode=cache"]),
        ("store", ["store.sqlite", "start the run again"]),
        ("no database", ["store.sqlite", "start the run again"]),
    ],
)
def test_what_is_no_run_to_resume_is_refused_before_any_directory_is_made(
    aeon: RunAeon, tmp_path: Path, what: str, said: list[str]
) -> None:
    assert aeon("task=x", "progress=none", "limits.max_llm_calls=2").status == 3
    named = bad(tmp_path, what)
    before = sorted(tmp_path.rglob("*"))
    for more in ((), ("-m", "convergence.completeness=0.8,0.9")):
        ended = aeon(f"resume={named}", *more)
        assert ended.status == 2, ended.err
        assert all(words in ended.err for words in (f"resume={named}", *said)), ended.err
        assert not ended.out
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("today", "said"),
    [
        (["store=off"], ["a resumed run stores its answers"]),
        (["store.mode=replay"], ["a resumed run stores its answers", "store.path="]),
    ],
)
def test_a_mode_of_the_store_in_which_nothing_can_be_resumed_is_refused(
    aeon: RunAeon, tmp_path: Path, today: list[str], said: list[str]
) -> None:
    assert aeon("task=x", "progress=none", "limits.max_llm_calls=2").status == 3
    ended = aeon(f"resume={newest(tmp_path)}", *today)
    assert ended.status == 2
    assert all(words in ended.err for words in said), ended.err


@pytest.mark.slow
def test_a_run_that_kept_nothing_cannot_be_resumed(aeon: RunAeon, tmp_path: Path) -> None:
    assert aeon("task=x", "progress=none", "limits.max_llm_calls=2", "store=off").status == 3
    ended = aeon(f"resume={newest(tmp_path)}", "store=record")
    assert ended.status == 2
    assert "this run stored no answers (store.mode=off)" in ended.err


def test_several_runs_cannot_be_resumed_at_once(aeon: RunAeon, tmp_path: Path) -> None:
    ended = aeon("-m", "resume=one,other")
    assert ended.status == 2
    assert "a multirun resumes one run, not several" in ended.err
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_multirun_names_its_jobs(aeon: RunAeon, tmp_path: Path) -> None:
    aeon("-m", "task=x", "limits.max_llm_calls=2,3", "progress=none")
    directory = newest(tmp_path).parent
    ended = aeon(f"resume={directory}")
    assert ended.status == 2
    assert f"Did you mean resume={directory}/1-max_llm_calls=3?" in ended.err


def test_a_run_of_settings_made_in_a_program_goes_on_too(aeon: RunAeon, tmp_path: Path) -> None:
    with Aeon(compose(["provider=simulated", "ttl.base=13"])) as made:
        made.run("x", directory=tmp_path / "one" / "two")
    ended = aeon(f"resume={tmp_path / 'one' / 'two'}", "hydra.run.dir=again")
    assert ended.status == 0
    again = result(tmp_path / "again")
    assert again["configuration"]["ttl"]["base"] == 13
    assert again["usage"]["total"]["requests"] == again["parent"]["saved"]["model_calls"]


@pytest.mark.slow
def test_without_the_key_of_its_provider_a_run_is_not_resumed(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _, directory = runs("task=x", "provider=openai", "limits.max_llm_calls=3")
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setattr("aeon.llm.settings.is_loopback", lambda _address: False)
    ended, _ = runs(f"resume={directory}")
    assert ended.status == 2
    assert "OPENAI_API_KEY" in ended.err
    assert list(tmp_path.glob("outputs/*/*")) == [directory]


def test_no_run_is_resumed_by_null(aeon: RunAeon, tmp_path: Path) -> None:
    assert aeon("resume=null", "task=x", "progress=none").status == 0
    assert result(newest(tmp_path))["parent"] is None


# Another provider, another place


@pytest.mark.slow
def test_another_provider_gets_neither_the_address_nor_the_rest_of_the_recorded_one(
    runs: Runs, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = (f"provider.base_url={server.url}", "provider.timeout_seconds=9")
    directory = limited(runs, "task=x", "provider=openai", *given)
    asked = len(server.requests)
    monkeypatch.setenv("GROQ_API_KEY", "gsk-of-the-test")
    for chosen in ("provider=groq", "provider=auto"):
        provider = compose([f"resume={directory}", chosen]).provider
        assert getattr(provider, "base_url", None) != server.url
        assert getattr(provider, "timeout_seconds", 600) == 600
    ended, second = runs(f"resume={directory}", "provider=simulated", "limits.max_llm_calls=null")
    assert ended.status == 0, ended.err
    assert "provider.base_url was set for another provider" in ended.err
    assert "provider.timeout_seconds was set for another provider" in ended.err
    assert len(server.requests) == asked
    assert origin(second)["provider"]["kind"] == "simulated"


@pytest.mark.slow
def test_a_provider_that_an_experiment_of_today_chooses_is_another_one_too(
    runs: Runs, server: OpenAIServer, tmp_path: Path
) -> None:
    own = tmp_path / "own" / "experiment"
    own.mkdir(parents=True)
    (own / "mine.yaml").write_text("# @package _global_\ndefaults:\n  - override /provider: groq\n")
    directory = limited(runs, "task=x", f"provider.base_url={server.url}")
    made = compose([f"resume={directory}", "experiment=mine"], tmp_path / "own")
    assert getattr(made.provider, "base_url", None) != server.url
    asked = len(server.requests)
    ended, _ = runs("--config-dir", "own", "-m", f"resume={directory}", "experiment=none,mine")
    assert "GROQ_API_KEY" in ended.err
    assert len(server.requests) == asked
    for chosen in ("provider=openai", "provider=auto", "ttl=large", "experiment=none"):
        made = compose([f"resume={directory}", chosen], tmp_path / "own")
        assert getattr(made.provider, "base_url", None) == server.url


@pytest.mark.slow
def test_the_key_of_today_is_not_for_the_server_of_a_provider_that_had_another(
    runs: Runs, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "gsk-of-the-test")
    directory = limited(runs, "task=x", "provider=groq", f"provider.base_url={server.url}")
    monkeypatch.delenv("OPENAI_BASE_URL")
    settings = compose([f"resume={directory}", "provider=auto"])
    job = resolve_job(settings, {"OPENAI_API_KEY": "sk-of-the-test"})
    assert getattr(job.settings.provider, "base_url", None) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        "convergence={criteria_file: criteria.yaml}",
        "experiment=mine",
        "convergence.criteria_file=criteria.yaml",
    ],
)
def test_paths_wherever_they_stand_are_those_of_the_folder_that_the_run_was_started_in(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    (tmp_path / "criteria.yaml").write_text("cited: Every claim names its source.\n")
    own = tmp_path / "own" / "experiment"
    own.mkdir(parents=True)
    (own / "mine.yaml").write_text(
        "# @package _global_\nconvergence: {criteria_file: criteria.yaml}\n"
    )
    directory = limited(runs, "--config-dir", "own", "task=x", given)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    _, second = runs(f"resume={directory}")
    assert "cited" in result(second)["configuration"]["convergence"]["criteria"]
    (tmp_path / "elsewhere" / "criteria.yaml").write_text("short: It is short.\n")
    _, third = runs(f"resume={directory}", "convergence.criteria_file=criteria.yaml")
    assert list(result(third)["configuration"]["convergence"]["criteria"]) == ["short"]


@pytest.mark.slow
def test_tools_of_the_folder_that_the_run_was_started_in_are_found(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", sys.path[:])
    (tmp_path / "tool_of_the_first_folder.py").write_text(
        'def f(x: int) -> int:\n    """Say it."""\n    return x\n'
    )
    directory = limited(runs, "task=x", "tools.functions.f=tool_of_the_first_folder:f")
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(tmp_path)])
    sys.modules.pop("tool_of_the_first_folder")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    ended, second = runs(f"resume={directory}", "limits.max_llm_calls=null")
    assert ended.status == 0, ended.err
    assert result(second)["parent"]["saved"]["model_calls"] == 6


# What is seen too late


def test_a_run_that_a_configuration_file_names_is_refused(runs: Runs, tmp_path: Path) -> None:
    directory = limited(runs)
    own = tmp_path / "own" / "experiment"
    own.mkdir(parents=True)
    (own / "mine.yaml").write_text(f"# @package _global_\nresume: {directory}\n")
    before = sorted(tmp_path.rglob("*"))
    ended, _ = runs("--config-dir", "own", "experiment=mine", "task=x")
    assert ended.status == 2
    assert "comes from a configuration file" in ended.err
    assert "Give it as an override" in ended.err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "written", ["store.mode='replay'", 'store.mode="replay"', "store='replay'"]
)
@pytest.mark.parametrize("path", [r"store.path=S\${y}", r"store.path='S\${y}'"])
def test_a_replay_is_seen_however_it_is_written(
    runs: Runs, tmp_path: Path, written: str, path: str
) -> None:
    _, directory = runs("task=x", "convergence.completeness=0.71")
    directory.rename(tmp_path / "S${y}")
    ended, again = runs(written, path)
    assert ended.status == 0, ended.err
    assert result(again)["configuration"]["convergence"]["completeness"] == 0.71


@pytest.mark.parametrize("path", ["store.path=S${y}", "store.path='S${y}'"])
def test_an_interpolation_that_leads_nowhere_is_told(
    aeon: RunAeon, tmp_path: Path, path: str
) -> None:
    ended = aeon("task=x", "store.mode=replay", path)
    assert ended.status == 2
    assert "store.path" in ended.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("more", [(), ("store.path=typo",)])
def test_a_replay_of_nothing_says_so_rather_than_ask_for_a_task(
    aeon: RunAeon, more: tuple[str, ...]
) -> None:
    ended = aeon("store.mode=replay", *more)
    assert ended.status == 2
    assert "store.path" in ended.err
    assert "no task" not in ended.err


def test_several_recordings_cannot_be_replayed_at_once(aeon: RunAeon) -> None:
    ended = aeon("-m", "store.mode=replay", "store.path=one,other")
    assert ended.status == 2
    assert "a multirun replays one recording, not several" in ended.err


# What was found out about the server


def careless(received: Received) -> Answer:
    """As a server that takes json_schema and holds to no schema that does not stand in the prompt."""
    shown = "JSON Schema" in received.system
    made = simulated()[received.name]
    assert callable(made)
    answer = made(received)
    assert isinstance(answer, Completion)
    usage = {
        "prompt_tokens": 200 if shown else 100,
        "completion_tokens": 20,
        "total_tokens": 220 if shown else 120,
    }
    return replace(answer, content=answer.content if shown else '{"half": ', usage=usage)


@pytest.mark.slow
def test_what_was_found_out_about_the_server_is_known_to_the_run_that_goes_on(
    runs: Runs, server: OpenAIServer
) -> None:
    server.script = dict.fromkeys(server.script, careless)
    alone = ("execution.max_parallel=1",)
    forget_servers()
    _, whole = runs("task=x", "limits.max_llm_calls=null", *alone)
    forget_servers()
    directory = limited(runs, "task=x", *alone)
    for _ in range(2):
        forget_servers()
        ended, directory = runs(f"resume={directory}", "limits.max_llm_calls=null")
        assert "did not follow it" in ended.err
        assert len(result(directory)["provider"]["findings"]) == 1
        assert not differences(artefacts(whole), artefacts(directory))


@pytest.mark.slow
def test_what_was_found_out_about_one_server_is_not_believed_of_another(
    runs: Runs, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script = dict.fromkeys(server.script, careless)
    forget_servers()
    directory = limited(runs)
    forget_servers()
    with OpenAIServer(simulated()) as other:
        monkeypatch.setenv("OPENAI_BASE_URL", other.url)
        _, second = runs(f"resume={directory}", "limits.max_llm_calls=null")
        assert not any(
            "JSON Schema" in received.system
            for received in other.requests
            if received.name != "repair"
        )
    assert result(second)["provider"]["findings"] == []
