"""The page of a batch as a person uses it: it loads nothing, shows what failed first, and is accessible."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.conftest import Opened

Show = Callable[..., Opened]


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three rows: one that converges, one whose TTL is spent, one without a task."""
    folder = tmp_path_factory.mktemp("batch")
    rows = [
        {"id": "good", "task": "plan a move"},
        {"id": "low", "task": "plan a move", "overrides": {"ttl.base": 2}},
        {"id": "bad", "task": " "},
    ]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    (folder / "rows.jsonl").write_text(lines, encoding="utf-8")
    given = ["dataset=rows.jsonl", "out=out.jsonl", "provider=simulated"]
    subprocess.run([sys.executable, "-m", "aeon", "batch", *given], cwd=folder, capture_output=True)
    return folder / "out.jsonl.html"


def test_it_opens_alone_with_what_failed_first(batch: Path, opened: Show) -> None:
    tab = opened(batch)
    assert tab.said == []
    assert tab.asked == [batch.as_uri()]
    assert tab.page.locator("h1").inner_text() == "1 of 3 rows converged"
    ends = tab.page.locator("#table .end").all_inner_texts()
    assert [end.split()[-1] for end in ends] == ["invalid", "ttl_expired", "converged"]


def test_a_long_answer_takes_two_lines_of_the_table_and_is_whole_below(
    batch: Path, opened: Show
) -> None:
    page = opened(batch).page
    heights = page.locator("#table tbody tr").evaluate_all(
        "all => all.map((one) => one.clientHeight)"
    )
    assert max(heights) < 70
    page.locator("#table").get_by_role("link", name="1", exact=True).click()
    assert "Here a model would have written" in page.locator("details[open] pre").inner_text()


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(batch: Path, opened: Show, width: int, scheme: str) -> None:
    page = opened(batch, width=width, scheme=scheme).page
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    found = Axe().run(page).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in found] == []
    assert page.evaluate("document.documentElement.scrollWidth") == width
