"""Runs as rows: what differs, how each ended, and the effect of each parameter."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon
from aeon.files.jsonl import JsonLines
from aeon.report.compare.effects import effects
from aeon.report.compare.forms import csv_text, format_change, format_figure
from aeon.report.compare.rows import FIGURES, ComparedRun, Comparison, compare_runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    broken = folder / "broken.yaml"
    broken.write_text("calls:\n  plan:\n    - fail: auth\n", encoding="utf-8")
    made = {
        "a": "provider.seed=1",
        "b": "provider.seed=2",
        "c": f"provider.scenario={broken}",
        "d": "ttl.base=2",
    }
    for name, override in made.items():
        with Aeon.from_config(["provider=simulated", override]) as aeon:
            aeon.run("plan a move", directory=folder / name)
    return folder


def copied(folder: Path, to: Path, *left_out: str) -> Path:
    to.mkdir()
    for path in folder.iterdir():
        if path.is_file() and path.name not in left_out:
            (to / path.name).write_bytes(path.read_bytes())
    return to


def test_only_parameters_that_differ_are_columns(runs: Path) -> None:
    comparison = compare_runs([runs / "a", runs / "b"])
    assert comparison.parameters == ("provider.seed",)
    assert [run.parameters["provider.seed"] for run in comparison.runs] == [1, 2]


def test_the_settings_of_another_kind_of_provider_are_no_parameters(
    runs: Path, tmp_path: Path
) -> None:
    for name in ("b", "d"):
        path = copied(runs / name, tmp_path / name) / "result.json"
        result = json.loads(path.read_bytes())
        if name == "d":
            result["configuration"]["provider"] = {
                "kind": "openai",
                "model": "m",
                "timeout_seconds": 1.0,
            }
        path.write_text(json.dumps(result), encoding="utf-8")
    assert compare_runs([tmp_path]).parameters == ("provider.kind", "provider.model", "ttl.base")


def test_a_folder_stands_for_the_runs_under_it_and_no_run_is_there_twice(runs: Path) -> None:
    names = [run.name for run in compare_runs([runs, runs / "b"]).runs]
    assert names == ["a", "b", "c", "d"]


def test_figures_are_those_of_the_result(runs: Path) -> None:
    (run,) = compare_runs([runs / "d"]).runs
    result = json.loads((runs / "d" / "result.json").read_bytes())
    assert run.ended == result["termination_reason"] == "ttl_expired"
    assert run.converged is False
    assert run.figures["completeness"] == result["scores"]["completeness_score"]
    assert run.figures["tokens"] == result["usage"]["total"]["total_tokens"]
    assert run.thresholds == {
        name: result["configuration"]["convergence"][name] for name in run.thresholds
    }


def test_a_replay_is_told_from_a_run(runs: Path, tmp_path: Path) -> None:
    replay = ["provider=simulated", "store.mode=replay", f"store.path={runs / 'a'}"]
    with Aeon.from_config(replay) as aeon:
        aeon.run("plan a move", directory=tmp_path / "replay")
    assert [run.replayed for run in compare_runs([tmp_path, runs / "a"]).runs] == [True, False]


def test_a_failed_run_has_its_error(runs: Path) -> None:
    (run,) = compare_runs([runs / "c"]).runs
    assert run.ended == "failed"
    assert run.error == "AuthenticationFailed: simulated by the scenario: auth"
    assert run.figures["completeness"] is None


def test_a_cause_names_what_was_missed_without_the_scores_beside_it(runs: Path) -> None:
    (run,) = compare_runs([runs / "d"]).runs
    assert run.figures["completeness"] is not None
    assert run.cause.startswith("incomplete; incoherent; inconsistent; ")
    assert "step" in run.cause
    assert "0." not in run.cause


def test_a_run_that_was_cut_off_says_so_with_the_figures_of_its_journal(
    runs: Path, tmp_path: Path
) -> None:
    directory = copied(runs / "a", tmp_path / "cut", "result.json", "history.json", "answer.md")
    (whole,), (run,) = compare_runs([runs / "a"]).runs, compare_runs([directory]).runs
    assert run.ended == "cut off"
    assert run.converged is None
    assert "run_finished" in run.error
    left = {name: value for name, value in whole.figures.items() if name not in ("cost", "seconds")}
    assert {name: run.figures[name] for name in left} == left


def test_a_run_under_way_is_not_called_cut_off(tmp_path: Path) -> None:
    journal = JsonLines(tmp_path / "events.jsonl")
    journal.write(
        {"sequence": 1, "part": 0, "time": "2026-11-22T17:37:47+00:00", "event": "run_started"}
    )
    assert compare_runs([tmp_path]).runs[0].ended == "running"
    journal.close()
    assert compare_runs([tmp_path]).runs[0].ended == "cut off"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"configuration": 3}', "\x00"])
def test_a_result_that_cannot_be_read_is_a_row_that_says_so(tmp_path: Path, text: str) -> None:
    (tmp_path / "result.json").write_text(text, encoding="utf-8")
    (run,) = compare_runs([tmp_path]).runs
    assert run.ended == "unreadable"
    assert run.error.startswith("its files cannot be read")


def test_a_journal_that_cannot_be_read_is_a_row_that_says_so(tmp_path: Path) -> None:
    event = '{"event": "assessed", "sequence": 1, "part": 0, "time": "x"}'
    for text, end in (("3", "cut off"), ("{}", "cut off"), (event, "unreadable")):
        (tmp_path / "events.jsonl").write_text(f"{text}\n", encoding="utf-8")
        assert compare_runs([tmp_path]).runs[0].ended == end


def test_csv_has_exact_values(runs: Path) -> None:
    comparison = compare_runs([runs / "a", runs / "d"])
    first, second = csv.DictReader(csv_text(comparison).splitlines())
    assert (first["run"], second["ended"], first["converged"]) == ("a", "ttl_expired", "true")
    assert float(first["seconds"]) == comparison.runs[0].figures["seconds"]
    assert second["ttl.base"] == "2"


def made(name: str, *, passes: int = 1, **parameters: Any) -> ComparedRun:
    figures = {**dict.fromkeys(FIGURES), "passes": passes, "seconds": 1.0}
    return ComparedRun(
        name=name, directory=None, ended="converged", figures=figures, parameters=parameters
    )


def test_runs_are_grouped_by_value_in_the_order_of_numbers() -> None:
    runs = tuple(
        made(str(n), base=base, model=model)
        for n, (base, model) in enumerate([(10, "x"), (9, "y"), (10, "y")])
    )
    first, second = effects(Comparison(runs, ("base", "model")))
    assert [(text, [run.name for run in of]) for text, of in first.groups] == [
        ("9", ["1"]),
        ("10", ["0", "2"]),
    ]
    assert [text for text, _ in second.groups] == ["x", "y"]


def test_parameters_that_change_together_are_one_effect() -> None:
    runs = tuple(made(str(n), completeness=n, coherence=-n, other=n == 1) for n in range(3))
    found = effects(Comparison(runs, ("completeness", "coherence", "other")))
    assert [effect.keys for effect in found] == [("completeness", "coherence"), ("other",)]


def test_many_numbers_become_ranges_and_many_texts_are_not_drawn() -> None:
    runs = tuple(made(str(n), seed=n, task=f"task {n}", half=n % 2) for n in range(50))
    by_seed = effects(Comparison(runs, ("seed", "half")))[0]
    assert by_seed.groups[0][0] == "0 to 4"
    assert sum(len(of) for _, of in by_seed.groups) == 50
    assert [effect.keys for effect in effects(Comparison(runs, ("task", "half")))] == [("half",)]


def test_a_score_is_not_rounded_up_to_its_threshold() -> None:
    assert format_figure("completeness", 0.9496) == "0.94"
    assert format_figure("tokens", 29045) == "29,045"
    assert format_figure("cost", None) == "-"


def test_a_change_is_told_with_its_share() -> None:
    first = made("a", passes=4)
    assert format_change("passes", first, made("b", passes=5)) == "+1 (+25%)"
    assert format_change("passes", first, replace(first, name="c")) == "same"
    assert format_change("cost", first, replace(first, name="c")) == ""
    assert (
        format_change("cost", first, replace(first, figures={**first.figures, "cost": 1.0})) == ""
    )
