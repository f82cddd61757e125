"""The pages of `aeon serve` as people use them: they load only from the server, go on by themselves, and are accessible."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from aeon.config import load
from aeon.service.configurations import Configurations
from aeon.service.jobs import Capacity, JobRequest, Jobs
from tests.service.gates import wait_for, wait_until
from tests.service.http.conftest import TOKEN, Served, answering
from tests.service.test_jobs import PLAN
from tests.support.openai_server import OpenAIServer, Received
from tests.support.scripted_model import clear, defaults, plan, planned

SIMULATED = ("provider=simulated", "provider.seed=1")
Begin = Callable[..., Served]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Starts a server, by default on the simulated provider."""
    with ExitStack() as opened:

        def start(
            *overrides: str, token: str | None = None, provider: Sequence[str] = SIMULATED
        ) -> Served:
            common = load.composition([*provider, *overrides])
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


SIZES = [(1440, "light"), (1440, "dark"), (390, "light"), (390, "dark")]


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_the_course_of_a_run_is_accessible(begin: Begin, browser: Browser, width: int, scheme: str):
    with running(begin) as (served, gate, job_id):
        size = {"width": width, "height": 800}
        with closing(browser.new_context(viewport=size, color_scheme=scheme)) as context:
            tab = context.new_page()
            tab.goto(f"{served.url}/runs/{job_id}")
            expect(tab.locator("#course .plan")).to_be_visible(timeout=30_000)
            require_access(tab)
            assert not tab.evaluate("document.documentElement.scrollWidth > innerWidth")
        gate.set()


def test_the_course_goes_on_without_moving_what_is_read(begin: Begin, page: Page):
    with running(begin) as (served, gate, job_id):
        page.set_viewport_size({"width": 1000, "height": 300})
        page.goto(f"{served.url}/runs/{job_id}")
        expect(page.locator("#course .answer")).to_contain_text("output of a", timeout=30_000)
        steps = page.locator("#course details.steps")
        steps.locator("summary").focus()
        page.keyboard.press("Enter")
        page.evaluate("window.scrollTo(0, 200)")
        place = steps.bounding_box()
        gate.set()

        expect(page.locator("#ended a")).to_be_visible(timeout=60_000)
        expect(page.locator("#course .answer")).to_contain_text("output of b", timeout=30_000)
        assert steps.evaluate(IS_READ)
        after = steps.bounding_box()
        assert place
        assert after
        assert abs(after["y"] - place["y"]) < 2
        page.locator("#ended a").click()
        page.wait_for_selector("body[data-ready]")


IS_READ = "one => one.open && document.activeElement === one.firstElementChild"
# Before the page asks for its course for the first time.
READ_AT_ONCE = """addEventListener("DOMContentLoaded", () => {
    const steps = document.querySelector("#course details.steps");
    if (!steps) return;
    steps.open = true;
    steps.firstElementChild.focus();
});"""


def test_the_course_that_a_page_is_loaded_with_goes_on(begin: Begin, page: Page):
    with running(begin) as (served, gate, job_id):
        address = f"{served.url}/runs/{job_id}"
        wait_for(lambda: page.goto(address) and page.get_by_text("output of a").count())
        page.add_init_script(READ_AT_ONCE)
        page.goto(address)
        gate.set()

        expect(page.locator("#course .answer")).to_contain_text("output of b", timeout=30_000)
        assert page.locator("#course details.steps").evaluate(IS_READ)


def test_scores_that_appear_leave_open_what_is_read(begin: Begin, page: Page):
    with running(begin, "mode=adaptive", held_step=1) as (served, gate, job_id):
        address = f"{served.url}/runs/{job_id}"
        wait_for(lambda: page.goto(address) and page.locator("#course details.steps").count())
        page.add_init_script(READ_AT_ONCE)
        page.goto(address)
        expect(page.locator("#scores-so-far")).to_be_hidden()
        gate.set()

        expect(page.locator("#scores-so-far")).to_be_visible(timeout=30_000)
        assert page.locator("#course details.steps").evaluate(IS_READ)


def test_without_a_script_the_course_is_there_after_loading(begin: Begin, browser: Browser):
    with (
        running(begin) as (served, gate, job_id),
        closing(browser.new_context(java_script_enabled=False)) as context,
    ):
        tab = context.new_page()
        address = f"{served.url}/runs/{job_id}"
        wait_for(lambda: tab.goto(address) and tab.get_by_text("output of a").count())
        gate.set()


@contextmanager
def running(
    begin: Begin, mode: str = "mode=core", held_step: int = 2
) -> Iterator[tuple[Served, threading.Event, str]]:
    """A run of two steps, one of which waits for the event."""
    gate = threading.Event()

    def write(request: Received) -> dict[str, Any]:
        is_held = f"executing step {held_step}" in request.user
        assert not is_held or gate.wait(60)
        is_second = "executing step 2" in request.user
        return clear(f"output of {'b' if is_second else 'a'}")

    with OpenAIServer() as server:
        server.script = {**defaults(), "step": write, "plan": plan("a", planned("b", "a"))}
        served = begin("provider.require_key=false", mode, provider=server.overrides)
        job_id = served.jobs.submit(JobRequest("aeon", "make tea", background=True))
        try:
            yield served, gate, job_id
        finally:
            gate.set()


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
