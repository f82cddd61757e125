"""Findings in one order, what follows from a cause below it, and the remedies of the causes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aeon.domain.plan import PlanStep
from aeon.report.diagnosis.finding import Evidence, Finding, Rank, Remedy
from aeon.report.diagnosis.ranking import DETECTORS, Detector, is_sound, list_remedies, rank
from tests.report.diagnosis.builders import a_pass, a_run, assessed, blocked


def finding(title: str, rank: Rank, weight: float, *remedies: str) -> Finding:
    ways = tuple(Remedy(purpose, (f"{purpose}=1",)) for purpose in remedies)
    return Finding(title=title, rank=rank, weight=weight, remedies=ways)


def silent(name: str, *follows: str) -> Detector:
    return Detector(name, lambda evidence: (), frozenset(follows))


def test_causes_come_before_doubts_and_doubts_before_costs_each_by_weight() -> None:
    found = [
        (silent("a"), finding("cost", "cost", 99)),
        (silent("b"), finding("doubt", "doubt", 50)),
        (silent("c"), finding("small cause", "cause", 10)),
        (silent("d"), finding("cause", "cause", 20)),
    ]
    assert [each.title for each in rank(found)] == ["cause", "small cause", "doubt", "cost"]


def test_what_follows_from_a_finding_stands_below_it() -> None:
    found = [
        (silent("score", "step"), finding("low", "cause", 40)),
        (silent("step"), finding("blocked", "cause", 90)),
        (silent("other"), finding("repairs", "cost", 5)),
    ]
    first, second = rank(found)
    assert (first.title, [child.title for child in first.children]) == ("blocked", ["low"])
    assert second.title == "repairs"


def test_what_would_follow_stands_alone_where_there_is_no_cause_for_it() -> None:
    found = [(silent("score", "step"), finding("low", "cause", 40))]
    assert [each.title for each in rank(found)] == ["low"]


def test_what_repeats_the_headline_stands_below_a_cause_only_with_more_to_say() -> None:
    score = Detector("score", lambda evidence: (), frozenset({"step"}), repeats_headline=True)
    cause = (silent("step"), finding("blocked", "cause", 90))
    low = finding("low", "cause", 40)
    quoted = replace(low, title="quoted", evidence="No prices.")
    (first,) = rank([cause, (score, low), (score, quoted)])
    assert [child.title for child in first.children] == ["quoted"]
    assert [each.title for each in rank([(score, low)])] == ["low"]


def test_every_name_that_a_detector_follows_is_one_of_a_detector() -> None:
    names = {each.name for each in DETECTORS}
    assert len(names) == len(DETECTORS)
    assert [each.name for each in DETECTORS if not each.follows <= names - {each.name}] == []


def purposes(run: Evidence, *findings: Finding) -> list[str]:
    return [one.purpose for one in list_remedies(run.record, run.patterns, findings)]


def test_a_run_with_a_cause_is_offered_nothing_for_its_doubts_and_costs() -> None:
    run = a_run(a_pass(1, assessed(0.5)))
    cause, doubt = finding("x", "cause", 1, "mend"), finding("z", "doubt", 1, "ask")
    assert purposes(run, cause, doubt, finding("y", "cost", 1, "save")) == ["mend"]
    assert purposes(run, doubt) == ["ask"]
    assert purposes(run, finding("y", "cost", 1, "save")) == ["save"]


def test_remedies_of_what_follows_count_where_the_cause_has_none() -> None:
    run = a_run(a_pass(1, assessed(0.5)))
    child = finding("limit", "cause", 1, "raise")
    bare = Finding(title="x", rank="cause", weight=2, children=(child,))
    assert purposes(run, bare) == ["raise"]


@pytest.mark.parametrize(
    ("score", "steps", "accepted"),
    [
        (0.9, (), ["To accept the answer as it is"]),
        (0.899, (), []),
        (0.5, (), []),
        (0.9, (blocked("facts"),), []),
    ],
)
def test_to_accept_what_there_is_comes_last_and_only_for_a_gap_of_at_most_0_05(
    score: float, steps: tuple[PlanStep, ...], accepted: list[str]
) -> None:
    run = a_run(a_pass(1, assessed(score), steps=steps))
    assert purposes(run, finding("x", "cause", 1, "mend")) == ["mend", *accepted]


@pytest.mark.parametrize(
    ("earlier", "answer", "accepted"),
    [
        (0.93, "other", []),
        (0.93, "final", ["To accept the answer as it is"]),
        (0.9, "other", ["To accept the answer as it is"]),
    ],
)
def test_no_threshold_is_offered_that_an_earlier_pass_with_another_answer_reaches(
    earlier: float, answer: str, accepted: list[str]
) -> None:
    passes = (
        a_pass(1, assessed(earlier), answer=answer),
        a_pass(2, assessed(0.93), answer="final"),
    )
    assert purposes(a_run(*passes, answer="final")) == accepted


def test_an_earlier_pass_with_more_to_mend_does_not_stand_in_the_way() -> None:
    passes = (
        a_pass(1, assessed(0.93, criteria={"cited": False}), answer="other"),
        a_pass(2, assessed(0.93, criteria={"cited": True}), answer="final"),
    )
    assert purposes(a_run(*passes, answer="final")) == ["To accept the answer as it is"]


def test_nothing_is_to_be_accepted_while_a_criterion_is_not_met() -> None:
    run = a_run(a_pass(1, assessed(0.93, criteria={"cited": False})))
    assert purposes(run) == []


def test_a_run_is_sound_when_it_converged_and_nothing_makes_its_answer_less_certain() -> None:
    converged = a_run(a_pass(1, assessed()), reason="converged").record
    assert is_sound(converged, [finding("x", "cost", 1)])
    assert not is_sound(converged, [finding("x", "doubt", 1)])
    assert not is_sound(a_run(a_pass(1, assessed(0.5))).record, [])
