"""Pages of runs in Debian's Chromium, without a network."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Browser, Page, sync_playwright

from aeon import Aeon

Run = Callable[..., Path]


@dataclass
class Opened:
    """A page in a tab, with what the browser said about it and asked for."""

    page: Page
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium")
    assert path, "there is no chromium: make test-browser installs it"
    with sync_playwright() as playwright:
        # Chromium refuses its sandbox to root, and needs none for pages without a network.
        found = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def opened(browser: Browser) -> Iterator[Callable[..., Opened]]:
    """Opens a file in a tab of a size and colour scheme, and waits until its script is done."""
    contexts = []

    def show(path: Path, anchor: str = "", width: int = 1280, scheme: str = "light") -> Opened:
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, accept_downloads=True
        )
        contexts.append(context)
        tab = Opened(context.new_page())
        tab.page.on("console", lambda message: tab.said.append(message.text))
        tab.page.on("pageerror", lambda error: tab.said.append(str(error)))
        tab.page.on("request", lambda request: tab.asked.append(request.url))
        tab.page.goto(path.as_uri() + anchor)
        tab.page.wait_for_selector("body[data-ready]")
        return tab

    yield show
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs a scenario, given as the answers of its calls, and returns the page that it leaves."""

    def make(task: str, calls: dict[str, object], *overrides: str) -> Path:
        folder = tmp_path_factory.mktemp("run")
        scenario = folder / "scenario.yaml"
        scenario.write_text(yaml.safe_dump({"calls": calls}), encoding="utf-8")
        with Aeon.from_config(
            ["provider=simulated", f"provider.scenario={scenario}", *overrides]
        ) as aeon:
            aeon.run(task, directory=folder / "run")
        return folder / "run" / "report.html"

    return make


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the recording that comes with Aeon: a run of a real model in four passes."""
    folder = tmp_path_factory.mktemp("recorded") / "run"
    cassette = Path(__file__).parents[2] / "examples" / "cassettes" / "web-architecture.aeon"
    replay = ["store.mode=replay", f"store.path={cassette}", "store.match=order"]
    done = subprocess.run(
        [sys.executable, "-m", "aeon", *replay, f"hydra.run.dir={folder}"], capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    return folder / "report.html"
