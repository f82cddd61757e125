"""`compare.html`: runs beside each other as one file that opens without network."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean
from urllib.parse import quote

from markupsafe import Markup

from aeon.observability.artefacts import as_artefact_error, replace_file
from aeon.report.compare.forms import csv_text, format_change, format_figure
from aeon.report.compare.parting import Parting, find_parting
from aeon.report.compare.rows import FIGURES, SCORES, Comparison, Run, compare_runs, effects, show
from aeon.report.html import render_page
from aeon.report.words import relative_to_here

_SHOWN = tuple(name for name in FIGURES if name not in ("calls", "saved"))
_LEAST = {
    "cost": "cheapest",
    "tokens": "fewest tokens",
    "passes": "fewest passes",
    "seconds": "fastest",
}


def compare_jobs(directory: Path, say: Callable[[str], None], warn: Callable[[str], None]) -> None:
    """Write the page of a multirun's directory and say where it is; what goes wrong with it is a warning."""
    try:
        comparison = compare_runs([directory])
        page = write_comparison(comparison, directory, find_parting(comparison))
        say(f"Side by side: {relative_to_here(page)}")
    except Exception as error:
        warn(
            f"compare.html: {type(error).__name__}: {error}; `aeon compare {directory}` tries it again"
        )


def write_comparison(comparison: Comparison, folder: Path, parting: Parting | None = None) -> Path:
    """Write the page and `compare.csv` into a folder, which is made; the page's path. Raises ArtefactError."""
    with as_artefact_error(folder):
        folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / "compare.csv", csv_text(comparison).encode("utf-8", "backslashreplace"))
    replace_file(folder / "compare.html", render_comparison(comparison, folder, parting))
    return folder / "compare.html"


def render_comparison(comparison: Comparison, place: Path, parting: Parting | None = None) -> bytes:
    """The page for a folder `place`, to which its links are relative; `parting` is for two runs."""
    runs, simulated = comparison.runs, [run.synthetic for run in comparison.runs if run.directory]
    drawn = effects(comparison) if len(runs) > 2 else []
    varying = [
        name
        for name in ("converged", *_SHOWN)
        if len({_figure(run, name) for run in runs} - {None}) > 1
    ]
    top = {name: _top(runs, name) for name in FIGURES}
    tasks = sorted({show(run.parameters.get("task")) for run in runs} - {""})
    shown = {key for effect in drawn for key in effect.keys}
    return render_page(
        "compare",
        {},
        runs=runs,
        task=tasks[0] if len(tasks) == 1 else "",
        parameters=comparison.parameters,
        figures=_SHOWN,
        failed=any(run.error for run in runs),
        any_simulated=any(simulated),
        all_simulated=all(simulated),
        parting=parting,
        saved=any(run.figures["saved"] for run in runs),
        links={run.name: _link(run, place) for run in runs},
        best=_best(runs),
        converged=sum(run.converged is True for run in runs),
        effects=[
            (effect.keys, [_effect_row(*group, varying, top) for group in effect.groups])
            for effect in drawn
        ],
        undrawn=[key for key in comparison.parameters if key not in shown] if len(runs) > 2 else [],
        varying=varying,
        show=show,
        figure=format_figure,
        change=format_change,
        bar=lambda run, name: _bar(run.figures[name], top[name], run.thresholds.get(name)),
    )


def _link(run: Run, place: Path) -> str:
    """The run's report, or else its folder, from where the page stands."""
    if run.directory is None:
        return ""
    report = run.directory / "report.html"
    return quote(
        Path(
            os.path.relpath(report if report.is_file() else run.directory, place.absolute())
        ).as_posix()
    )


def _figure(run: Run, name: str) -> float | None:
    """A figure of a run that came to its end; of the others whether they converged is all that counts."""
    return run.converged if name == "converged" else None if run.error else run.figures[name]


def _top(runs: Iterable[Run], name: str) -> float:
    return (
        1.0 if name in SCORES else max((run.figures[name] or 0 for run in runs), default=0) or 1.0
    )


def _best(runs: Sequence[Run]) -> list[tuple[str, str, str]]:
    """Which of the runs that converged took least, where it is one alone: in words, the run, its value."""
    found = []
    for name, title in _LEAST.items():
        known = sorted(
            (value, run.name)
            for run in runs
            if run.converged and (value := run.figures[name]) is not None
        )
        is_fair = name != "seconds" or not any(run.figures["saved"] for run in runs)
        if is_fair and len(known) > 1 and known[0][0] < known[1][0]:
            found.append(
                (title, known[0][1], format_figure(name, known[0][0]) + " s" * (name == "seconds"))
            )
    return found


def _effect_row(
    value: str, runs: Sequence[Run], varying: Sequence[str], top: dict[str, float]
) -> tuple[str, int, list[tuple[str, Markup]]]:
    """A parameter's value, how many runs have it, and for each figure the mean as text and the runs drawn."""
    cells = []
    for name in varying:
        known = [float(given) for run in runs if (given := _figure(run, name)) is not None]
        mean = fmean(known) if known else None
        if name == "converged":
            cells.append((f"{sum(known):.0f} of {len(known)}", _bar(mean, 1.0)))
        else:
            cells.append((format_figure(name, mean, is_mean=True), _strip(known, top[name])))
    return value, len(runs), cells


def _svg(kind: str, height: int, shapes: Iterable[str]) -> Markup:
    frame = (
        f'class="{kind}" viewBox="0 0 100 {height}" preserveAspectRatio="none" aria-hidden="true"'
    )
    return Markup(f"<svg {frame}>{''.join(shapes)}</svg>")


def _bar(value: float | None, top: float, threshold: float | None = None) -> Markup:
    """A figure as a bar, with a mark at its threshold."""
    if value is None:
        return Markup()
    kind = "short" if threshold is not None and value < threshold else "full"
    shapes = ['<rect class="track" width="100" height="4"/>']
    shapes.append(f'<rect class="{kind}" width="{_across(value, top)}" height="4"/>')
    if threshold is not None:
        shapes.append(
            f'<rect class="threshold" x="{_across(threshold, top) - 1}" width="2" height="4"/>'
        )
    return _svg("bar", 4, shapes)


def _strip(values: Sequence[float], top: float) -> Markup:
    """Each run as a thin mark, and their mean as a bold one, between 0 and the most of all runs."""
    if not values:
        return Markup()
    marks = [
        f'<rect class="run" x="{_across(value, top) - 0.75}" y="4" width="1.5" height="10"/>'
        for value in values
    ]
    mean = f'<rect class="mean" x="{_across(fmean(values), top) - 1}" width="2" height="18"/>'
    return _svg("strip", 18, ['<rect class="track" y="8" width="100" height="2"/>', *marks, mean])


def _across(value: float, top: float) -> float:
    return round(100 * min(1.0, max(0.0, value / top)), 2)
