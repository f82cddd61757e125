"""The files of a measurement in its folder: `eval.json`, `eval.html`, `junit.xml`, `rows.csv`."""

from __future__ import annotations

from pathlib import Path

from aeon.evaluation import forms
from aeon.evaluation.models import MeasuredRow, Measurement
from aeon.evaluation.sentences import format_change, format_tokens
from aeon.observability.artefacts import replace_file
from aeon.report.html import render_page
from aeon.report.words import one_line, shorten

EVAL = "eval.json"
PAGE = "eval.html"
JUNIT = "junit.xml"
CSV = "rows.csv"
MOST_SHOWN = 300
_LONGEST_TEXT = 4_000


def write_files(evaluation: Measurement, folder: Path) -> Path:
    """Write the files and return the path of the page. Raises ArtefactError."""
    replace_file(folder / EVAL, forms.write_json_of(evaluation))
    replace_file(folder / JUNIT, forms.write_junit(evaluation))
    replace_file(folder / CSV, forms.write_csv_of(evaluation))
    replace_file(folder / PAGE, render_evaluation(evaluation))
    return folder / PAGE


def render_evaluation(evaluation: Measurement) -> bytes:
    """Render the page: the table of arms, the arms against each other, and at most `MOST_SHOWN`
    rows, first those in which arms differ."""
    ranked = sorted(evaluation.rows, key=lambda row: _rank(row, evaluation))
    simulated = [arm.simulated for arm in evaluation.arms]
    return render_page(
        "eval",
        {},
        evaluation=evaluation,
        columns=forms.list_columns(evaluation),
        headline=_write_headline(evaluation),
        sentences=forms.list_sentences(evaluation),
        rows=[(row, _describe_row(row, evaluation)) for row in ranked[:MOST_SHOWN]],
        is_simulated=any(simulated),
        change=format_change,
        tokens=format_tokens,
        one_line=one_line,
        shorten=lambda text: shorten(text, _LONGEST_TEXT),
    )


def _write_headline(evaluation: Measurement) -> str:
    shares = [f"{arm.name} {100 * arm.pass_rate:.1f} %" for arm in evaluation.arms]
    return f"{evaluation.dataset}: {', '.join(shares)} passed"


def _describe_row(row: MeasuredRow, evaluation: Measurement) -> str:
    """Describe the arms' results on a row in a word: the judged arm against the others."""
    counts = [row.count(arm.name) for arm in evaluation.arms]
    if any(row.count(arm.name, "not_measured") for arm in evaluation.arms):
        return "not measured"
    if len(set(counts)) == 1:
        return {evaluation.repeat: "all passed", 0: "none passed"}.get(counts[0], "as good")
    judged = row.count(evaluation.judged)
    others = [row.count(arm.name) for arm in evaluation.arms if arm.name != evaluation.judged]
    if judged > max(others):
        return "improved"
    return "degraded" if judged < max(others) else "mixed"


_ORDER = ("not measured", "degraded", "improved", "mixed", "as good", "none passed", "all passed")


def _rank(row: MeasuredRow, evaluation: Measurement) -> int:
    return _ORDER.index(_describe_row(row, evaluation))
