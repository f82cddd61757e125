"""The direct call that a run was compared with: on its page and in the terminal, with what it took."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aeon.cli.main import main
from aeon.report.page.baseline import view_baseline
from aeon.report.page.build import draw_report
from aeon.report.record import load_record
from tests.app.test_baseline import model, preferring, run

TAKEN = "It took 1 call and 15 tokens, with the comparison 3 calls and 45 tokens"
APART = "; the figures of the run do not count them."


@pytest.fixture
def compared(tmp_path: Path) -> Path:
    directory = tmp_path / "run"
    run(model(comparison=preferring("The whole answer.")), directory)
    return directory


def text_of(page: str) -> str:
    part = page.partition('<details class="folded" id="direct">')[2].partition("</details>")[0]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", part))


def test_the_page_has_the_direct_answer_the_judges_words_and_what_it_took(compared: Path) -> None:
    page = draw_report(load_record(compared)).decode()
    text = text_of(page)
    assert f"{TAKEN}{APART}" in text
    assert text.count("The whole answer. is better.") == 2
    assert "The whole answer. " in text.partition(APART)[2]
    assert 'href="baseline/report.html"' in page


def test_a_direct_call_whose_folder_is_gone_has_its_own_tokens(compared: Path) -> None:
    (compared / "baseline").rename(compared / "gone")
    view = view_baseline(load_record(compared), compared)
    assert view is not None
    assert (view.spent, view.address) == (f"It took 15 tokens{APART}", "")


def test_a_folder_of_another_name_is_not_read(compared: Path) -> None:
    record = load_record(compared)
    assert record.result.baseline is not None
    elsewhere = record.result.baseline.model_copy(update={"folder": "../run/baseline"})
    strange = record.result.model_copy(update={"baseline": elsewhere})
    view = view_baseline(load_record(compared, strange), compared)
    assert view is not None
    assert (view.spent, view.address) == (f"It took 15 tokens{APART}", "")


def test_a_run_without_a_direct_call_has_no_part_for_it(tmp_path: Path) -> None:
    run(model(), tmp_path / "run", "answer.baseline=false")
    record = load_record(tmp_path / "run")
    assert view_baseline(record, record.directory) is None
    assert 'id="direct"' not in draw_report(record).decode()


def test_inspect_has_the_judges_words_and_the_page_of_the_direct_call(
    compared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(compared), "output=text"]) == 0
    printed = capsys.readouterr().out
    assert f"One direct call: {TAKEN[0].lower()}{TAKEN[1:]}{APART}" in printed
    order = "(first: the direct answer; second: the answer of the run)"
    assert f"\n  {order} The whole answer. is better.\n" in printed
    assert f"\n  Its page: {compared}/baseline/report.html\n" in printed
