"""The faults that an answer was given with are counted where it is shown."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon
from aeon.domain.result import OpenIssue, RunResult
from aeon.report.bought import count_open_issues
from aeon.report.diagnosis.next_commands import find_next_commands
from aeon.report.ending import Points, headline
from tests.support.scripted_model import (
    ScriptedModel,
    action,
    assessment,
    issue,
    planned,
    profile,
    refinement,
    report,
)


def of_review(severity: Any) -> OpenIssue:
    return OpenIssue(source="review", kind="specificity", severity=severity, description="d")


OF_JUDGE = OpenIssue(source="judge", kind="omission", description="d")
FAULT = {"kind": "omission", "description": "No price.", "blocking": False}


@pytest.mark.parametrize(
    ("issues", "words"),
    [
        ((), ""),
        ((OF_JUDGE,), "1 known fault left"),
        ((of_review("MEDIUM"), of_review("MEDIUM"), OF_JUDGE), "3 known faults left (2 MEDIUM)"),
        ((of_review("LOW"), of_review("HIGH")), "2 known faults left (1 HIGH, 1 LOW)"),
    ],
)
def test_they_are_counted_by_severity(issues: tuple[OpenIssue, ...], words: str) -> None:
    assert count_open_issues(issues) == words


def test_the_headline_and_the_first_command_are_about_them(tmp_path: Path) -> None:
    model = ScriptedModel(
        semantic_validation=[report(), report(issue(severity="MEDIUM"))],
        convergence=assessment(issues=[FAULT]),
    )
    with Aeon.from_config([], adapter=model, environ={}) as aeon:
        result = aeon.run("make tea", directory=tmp_path / "run")
    assert [(one.source, one.severity) for one in result.open_issues] == [
        ("review", "MEDIUM"),
        ("judge", "LOW"),
    ]
    assert "Converged; 2 known faults left (1 MEDIUM, 1 LOW)" in headline(result)
    purpose, command = find_next_commands(result, tmp_path / "run")[0]
    assert purpose == "To mend the known faults"
    assert command.endswith("convergence.open_severity=MEDIUM")


def test_a_fault_that_review_and_judge_found_is_counted_once(tmp_path: Path) -> None:
    same = [{**FAULT, "review_issue": "i1"}, {**FAULT, "review_issue": "i7"}]
    model = ScriptedModel(
        semantic_validation=[report(), report(issue("i1"))], convergence=assessment(issues=same)
    )
    with Aeon.from_config([], adapter=model, environ={}) as aeon:
        result = aeon.run("make tea", directory=tmp_path / "run")
    assert [(one.source, one.severity) for one in result.open_issues] == [
        ("review", "MEDIUM"),
        ("judge", "LOW"),  # there is no issue i7
    ]


def converge_over(tmp_path: Path, *overrides: str, **answers: Any) -> tuple[RunResult, Points]:
    """A run of a small task, whose judge finds a fault, and what is offered next."""
    judged = assessment(issues=[FAULT])
    model = ScriptedModel(task_profile=profile(2), convergence=judged, **answers)
    with Aeon.from_config(["mode=auto", *overrides], adapter=model, environ={}) as aeon:
        result = aeon.run("make tea", directory=tmp_path / "run")
    return result, find_next_commands(result, tmp_path / "run")


def test_a_fault_of_the_judge_alone_is_mended_by_the_first_command(tmp_path: Path) -> None:
    result, commands = converge_over(tmp_path)
    assert "Converged; 1 known fault left (1 LOW)" in headline(result)
    assert commands[0][0] == "To mend the known faults"
    assert commands[0][1].endswith("convergence.open_severity=LOW")


def test_the_command_allows_the_passes_in_which_faults_are_mended(tmp_path: Path) -> None:
    _, commands = converge_over(tmp_path, "limits.max_passes=1")
    assert commands[0][1].endswith("convergence.open_severity=LOW limits.max_passes=3")


def test_a_lower_severity_is_offered_where_the_one_asked_for_mended_nothing(tmp_path: Path) -> None:
    _, commands = converge_over(tmp_path, "convergence.open_severity=MEDIUM")
    assert commands[0][1].endswith("convergence.open_severity=LOW")


def test_what_was_mended_once_is_not_offered_again(tmp_path: Path) -> None:
    changed = refinement(action("REPLACE", "answer", planned("again")))
    low = "convergence.open_severity=LOW"
    result, commands = converge_over(tmp_path, low, refinement=changed)
    assert result.history.overall_statistics.total_passes == 2
    assert [command for _, command in commands if low in command] == []


@pytest.mark.parametrize("passes", [1, 20])
def test_the_command_mends_them_and_asks_for_nothing_again(tmp_path: Path, passes: int) -> None:
    model = ScriptedModel(
        semantic_validation=[report(), report(issue(severity="MEDIUM")), report()]
    )
    with Aeon.from_config([f"limits.max_passes={passes}"], adapter=model, environ={}) as aeon:
        ended = aeon.run("make tea", directory=tmp_path / "run")
    asked = len(model.requests)
    _, command = find_next_commands(ended, tmp_path / "run")[0]
    given = shlex.split(command)[-2 if passes == 1 else -1 :]
    again = [f"resume={tmp_path / 'run'}", *given]
    with Aeon.from_config(again, adapter=model, environ={}) as aeon:
        result = aeon.run(directory=tmp_path / "again")
    assert result.converged
    new = [request.call for request in model.requests[asked:]]
    assert new[0] == "refinement"


def test_a_fault_that_both_found_is_given_to_the_planner_once(tmp_path: Path) -> None:
    model = ScriptedModel(
        semantic_validation=[report(), report(issue("i1")), report()],
        convergence=assessment(issues=[{**FAULT, "review_issue": "i1"}]),
    )
    with Aeon.from_config(["convergence.open_severity=LOW"], adapter=model, environ={}) as aeon:
        aeon.run("make tea", directory=tmp_path / "run")
    (asked,) = [request for request in model.requests if request.call == "refinement"]
    prompt = asked.messages[1].content
    assert "i1 is wrong" in prompt
    assert FAULT["description"] not in prompt
