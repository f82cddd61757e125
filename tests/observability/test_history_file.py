"""A history is written with each plan once and then what changed, and is read back as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aeon import ArtefactError, read_history
from aeon.domain.history import ExecutionHistory
from aeon.domain.plan import FollowUpQuestion, Plan, PlanStep, SubplanOrigin
from aeon.observability import artefacts
from aeon.observability.plan_delta import (
    apply_change,
    apply_steps,
    history_document,
    plan_change,
    restore_document,
    steps_difference,
)
from tests.observability.support import a_result
from tests.plan.builders import done, plan_of, step


def with_plans(*plans: tuple[Plan | None, tuple[PlanStep, ...]]) -> ExecutionHistory:
    """A history whose passes have these plans at their start, and these steps at their end."""
    history = a_result().history
    passes = tuple(
        history.passes[0].model_copy(
            update={"pass_number": number, "plan_state": plan, "steps": steps}
        )
        for number, (plan, steps) in enumerate(plans)
    )
    statistics = history.overall_statistics.model_copy(update={"total_passes": len(passes) - 1})
    return history.model_copy(update={"passes": passes, "overall_statistics": statistics})


FIRST = plan_of(step("a"), step("b", "a"), step("c", "b"))
HALF = FIRST.with_steps(done("a", total_steps=3))
LONGER = plan_of(done("a"), step("new", "a"), step("b", "a", "new"), step("c", "b")).model_copy(
    update={
        "questions": (FollowUpQuestion(question="which?", assumption="the usual one"),),
        "subplans": (SubplanOrigin(parent_step_id="b", subplan_goal="all of b", depth_level=1),),
    }
)
SHORTER = plan_of(done("a"), done("new", "a"))

HISTORIES = {
    "no plan": with_plans((None, ())),
    "a plan that only pass 0 has": with_plans((FIRST, FIRST.steps)),
    "steps carried out": with_plans((None, ()), (FIRST, HALF.steps), (HALF, HALF.steps)),
    "steps added": with_plans((FIRST, FIRST.steps), (FIRST, HALF.steps), (LONGER, LONGER.steps)),
    "steps removed": with_plans(
        (LONGER, LONGER.steps), (SHORTER, SHORTER.steps), (FIRST, FIRST.steps)
    ),
    "core mode, a step a pass": with_plans(
        (None, ()), (FIRST, HALF.steps[:1]), (None, HALF.steps[1:2]), (None, HALF.steps)
    ),
    "steps without a plan": with_plans((None, FIRST.steps), (None, HALF.steps)),
}


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_a_history_is_read_back_as_it_was(history: ExecutionHistory, tmp_path: Path) -> None:
    (tmp_path / "history.json").write_text(json.dumps(history_document(history)), encoding="utf-8")
    assert read_history(tmp_path) == history
    assert read_history(tmp_path / "history.json").model_dump() == history.model_dump()


def test_what_did_not_change_is_written_once() -> None:
    passes = history_document(HISTORIES["steps carried out"])["passes"]
    assert [step["step_id"] for step in passes[1]["plan_state"]["steps"]] == ["a", "b", "c"]
    assert [each["step_id"] for each in passes[1]["steps"]["steps"]] == ["a"]
    assert passes[2]["plan_state"]["steps"] == passes[2]["steps"]["steps"] == []


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_a_history_of_an_older_version_has_every_plan_whole(
    history: ExecutionHistory, tmp_path: Path
) -> None:
    (tmp_path / "history.json").write_text(history.model_dump_json(), encoding="utf-8")
    assert read_history(tmp_path) == history


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"passes": []}, "passes"),
        ({"passes": [{}]}, "plan_state"),
        ({"passes": None}, "not iterable"),
        ({"passes": [{"plan_state": {"kind": "delta"}, "steps": []}]}, "no plan is written before"),
        (
            {"passes": [{"plan_state": None, "steps": {"kind": "delta"}}]},
            "no plan is written before",
        ),
        ({"final_output": 3}, "final_output"),
    ],
)
def test_a_file_that_holds_no_history_is_refused(
    change: dict[str, Any], why: str, tmp_path: Path
) -> None:
    document = history_document(HISTORIES["steps added"]) | change
    (tmp_path / "history.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(ArtefactError, match=why):
        read_history(tmp_path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="cannot be read"):
        read_history(tmp_path)


def test_a_result_is_read_back_as_it_was(tmp_path: Path) -> None:
    result = a_result().model_copy(update={"history": HISTORIES["steps added"]})
    artefacts.write(result, tmp_path)
    assert artefacts.load(tmp_path) == result


def test_a_plan_is_its_difference_applied() -> None:
    assert apply_change(FIRST, plan_change(FIRST, LONGER)) == LONGER
    assert apply_change(LONGER, plan_change(LONGER, FIRST)).steps == FIRST.steps
    assert apply_steps(FIRST.steps, steps_difference(FIRST.steps, FIRST.steps)) == FIRST.steps


def test_restoring_shares_the_steps_that_did_not_change() -> None:
    passes = restore_document(history_document(HISTORIES["steps carried out"]))["passes"]
    assert passes[1]["steps"][2] is passes[2]["steps"][2]
