"""The page of a measurement as a person uses it: it loads nothing, filters, opens answers, and is accessible."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from aeon.evaluation.report import write_files
from tests.browser.conftest import Opened
from tests.browser.test_report import GRAVE
from tests.evaluation.test_table import measured

Show = Callable[..., Opened]


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """Ten rows of two arms: three improved, one degraded, four passed by both, two by none."""
    single = [False] * 3 + [True] + [True] * 4 + [False] * 2
    full = [True] * 3 + [False] + [True] * 4 + [False] * 2
    return write_files(measured(tmp_path, single, full), tmp_path)


def names(tab: Opened) -> list[str]:
    return tab.page.locator("#table tbody tr:visible th").all_inner_texts()


def test_it_opens_alone_with_the_rows_in_which_arms_differ_first(page: Path, opened: Show) -> None:
    tab = opened(page)
    assert tab.said == []
    assert tab.asked == [page.as_uri()]
    assert tab.page.locator("h1").inner_text() == "tasks.jsonl: single 50.0 %, full 70.0 % passed"
    assert names(tab)[:4] == ["r3", "r0", "r1", "r2"]


def test_it_filters_by_outcome_and_sorts(page: Path, opened: Show) -> None:
    tab = opened(page)
    tab.page.select_option("#ends", "improved")
    assert names(tab) == ["r0", "r1", "r2"]
    assert tab.page.locator("#count").inner_text() == "3 of 10 rows"
    tab.page.select_option("#ends", "")
    tab.page.get_by_role("button", name="outcome").click()
    assert names(tab)[0] == "r4"  # all passed, by the alphabet


def test_a_row_leads_to_its_answers(page: Path, opened: Show) -> None:
    tab = opened(page)
    tab.page.locator("#table").get_by_role("link", name="r3", exact=True).click()
    opened_row = tab.page.locator("details[open]")
    # The browser tells the page of a new address some time after the click.
    expect(opened_row).to_contain_text("the answer is not the target")
    assert opened_row.count() == 1


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_grave(page: Path, opened: Show, width: int, scheme: str) -> None:
    shown = opened(page, width=width, scheme=scheme).page
    found = Axe().run(shown).response["violations"]
    assert [
        (each["id"], each["nodes"][0]["html"][:200]) for each in found if each["impact"] in GRAVE
    ] == []
    assert shown.evaluate("document.documentElement.scrollWidth") == width
