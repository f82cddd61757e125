"""The page of several runs, without a browser."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from aeon import Aeon
from aeon.report.compare.page import render_comparison, write_page_of_jobs
from aeon.report.compare.rows import compare_runs


@pytest.fixture(scope="module")
def fifty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fifty runs of which only the results are left: histories and journals are not needed."""
    folder = tmp_path_factory.mktemp("fifty")
    with Aeon.from_config(["provider=simulated"]) as aeon:
        aeon.run("plan a move", directory=folder / "0")
    result = json.loads((folder / "0" / "result.json").read_bytes())
    for number in range(1, 50):
        result["configuration"]["provider"]["seed"] = number
        result["configuration"]["convergence"]["completeness"] = 0.8 if number % 2 else 0.95
        result["timings"]["total_seconds"] = float(number)
        (folder / str(number)).mkdir()
        (folder / str(number) / "result.json").write_text(json.dumps(result), encoding="utf-8")
    return folder


def test_fifty_runs_take_little_space(fifty: Path) -> None:
    comparison = compare_runs([fifty])
    page = render_comparison(comparison, fifty)
    assert len(comparison.runs) == 50
    assert comparison.parameters == ("provider.seed", "convergence.completeness")
    assert len(page) < 300_000


def test_each_parameter_has_its_mean_by_value(fifty: Path) -> None:
    page = render_comparison(compare_runs([fifty]), fifty).decode()
    table = page.partition('aria-label="Effect of convergence.completeness"')[2].partition(
        "</table>"
    )[0]
    assert '<th scope="row" dir="auto">0.8</th><td class="number">25</td>' in table
    assert ">25.0<svg" in table.replace("</span>", "")
    assert "fastest" in page


def test_no_run_is_called_fastest_where_some_were_answered_by_others(fifty: Path) -> None:
    comparison = compare_runs([fifty])
    shared = [replace(run, figures={**run.figures, "saved": 3}) for run in comparison.runs]
    page = render_comparison(replace(comparison, runs=tuple(shared)), fifty).decode()
    assert "fastest" not in page
    assert "their seconds say little" in page


def test_links_lead_from_the_page_to_the_runs(fifty: Path, tmp_path: Path) -> None:
    assert 'href="0/report.html"' in render_comparison(compare_runs([fifty]), fifty).decode()
    page = render_comparison(compare_runs([fifty]), fifty / "1").decode()
    assert 'href="../0/report.html"' in page
    assert 'href="../2"' in page


@pytest.mark.slow
def test_what_goes_wrong_with_the_page_of_a_multirun_is_a_warning(
    fifty: Path, tmp_path: Path
) -> None:
    said: list[str] = []
    (tmp_path / "compare.html").mkdir()
    comparison = compare_runs([fifty])
    write_page_of_jobs(
        comparison, tmp_path, said.append, lambda text: said.append(f"Warning: {text}")
    )
    (warning,) = said
    assert warning.startswith("Warning: compare.html: ArtefactError:")
