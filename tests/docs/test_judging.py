"""The labelled cases of finished work can be put to a judge, and answers are compared with their labels."""

from __future__ import annotations

import json
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

JUDGING = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "judging.py"))
CASES = JUDGING["load_cases"]()
FINE = {"completeness_score": 1, "coherence_score": 1, "consistency_score": 1}


def test_fifteen_cases_have_a_fault_and_five_have_none() -> None:
    assert Counter(case.planted is not None for case in CASES) == {True: 15, False: 5}


def test_a_label_names_steps_of_its_plan_and_what_an_answer_may_say() -> None:
    request = {call: JUDGING["make_request"](CASES[0], call) for call in ("review", "assessment")}
    types, kinds = (
        set(request[call].schema["properties"]["issues"]["items"]["properties"][name]["enum"])
        for call, name in [("review", "type"), ("assessment", "kind")]
    )
    for case in CASES:
        if case.planted:
            steps = {step.step_id for step in case.plan.steps}
            assert steps.issuperset(case.planted.steps), case.name
            assert types.issuperset(case.planted.types), case.name
            assert kinds.issuperset(case.planted.kinds), case.name
        assert set(JUDGING["SCORES"]).issuperset(case.scores), case.name


def test_every_prompt_holds_task_answer_and_schema_and_only_a_reviewed_one_the_fault(
    tmp_path: Path,
) -> None:
    written = JUDGING["write_prompts"](CASES, tmp_path)

    assert {call: counts["prompts"] for call, counts in written.items()} == {
        "review": 20,
        "assessment": 18,
        "assessment-reviewed": 15,
    }
    for case in CASES:
        for call in case.calls:
            text = (tmp_path / f"{case.name}.{call}.txt").read_text(encoding="utf-8")
            assert case.plan.task in text
            assert str(case.plan.steps[-1].step_output) in text
            assert '"additionalProperties":false' in text
            if case.planted:
                given = json.dumps(case.planted.description, ensure_ascii=False)
                assert (given in text) == (call == "assessment-reviewed")


def test_an_assessment_is_asked_only_about_what_it_is_shown() -> None:
    in_drafts = {case.name for case in CASES if "assessment" not in case.calls}

    assert in_drafts == {"cake-for-twelve", "hall-for-a-choir"}
    for case in CASES:
        if case.name in in_drafts:
            review, assessed = (
                JUDGING["make_request"](case, call).messages[1].content
                for call in ("review", "assessment")
            )
            assert case.handoffs["amounts"] in review
            assert case.handoffs["amounts"] not in assessed


def test_a_review_shows_what_was_handed_on() -> None:
    (case,) = (case for case in CASES if case.name == "hall-for-a-choir")

    assert case.handoffs["amounts"] in JUDGING["make_request"](case, "review").messages[1].content


def reported(step: str, kind: str) -> dict[str, Any]:
    return {
        "issue_id": step,
        "type": kind,
        "severity": "HIGH",
        "description": "!",
        "location": {"step_id": step},
    }


@pytest.mark.parametrize(
    ("issues", "marks"),
    [
        ([("answer", "consistency")], {"found": 1, "type": 1, "false_alarms": 0}),
        ([("answer", "relevance")], {"found": 1, "type": 0, "false_alarms": 0}),
        ([("prices", "consistency")], {"found": 0, "type": 0, "false_alarms": 1}),
        ([], {"found": 0, "type": 0, "false_alarms": 0}),
    ],
)
def test_a_review_is_right_at_the_step_and_with_the_type_of_the_label(
    issues: list[tuple[str, str]], marks: dict[str, int]
) -> None:
    answer = {"issues": [reported(*issue) for issue in issues]}

    table = JUDGING["score"](CASES, {"allotment-fence.review": answer})

    assert table["calls"]["review"] == {"planted": 1, "unanswered": 19, **marks}


@pytest.mark.parametrize(
    ("issues", "coherence", "marks"),
    [
        ([("other", True)], 0.7, {"found": 1, "type": 1, "blocking": 1, "scores": 1}),
        ([("other", False)], 0.7, {"found": 1, "type": 1, "blocking": 0, "scores": 1}),
        ([("omission", True)], 0.95, {"found": 1, "type": 0, "blocking": 1, "scores": 0}),
        ([], 1, {"found": 0, "type": 0, "blocking": 0, "scores": 0}),
    ],
)
def test_an_assessment_is_right_by_kind_blocking_and_scores(
    issues: list[tuple[str, bool]], coherence: float, marks: dict[str, int]
) -> None:
    listed = [{"kind": kind, "blocking": blocks, "description": "!"} for kind, blocks in issues]
    answer = {**FINE, "coherence_score": coherence, "issues": listed}

    table = JUDGING["score"](CASES, {"allotment-fence.assessment": answer})

    expected = {"planted": 1, "unanswered": 17, "false_alarms": 0, **marks}
    assert table["calls"]["assessment"] == expected


def test_work_without_a_fault_is_to_be_left_alone() -> None:
    answers = {
        "up-and-down-again.review": {"issues": []},
        "umzugskartons.review": {"issues": [reported("antwort", "hallucination")]},
        "up-and-down-again.assessment": {**FINE, "issues": []},
        "umzugskartons.assessment": {**FINE, "completeness_score": 0.9, "issues": []},
    }

    calls = JUDGING["score"](CASES, answers)["calls"]

    common = {"without_fault": 2, "clean": 1}
    assert calls["review"] == {**common, "unanswered": 18, "false_alarms": 1}
    assert calls["assessment"] == {**common, "unanswered": 16, "false_alarms": 0}


def test_an_answer_to_no_prompt_is_refused() -> None:
    with pytest.raises(ValueError, match=r"umzugskartons\.assessment-reviewed"):
        JUDGING["score"](CASES, {"umzugskartons.assessment-reviewed": {}})
