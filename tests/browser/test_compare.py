"""The page of several runs as a person uses it: it loads nothing, sorts, filters, links, and is accessible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe

from aeon import Aeon
from aeon.report.compare.divergence import find_divergence
from aeon.report.compare.page import write_comparison
from aeon.report.compare.rows import FIGURES, ComparedRun, Comparison, compare_runs
from tests.browser.conftest import Opened
from tests.browser.test_report import GRAVE, HOSTILE, LONG

Show = Callable[..., Opened]


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("several")
    for number, overrides in enumerate(
        (["provider.seed=1"], ["provider.seed=2"], ["ttl.base=2"], ["provider.seed=18"])
    ):
        with Aeon.from_config(["provider=simulated", *overrides]) as aeon:
            aeon.run("plan a move", directory=folder / str(number))
    return write_comparison(compare_runs([folder]), folder)


@pytest.fixture(scope="module")
def pair(several: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    comparison = compare_runs([several.parent / "0", several.parent / "1"])
    return write_comparison(
        comparison, tmp_path_factory.mktemp("pair"), find_divergence(comparison)
    )


def names(tab: Opened) -> list[str]:
    return tab.page.locator("#table tbody tr:visible th").all_inner_texts()


def test_it_opens_alone_without_a_word_from_the_browser(
    several: Path, pair: Path, opened: Show
) -> None:
    for path, head in ((several, "2 of 4 runs converged"), (pair, "2 of 2 runs converged")):
        tab = opened(path)
        assert tab.said == []
        assert tab.asked == [path.as_uri()]
        assert tab.page.locator("h1").inner_text() == head


def test_it_sorts_by_any_column_and_back_with_the_keyboard_too(several: Path, opened: Show) -> None:
    tab = opened(several)
    head = tab.page.get_by_role("columnheader", name="tokens").first
    head.get_by_role("button").focus()
    tab.page.keyboard.press("Enter")
    tokens = [
        int(text.replace(",", ""))
        for text in tab.page.locator("#table td:nth-last-child(3) span").all_inner_texts()
    ]
    assert tokens == sorted(tokens)
    assert head.get_attribute("aria-sort") == "ascending"
    tab.page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    first = tab.page.locator("#table tbody tr").first.locator("td:nth-last-child(3) span")
    assert int(first.inner_text().replace(",", "")) == max(tokens)


def test_what_is_not_known_stands_last_in_both_orders(several: Path, opened: Show) -> None:
    tab = opened(several)
    button = tab.page.get_by_role("button", name="completeness", exact=True)
    for _ in range(2):
        button.click()
        assert names(tab)[-1] == "3"


def test_it_filters_by_words_and_by_end(several: Path, opened: Show) -> None:
    tab = opened(several)
    tab.page.fill("#words", "ttl_exp")
    assert names(tab) == ["2"]
    assert tab.page.locator("#count").inner_text() == "1 of 4 runs"
    tab.page.fill("#words", "")
    tab.page.select_option("#ends", "converged")
    assert names(tab) == ["0", "1"]


def test_a_failed_run_leads_to_its_error_and_a_run_to_its_page(several: Path, opened: Show) -> None:
    tab = opened(several)
    tab.page.get_by_role("link", name="why").click()
    assert "ServerFailed" in tab.page.locator("li.cause:has(:target)").inner_text()
    tab.page.locator("#table").get_by_role("link", name="0", exact=True).click()
    tab.page.wait_for_url((several.parent / "0" / "report.html").as_uri())
    tab.page.wait_for_selector("body[data-ready]")


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_grave(
    several: Path, pair: Path, opened: Show, width: int, scheme: str
) -> None:
    for path in (several, pair):
        page = opened(path, width=width, scheme=scheme).page
        found = Axe().run(page).response["violations"]
        assert [
            (each["id"], each["nodes"][0]["html"][:200])
            for each in found
            if each["impact"] in GRAVE
        ] == []
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_two_runs_show_what_differs_in_their_plans(pair: Path, opened: Show) -> None:
    divergence = opened(pair).page.locator("#divergence")
    assert "They diverge at event 6 (of 120 and 165)." in divergence.inner_text()
    assert divergence.locator("details[open]").count() == 3
    assert "examples" in divergence.locator("del").all_inner_texts()


def test_three_swept_parameters_and_a_cause_fit_a_wide_window(tmp_path: Path, opened: Show) -> None:
    figures = dict(
        zip(FIGURES, (0.68, 0.9, 0.55, 12, 140, 0, 1_234_567, 12.3456, 1834.5), strict=True)
    )
    runs = tuple(
        ComparedRun(
            name=str(number),
            directory=None,
            ended="ttl_expired",
            has_result=True,
            converged=False,
            figures=figures,
            thresholds={"completeness": 0.95, "coherence": 0.9, "consistency": 0.9},
            parameters={
                "provider.model": "gpt-5-mini-2025-08-07",
                "refinement.max_attempts_per_fragment": number,
                "convergence.completeness": number,
            },
            cause="incomplete; inconsistent; 2 steps not carried out",
            checks="2 of 3",
        )
        for number in range(4)
    )
    page = opened(
        write_comparison(Comparison(runs, tuple(runs[0].parameters)), tmp_path), width=1440
    ).page
    holder = page.get_by_role("region", name="The runs, a row each")
    assert holder.evaluate("each => each.scrollWidth - each.clientWidth") == 0
    assert "Thresholds: completeness 0.95" in page.locator("#runs").inner_text()


BROKEN_WORDS = """cells => cells.flatMap((cell) => {
  const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), broken = [];
  while (texts.nextNode()) {
    for (const found of texts.currentNode.data.matchAll(/\\w+/g)) {
      const range = document.createRange();
      range.setStart(texts.currentNode, found.index);
      range.setEnd(texts.currentNode, found.index + found[0].length);
      if (range.getClientRects().length > 1) broken.push(found[0]);
    }
  }
  return broken;
})"""
"""The words in cells that stand on two lines."""


@pytest.mark.parametrize("count", [2, 4])
def test_no_word_of_a_cause_is_broken_on_a_narrow_screen(
    several: Path, tmp_path: Path, opened: Show, count: int
) -> None:
    runs = [
        replace(run, error="", cause="incomplete; incoherent; inconsistent; 2 steps left")
        for run in compare_runs([several.parent]).runs[:count]
    ]
    comparison = Comparison(tuple(runs), ())
    page = opened(write_comparison(comparison, tmp_path, find_divergence(comparison)), width=390)
    cells = page.page.locator("td[dir=auto]", has_text="inconsistent")
    assert cells.count() == count
    assert cells.evaluate_all(BROKEN_WORDS) == []


@pytest.mark.parametrize("count", [2, 4])
def test_no_text_of_a_run_does_anything(
    several: Path, tmp_path: Path, opened: Show, count: int
) -> None:
    for number in (0, 1):
        with Aeon.from_config(["provider=simulated", f"provider.seed={number}"]) as aeon:
            aeon.run(f"{HOSTILE} {number} {LONG}", directory=tmp_path / str(number))
    runs = compare_runs([tmp_path]).runs
    hostile = [
        replace(
            run,
            name=f"{run.name}{number}{HOSTILE}",
            ended=HOSTILE,
            error=HOSTILE,
            hint=HOSTILE,
            parameters={HOSTILE: f"{HOSTILE}{number}", "task": f"{LONG}{number}"},
        )
        for number, run in enumerate((*runs, *runs)[:count])
    ]
    comparison = Comparison(tuple(hostile), (HOSTILE, "task"))
    tab = opened(write_comparison(comparison, tmp_path, find_divergence(comparison)), width=360)
    if count > 2:
        tab.page.fill("#words", "<script>")
        tab.page.get_by_role("button", name="tokens").click()
    assert tab.page.evaluate("window.hacked") is None
    assert tab.said == []
    assert len(tab.asked) == 1
    addresses = tab.page.evaluate(
        "[...document.querySelectorAll('a[href]')].map((each) => each.getAttribute('href'))"
    )
    assert [each for each in addresses if not each.startswith(("#", "0/report", "1/report"))] == []
    assert tab.page.locator("img, iframe, object").count() == 0
    assert tab.page.evaluate("document.documentElement.scrollWidth") == 360


WIDER = """[...document.querySelectorAll('main *')].filter((each) => each.checkVisibility()
  && !each.closest('svg, .unseen') && each.getBoundingClientRect().right > innerWidth + 1).length"""


def test_nothing_is_cut_or_folded_on_paper(several: Path, pair: Path, opened: Show) -> None:
    for path in (several, pair):
        page = opened(path, width=1040, scheme="dark").page  # A4, landscape
        page.emulate_media(media="print", color_scheme="dark")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.evaluate(WIDER) == 0
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
            "rgb(255, 255, 255)"
        )
        assert page.locator("details:not([open])").count() == 0
        page.evaluate("dispatchEvent(new Event('afterprint'))")
