"""`compare.html`: runs side by side in one file that opens without network."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import fmean
from urllib.parse import quote

from markupsafe import Markup

from aeon.domain.values import JsonObject
from aeon.files.text import read_linked_file
from aeon.observability.artefacts import ANSWER, as_artefact_error, replace_file
from aeon.report.compare import sentences
from aeon.report.compare.divergence import Divergence, find_divergence
from aeon.report.compare.drawings import draw_bar, draw_scatter, draw_strip
from aeon.report.compare.effects import collect_values, effects
from aeon.report.compare.forms import format_change, format_figure, write_csv
from aeon.report.compare.rows import FIGURES, SCORES, ComparedRun, Comparison, show
from aeon.report.html import render_markdown, render_page
from aeon.report.words import relative_to_here

_SHOWN = tuple(name for name in FIGURES if name not in ("calls", "saved"))
_MOST_ANSWERS = 8
_LONGEST_ANSWER = 8_000


def write_page_of_jobs(
    comparison: Comparison,
    directory: Path,
    say: Callable[[str], None],
    warn: Callable[[str], None],
) -> None:
    """Write the page of a multirun's directory and report its path; a failure is only a warning."""
    try:
        page = write_comparison(comparison, directory, find_divergence(comparison))
        say(f"Side by side: {relative_to_here(page)}")
    except Exception as error:
        warn(
            f"compare.html: {type(error).__name__}: {error}; `aeon compare {directory}` "
            "tries it again"
        )


def write_comparison(
    comparison: Comparison, folder: Path, divergence: Divergence | None = None
) -> Path:
    """Write the page and `compare.csv` into a folder, which is created, and return the page's path.
    Raises ArtefactError."""
    with as_artefact_error(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write_csv(comparison, folder / "compare.csv")
    replace_file(folder / "compare.html", render_comparison(comparison, folder, divergence))
    return folder / "compare.html"


def render_comparison(
    comparison: Comparison, place: Path, divergence: Divergence | None = None
) -> bytes:
    """Render the page for a folder `place`, to which its links are relative; `divergence` is for
    two runs."""
    runs = comparison.runs
    tasks = sorted({show(run.parameters.get("task")) for run in runs} - {""})
    return render_page(
        "compare",
        {},
        runs=runs,
        task=tasks[0] if len(tasks) == 1 else "",
        parameters=comparison.parameters,
        figures=_SHOWN,
        divergence=divergence,
        links={run.name: _link(run, place) for run in runs},
        answers=_answers(runs),
        scatter=draw_scatter(runs) if len(runs) > 2 else Markup(),
        show=show,
        figure=format_figure,
        change=format_change,
        **_states(runs),
        **_sentences(comparison, divergence),
        **_draw_effects(comparison),
    )


def _states(runs: Sequence[ComparedRun]) -> JsonObject:
    simulated = [run.synthetic for run in runs if run.directory]
    return {
        "failed": any(run.error for run in runs),
        "any_simulated": any(simulated),
        "all_simulated": bool(simulated) and all(simulated),
        "any_cause": any(run.cause for run in runs),
        "any_checks": any(run.checks for run in runs),
    }


def _sentences(comparison: Comparison, divergence: Divergence | None) -> JsonObject:
    """Return the sentences of the page."""
    runs = comparison.runs
    return {
        "headline": sentences.describe_ends(runs),
        "two": sentences.describe_two(comparison) if len(runs) == 2 else "",
        "best": sentences.describe_best(runs),
        "notes": [
            sentences.describe_fallbacks(runs),
            sentences.describe_saved(runs),
            sentences.describe_parameters(comparison) if len(runs) > 2 else "",
        ],
        "thresholds": sentences.name_thresholds(runs),
        "where_they_diverge": sentences.describe_divergence(divergence) if divergence else "",
    }


def _draw_effects(comparison: Comparison) -> JsonObject:
    """Draw the effect of each parameter, and the bars of the table."""
    runs = comparison.runs
    drawn = effects(comparison) if len(runs) > 2 else []
    varying = [name for name in ("converged", *_SHOWN) if len(set(collect_values(name, runs))) > 1]
    top = {name: _top(runs, name) for name in FIGURES}
    rows = [
        (
            effect.keys,
            sentences.describe_effect(effect),
            [_effect_row(*group, varying, top) for group in effect.groups],
        )
        for effect in drawn
    ]
    return {
        "effects": rows,
        "undrawn": sentences.describe_undrawn(comparison, drawn),
        "same": sentences.describe_same(runs, _SHOWN) if drawn else "",
        "varying": varying,
        "bar": lambda run, name: draw_bar(run.figures[name], top[name], run.thresholds.get(name)),
    }


def _answers(runs: Sequence[ComparedRun]) -> list[tuple[ComparedRun, Markup]]:
    """Return the first runs' answers, to be read side by side."""
    found: list[tuple[ComparedRun, Markup]] = []
    for run in runs:
        text = _read_answer(run) if len(found) < _MOST_ANSWERS else ""
        if text:
            cut = text if len(text) <= _LONGEST_ANSWER else f"{text[:_LONGEST_ANSWER]}\n\n…"
            found.append((run, render_markdown(cut)))
    return found


def _read_answer(run: ComparedRun) -> str:
    if run.directory is None or not run.has_result:
        return ""
    path = run.directory / ANSWER
    with suppress(OSError, UnicodeDecodeError):
        return read_linked_file(path).decode()[: _LONGEST_ANSWER + 1].strip()
    return ""


def _link(run: ComparedRun, place: Path) -> str:
    """Return the link from the page to the run's report, or else to its folder."""
    if run.directory is None:
        return ""
    report = run.directory / "report.html"
    return quote(
        Path(
            os.path.relpath(report if report.is_file() else run.directory, place.absolute())
        ).as_posix()
    )


def _top(runs: Iterable[ComparedRun], name: str) -> float:
    return (
        1.0 if name in SCORES else max((run.figures[name] or 0 for run in runs), default=0) or 1.0
    )


def _effect_row(
    value: str, runs: Sequence[ComparedRun], varying: Sequence[str], top: dict[str, float]
) -> tuple[str, int, list[tuple[str, Markup]]]:
    """Return a parameter's value, its number of runs, and for each figure the mean as text and the
    runs drawn."""
    cells = []
    for name in varying:
        known = collect_values(name, runs)
        mean = fmean(known) if known else None
        if name == "converged":
            cells.append((f"{sum(known):.0f} of {len(known)}", draw_bar(mean, 1.0)))
        else:
            cells.append((format_figure(name, mean, is_mean=True), draw_strip(known, top[name])))
    return value, len(runs), cells
