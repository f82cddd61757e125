"""What real runs write: it satisfies the published schemas, and depends on the answers alone (RULES 14)."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from aeon.domain.errors import AuthenticationFailed, ServerFailed, Truncated
from aeon.domain.outcome import is_spent
from aeon.domain.result import RunResult
from aeon.files.jsonl import read_lines
from aeon.files.resources import resource_root
from aeon.observability import artefacts
from aeon.observability.cycle_log import plan_of
from tests.integration.artefacts import Late, documents, run
from tests.support.scripted_model import (
    ScriptedModel,
    action,
    add,
    assessment,
    blocked,
    clear,
    issue,
    modify,
    plan,
    planned,
    profile,
    refinement,
    report,
    unfinished,
)

WIDE = plan("a", "b", "c", "d", planned("e", "a", "b", "c", "d"))
SUBPLAN = {
    "subplan_goal": "d in detail",
    "substeps": [planned("first"), planned("second"), planned("last", "first")],
}


def by_step(**answers: Any) -> Callable[[Any], Any]:
    """Step answers by step id, in order for each step, whatever order the steps arrive in."""
    left = {
        name: list(given) if isinstance(given, list) else [given] for name, given in answers.items()
    }

    def answer(request: Any) -> Any:
        name = request.site.step_id
        script = left.get(name, [clear(f"output of {name}")])
        return script.pop(0) if len(script) > 1 else script[0]

    return answer


def repaired(request: Any) -> Any:
    return clear(f"repaired {request.site.step_id}") if request.site.step_id else report()


def converging() -> ScriptedModel:
    """Repairs in parallel, a BLOCKED step, a failed one, a subplan, a conflict, a question, a new profile."""
    return ScriptedModel(
        task_profile=[profile(4), profile(5)],
        plan=WIDE,
        subplan=SUBPLAN,
        semantic_validation=[
            report(
                issue(
                    "i1", "d", proposed_repair={"action": "split", "target": "d", "changes": "{}"}
                )
            ),
            report(),
            report(issue("i2", "b", "HIGH"), issue("i3")),
            report(),
        ],
        refinement=[
            refinement(
                action("SUBPLAN_CREATE", "d", addresses_issues=["i1"]),
                action("MODIFY", "nowhere", planned("nowhere"), overrides_issues=["i1"]),
                questions=[{"question": "Which tea?", "assumption": "Green.", "step_id": "a"}],
            ),
            refinement(
                modify("b"), action("REPLACE", "c", planned("c2")), modify("a"), add("extra")
            ),
            refinement(),
        ],
        step=by_step(
            a="no JSON at all",
            b=[blocked("half", "how hot?"), clear("b at last", "note of b")],
            c=Truncated("cut off"),
            extra="neither",
        ),
        repair=repaired,
        convergence=[unfinished(), unfinished(), unfinished(), assessment()],
    )


def unknown_tools() -> ScriptedModel:
    return ScriptedModel(
        plan=plan(*(planned(name, tool=f"tool-{name}") for name in "abcd")),
        convergence=assessment(),
    )


def failing() -> ScriptedModel:
    """A provider that fails in two ways at once."""
    errors = {
        "b": ServerFailed("b: 500", status=500),
        "c": AuthenticationFailed("c: 401", status=401),
    }
    return ScriptedModel(plan=WIDE, step=by_step(**errors))


def expiring() -> ScriptedModel:
    return ScriptedModel(plan=WIDE, convergence=unfinished())


def stalling() -> ScriptedModel:
    return ScriptedModel(plan=WIDE, step=by_step(a=blocked()), convergence=unfinished())


def unevaluated() -> ScriptedModel:
    return ScriptedModel(plan=WIDE, convergence=[Truncated("cut off"), assessment()])


def planless() -> ScriptedModel:
    return ScriptedModel(plan=Truncated("cut off"))


SCRIPTS: dict[str, tuple[Callable[[], ScriptedModel], tuple[str, ...], str]] = {
    "converging": (converging, (), "converged"),
    "tools": (unknown_tools, (), "converged"),
    "failing": (failing, (), "failed"),
    "planless": (planless, (), "failed"),
    "expiring": (expiring, ("ttl.limit=11",), "ttl_expired"),
    "expiring-first": (expiring, ("ttl.limit=6",), "ttl_expired"),
    "expiring-in-plan": (expiring, ("ttl.limit=2",), "ttl_expired"),
    "stalling": (stalling, (), "stalled"),
    "unevaluated": (unevaluated, (), "converged"),
    "passes": (expiring, ("limits.max_passes=1",), "max_passes"),
    "no-calls": (expiring, ("limits.max_llm_calls=1",), "max_llm_calls"),
}


@cache
def validator(name: str) -> Draft202012Validator:
    path = resource_root() / "schemas" / "artefacts" / f"{name}.json"
    return Draft202012Validator(json.loads(path.read_text(encoding="utf-8")))


def assert_as_published(directory: Path) -> None:
    for name in ("result", "history"):
        validator(name).validate(json.loads((directory / f"{name}.json").read_bytes()))
    for name in ("events", "cycles"):
        for line in read_lines(directory / f"{name}.jsonl"):
            validator(name).validate(line)


def assert_consistent(result: RunResult, directory: Path) -> None:
    """What is told twice is told the same."""
    history, cycles = result.history, list(read_lines(directory / "cycles.jsonl"))
    assert artefacts.load(directory) == result
    assert [p.pass_number for p in history.passes] == list(range(len(history.passes)))
    assert (
        history.overall_statistics.total_passes
        == result.passes
        == sum(p.pass_number > 0 for p in history.passes)
    )
    assert (
        history.overall_statistics.convergence_achieved
        == history.final_result.converged
        == result.converged
    )
    timings = result.timings
    assert datetime.fromisoformat(timings.end_time) - datetime.fromisoformat(
        timings.start_time
    ) == timedelta(seconds=timings.total_seconds)
    assert history.final_result.result_type == result.termination_reason
    assert sorted(line["step_number"] for line in cycles) == list(range(len(cycles)))
    paid = sorted(line["cycle"] for line in cycles if line["cycle"] is not None)
    assert paid == list(range(result.ttl.used + 1))
    assert result.ttl.used == sum(p.ttl_used for p in history.passes)
    assert result.usage.total.requests == sum(
        usage.requests for usage in result.usage.by_call.values()
    )
    assert (result.ttl_expiration is not None) == is_spent(result.termination_reason)
    for line in cycles:
        rebuilt = plan_of(cycles, line["sequence"])
        assert rebuilt is None or [s.step_index for s in rebuilt.steps] == list(
            range(1, len(rebuilt.steps) + 1)
        )


def assert_events_pair(directory: Path) -> None:
    """Phases and passes that began have ended, and every dispatched cycle too."""
    lines = [line["event"] for line in read_lines(directory / "events.jsonl")]
    for begun, ended in (("phase_started", "phase_finished"), ("pass_started", "pass_finished")):
        assert lines.count(begun) == lines.count(ended)
    assert lines.count("cycle_started") == lines.count("cycle_finished")
    assert lines.count("step_started") == lines.count("step_finished")
    assert lines[0] == "run_started"
    assert lines[-1] == "run_finished"


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_scripted_run_ends_as_scripted_and_writes_what_is_published(tmp_path: Path, name: str):
    make, overrides, reason = SCRIPTS[name]
    result = run(tmp_path, *overrides, model=make())
    assert result.termination_reason == reason
    assert_as_published(tmp_path)
    assert_consistent(result, tmp_path)
    assert_events_pair(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_simulated_run_writes_what_is_published(tmp_path: Path, seed: int):
    result = run(
        tmp_path, f"provider.seed={seed}", task="design a web application with user authentication"
    )
    assert_as_published(tmp_path)
    assert_consistent(result, tmp_path)
    assert_events_pair(tmp_path)
    assert result.synthetic


@pytest.mark.slow
def test_the_simulated_seeds_end_in_several_ways(tmp_path: Path):
    ends: set[str] = set()
    for seed in range(10):
        ends.add(
            run(
                tmp_path / str(seed), f"provider.seed={seed}", "provider.retry.initial_seconds=0"
            ).termination_reason
        )
        if len(ends) >= 3 and {"converged", "failed"} <= ends:
            return
    pytest.fail(f"ten seeds end in {ends} alone")


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_equal_answers_give_equal_artefacts_however_parallel_and_in_whatever_order(
    tmp_path: Path, name: str
):
    make, overrides, _ = SCRIPTS[name]
    run(tmp_path / "1", *overrides, "execution.max_parallel=1", model=make())
    expected = documents(tmp_path / "1")
    for seed in (1, 2):
        directory = tmp_path / f"8-{seed}"
        run(directory, *overrides, "execution.max_parallel=8", model=Late(make(), seed))
        for document, value in documents(directory).items():
            assert value == expected[document], f"{document} differs with latencies of seed {seed}"


@pytest.mark.parametrize("seed", [0, 3, 7])
def test_simulated_runs_are_equal_too(tmp_path: Path, seed: int):
    run(tmp_path / "one", f"provider.seed={seed}", "execution.max_parallel=1")
    run(tmp_path / "other", f"provider.seed={seed}", "execution.max_parallel=8")
    assert documents(tmp_path / "one") == documents(tmp_path / "other")


def test_steps_are_dispatched_in_plan_order_however_they_end(tmp_path: Path):
    run(tmp_path, model=Late(converging(), 5))
    lines = [
        line for line in read_lines(tmp_path / "events.jsonl") if line["event"] == "step_started"
    ]
    first = [line["step"]["step_id"] for line in lines if line["pass_number"] == 1]
    assert first == ["a", "b", "c", "d.first", "d.second"]
    assert [line["cycle"] for line in lines] == sorted(line["cycle"] for line in lines)
