"""The sentences of a comparison, each with when it is true."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from aeon.cli.terminal.side_by_side import draw_comparison
from aeon.report.compare import sentences
from aeon.report.compare.divergence import Divergence
from aeon.report.compare.effects import effects
from aeon.report.compare.forms import csv_text
from aeon.report.compare.page import render_comparison
from aeon.report.compare.rows import FIGURES, ComparedRun, Comparison


def run(name: str, end: str = "converged", **changes: Any) -> ComparedRun:
    """A run with a result, its figures those of `figures` and else unknown."""
    mode = changes.pop("mode", "adaptive")
    parameters = {"mode.kind": mode, **changes.pop("parameters", {})}
    figures = {**dict.fromkeys(FIGURES), "seconds": 1.0, **changes.pop("figures", {})}
    given: dict[str, Any] = {
        "has_result": True,
        "converged": None if mode == "core" else end == "converged",
        **changes,
    }
    return ComparedRun(
        name=name, directory=None, ended=end, figures=figures, parameters=parameters, **given
    )


def pending(name: str, end: str) -> ComparedRun:
    return ComparedRun(name=name, directory=None, ended=end, error="There is no result.json.")


def core(name: str, end: str = "completed", **changes: Any) -> ComparedRun:
    return run(name, end, mode="core", **changes)


def taking(name: str, **figures: float | None) -> ComparedRun:
    return run(name, figures=figures)


def compared(*runs: ComparedRun, keys: tuple[str, ...] = ()) -> Comparison:
    return Comparison(runs, keys)


@pytest.mark.parametrize(
    ("runs", "sentence"),
    [
        ((run("a"), run("b")), "2 of 2 runs converged"),
        ((run("a"), run("b", "stalled"), run("c", "failed")), "1 of 3 runs converged"),
        (
            (core("a"), core("b", "step_failed")),
            "1 of 2 runs in a mode that judges nothing completed",
        ),
        (
            (run("a"), run("b", "stalled"), core("c")),
            "1 of 2 runs converged; 1 of 1 run in a mode that judges nothing completed",
        ),
        (
            (run("a"), pending("b", "running"), pending("c", "running"), pending("d", "cut off")),
            "1 of 1 run converged; 3 runs without a result (2 running, 1 cut off)",
        ),
        (
            (pending("a", "unreadable"), pending("b", "not started")),
            "2 runs without a result (1 unreadable, 1 not started)",
        ),
    ],
)
def test_only_runs_that_could_converge_are_counted_among_those_that_did(
    runs: tuple[ComparedRun, ...], sentence: str
) -> None:
    assert sentences.describe_ends(runs) == sentence


@pytest.mark.parametrize(
    ("runs", "sentence"),
    [
        ((run("a"), run("b")), ""),
        ((run("a", "stalled", without=1), run("b")), ""),
        (
            (run("a", without=2), run("b")),
            "1 run with a good end did without a tool, a server or a review.",
        ),
        (
            (run("a", without=2), core("b", without=1)),
            "2 runs with a good end did without a tool, a server or a review.",
        ),
    ],
)
def test_fallbacks_are_told_of_good_ends_alone(
    runs: tuple[ComparedRun, ...], sentence: str
) -> None:
    assert sentences.describe_fallbacks(runs) == sentence


@pytest.mark.parametrize(
    ("comparison", "sentence"),
    [
        (compared(run("a"), run("b"), keys=("ttl.base",)), ""),
        (compared(run("a"), run("b")), "No setting differs between these runs."),
        (
            compared(run("a"), run("b"), pending("c", "unreadable")),
            "No setting differs between the 2 runs whose settings are known.",
        ),
        (
            compared(run("a"), pending("b", "unreadable")),
            "The settings of these runs are not known.",
        ),
    ],
)
def test_that_no_setting_differs_is_said_only_of_what_is_known(
    comparison: Comparison, sentence: str
) -> None:
    assert sentences.describe_parameters(comparison) == sentence


@pytest.mark.parametrize(
    ("runs", "sentence"),
    [
        ((taking("a", tokens=1),), ""),
        (
            (taking("a", tokens=10), taking("b", tokens=20)),
            "Of those that converged: fewest tokens run a (10).",
        ),
        ((taking("a", tokens=10), taking("b", tokens=10)), ""),
        (
            (taking("a", tokens=10), taking("b", tokens=20), taking("c", tokens=10)),
            "Of those that converged: fewest tokens runs a, c (10).",
        ),
        ((taking("a", cost=0.1), taking("b", cost=None)), ""),
        (
            (taking("a", cost=0.1), taking("b", cost=0.2)),
            "Of those that converged: cheapest run a (0.1000).",
        ),
        (
            (taking("a", seconds=2.0), taking("b", seconds=4.0)),
            "Of those that converged: fastest run a (2.00 s).",
        ),
        ((taking("a", seconds=2.0, saved=1), taking("b", seconds=4.0)), ""),
        ((taking("a", tokens=10), run("b", "stalled", figures={"tokens": 5})), ""),
        (
            (core("a", figures={"tokens": 5}), core("b", figures={"tokens": 9})),
            "Of those that completed: fewest tokens run a (5).",
        ),
    ],
)
def test_the_best_are_named_where_all_are_known_and_ties_are_named_together(
    runs: tuple[ComparedRun, ...], sentence: str
) -> None:
    assert sentences.describe_best(runs) == sentence


@pytest.mark.parametrize(
    ("runs", "figures", "sentence"),
    [
        ((taking("a", cost=0.1), taking("b", cost=0.1)), ("cost",), "The same in every run: cost."),
        ((taking("a", cost=0.1), taking("b", cost=0.2)), ("cost",), ""),
        ((taking("a"), taking("b")), ("cost",), "Not known of any run: cost."),
        ((taking("a", cost=0.1), taking("b")), ("cost",), ""),
        (
            (taking("a", passes=2), taking("b", passes=2)),
            ("passes", "cost"),
            "The same in every run: passes. Not known of any run: cost.",
        ),
        ((taking("a", passes=2), pending("b", "cut off")), ("passes",), ""),
    ],
)
def test_what_is_not_known_is_never_the_same(
    runs: tuple[ComparedRun, ...], figures: tuple[str, ...], sentence: str
) -> None:
    assert sentences.describe_same(runs, figures) == sentence


@pytest.mark.parametrize(("saved", "is_said"), [(None, False), (0, False), (3, True)])
def test_that_seconds_say_little_is_said_where_answers_were_reused(
    saved: int | None, is_said: bool
) -> None:
    assert bool(sentences.describe_saved((taking("a", saved=saved), taking("b")))) is is_said


UNJUDGED = {"completeness": None, "coherence": None, "consistency": None}


def swept(*rows: tuple[Any, Mapping[str, float | None]], ends: tuple[str, ...] = ()) -> Comparison:
    runs = tuple(
        run(
            str(number),
            ends[number] if ends else "converged",
            figures={"completeness": 0.9, "coherence": 0.9, "consistency": 0.9, **figures},
            parameters={"key": value},
        )
        for number, (value, figures) in enumerate(rows)
    )
    return Comparison(runs, ("key",))


@pytest.mark.parametrize(
    ("comparison", "sentence"),
    [
        (
            swept((1, {"completeness": 0.5}), (1, {"completeness": 0.7}), (2, {})),
            "Moves completeness most, from 0.60 to 0.90 (means).",
        ),
        (
            swept((1, {}), (1, {}), (2, {}), ends=("converged", "converged", "stalled")),
            "Moves the share that converged most, from 0% to 100%.",
        ),
        (
            swept((1, {"tokens": 10}), (1, {"tokens": 10}), (2, {"tokens": 30})),
            "Moves no score by 0.02; moves tokens from 10 to 30 (means).",
        ),
        (
            swept((1, {**UNJUDGED, "tokens": 10}), (1, {**UNJUDGED}), (2, {"tokens": 30})),
            "Scores were not measured with several of its values; moves tokens from 10 to 30 "
            "(means).",
        ),
        (
            swept(
                (1, {**UNJUDGED, "coherence": 0.9, "tokens": 10}),
                (1, UNJUDGED),
                (2, {"tokens": 30}),
            ),
            "Moves coherence by less than 0.02; moves tokens from 10 to 30 (means).",
        ),
        (swept((1, {"completeness": 0.89}), (1, {"completeness": 0.89}), (2, {})), ""),
        (swept((1, {"completeness": 0.5}), (2, {}), (3, {})), ""),
    ],
)
def test_what_a_parameter_moves_is_the_largest_difference_of_means(
    comparison: Comparison, sentence: str
) -> None:
    (effect,) = effects(comparison)
    assert sentences.describe_effect(effect) == sentence


@pytest.mark.parametrize(
    ("passed", "sentence"),
    [
        (
            ("1 of 4", "3 of 4", "4 of 4"),
            "Moves the share of checks that passed most, from 50% to 100%.",
        ),
        (
            ("3 of 4", "3 of 4", "3 of 4"),
            "Moves the share of checks that passed by less than 2%; moves tokens from 10 to 30 "
            "(means).",
        ),
        (
            ("1 of 4", "3 of 4", ""),
            "Scores were not measured with several of its values; moves tokens from 10 to 30 "
            "(means).",
        ),
    ],
)
def test_checks_count_where_no_score_was_measured(
    passed: tuple[str, str, str], sentence: str
) -> None:
    given = zip(passed, (1, 1, 2), (10, 10, 30), strict=True)
    runs = tuple(
        core(str(place), figures={"tokens": tokens}, parameters={"key": value}, checks=checks)
        for place, (checks, value, tokens) in enumerate(given)
    )
    (effect,) = effects(Comparison(runs, ("key",)))
    assert sentences.describe_effect(effect) == sentence


def test_parameters_are_ordered_by_their_effect() -> None:
    runs = tuple(
        run(
            str(number),
            figures={"completeness": 0.5 + 0.3 * large + 0.1 * small, "tokens": 10},
            parameters={"small": small, "large": large},
        )
        for number, (small, large) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)])
    )
    found = effects(Comparison(runs, ("small", "large")))
    assert [effect.keys for effect in found] == [("large",), ("small",)]


@pytest.mark.parametrize(
    ("runs", "sentence"),
    [
        (
            tuple(run(str(n), parameters={"key": f"text {n}"}) for n in range(20)),
            "Not drawn, for they have too many values: key.",
        ),
        (
            (
                *(run(str(n), parameters={"key": 1}) for n in range(3)),
                run("x", "failed", figures={"seconds": None}, parameters={"key": 2}),
            ),
            "Not drawn, for they do not differ among the runs that began: key.",
        ),
        ((run("a", parameters={"key": 1}), run("b", parameters={"key": 2})), ""),
        (tuple(run(str(n), parameters={"key": n}) for n in range(3)), ""),
    ],
)
def test_a_parameter_that_is_not_drawn_has_its_reason(
    runs: tuple[ComparedRun, ...], sentence: str
) -> None:
    comparison = Comparison(runs, ("key",))
    drawn = effects(comparison) if len(runs) > 2 else []
    assert sentences.describe_undrawn(comparison, drawn) == sentence


FULL = {"completeness": 0.9, "coherence": 0.9, "consistency": 0.9}


@pytest.mark.parametrize(
    ("first", "second", "keys", "sentence"),
    [
        (
            run("a", figures={**FULL, "tokens": 100}, parameters={"key": 1}),
            run("b", figures={**FULL, "tokens": 80, "coherence": 0.95}, parameters={"key": 2}),
            ("key",),
            "They differ in key: 1 and 2. Both converged. "
            "Run b took 80 tokens (20% fewer), run a 100. "
            "Run b has the higher coherence: 0.95, not 0.90.",
        ),
        (
            run("a", figures={**FULL, "tokens": 100}),
            run("b", "stalled", figures={**FULL, "tokens": 100, "completeness": 0.89}),
            (),
            "No setting differs between these runs. Run a converged, run b ended stalled. "
            "Both took 100 tokens. No score differs by 0.02.",
        ),
        (
            core("a", figures={"tokens": 1000}, parameters={"one": 1}),
            core("b", figures={"tokens": 1001}, parameters={"two": 1}),
            ("one", "two"),
            "They differ in 2 settings: one, two. Both completed. "
            "Run a took 1,000 tokens, run b 1,001.",
        ),
        (
            run("a", figures=FULL),
            run("b", figures=FULL, parameters={"key": "x"}),
            ("key",),
            "They differ in key: not set and x. Both converged. Their scores are the same.",
        ),
        (
            run("a", figures={"tokens": 5}),
            pending("b", "cut off"),
            (),
            "The settings of these runs are not known. Run a converged, run b ended cut off.",
        ),
        (
            core("a", figures={"tokens": 5}, checks="2 of 3"),
            core("b", figures={"tokens": 5}, checks="3 of 3"),
            (),
            "No setting differs between these runs. Both completed. "
            "Run a passed 2 of 3 checks, run b 3 of 3. Both took 5 tokens.",
        ),
        (
            run("a", figures=FULL, checks="2 of 2"),
            run("b", figures=FULL, checks="2 of 2"),
            (),
            "No setting differs between these runs. Both converged. "
            "Both passed 2 of 2 checks. Their scores are the same.",
        ),
        (
            run("a", checks="2 of 2"),
            run("b"),
            (),
            "No setting differs between these runs. Both converged. "
            "Run a passed 2 of 2 checks, run b had none.",
        ),
        (
            run("a", "failed"),
            run("b", "failed", figures={"completeness": 0.9}),
            (),
            "No setting differs between these runs. Both failed.",
        ),
    ],
)
def test_two_runs_are_told_in_sentences_of_what_is_known_of_both(
    first: ComparedRun, second: ComparedRun, keys: tuple[str, ...], sentence: str
) -> None:
    assert sentences.describe_two(Comparison((first, second), keys)) == sentence


def divergence(number: int | None, counts: tuple[int, int], **asked: bool) -> Divergence:
    return Divergence(
        number=number, counts=counts, places=("x", "y"), fields=(), asked=asked, differences={}
    )


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (
            divergence(None, (0, 0)),
            "Where they diverge is not known: neither has a journal of its events.",
        ),
        (
            divergence(1, (0, 9)),
            "Where they diverge is not known: the first has no journal of its events.",
        ),
        (
            divergence(1, (9, 0)),
            "Where they diverge is not known: the second has no journal of its events.",
        ),
        (
            divergence(None, (9, 9), task=True),
            "They do not diverge: all 9 events are the same, but for times.",
        ),
        (divergence(3, (9, 8)), "They diverge at event 3 (of 9 and 8)."),
        (
            divergence(3, (9, 8), task=True, prompts=True),
            "They diverge at event 3 (of 9 and 8). Both were asked the same.",
        ),
        (
            divergence(3, (9, 8), task=True, prompts=False),
            "They diverge at event 3 (of 9 and 8). They were asked differently: prompts.",
        ),
    ],
)
def test_where_two_runs_part_is_told_as_far_as_it_is_known(
    found: Divergence, sentence: str
) -> None:
    assert sentences.describe_divergence(found) == sentence


def test_an_end_has_one_name_in_files_tables_and_pages() -> None:
    comparison = Comparison((run("0", "ttl_expired"), run("1", "ttl_expired")), ())
    page = render_comparison(comparison, Path()).decode()
    shown = draw_comparison(comparison), sentences.describe_two(comparison), csv_text(comparison)
    for text in (*shown, page):
        assert "ttl_expired" in text
        assert "ttl expired" not in text
