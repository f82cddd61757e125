"""Whole runs with the simulated provider: each seed's character ends a run as its table says."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon
from aeon.domain.result import RunResult
from tests.simulated.simulated_requests import TASK, table_of_seeds

ROOT = Path(__file__).parents[2]


@cache
def run(*overrides: str, task: str = TASK) -> RunResult:
    quick = ("provider=simulated", "provider.retry.initial_seconds=0")
    with Aeon.from_config([*quick, *overrides], environ={}) as aeon:
        return aeon.run(task)


def untimed(result: RunResult) -> Any:
    """The parts of a result that hold no clock and no id."""
    passes = [
        (
            p.phase,
            [s.model_dump() for s in p.steps],
            p.refinement_changes,
            p.clarity_states,
            p.answer,
            p.ttl_used,
        )
        for p in result.history.passes
    ]
    return result.answer, result.termination_reason, result.scores, passes


@pytest.mark.parametrize("seed", [*range(10), 13, 18])
def test_a_run_ends_as_the_seed_s_character_says(seed: int) -> None:
    result = run(f"provider.seed={seed}")
    assert result.termination_reason == table_of_seeds()[seed % 10].ending
    assert result.synthetic


@pytest.mark.parametrize(
    "task", ["calculate the sum of 5 and 10", "设计一个登录系统", "?", "word " * 2000]
)
def test_the_default_seed_converges_for_any_task(task: str) -> None:
    assert run(task=task).converged


def test_the_first_run_a_person_sees_is_interesting() -> None:
    result = run()
    passes = result.history.passes[1:]
    assert result.converged
    assert 3 <= len(passes) <= 5
    assert any(p.refinement_changes for p in result.history.passes)
    assert any("BLOCKED" in p.clarity_states.values() for p in passes)
    assert TASK in result.answer


def test_runs_are_the_same_whatever_runs_at_the_same_time() -> None:
    together, one_by_one = (
        run("provider.seed=3"),
        run("provider.seed=3", "execution.max_parallel=1"),
    )
    assert untimed(together) == untimed(one_by_one)


def test_edited_prompts_change_nothing_about_a_run(tmp_path: Path) -> None:
    (tmp_path / "default").mkdir()
    for call in ("plan", "refinement", "semantic_validation", "convergence"):
        (tmp_path / "default" / f"{call}.user.j2").write_text(
            "My own words for {{ task }}.", encoding="utf-8"
        )
    words = "Do it: {{ task }} {{ step.description }}"
    (tmp_path / "default" / "step.user.j2").write_text(words, encoding="utf-8")
    assert untimed(run("provider.seed=9", f"prompts.dir={tmp_path}")) == untimed(
        run("provider.seed=9")
    )


def test_a_decomposing_run_has_a_subplan() -> None:
    steps = run("provider.seed=3").history.passes[-1].steps
    assert any(step.parent_step_id for step in steps)


def test_a_revising_run_replaces_an_executed_step() -> None:
    steps = run("provider.seed=9").history.passes[-1].steps
    assert any(step.replaced_by for step in steps)


def test_an_untidy_run_repairs_its_answers() -> None:
    result = run("provider.seed=5")
    assert result.repairs
    assert result.converged


@pytest.mark.parametrize("seed", [5, 15, 45])
def test_an_answer_that_was_repaired_still_names_the_task(seed: int) -> None:
    assert run(f"provider.seed={seed}").answer.endswith(TASK)


def test_a_strict_run_has_refused_actions_and_a_question() -> None:
    result = run("provider.seed=7")
    assert result.refused_actions
    assert result.follow_up_questions


def test_the_highest_thresholds_are_reached() -> None:
    scores = [f"convergence.{name}=1" for name in ("completeness", "coherence", "consistency")]
    assert run("provider.seed=1", *scores).converged


def test_custom_criteria_are_met_in_the_end() -> None:
    result = run("+convergence.criteria.cited=Every claim has a source.")
    assert result.converged


@pytest.mark.parametrize("name", ["blocked-step", "stubborn-grader", "bad-weather"])
def test_an_example_converges(name: str) -> None:
    result = run(f"provider.scenario={ROOT / 'examples' / 'scenarios' / name}.yaml")
    assert result.converged


def test_the_blocked_step_of_the_example_goes_through_once_it_is_clarified() -> None:
    result = run(f"provider.scenario={ROOT / 'examples' / 'scenarios' / 'blocked-step.yaml'}")
    states = [p.clarity_states.get("estimate") for p in result.history.passes]
    assert "BLOCKED" in states
    assert result.history.passes[-1].steps[-1].status == "complete"
    assert "three weeks for a team of two" in result.answer
