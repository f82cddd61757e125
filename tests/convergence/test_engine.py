"""Convergence: the verdict as a table, custom criteria, and what the judge is shown (FR-017 to FR-025, FR-068)."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon.convergence.engine import (
    UNREMEMBERED,
    ConvergenceEngine,
    parse_assessment,
    split_criteria,
    verdict,
)
from aeon.domain.assessment import (
    ConvergenceAssessment,
    ConvergenceScores,
    ConvergenceThresholds,
    CriterionResult,
)
from aeon.domain.errors import ConfigError, ValidationError
from aeon.domain.report import UNREVIEWED, ValidationIssue
from aeon.llm.exchange import InvalidAnswer
from aeon.memory.run_memory import InMemory, ShownMemory
from tests.contract.components import a_plan, a_report
from tests.plan.builders import done, issue_at, plan_of
from tests.support.scripted_model import ScriptedModel, assessment
from tests.support.strict_subset import violations

UNIT = st.floats(0, 1)


def assess(
    model: ScriptedModel, criteria: dict[str, Any] | None = None, **options: Any
) -> ConvergenceAssessment:
    engine = ConvergenceEngine(model, **options)
    return engine.assess(a_report(), a_plan(), list(a_plan().steps), {"a": "output of a"}, criteria)


def scores(
    completeness: float = 1, coherence: float = 1, consistency: float = 1
) -> ConvergenceScores:
    return ConvergenceScores(
        completeness_score=completeness, coherence_score=coherence, consistency_score=consistency
    )


def judged(name: str, met: bool = True) -> dict[str, Any]:
    return {"name": name, "met": met, "reason": f"{name} it is"}


def fault(kind: str = "omission", blocking: bool = True, description: str = "") -> dict[str, Any]:
    return {"kind": kind, "description": description or f"an {kind}", "blocking": blocking}


@pytest.mark.parametrize(
    ("read_scores", "converged", "codes"),
    [
        ((0.95, 0.90, 0.90), True, ("complete", "coherent", "consistent")),
        ((1.0, 1.0, 1.0), True, ("complete", "coherent", "consistent")),
        ((0.949, 0.90, 0.90), False, ("incomplete",)),
        ((0.95, 0.899, 0.90), False, ("incoherent",)),
        ((0.95, 0.90, 0.899), False, ("inconsistent",)),
        ((0.95, 0.0, 0.0), False, ("incoherent", "inconsistent")),
        ((0.0, 1.0, 0.0), False, ("incomplete", "inconsistent")),
        ((0.0, 0.0, 0.0), False, ("incomplete", "incoherent", "inconsistent")),
    ],
)
def test_scores_against_the_default_thresholds(
    read_scores: Any, converged: bool, codes: tuple[str, ...]
):
    assert verdict(scores(*read_scores), ConvergenceThresholds(), (), ()) == (converged, codes)


@pytest.mark.parametrize(
    ("enough", "met", "blocking"), list(itertools.product([True, False], repeat=3))
)
def test_converged_is_every_score_every_criterion_and_no_blocking_issue(
    enough: bool, met: bool, blocking: bool
):
    made = verdict(
        scores() if enough else scores(0.1),
        ConvergenceThresholds(),
        (CriterionResult(name="hot", met=met),),
        ("contradiction",) if blocking else (),
    )
    if enough and met and not blocking:
        assert made == (True, ("complete", "coherent", "consistent", "hot"))
        return
    failed = (
        ("incomplete",) * (not enough)
        + ("hot",) * (not met)
        + ("contradiction_detected",) * blocking
    )
    assert made == (False, failed)


@pytest.mark.parametrize(
    ("kinds", "codes"),
    [
        (("contradiction",), ("contradiction_detected",)),
        (("omission", "omission"), ("omission_detected",)),
        (("hallucination", "omission"), ("hallucination_detected", "omission_detected")),
        (("other",), ("blocking_issue",)),
    ],
)
def test_every_kind_of_blocking_issue_has_its_code_once(
    kinds: tuple[str, ...], codes: tuple[str, ...]
):
    assert verdict(scores(), ConvergenceThresholds(), (), kinds) == (False, codes)


@given(st.tuples(UNIT, UNIT, UNIT), st.tuples(UNIT, UNIT, UNIT))
def test_only_the_comparison_with_the_threshold_counts(read_scores: Any, thresholds: Any):
    names = ("completeness", "coherence", "consistency")
    converged, codes = verdict(
        scores(*read_scores),
        ConvergenceThresholds(**dict(zip(names, thresholds, strict=True))),
        (),
        (),
    )
    assert converged == all(
        one >= other for one, other in zip(read_scores, thresholds, strict=True)
    )
    assert codes


def test_an_assessment_of_very_many_issues_is_refused():
    issues = [{"description": str(number)} for number in range(1_001)]
    with pytest.raises(InvalidAnswer, match="/issues: there are 1,001 issues, at most 1,000 are"):
        parse_assessment({"issues": issues}, ConvergenceThresholds(), (), ())


def test_issues_that_are_not_blocking_do_not_stop_it_and_are_told():
    made = assess(ScriptedModel(convergence=assessment(issues=[fault(blocking=False)])))
    assert made.converged
    assert made.detected_issues == ("an omission",)
    assert made.blocking_issues == ()


def test_a_blocking_issue_stops_it_and_stands_among_the_detected_ones():
    issues = [
        fault(blocking=False, description="small"),
        fault("hallucination", description="grave"),
    ]
    made = assess(ScriptedModel(convergence=assessment(issues=issues)))
    assert not made.converged
    assert made.reason_codes == ("hallucination_detected",)
    assert made.detected_issues == ("small", "grave")
    assert made.blocking_issues == ("grave",)


def test_a_blocking_issue_that_says_nothing_is_put_right_and_never_lost():
    model = ScriptedModel(
        convergence=assessment(issues=[fault(description="  ")]),
        repair=json.dumps(assessment(issues=[fault(description="no milk")])),
    )
    made = assess(model)
    assert model.calls == ["convergence", "repair"]
    assert made.blocking_issues == ("no milk",)


def test_the_agreement_of_each_pair_is_kept():
    made = assess(ScriptedModel())
    assert made.scores.consistency_status["plan_steps"].status == "consistent"
    assert made.scores["consistency_status"]["plan_steps"].explanation == "they agree"


CRITERIA = {"hot": "the tea is hot", "sweet": "there is sugar"}


def test_criteria_are_shown_in_words_and_their_names_become_reason_codes():
    model = ScriptedModel(
        convergence=assessment(criteria=[judged("hot"), judged("sweet", met=False)])
    )
    made = assess(model, CRITERIA)
    assert made.reason_codes == ("sweet",)
    assert [(c.name, c.met, c.reason) for c in made.criteria] == [
        ("hot", True, "hot it is"),
        ("sweet", False, "sweet it is"),
    ]
    assert "the tea is hot" in model.prompts("convergence")[0]


@pytest.mark.parametrize(
    ("answered", "complaint"),
    [
        ([judged("hot")], "'sweet' is missing"),
        ([], "'hot' is missing"),
        ([judged("hot"), judged("sweet"), judged("hot")], "'hot' is there 2 times"),
        ([judged("hot"), judged("sweet"), judged("cheap")], "there is no criterion 'cheap'"),
        ([judged("hot"), judged("Sweet")], "there is no criterion 'Sweet'"),
    ],
)
def test_criteria_that_are_missing_double_or_unknown_go_to_repair(
    answered: list[Any], complaint: str
):
    model = ScriptedModel(
        convergence=assessment(criteria=answered),
        repair=json.dumps(assessment(criteria=[judged("hot"), judged("sweet")])),
    )
    assert assess(model, CRITERIA).converged
    assert model.calls == ["convergence", "repair"]
    assert complaint in model.prompts("repair")[0]


def test_a_criterion_under_another_name_cannot_be_answered_where_schemas_are_enforced():
    model = ScriptedModel(
        convergence=assessment(criteria=[judged("hot"), judged("Sweet")]),
        repair=json.dumps(assessment(criteria=[judged("hot"), judged("sweet")])),
    )
    assess(model, {**CRITERIA, "completeness": 0.5})
    for request in model.requests:
        assert request.strict
        assert violations(request.schema) == []
        assert request.schema["properties"]["criteria"]["items"]["properties"]["name"]["enum"] == [
            "hot",
            "sweet",
        ]


PAIRS = assessment()["consistency_status"]
NAMES = [pair["artifacts"] for pair in PAIRS]
WITHOUT_MEMORY = [pair for pair in PAIRS if pair["artifacts"] not in UNREMEMBERED]


@pytest.mark.parametrize(
    ("answered", "complaint"),
    [
        ([], f"the pair '{NAMES[0]}' is missing"),
        (PAIRS[1:], f"the pair '{NAMES[0]}' is missing"),
        (
            [*PAIRS, {**PAIRS[1], "status": "inconsistent"}],
            f"the pair '{NAMES[1]}' is there 2 times",
        ),
    ],
)
def test_pairs_that_are_missing_or_double_go_to_repair(answered: list[Any], complaint: str):
    model = ScriptedModel(
        convergence=assessment(consistency_status=answered),
        repair=json.dumps(assessment(consistency_status=PAIRS)),
    )
    made = assess(model)
    assert list(made.scores.consistency_status) == NAMES
    assert model.calls == ["convergence", "repair"]
    assert complaint in model.prompts("repair")[0]


def test_what_there_is_nothing_of_is_not_asked_for():
    answer = {
        name: value
        for name, value in assessment(consistency_status=WITHOUT_MEMORY).items()
        if name != "criteria"
    }
    model = ScriptedModel(convergence=answer)
    made = assess(model)
    assert model.calls == ["convergence"]
    assert made.criteria == ()
    assert made.scores.consistency_status["memory_answer"].status == "not_applicable"
    asked = model.requests[0].schema
    assert "criteria" not in asked["properties"]
    assert "criteria" not in asked["required"]
    pair = asked["properties"]["consistency_status"]["items"]["properties"]["artifacts"]["enum"]
    assert pair == [name for name in NAMES if name not in UNREMEMBERED]
    assert violations(asked) == []


def test_where_memory_is_shown_its_pair_is_asked_for():
    model = ScriptedModel(
        convergence=assessment(consistency_status=WITHOUT_MEMORY), repair=json.dumps(assessment())
    )
    assess(model, memory=ShownMemory(lambda: {"note": "mind the milk"}))
    assert "the pair 'memory_answer' is missing" in model.prompts("repair")[0]


def test_criteria_that_were_not_asked_for_go_to_repair():
    model = ScriptedModel(convergence=assessment(criteria=[judged("hot")]))
    with pytest.raises(ValidationError):
        assess(model)


def test_a_number_under_a_scores_name_is_a_threshold_for_this_call_alone():
    model = ScriptedModel(convergence=assessment(0.5))
    engine = ConvergenceEngine(model)
    arguments = (a_report(), a_plan(), list(a_plan().steps), {"a": "output of a"})
    assert engine.assess(*arguments, {"completeness": 0.5}).converged
    assert not engine.assess(*arguments).converged


def test_words_under_a_scores_name_are_a_criterion():
    assert split_criteria(
        {"completeness": "all cups", "coherence": 0.2, "hot": 0.7, "consistency": True}
    ) == (
        {"coherence": 0.2},
        {"completeness": "all cups", "hot": "0.7", "consistency": "True"},
    )


@pytest.mark.parametrize(
    "thresholds",
    [{"completeness": 1.1}, {"coherence": -0.1}, {"clarity": 0.5}, {"coherence": float("nan")}],
)
def test_thresholds_that_mean_nothing_are_refused(thresholds: dict[str, float]):
    with pytest.raises(ConfigError):
        ConvergenceEngine(ScriptedModel(), thresholds)


def test_a_threshold_outside_the_unit_interval_is_refused_before_the_model_is_asked():
    model = ScriptedModel()
    with pytest.raises(ConfigError, match="thresholds cannot be used"):
        assess(model, {"completeness": 2})
    assert model.calls == []


def test_the_judge_is_never_told_a_threshold():
    prompts = []
    for thresholds in ({}, {"completeness": 0.123, "coherence": 0.456, "consistency": 0.789}):
        model = ScriptedModel()
        assess(model, default_thresholds=thresholds)
        prompts.append(model.prompts("convergence"))
    assert prompts[0] == prompts[1]


def test_the_review_comes_before_the_judge():
    model = ScriptedModel()
    assess(model)
    assert "b is vague" in model.prompts("convergence")[0]


def test_the_judge_sees_memory_beyond_the_outputs():
    memory = InMemory()
    memory.write("step/a/output", "output of a")
    memory.write("note", "mind the milk")
    model = ScriptedModel()
    assess(model, memory=ShownMemory(lambda: memory.search("")))
    (prompt,) = model.prompts("convergence")
    assert "mind the milk" in prompt
    assert "step/a/output" not in prompt


def test_outputs_that_are_no_text_are_shown_as_json():
    model = ScriptedModel()
    ConvergenceEngine(model).assess(
        a_report(), a_plan(), list(a_plan().steps), {"a": {"cups": [1, None]}}
    )
    assert '{"cups":[1,null]}' in model.prompts("convergence")[0].replace(": ", ":").replace(
        ", ", ","
    )


def test_an_assessment_of_nothing_is_told_from_one_of_something():
    assert assess(ScriptedModel()).evaluated
    assert not ConvergenceAssessment(
        converged=False, reason_codes=("evaluation_unavailable",)
    ).evaluated


AGREES = "is a draft: where the answer says otherwise, the answer counts."
NOT_JUDGED = "A draft that is not shown is not judged: judge the pairs by what is shown."


def judge_finished_plan(
    *issues: ValidationIssue, reviewed: bool = True, shows_drafts: bool = False
) -> str:
    """The prompt of an assessment of `a`, then `b`, both done, where `a` handed something over."""
    model = ScriptedModel(convergence=assessment())
    memory = ShownMemory(handoffs=lambda: {"a": "mind the units", "b": "that was all"})
    plan = plan_of(done("a"), done("b", "a"))
    found = a_report() if reviewed else UNREVIEWED
    found = found.model_copy(update={"issues": issues})
    ConvergenceEngine(model, memory=memory, shows_drafts=shows_drafts).assess(
        found, plan, list(plan.steps), {"a": "the draft", "b": "the answer"}
    )
    (prompt,) = model.prompts("convergence")
    return prompt


def test_a_draft_that_another_step_used_is_shown_by_name() -> None:
    prompt = judge_finished_plan()
    assert "the answer" in prompt
    assert "that was all" in prompt
    assert "a draft that b used" in prompt
    assert "the draft" not in prompt
    assert f"{AGREES} {NOT_JUDGED}\n" in prompt


def test_a_draft_that_an_issue_is_about_is_shown_with_its_handoff() -> None:
    prompt = judge_finished_plan(issue_at("a"))
    assert "the draft" in prompt
    assert "mind the units" in prompt
    assert f"{AGREES}\n" in prompt
    assert NOT_JUDGED not in prompt


def test_without_a_review_drafts_are_shown() -> None:
    assert "the draft" in judge_finished_plan(reviewed=False)


def test_drafts_that_earlier_assessments_showed_stay_shown() -> None:
    prompt = judge_finished_plan(shows_drafts=True)
    assert "the draft" in prompt
    assert f"{AGREES}\n" in prompt
