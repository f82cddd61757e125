"""The sentences of the page's tables and lists, each with the run in which it stands and one in which it does not."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from aeon.config.settings import Settings
from aeon.domain.checks import CheckOutcome
from aeon.domain.history import Advisory, ProfileTransition
from aeon.domain.plan import FollowUpQuestion
from aeon.domain.profile import TaskProfile
from aeon.domain.refinement import RepairRecord
from aeon.domain.result import (
    Hashes,
    ParentRun,
    ProviderReport,
    Saved,
    TTLReport,
    UsageReport,
)
from aeon.report.diagnosis.finding import Evidence
from aeon.report.page.build import draw_report
from tests.report.diagnosis.builders import a_call, a_pass, a_run, a_step, an_issue, assessed

BLANK = a_pass(0, answer=" ")
LOW, HIGH = assessed(0.7), assessed(0.8)
REPAIR = RepairRecord(
    call="step", cycle=1, pass_number=1, errors=("/x: missing",), attempts=1, outcome="repaired"
)
LEFT = Advisory(kind="manual_intervention", message="Settle it.", pass_number=1)
CITED, UNCITED = assessed(0.7, criteria={"cited": True}), assessed(0.7, criteria={"cited": False})
CASES: dict[str, tuple[Callable[[], Evidence], Callable[[], Evidence]]] = {
    "No pass was judged.": (lambda: a_run(), lambda: a_run(a_pass(1, LOW))),
    "The reviews found none.": (
        lambda: a_run(),
        lambda: a_run(a_pass(1, LOW, issues=(an_issue(),))),
    ),
    "There is none.": (lambda: a_run(answer=" "), lambda: a_run(answer="A")),
    "No advisories.": (lambda: a_run(), lambda: a_run(advisories=(LEFT,))),
    "There is no journal of this run": (
        lambda: a_run(),
        lambda: a_run(items=(a_call("step", 1, begins=1),), events=()),
    ),
    "no score changed by 0.02 or more": (
        lambda: a_run(a_pass(1, LOW), a_pass(2, assessed(0.71))),
        lambda: a_run(a_pass(1, LOW), a_pass(2, HIGH)),
    ),
    "Without gain over the pass before: pass 2.": (
        lambda: a_run(a_pass(1, LOW), a_pass(2, LOW)),
        lambda: a_run(a_pass(1, LOW), a_pass(2, HIGH)),
    ),
    "completeness fell from 0.80 to 0.70 in pass 2": (
        lambda: a_run(a_pass(1, HIGH), a_pass(2, LOW)),
        lambda: a_run(a_pass(1, LOW), a_pass(2, HIGH)),
    ),
    "The criterion cited was met in pass 1, and not in pass 2": (
        lambda: a_run(a_pass(1, CITED), a_pass(2, UNCITED)),
        lambda: a_run(a_pass(1, UNCITED), a_pass(2, CITED)),
    ),
    "the same text as pass 1": (
        lambda: a_run(a_pass(1, answer="A"), a_pass(2, answer="B"), a_pass(3, answer="A")),
        lambda: a_run(a_pass(1, answer="A"), a_pass(2, answer="A"), a_pass(3, answer="B")),
    ),
    "Passes 1 and 2 the same text in each": (
        lambda: a_run(BLANK, a_pass(1, answer="A"), a_pass(2, answer="A")),
        lambda: a_run(BLANK, a_pass(1, answer="A"), a_pass(2, answer="B")),
    ),
    "Nothing: no repair, no refusal, no blocked step, no pass without gain.": (
        lambda: a_run(a_pass(1, assessed()), reason="converged"),
        lambda: a_run(a_pass(1, assessed()), reason="converged", repairs=(REPAIR,)),
    ),
    "Nothing: no refusal, no blocked step, no pass without gain, and few repairs (1).": (
        lambda: a_run(a_pass(1, assessed()), reason="converged", repairs=(REPAIR,)),
        lambda: a_run(a_pass(1, LOW)),
    ),
    "No command alone mends it: begin with what stands out.": (
        lambda: a_run(a_pass(1, LOW), a_pass(2, LOW), reason="max_passes"),
        lambda: a_run(a_pass(1, LOW), reason="ttl_expired"),
    ),
}


PROFILE = TaskProfile(
    reasoning_depth=3,
    information_sufficiency=0.49,
    expected_tool_usage="none",
    output_breadth="narrow",
    confidence_requirement="high",
    raw_inference="It is a guide.",
)
CHANGED = ProfileTransition(
    pass_number=2,
    from_version=1,
    to_version=2,
    before=PROFILE,
    after=PROFILE.model_copy(update={"reasoning_depth": 5}),
    reason="It is harder.",
    ttl_before=20,
    ttl_after=30,
)
WRONG = CheckOutcome(name="tests", type="python", passed=False, feedback="1 failed")
WRITTEN, PENDING = a_step("facts"), a_step("write", status="pending")
QUESTION = FollowUpQuestion(question="Which year?", assumption="2025")
ANSWERED = QUESTION.model_copy(update={"answer": "2026"})
HASHES = Hashes(task="", inputs={}, prompts="", schemas="", configuration="")
RECORDED = ParentRun(path="/runs/zero", run_id="0", saved=Saved(model_calls=4))


def with_profile(**given: Any) -> Evidence:
    first = a_pass(0).model_copy(update={"taskprofile": PROFILE})
    return a_run(first, a_pass(1, LOW, ttl_used=5), **given)


def with_threshold(threshold: float) -> Evidence:
    run = a_run(a_pass(1, LOW))
    configuration = {**run.result.configuration}
    configuration["convergence"] = {**configuration["convergence"], "completeness": threshold}
    return a_run(a_pass(1, LOW), configuration=configuration, scores=LOW.scores)


def with_transitions(*transitions: ProfileTransition) -> Evidence:
    run = a_run(a_pass(1, LOW))
    history = run.result.history.model_copy(update={"profile_transitions": transitions})
    return a_run(a_pass(1, LOW), history=history)


CASES |= {
    # Profile and budget
    "reasoning depth3": (lambda: with_profile(), lambda: a_run(a_pass(1, LOW))),
    "It is a guide.": (lambda: with_profile(), lambda: a_run(a_pass(1, LOW))),
    "TTL: 7 of 9 cycles used.": (
        lambda: a_run(a_pass(1, LOW), ttl=TTLReport(allocated=9, used=7, remaining=2)),
        lambda: a_run(a_pass(1, LOW), ttl=TTLReport(allocated=9, used=8, remaining=1)),
    ),
    "By pass: 0: 3, 1: 5.": (
        lambda: a_run(a_pass(1, LOW, ttl_used=5)),
        lambda: a_run(a_pass(1, LOW, ttl_used=4)),
    ),
    "The profile was not changed.": (lambda: with_transitions(), lambda: with_transitions(CHANGED)),
    "Changed in pass 2, TTL 20 → 30: It is harder.": (
        lambda: with_transitions(CHANGED),
        lambda: with_transitions(),
    ),
    "reasoning depth 3 5": (lambda: with_transitions(CHANGED), lambda: with_transitions()),
    # Advisories and questions
    "manual intervention, pass 1: Settle it.": (
        lambda: a_run(advisories=(LEFT,)),
        lambda: a_run(),
    ),
    "No questions.": (lambda: a_run(), lambda: a_run(follow_up_questions=(QUESTION,))),
    "Which year?Assumed: 2025": (
        lambda: a_run(follow_up_questions=(QUESTION,)),
        lambda: a_run(follow_up_questions=(ANSWERED,)),
    ),
    "Which year?Answered: 2026": (
        lambda: a_run(follow_up_questions=(ANSWERED,)),
        lambda: a_run(follow_up_questions=(QUESTION,)),
    ),
    # Checks and answers
    "tests pass 2: what it said": (
        lambda: a_run(*(a_pass(number, LOW, checks=(WRONG,)) for number in (1, 2))),
        lambda: a_run(a_pass(1, LOW, checks=(WRONG,)), a_pass(2, LOW)),
    ),
    "Pass 1 the first draft": (
        lambda: a_run(BLANK, a_pass(1, answer="A", steps=(WRITTEN, PENDING)), a_pass(2)),
        lambda: a_run(BLANK, a_pass(1, answer="A"), a_pass(2)),
    ),
    "0.70threshold 0.999": (
        lambda: with_threshold(0.999),
        lambda: with_threshold(0.99),
    ),
    # Configuration and origin
    "differs from the defaults Nothing.": (lambda: given(), lambda: given("limits.max_passes", 2)),
    "limits.max_passes220": (lambda: given("limits.max_passes", 2), lambda: given()),
    "limits.max_cost5null": (lambda: given("limits.max_cost", 5), lambda: given()),
    "answered from/runs/zero": (lambda: a_run(parent=RECORDED), lambda: a_run()),
    "costseconds of this run": (lambda: a_run(parent=RECORDED), lambda: a_run()),
    "time of this run": (lambda: a_run(parent=RECORDED), lambda: a_run()),
    "saved4 calls": (lambda: a_run(parent=RECORDED), lambda: a_run()),
    "unpricedm-1": (
        lambda: a_run(usage=UsageReport(unpriced=("m-1",))),
        lambda: a_run(usage=UsageReport()),
    ),
    "findingsIt has no seed.": (
        lambda: a_run(provider=ProviderReport(kind="openai", findings=("It has no seed.",))),
        lambda: a_run(provider=ProviderReport(kind="openai")),
    ),
    "addresshttps://example.org/v1": (
        lambda: a_run(provider=ProviderReport(kind="openai", base_url="https://example.org/v1")),
        lambda: a_run(provider=ProviderReport(kind="openai")),
    ),
    "hash of input brief": (
        lambda: a_run(hashes=HASHES.model_copy(update={"inputs": {"brief": "abc"}})),
        lambda: a_run(hashes=HASHES),
    ),
}


def given(key: str = "", value: Any = None) -> Evidence:
    """A run whose configuration differs from the defaults in this key alone."""
    configuration = Settings.model_validate({"provider": {"kind": "simulated"}}).model_dump(
        mode="json", by_alias=True
    )
    configuration["reasoning"] = a_run().result.configuration["reasoning"]
    if key:
        group, _, name = key.partition(".")
        configuration[group][name] = value
    return a_run(a_pass(1, LOW), configuration=configuration)


def text_of(evidence: Evidence) -> str:
    """The words of the page, without its script and what is packed."""
    page = draw_report(evidence.record).decode()
    body = page.partition("<main")[2].partition("</main>")[0]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", body))


@pytest.mark.parametrize("sentence", CASES)
def test_a_sentence_stands_where_it_is_true_and_only_there(sentence: str) -> None:
    true, false = CASES[sentence]
    assert sentence in text_of(true())
    assert sentence not in text_of(false())
