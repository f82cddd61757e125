"""Aeon from Python."""

from __future__ import annotations

import json
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon, AeonError, ArtefactError, ConfigError, load
from aeon.app.record import sha256
from aeon.domain.errors import TaskTextError
from aeon.domain.events import PassStarted, Recorded, RunFinished, RunStarted
from aeon.domain.result import SIMULATED_LINE, RunResult, versions
from aeon.kernel.control import RunControl
from tests.support.scripted_model import ScriptedModel, clear, plan, planned, refinement, unfinished
from tests.support.timing import SOON

SIMULATED = ("provider=simulated", "provider.retry.initial_seconds=0")


@pytest.fixture(scope="module")
def aeon() -> Aeon:
    return Aeon.from_config(SIMULATED, environ={})


def scripted(model: ScriptedModel, *overrides: str) -> Aeon:
    made = Aeon.from_config((*SIMULATED, *overrides), environ={})
    made._process = replace(made._process, adapter=model)
    return made


def test_a_task_goes_in_and_a_result_comes_out(aeon: Aeon):
    result = aeon.run("make tea")
    assert isinstance(result, RunResult)
    assert result.task == result.history.task_input == "make tea"
    assert result.run_id == result.history.execution_id
    assert result.answer
    assert result.exit_status in (0, 1, 3)


def test_overrides_and_their_provider_are_in_force():
    with Aeon.from_config(
        ["convergence.completeness=0.5", "provider=simulated"], environ={}
    ) as made:
        assert made.settings.convergence.completeness == 0.5
        assert made.settings.provider.kind == "simulated"
        assert made.synthetic


def test_without_a_key_the_default_provider_is_the_simulated_one_and_with_one_it_is_not():
    assert Aeon.from_config(environ={}).settings.provider.kind == "simulated"
    with Aeon.from_config(environ={"OPENAI_API_KEY": "k"}) as made:
        assert made.settings.provider.kind == "openai"
        assert not made.synthetic


def test_what_cannot_be_used_is_said_before_anything_runs():
    with pytest.raises(ConfigError, match=r"convergence\.completeness"):
        Aeon.from_config(["convergence.completeness=7"], environ={})


@pytest.mark.parametrize("task", ["", "  \n\t"])
def test_an_empty_task_is_refused(aeon: Aeon, task: str):
    with pytest.raises(TaskTextError):
        aeon.run(task)


def test_text_that_is_no_unicode_is_refused_and_its_place_named(aeon: Aeon):
    with pytest.raises(TaskTextError, match="task"):
        aeon.run("tea \ud800")
    with pytest.raises(AeonError, match=r"inputs\.note"):
        aeon.run("tea", inputs={"note": "milk \udfff"})


def test_task_and_inputs_reach_the_model_and_the_result_as_they_are():
    model = ScriptedModel()
    task, note = 'tea, "two" ${cups} {{ x }} #1 = \u2028 žluťoučký\n', "[milk] </input> $5"
    result = scripted(model).run(task, inputs={"note": note})
    assert all(
        task in r.messages[1].content and note in r.messages[1].content for r in model.requests
    )
    assert result.task == task
    assert result.hashes.task == sha256(task)
    assert result.hashes.inputs == {"note": sha256(note)}


def test_what_is_known_already_is_shown_to_the_planner():
    model = ScriptedModel()
    scripted(model).run("tea", context={"guests": ["Ada"]})
    assert '{"guests":["Ada"]}' in model.prompts("plan")[0]
    assert '{"guests":["Ada"]}' in model.prompts("task_profile")[0]


def test_arguments_are_not_changed_in_place():
    inputs, context = {"note": "milk"}, {"guests": [{"name": "Ada"}]}
    scripted(ScriptedModel()).run("tea", inputs=inputs, context=context)
    assert (inputs, context) == ({"note": "milk"}, {"guests": [{"name": "Ada"}]})


def test_nothing_is_written_without_a_directory(
    aeon: Aeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    aeon.run("make tea")
    assert list(tmp_path.iterdir()) == []


def test_with_a_directory_every_artefact_is_written(aeon: Aeon, tmp_path: Path):
    result = aeon.run("make tea", directory=tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {
        "result.json",
        "history.json",
        "answer.md",
        "report.html",
        "events.jsonl",
        "cycles.jsonl",
        "store.sqlite",
        "run.json",
    }
    assert json.loads((tmp_path / "out" / "result.json").read_bytes())["run_id"] == result.run_id


def test_a_directory_that_cannot_be_is_refused_before_a_model_is_asked(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    model = ScriptedModel()
    with pytest.raises(ArtefactError):
        scripted(model).run("tea", directory=tmp_path / "file")
    assert model.calls == []


def test_a_directory_that_holds_a_run_takes_no_other(aeon: Aeon, tmp_path: Path):
    first = aeon.run("make tea", directory=tmp_path)
    with pytest.raises(ArtefactError, match="already holds a run"):
        aeon.run("make coffee", directory=tmp_path)
    assert load(tmp_path) == first


def test_a_directory_may_be_text(aeon: Aeon, tmp_path: Path):
    aeon.run("make tea", directory=str(tmp_path / "run"))
    assert (tmp_path / "run" / "result.json").is_file()


@pytest.mark.parametrize("arguments", [{"task": 5}, {"task": "x", "inputs": {"a": 5}}])
def test_what_is_no_text_is_refused_with_its_type(aeon: Aeon, arguments: dict[str, Any]):
    with pytest.raises(TaskTextError, match="no text but of the type int"):
        aeon.run(**arguments)


@pytest.mark.slow
def test_journals_may_be_left_out(tmp_path: Path):
    scripted(ScriptedModel(), "observability=none").run("tea", directory=tmp_path)
    assert not list(tmp_path.glob("*.jsonl"))


def test_observers_see_everything_from_the_first_event_to_the_last(aeon: Aeon):
    seen: list[Recorded] = []
    result = aeon.run("make tea", observers=[seen.append])
    assert isinstance(seen[0].event, RunStarted)
    assert isinstance(seen[-1].event, RunFinished)
    assert seen[0].event.run_id == result.run_id
    assert len({(r.sequence, r.part) for r in seen}) == len(seen)


@pytest.mark.slow
def test_an_observer_that_fails_or_is_slow_neither_fails_nor_slows_a_run(aeon: Aeon):
    def failing(recorded: Recorded) -> None:
        raise RuntimeError("the observer broke")

    gate, began = threading.Event(), time.monotonic()
    seen: list[Recorded] = []
    slow = [lambda recorded: gate.wait(90), seen.append]
    result = aeon.run("make tea", observers=[failing, *slow])
    assert result.termination_reason in ("converged", "stalled", "ttl_expired")
    assert isinstance(seen[-1].event, RunFinished)
    assert time.monotonic() - began < SOON
    gate.set()


def test_every_artefact_of_a_run_without_a_model_says_so(aeon: Aeon, tmp_path: Path):
    aeon.run("make tea", directory=tmp_path)
    for name in ("result.json", "history.json", "events.jsonl", "cycles.jsonl"):
        assert '"synthetic":true' in (tmp_path / name).read_text(encoding="utf-8").replace(
            " ", ""
        ), name
    assert (tmp_path / "answer.md").read_text(encoding="utf-8").startswith(SIMULATED_LINE)


def test_a_run_is_stopped_from_outside_and_gives_what_it_has():
    control = RunControl()

    def step(request: Any) -> Any:
        if request.site.step_id == "b":
            control.request_stop()
        return clear(f"output of {request.site.step_id}")

    model = ScriptedModel(
        plan=plan("a", planned("b", "a"), planned("c", "b")), step=step, convergence=unfinished()
    )
    result = scripted(model).run("tea", control=control)
    assert result.termination_reason == "interrupted"
    assert result.exit_status == 130
    assert result.answer.endswith("output of a")
    assert [p.complete for p in result.history.passes] == [True, True, False]


def test_a_failing_model_is_told_and_not_raised():
    from aeon.domain.errors import AuthenticationFailed

    result = scripted(ScriptedModel(plan=AuthenticationFailed("no such key", hint="Set it."))).run(
        "tea"
    )
    assert (result.termination_reason, result.exit_status) == ("failed", 1)
    assert (result.error.type, result.error.message, result.error.hint) == (
        "AuthenticationFailed",
        "no such key",
        "Set it.",
    )


def test_the_state_may_be_asked_for_while_it_runs_and_before():
    kernels: list[Any] = []
    seen: list[tuple[int, int]] = []

    def step(request: Any) -> Any:
        state = kernels[0].state
        seen.append((state.pass_number, sum(s.status == "running" for s in state.plan.steps)))
        return clear("done")

    def begun(kernel: Any) -> None:
        assert kernel.state.pass_number == 0
        kernels.append(kernel)

    scripted(ScriptedModel(step=step)).run("tea", on_start=begun)
    assert seen == [(1, 1)]


def test_a_person_is_asked_and_the_answer_is_in_the_result():
    asked = {"question": "Which?", "assumption": "Green.", "step_id": None}
    model = ScriptedModel(refinement=refinement(questions=[asked]))
    result = scripted(model).run("tea", ask=lambda question: f"{question.question} Black.")
    assert [(q.question, q.answer) for q in result.follow_up_questions] == [
        ("Which?", "Which? Black.")
    ]


def test_what_no_model_said_says_so_in_its_first_line(aeon: Aeon):
    result = aeon.run("make tea")
    assert result.synthetic
    assert result.answer.splitlines()[0] == SIMULATED_LINE


def test_json_of_a_persons_schema_stays_json(tmp_path: Path):
    schema = {
        "type": "object",
        "properties": {"cups": {"type": "integer"}},
        "required": ["cups"],
        "additionalProperties": False,
    }
    (tmp_path / "answer.json").write_text(json.dumps(schema))
    model = ScriptedModel(step=clear({"cups": 2}))
    result = scripted(model, f"answer.schema={tmp_path / 'answer.json'}").run("tea")
    assert json.loads(result.answer) == {"cups": 2}
    assert result.converged


@pytest.mark.slow
def test_many_runs_share_one_process_at_the_same_time(aeon: Aeon, tmp_path: Path):
    with ThreadPoolExecutor(4) as pool:
        tasks = [f"make tea number {n}" for n in range(4)]
        results = list(pool.map(lambda task: aeon.run(task, directory=tmp_path / task), tasks))
    assert len({r.run_id for r in results}) == 4
    for task, result in zip(tasks, results, strict=True):
        alone = aeon.run(task)
        assert (result.answer, result.termination_reason, result.ttl) == (
            alone.answer,
            alone.termination_reason,
            alone.ttl,
        )


def test_runs_leave_no_thread_behind(aeon: Aeon):
    aeon.run("make tea")
    alive = [t for t in threading.enumerate() if t.name.startswith("aeon-step")]
    for thread in alive:
        thread.join(2)
    assert not [t for t in alive if t.is_alive()]


def test_the_history_says_what_it_was_configured_with(aeon: Aeon):
    configuration = aeon.run("make tea").history.configuration
    assert configuration["convergence_criteria"]["completeness"] == 0.95
    assert configuration["ttl"] == 10
    assert isinstance(configuration["adaptive_depth_settings"], dict)


def test_the_configuration_in_the_result_is_that_of_the_run_without_its_texts(aeon: Aeon):
    configuration = aeon.run("make tea").configuration
    assert configuration["convergence"]["completeness"] == 0.95
    assert {"task", "task_file", "inputs", "input_files"}.isdisjoint(configuration)


def test_equal_configurations_have_equal_hashes_and_others_others(aeon: Aeon):
    first = aeon.run("make tea").hashes
    assert aeon.run("make coffee").hashes.configuration == first.configuration
    other = (
        Aeon.from_config((*SIMULATED, "convergence.completeness=0.5"), environ={})
        .run("make tea")
        .hashes
    )
    assert other.configuration != first.configuration
    assert (other.prompts, other.schemas, other.task) == (first.prompts, first.schemas, first.task)


def test_versions_name_python_and_what_aeon_stands_on():
    assert {"python", "pydantic", "jinja2"} <= set(versions())


def test_passes_are_told_as_they_begin(aeon: Aeon):
    seen: list[int] = []
    result = aeon.run(
        "make tea",
        observers=[
            lambda r: seen.append(r.event.pass_number) if isinstance(r.event, PassStarted) else None
        ],
    )
    assert seen == list(range(result.passes + 1))


def test_a_result_shows_itself_in_a_line() -> None:
    with Aeon.from_config(["provider=simulated", "experiment=quick"], environ={}) as aeon:
        result = aeon.run("a long task")
    for shown in (repr(result), str(result)):
        assert len(shown) < 300
        assert result.termination_reason in shown
    assert repr(result).startswith(f"RunResult(run_id='{result.run_id}'")


def test_the_traceback_of_an_error_shows_its_hint() -> None:
    with pytest.raises(ConfigError) as raised:
        Aeon.from_config(["provider=openai"], environ={})
    shown = "".join(traceback.format_exception(raised.value))
    assert raised.value.hint
    assert f"\n{raised.value.hint}\n" in shown
