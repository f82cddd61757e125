"""The sentences of the page's tables and lists, each with the run in which it stands and one in which it does not."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from aeon.domain.history import Advisory
from aeon.report.diagnosis.finding import Evidence
from aeon.report.page.build import draw_report
from tests.report.diagnosis.builders import a_call, a_pass, a_run, an_issue, assessed

LOW, HIGH = assessed(0.7), assessed(0.8)
LEFT = Advisory(kind="manual_intervention", message="Settle it.", pass_number=1)
CITED, UNCITED = assessed(0.7, criteria={"cited": True}), assessed(0.7, criteria={"cited": False})
CASES: dict[str, tuple[Callable[[], Evidence], Callable[[], Evidence]]] = {
    "No pass was judged.": (lambda: a_run(), lambda: a_run(a_pass(1, LOW))),
    "The reviews found none.": (
        lambda: a_run(),
        lambda: a_run(a_pass(1, LOW, issues=(an_issue(),))),
    ),
    "There is none.": (lambda: a_run(answer=" "), lambda: a_run(answer="A")),
    "No advisories.": (lambda: a_run(), lambda: a_run(advisories=(LEFT,))),
    "There is no journal of this run": (
        lambda: a_run(),
        lambda: a_run(items=(a_call("step", 1, begins=1),), events=()),
    ),
    "no score changed by 0.02 or more": (
        lambda: a_run(a_pass(1, LOW), a_pass(2, assessed(0.71))),
        lambda: a_run(a_pass(1, LOW), a_pass(2, HIGH)),
    ),
    "Without gain over the pass before: pass 2.": (
        lambda: a_run(a_pass(1, LOW), a_pass(2, LOW)),
        lambda: a_run(a_pass(1, LOW), a_pass(2, HIGH)),
    ),
    "completeness fell from 0.80 to 0.70 in pass 2": (
        lambda: a_run(a_pass(1, HIGH), a_pass(2, LOW)),
        lambda: a_run(a_pass(1, LOW), a_pass(2, HIGH)),
    ),
    "The criterion cited was met in pass 1, and not in pass 2": (
        lambda: a_run(a_pass(1, CITED), a_pass(2, UNCITED)),
        lambda: a_run(a_pass(1, UNCITED), a_pass(2, CITED)),
    ),
    "the same text as pass 1": (
        lambda: a_run(a_pass(1, answer="A"), a_pass(2, answer="A")),
        lambda: a_run(a_pass(1, answer="A"), a_pass(2, answer="B")),
    ),
    "Nothing: no repair, no refusal, no blocked step, no pass without gain.": (
        lambda: a_run(a_pass(1, assessed()), reason="converged"),
        lambda: a_run(a_pass(1, LOW)),
    ),
    "No command alone mends it: begin with what stands out.": (
        lambda: a_run(a_pass(1, LOW), a_pass(2, LOW), reason="max_passes"),
        lambda: a_run(a_pass(1, LOW), reason="ttl_expired"),
    ),
}


def text_of(evidence: Evidence) -> str:
    """The words of the page, without its script and what is packed."""
    page = draw_report(evidence.record).decode()
    body = page.partition("<main")[2].partition("</main>")[0]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", body))


@pytest.mark.parametrize("sentence", CASES)
def test_a_sentence_stands_where_it_is_true_and_only_there(sentence: str) -> None:
    true, false = CASES[sentence]
    assert sentence in text_of(true())
    assert sentence not in text_of(false())
