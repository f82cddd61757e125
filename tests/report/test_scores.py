"""Comparisons of scores, pass beside pass, on values made for them."""

from __future__ import annotations

from aeon.report.scores import (
    AssessedPass,
    find_assessed_passes,
    find_plateaus,
    find_regressions,
    find_without_gain,
)
from tests.kernel.test_patience import changing, with_patience


def passes(*completeness: float, missed: tuple[str, ...] = ("incomplete",)) -> list[AssessedPass]:
    return [
        AssessedPass(
            pass_number=number,
            scores={"completeness": score, "coherence": 0.95, "consistency": 0.95},
            missed=missed if score < 0.95 else (),
        )
        for number, score in enumerate(completeness, start=1)
    ]


def test_a_plateau_is_measured_from_its_first_pass() -> None:
    assert find_plateaus(passes(0.5, 0.51, 0.515, 0.8, 0.8)) == ((1, 2, 3), (4, 5))
    # Each a little better than the one before: no two of them are a plateau with the first.
    assert find_plateaus(passes(0.50, 0.52, 0.54)) == ()
    assert find_plateaus(passes(0.97)) == ()


def test_another_missed_code_ends_a_plateau() -> None:
    first, second = passes(0.7, 0.7)
    assert (
        find_plateaus([first, second.model_copy(update={"missed": ("incomplete", "dated")})]) == ()
    )


def test_two_hundredths_are_a_difference_however_they_are_stored() -> None:
    assert find_without_gain(passes(0.70, 0.72)) == ()
    assert find_without_gain(passes(0.70, 0.719)) == (2,)


def test_a_code_that_went_is_a_gain() -> None:
    first, second = passes(0.7, 0.7)
    assert (
        find_without_gain([first.model_copy(update={"missed": ("incomplete", "dated")}), second])
        == ()
    )


def test_a_regression_names_the_steps_refined_between_the_two_passes() -> None:
    first, _, third = passes(0.8, 0.8, 0.6)  # the second was not assessed
    (fell,) = find_regressions([first, third], {0: ("a",), 1: ("b",), 2: ("c",), 3: ("d",)})
    assert (fell.name, fell.from_pass, fell.to_pass, fell.before, fell.after) == (
        "completeness",
        1,
        3,
        0.8,
        0.6,
    )
    assert fell.refined == ("b", "c")


def test_a_step_that_the_refinement_of_a_pass_replaced_was_done_when_the_pass_was_judged() -> None:
    history = with_patience(changing(0.5, 0.6, 0.7, 1.0), 1).history
    assert [one.steps_done for one in find_assessed_passes(history)] == [1, 1, 1, 1]
