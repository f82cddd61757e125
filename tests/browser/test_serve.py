"""The pages of `aeon serve` as people use them: they load only from the server, go on by themselves, and are accessible."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from aeon.config import load
from aeon.service.configurations import Configurations
from aeon.service.jobs import Capacity, JobRequest, Jobs
from tests.service.gates import wait_until
from tests.service.http.conftest import TOKEN, Served, answering
from tests.service.test_jobs import PLAN

Begin = Callable[..., Served]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Starts a server on the simulated provider."""
    with ExitStack() as opened:

        def start(*overrides: str, token: str | None = None) -> Served:
            common = load.composition(["provider=simulated", "provider.seed=1", *overrides])
            configurations = opened.enter_context(closing(Configurations(common, {"aeon": ()})))
            jobs = Jobs.open(tmp_path / "jobs", configurations, Capacity())
            return opened.enter_context(answering(opened.enter_context(jobs), token, 10_000))

        yield start


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A tab that fails its test when the browser complains, or a page asks another server."""
    said: list[str] = []
    with closing(browser.new_context()) as context:
        tab = context.new_page()
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.on("request", lambda each: said.extend([] if "127.0.0.1" in each.url else [each.url]))
        yield tab
    assert said == []


def require_access(page: Page) -> None:
    """AssertionError for what keeps people out."""
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def test_the_page_of_a_run_is_live_and_becomes_its_report(begin: Begin, page: Page):
    served = begin("provider.latency_seconds=0.3")
    job_id = served.jobs.submit(JobRequest("aeon", "make tea <b>now</b>", background=True))
    page.goto(f"{served.url}/runs/{job_id}")
    expect(page.locator("h1")).to_have_text("Running")
    expect(page.locator("#events li").first).to_contain_text("run started")
    assert page.locator(".task").inner_text() == "make tea <b>now</b>"
    require_access(page)

    page.wait_for_selector("body[data-ready]", timeout=60_000)
    expect(page.locator("h1")).to_contain_text("Converged")
    require_access(page)
    # What stands in it is of no origin: it reads nothing of the server, and asks it for nothing.
    assert page.evaluate("window.origin") == "null"


def test_runs_are_listed(begin: Begin, page: Page):
    served = begin()
    page.goto(f"{served.url}/runs")
    require_access(page)
    job_id = served.jobs.submit(JobRequest("aeon", "make tea", background=True))
    wait_until(served.jobs, job_id, "done")
    page.reload()
    require_access(page)
    page.get_by_role("link", name=job_id).click()
    page.wait_for_selector("body[data-ready]")


def test_questions_are_answered_in_a_form(begin: Begin, page: Page, tmp_path: Path):
    (tmp_path / "plan.yaml").write_text(PLAN)
    served = begin("mode=core", f"plan_file={tmp_path}/plan.yaml", "interaction=defer")
    job_id = served.jobs.submit(JobRequest("aeon", background=True))
    wait_until(served.jobs, job_id, "waiting")
    page.goto(f"{served.url}/runs/{job_id}")
    expect(page.locator("h1")).to_have_text("Waiting for a person")
    require_access(page)
    page.get_by_role("link", name="Answer what it waits for").click()
    require_access(page)
    page.get_by_label("Measure the room").fill("4 by 5 metres")
    page.get_by_role("button", name="Answer").click()
    page.wait_for_selector("body[data-ready]", timeout=60_000)
    assert served.jobs.find(job_id).state == "done"


def test_a_browser_asks_its_person_for_the_token(begin: Begin, browser: Browser):
    served = begin(token=TOKEN)
    with closing(
        browser.new_context(http_credentials={"username": "me", "password": TOKEN})
    ) as own:
        tab = own.new_page()
        tab.goto(f"{served.url}/runs")
        expect(tab.locator("h1")).to_have_text("Runs")
