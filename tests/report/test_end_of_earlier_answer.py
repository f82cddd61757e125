"""The end of a run whose answer is that of an earlier pass: everything about the answer is of that pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon
from aeon.domain.errors import RequestRefused
from aeon.domain.result import RunResult
from aeon.report.diagnosis.finding import Finding
from aeon.report.diagnosis.ranking import diagnose
from aeon.report.ending import open_points
from aeon.report.items import find_critical, list_items
from aeon.report.page.answers import find_final_pass
from aeon.report.page.why import explain_end
from aeon.report.patterns import Patterns, find_patterns
from aeon.report.record import load_record
from tests.kernel.test_patience import changing
from tests.support.scripted_model import ScriptedModel, assessment

BEST = ("answer.from=best", "limits.max_passes=2")
PLATEAU = ("convergence.patience=1",)
Ended = tuple[RunResult, Patterns, list[Finding]]


def judgement(completeness: float, coherence: float, words: str, kind: str) -> dict[str, Any]:
    """A judgement with one blocking issue."""
    issue = {"kind": kind, "description": f"{words} is there.", "blocking": True}
    explanation = f"{words}, as I see it."
    return assessment(completeness, coherence, 0.95, issues=[issue], explanation=explanation)


def getting_worse() -> ScriptedModel:
    model = changing()
    model._answers["convergence"] = [
        judgement(0.85, 0.95, "An omission", "omission"),
        judgement(0.7, 0.6, "A contradiction", "contradiction"),
    ]
    return model


def play(directory: Path, model: ScriptedModel, *overrides: str) -> Ended:
    with Aeon.from_config(overrides, adapter=model, environ={}) as aeon:
        result = aeon.run("make tea", directory=directory)
    record = load_record(directory, result)
    patterns = find_patterns(record)
    items = list_items(record)
    return result, patterns, diagnose(record, patterns, items, find_critical(items))


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Callable[[tuple[str, ...]], Ended]:
    @cache
    def run(overrides: tuple[str, ...]) -> Ended:
        return play(tmp_path_factory.mktemp("runs") / "run", getting_worse(), *overrides)

    return run


@pytest.mark.parametrize("overrides", [BEST, PLATEAU])
def test_the_judgement_in_the_result_is_that_of_its_answer(
    ended: Any, overrides: tuple[str, ...]
) -> None:
    result, _, _ = ended(overrides)
    assert (result.answer, result.passes, result.assessed_pass) == ("answer 1", 2, 1)
    assert result.reason_codes == ("incomplete", "omission_detected")
    assert result.explanation == "An omission, as I see it."
    assert result.history.final_convergence.explanation == result.explanation
    assert result.history.final_output == result.answer
    assert [one.kind for one in result.open_issues] == ["omission"]


@pytest.mark.parametrize("overrides", [BEST, PLATEAU])
def test_the_open_points_are_those_of_the_answer(ended: Any, overrides: tuple[str, ...]) -> None:
    points = open_points(ended(overrides)[0])
    assert points == [
        ("completeness", "0.85 (threshold 0.95)"),
        ("issue", "An omission is there."),
    ]


@pytest.mark.parametrize("overrides", [BEST, PLATEAU])
def test_the_page_says_what_the_answer_lacks_and_of_which_pass_it_is(
    ended: Any, overrides: tuple[str, ...]
) -> None:
    result, patterns, _ = ended(overrides)
    assert explain_end(result, patterns) == (
        "After 2 passes, the answer is that of pass 1: completeness is 0.85 (threshold 0.95); "
        "a blocking issue stands (omission)."
    )
    assert find_final_pass(result) == 1


@pytest.mark.parametrize("overrides", [BEST, PLATEAU])
def test_its_faults_are_the_cause_and_what_came_later_is_a_cost(
    ended: Any, overrides: tuple[str, ...]
) -> None:
    _, patterns, (cause, *others) = ended(overrides)
    assert cause.title == "The judge found a blocking issue (omission) in pass 1"
    assert (cause.evidence, cause.anchor) == ("An omission is there.", "judge-1")
    assert "Completeness ended at 0.85; its threshold is 0.95" in [
        one.title for one in cause.children
    ]
    told = [cause.title, *(one.title for one in (*cause.children, *others))]
    assert not any("contradict" in title.lower() or "0.60;" in title for title in told)
    assert any(title.startswith("In pass 2 scores fell") for title in told)
    at_end = {one.code for one in patterns.blockers if one.at_end}
    assert at_end == {"incomplete", "omission_detected"}
    last = {one.score: one.last for one in patterns.blockers if one.score}
    assert last == {"completeness": 0.85, "coherence": 0.95}


def test_a_latest_answer_that_nobody_judged_is_not_said_to_have_the_faults_of_an_earlier(
    tmp_path: Path,
) -> None:
    model = changing()
    refused = RequestRefused("no", status=400)
    model._answers["convergence"] = [judgement(0.85, 0.95, "An omission", "omission"), refused]
    result, patterns, _ = play(tmp_path / "run", model, "limits.max_passes=2")
    assert (result.answer, result.assessed_pass) == ("answer 2", 1)
    assert result.reason_codes == ("evaluation_unavailable",)
    sentence = "After 2 passes, the judge gave no usable assessment."
    assert explain_end(result, patterns) == sentence


def test_a_converged_answer_that_mending_made_worse_is_said_to_have_reached_the_thresholds(
    tmp_path: Path,
) -> None:
    model = changing()
    fault = {"kind": "omission", "description": "No price.", "blocking": False}
    model._answers["convergence"] = [assessment(0.97, issues=[fault]), assessment(0.5)]
    result, patterns, _ = play(tmp_path / "run", model, "convergence.open_severity=LOW")
    assert (result.converged, result.answer, result.passes) == (True, "answer 1", 2)
    assert explain_end(result, patterns).startswith("Pass 1 reached every threshold: ")
