"""The course of a run that has not ended, as a part of a page: its spending, its scores so far, the
plan of its latest pass with the state of each step, and its answer so far."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from markupsafe import Markup

from aeon.domain.assessment import SCORE_CODES
from aeon.files.secret_forms import mask_text
from aeon.report.ending import describe_samples, describe_spent, is_replay
from aeon.report.html import render_part
from aeon.report.items import list_items
from aeon.report.page.graph import sign_of
from aeon.report.page.passes import PassView, view_passes
from aeon.report.partial import is_under_way
from aeon.report.record import load_record
from aeon.report.scores import read_scores
from aeon.report.words import count_noun, format_took, shorten

_MOST_ASSESSED = 20
_LONGEST_ANSWER = 20_000


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """The judgement of a pass: its scores as texts, and what it still lacks."""

    number: int
    scores: tuple[str, ...]
    lacking: str


def draw_course(directory: Path) -> Markup:
    """Render the course of a run from its directory. Raises ArtefactError where it cannot be
    read."""
    record = load_record(directory)
    result = record.result
    # Only the whole page has the calls that links lead to.
    items = [replace(item, key="") for item in list_items(record)]
    with record.hold_requests():
        views = view_passes(result.history, items)
        part = render_part(
            "pass",
            one=replace(views[-1], links={}, assessed_by=None),
            is_under_way=is_under_way(result),
            is_replay=is_replay(result),
            sign_of=sign_of,
            shorten=shorten,
            count_noun=count_noun,
            describe_samples=describe_samples,
            took=format_took,
        )
    course = render_part(
        "course",
        spent=describe_spent(result),
        names=tuple(SCORE_CODES),
        rows=[row for view in views if (row := _describe_scores(view))][-_MOST_ASSESSED:],
        latest=part,
        answer=shorten(result.answer, _LONGEST_ANSWER),
    )
    return Markup(mask_text(course))


def _describe_scores(view: PassView) -> ScoreRow | None:
    said = view.assessment
    if said is None or not said.evaluated:
        return None
    given = read_scores(said)
    scores = tuple(f"{given[name]:.2f}" if name in given else "not given" for name in SCORE_CODES)
    lacking = ", ".join(said.reason_codes) if not said.converged else "nothing: converged"
    return ScoreRow(view.number, scores, lacking)
