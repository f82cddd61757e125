from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from aeon.plan.attempts import RefinementAttempts, admit, count_failure, may_refine
from aeon.plan.settings import RefinementSettings
from tests.plan.builders import add, decompose, modify, remove, replace

SETTINGS = RefinementSettings(max_attempts_per_fragment=3, max_attempts_total=10)


def test_several_actions_on_one_fragment_are_one_attempt() -> None:
    admission = admit([modify("a"), decompose("a"), remove("b")], RefinementAttempts(), SETTINGS)
    assert admission.attempts == RefinementAttempts(by_fragment={"a": 1, "b": 1}, total=1)
    assert len(admission.admitted) == 3
    assert admission.refused == ()


def test_the_fragment_of_an_added_step_is_its_new_id_and_of_a_replacement_the_old_one() -> None:
    admission = admit([add("new"), replace("old", "other")], RefinementAttempts(), SETTINGS)
    assert admission.attempts.by_fragment == {"new": 1, "old": 1}


def test_the_fourth_refinement_of_a_fragment_is_refused_and_the_others_go_on() -> None:
    attempts = RefinementAttempts()
    for _ in range(3):
        admission = admit([modify("a")], attempts, SETTINGS)
        assert admission.refused == ()
        attempts = admission.attempts
    admission = admit([modify("a"), modify("b")], attempts, SETTINGS)
    assert [action.fragment for action in admission.admitted] == ["b"]
    assert [refused.action.fragment for refused in admission.refused] == ["a"]
    assert "manual intervention" in admission.refused[0].reason
    assert admission.exhausted_fragments == ("a",)
    assert admission.attempts == RefinementAttempts(by_fragment={"a": 4, "b": 1}, total=4)


def test_a_refinement_without_actions_is_not_counted() -> None:
    attempts = RefinementAttempts(by_fragment={"a": 2}, total=2)
    assert admit([], attempts, SETTINGS).attempts == attempts


def test_a_failed_refinement_counts_for_the_run_and_for_no_fragment() -> None:
    assert count_failure(RefinementAttempts(by_fragment={"a": 1}, total=1)) == RefinementAttempts(
        by_fragment={"a": 1}, total=2
    )


def test_the_run_may_refine_until_its_limit() -> None:
    assert may_refine(RefinementAttempts(total=9), SETTINGS)
    assert not may_refine(RefinementAttempts(total=10), SETTINGS)
    assert not may_refine(RefinementAttempts(), RefinementSettings(max_attempts_total=0))


def test_beyond_the_run_limit_everything_is_refused_and_nothing_counted() -> None:
    attempts = RefinementAttempts(total=10)
    admission = admit([modify("a")], attempts, SETTINGS)
    assert admission.admitted == ()
    assert "refinement.max_attempts_total" in admission.refused[0].reason
    assert admission.attempts == attempts
    assert admission.exhausted_fragments == ()


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=4), max_size=15))
@hypothesis_settings(deadline=None)
def test_no_fragment_and_no_run_is_refined_beyond_its_limit(refinements: list[list[str]]) -> None:
    attempts, served, refined = RefinementAttempts(), dict.fromkeys("abc", 0), 0
    for named in refinements:
        before = attempts.model_dump()
        admission = admit([modify(fragment) for fragment in named], attempts, SETTINGS)
        assert attempts.model_dump() == before
        assert len(admission.admitted) + len(admission.refused) == len(named)
        for fragment in {action.fragment for action in admission.admitted}:
            served[fragment] += 1
        refined += bool(admission.admitted)
        attempts = admission.attempts
    assert max(served.values()) <= 3
    assert refined <= 10
