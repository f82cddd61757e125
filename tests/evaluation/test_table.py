"""What graded answers tell of the arms."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from aeon.batch.dataset import Arm, Common, Dataset, Row, open_dataset
from aeon.config.settings import BatchColumns
from aeon.domain.checks import ComparingCheck
from aeon.evaluation import forms
from aeon.evaluation.arms import AnswerName
from aeon.evaluation.models import Measurement
from aeon.evaluation.report import render_evaluation, write_files
from aeon.evaluation.table import digest_row, measure, tell_checks_apart

ARMS = [Arm("single", ("mode=single",)), Arm("full", ("mode=adaptive",))]


def dataset(folder: Path, count: int) -> Dataset:
    path = folder / "tasks.jsonl"
    rows = ({"id": f"r{n}", "task": f"say {n}", "target": n} for n in range(count))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return open_dataset(path, BatchColumns(), Common())


def line(arm: str, repeat: int, row: int, *, passes: bool, **more: Any) -> dict[str, Any]:
    return {
        "id": AnswerName(arm, repeat, f"r{row}").id,
        "ended": "completed",
        "answer": str(row) if passes else "no <idea> & \x01",
        "input_tokens": 100 if arm == "full" else 10,
        "output_tokens": 10 if arm == "full" else 1,
        "calls": 1,
        "cost": 0.5,
        "seconds": 0.25,
        **more,
    }


def measured(
    folder: Path, single: Sequence[bool], full: Sequence[bool], **options: Any
) -> Measurement:
    passes = {"single": single, "full": full}
    lines = [
        line(arm, 1, number, passes=passed)
        for arm, of_arm in passes.items()
        for number, passed in enumerate(of_arm)
    ]
    return measure(dataset(folder, len(single)), ARMS, 1, lines, **options)


def test_each_arm_has_its_rate_score_and_what_it_took(tmp_path: Path) -> None:
    evaluation = measured(tmp_path, [True, False, False, True], [True, True, True, True])
    single, full = evaluation.arms
    assert (single.passed, single.failed, single.not_measured) == (2, 2, 0)
    assert (single.pass_rate, full.pass_rate, full.mean_score) == (0.5, 1.0, 1.0)
    assert (single.tokens, single.calls, single.cost, single.seconds) == (44, 4, 2.0, 1.0)
    assert full.overrides == ("mode=adaptive",)


def test_arms_are_compared_row_by_row(tmp_path: Path) -> None:
    single = [True] * 10 + [False] * 12
    full = [False] * 2 + [True] * 20
    (comparison,) = measured(tmp_path, single, full).comparisons
    assert (comparison.arm, comparison.other) == ("full", "single")
    assert (comparison.improved, comparison.degraded) == (12, 2)
    assert comparison.improvements_per_degradation == 6
    assert comparison.difference == pytest.approx(10 / 22)
    assert comparison.tokens_ratio == 10
    assert comparison.p == pytest.approx(0.01294, abs=1e-5)
    assert comparison.is_decisive
    assert "full passes 45.5 points more than single" in comparison.sentence
    assert "12 rows improved, 2 degraded (6 improvements per degradation)" in comparison.sentence
    assert comparison.sentence.endswith("p = 0.013. This is decisive.")


def repeated(folder: Path, passes: dict[str, Sequence[int]], repeat: int) -> Measurement:
    """Arms that passed so many of the repeats of each row."""
    lines = [
        line(arm, number, row, passes=number <= count)
        for arm, counts in passes.items()
        for row, count in enumerate(counts)
        for number in range(1, repeat + 1)
    ]
    return measure(dataset(folder, len(passes["full"])), ARMS, repeat, lines)


@pytest.mark.parametrize("many", [10, 5])
def test_rows_and_pass_rates_that_do_not_point_the_same_way_decide_nothing(
    tmp_path: Path, many: int
) -> None:
    """Ten rows improved by an answer each, two degraded by all ten, or by five."""
    single = [0] * 10 + [many, many]
    full = [1] * 10 + [0, 0]
    (comparison,) = repeated(tmp_path, {"single": single, "full": full}, 10).comparisons
    assert (comparison.improved, comparison.degraded) == (10, 2)
    assert comparison.p < 0.05
    assert not comparison.is_decisive
    assert comparison.rows_to_decide is None
    way = "8.3 points fewer than" if many == 10 else "as many as"
    assert f"full passes {way} single" in comparison.sentence
    assert comparison.sentence.endswith(
        "This is not decisive: the rows and the pass rates do not point the same way."
    )


def test_arms_that_passed_the_same_rows_say_which_one_took_more(tmp_path: Path) -> None:
    (comparison,) = measured(tmp_path, [True, False], [True, False]).comparisons
    sentence = (
        "full passed the same rows as single, at 10 times the tokens: no row tells them apart."
    )
    assert comparison.sentence == sentence


def test_what_is_not_decisive_says_how_many_more_rows_would_decide(tmp_path: Path) -> None:
    (comparison,) = measured(
        tmp_path, [True, False, False, True], [True, True, True, False]
    ).comparisons
    assert not comparison.is_decisive
    assert comparison.rows_to_decide == 92
    assert "About 88 more rows would decide" in comparison.sentence


def unreported(folder: Path, **more: Any) -> Measurement:
    """A measurement whose second arm has one answer without usage, or not all of it."""
    lines = [line("single", 1, number, passes=True) for number in range(2)]
    lines += [
        line("full", 1, 0, passes=True),
        line("full", 1, 1, passes=True, unreported=["m"], cost=None, **more),
    ]
    return measure(dataset(folder, 2), ARMS, 1, lines)


def test_tokens_are_at_least_what_was_reported(tmp_path: Path) -> None:
    evaluation = unreported(tmp_path)
    assert [arm.unreported for arm in evaluation.arms] == [0, 1]
    text = forms.write_text(evaluation)
    assert "at least 220" in text
    assert text.endswith("for every call of 1 of 4 answers: their tokens are unknown, not zero.")
    write_files(evaluation, tmp_path)
    assert "at least 110 tokens" in (tmp_path / "eval.html").read_text()
    head, *_, last = (tmp_path / "rows.csv").read_text().splitlines()
    cells = dict(zip(head.split(","), last.split(","), strict=True))
    assert (cells["tokens"], cells["usage_reported"]) == ("110", "False")


def test_tokens_are_unknown_where_none_was_reported(tmp_path: Path) -> None:
    none = {"unreported": ["m"], "cost": None, "input_tokens": 0, "output_tokens": 0}
    lines = [line("single", 1, 0, passes=True), line("full", 1, 0, passes=True, **none)]
    evaluation = measure(dataset(tmp_path, 1), ARMS, 1, lines)
    columns = dict(forms.list_columns(evaluation))
    assert columns["tokens"] == ["11", "unknown"]
    write_files(evaluation, tmp_path)
    assert "unknown tokens" in (tmp_path / "eval.html").read_text()
    assert ",completed,,False,1," in (tmp_path / "rows.csv").read_text()


def test_no_arm_takes_so_many_times_the_tokens_where_they_are_unknown(tmp_path: Path) -> None:
    (comparison,) = unreported(tmp_path).comparisons
    assert comparison.tokens_ratio is None
    assert "times the tokens" not in comparison.sentence


def test_a_single_row_that_would_decide_is_one_row(tmp_path: Path) -> None:
    (comparison,) = measured(tmp_path, [False] * 5, [True] * 5).comparisons
    assert "About 1 more row would decide, if" in comparison.sentence


def test_the_arm_that_is_judged_is_compared_with_each_of_the_others(tmp_path: Path) -> None:
    evaluation = measured(tmp_path, [True, False], [True, True], judged="single")
    assert [(one.arm, one.other) for one in evaluation.comparisons] == [("single", "full")]
    assert evaluation.comparisons[0].degraded == 1


def test_an_answer_that_is_missing_is_not_measured_and_counts_as_not_passed(
    tmp_path: Path,
) -> None:
    lines = [line("single", 1, row, passes=True) for row in range(4)]
    lines += [line("full", 1, row, passes=True) for row in range(3)]
    evaluation = measure(dataset(tmp_path, 4), ARMS, 1, lines)
    full = evaluation.arm("full")
    assert (full.answers, full.passed, full.not_measured) == (4, 3, 1)
    assert (full.pass_rate, full.mean_score) == (0.75, 0.75)
    assert evaluation.not_measured == 1
    assert "Not measured: 1 of 8 answers." in forms.write_text(evaluation)


@pytest.mark.parametrize(
    ("count", "sentence"),
    [
        (0, "full and single cannot be told apart: 12 of their 12 answers are not measured."),
        (
            6,
            "full passes 100.0 points more than single (+47.6 to +100.0): 6 rows improved, "
            "0 degraded, p = 0.031. "
            "This decides nothing: 6 of their 12 answers are not measured.",
        ),
    ],
)
def test_arms_with_unmeasured_answers_are_not_told_apart(
    tmp_path: Path, count: int, sentence: str
) -> None:
    """Six rows that improved would be decisive, were those of the other arm measured."""
    lines = [line("full", 1, row, passes=True) for row in range(count)]
    evaluation = measure(dataset(tmp_path, 6), ARMS, 1, lines)
    (comparison,) = evaluation.comparisons
    assert not comparison.is_decisive
    assert comparison.sentence == sentence


def test_arms_that_different_checks_decided_are_not_compared(tmp_path: Path) -> None:
    evaluation = measured(tmp_path, [False] * 20, [True] * 20)
    alike = tell_checks_apart(evaluation, {"single": "one", "full": "one"})
    assert alike.comparisons == evaluation.comparisons
    assert alike.comparisons[0].is_decisive
    apart = tell_checks_apart(evaluation, {"single": "one", "full": "other"})
    (comparison,) = apart.comparisons
    assert not comparison.is_decisive
    assert not comparison.has_same_checks
    sentence = (
        "full and single were decided by different checks: their pass rates are not compared."
    )
    assert comparison.sentence == sentence
    assert sentence in forms.write_text(apart)
    page = render_evaluation(apart).decode()
    assert sentence in page
    assert "+100.0" not in page


def test_equal_scores_have_no_interval(tmp_path: Path) -> None:
    """Equal scores say nothing of how far those of other rows would differ."""
    evaluation = measured(tmp_path, [True, False, True], [True, True, True])
    single, full = evaluation.arms
    assert single.mean_score_interval is not None
    assert full.mean_score_interval is None
    assert forms.write_text(evaluation).splitlines()[2].split()[-6:-4] == ["1.000", "unknown"]
    (same,) = measured(tmp_path, [True, False], [True, False]).comparisons
    assert same.score_difference_interval is None
    assert same.difference_interval is not None


def test_of_repeated_rows_the_chances_of_one_and_of_all_are_told(tmp_path: Path) -> None:
    lines = [
        line(arm, repeat, row, passes=arm == "full" or repeat <= row)
        for arm in ("single", "full")
        for row in range(3)
        for repeat in (1, 2)
    ]
    single, full = measure(dataset(tmp_path, 3), ARMS, 2, lines).arms
    assert single.pass_at == {1: 0.5, 2: pytest.approx(2 / 3)}
    assert single.pass_all == {1: 0.5, 2: pytest.approx(1 / 3)}
    assert full.pass_all == {1: 1.0, 2: 1.0}


def test_the_cost_is_unknown_where_that_of_one_answer_is(tmp_path: Path) -> None:
    lines = [line(arm.name, 1, 0, passes=True, cost=None) for arm in ARMS]
    assert measure(dataset(tmp_path, 1), ARMS, 1, lines).arms[0].cost is None


def test_a_threshold_and_a_worse_baseline_are_what_a_measurement_may_be_below(
    tmp_path: Path,
) -> None:
    reached = measured(tmp_path, [True, True], [True, False], threshold=0.5)
    missed = measured(tmp_path, [True, True], [True, False], threshold=0.51)
    assert not reached.is_below
    assert missed.is_below
    assert "full passes 50.0 %: below threshold=0.51." in forms.write_text(missed)


def test_the_files_hold_every_answer(tmp_path: Path) -> None:
    evaluation = measured(tmp_path, [True, False], [True, True])
    write_files(evaluation, tmp_path)
    again = Measurement.model_validate_json((tmp_path / "eval.json").read_bytes())
    assert again == evaluation
    rows = (tmp_path / "rows.csv").read_text().splitlines()
    assert rows[0].startswith("id,arm,repeat,verdict,score,target_met")
    assert rows[2].startswith("r0,full,1,passed,1.0,True")
    assert len(rows) == 5
    suites = ElementTree.fromstring((tmp_path / "junit.xml").read_bytes())
    found = {
        suite.get("name"): (suite.get("tests"), suite.get("failures"), suite.get("errors"))
        for suite in suites
    }
    assert found == {"single": ("2", "1", "0"), "full": ("2", "0", "0")}
    failure = suites.find("testsuite/testcase/failure")
    assert failure is not None
    assert failure.get("message") == "the answer is not the target"


def test_the_page_shows_text_as_text(tmp_path: Path) -> None:
    page = render_evaluation(measured(tmp_path, [True, False], [True, True])).decode()
    assert "no &lt;idea&gt; &amp; \\x01" in page
    assert "single 50.0 %, full 100.0 % passed" in page


def test_what_is_not_measured_is_an_error_of_junit(tmp_path: Path) -> None:
    suites = ElementTree.fromstring(
        forms.write_junit(measure(dataset(tmp_path, 1), ARMS, 1, [], "full"))
    )
    assert [error.get("message") for error in suites.iter("error")] == ["it was not run"] * 2


def test_rows_are_the_same_if_they_ask_for_and_expect_the_same() -> None:
    row = Row(1, 1, "r", "say 1", target="1")
    brief = {"brief": ComparingCheck(type="word-count", value=1)}
    others = [
        replace(row, task="say 2"),
        replace(row, inputs={"a": "b"}),
        replace(row, target="2"),
        replace(row, checks=brief),
    ]
    assert digest_row(row) == digest_row(replace(row, id="other", number=7, metadata={"k": 1}))
    assert len({digest_row(one) for one in [row, *others]}) == 5


def test_a_table_that_is_too_wide_has_a_column_for_each_arm(tmp_path: Path) -> None:
    evaluation = measured(tmp_path, [True, False], [True, True])
    wide = forms.write_text(evaluation).splitlines()
    assert wide[0].startswith("arm     passed")
    assert forms.write_text(evaluation, len(max(wide[:3], key=len))).splitlines()[:3] == wide[:3]
    narrow = forms.write_text(evaluation, 60).splitlines()
    assert narrow[:2] == [
        "arm                   single           full",
        "passed                1 of 2         2 of 2",
    ]
