"""Jobs in a folder, run by a model on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
import uvicorn.server

from aeon.config import load
from aeon.service.configurations import Configurations
from aeon.service.jobs import Capacity, Jobs
from tests.service.gates import GatedModel, OpenJobs
from tests.support.openai_server import OpenAIServer


@pytest.fixture(autouse=True)
def servers_end_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """uvicorn looks ten times a second whether it should end, and every test would wait for that."""
    sleep = asyncio.sleep
    looking = SimpleNamespace(**vars(asyncio))
    looking.sleep = lambda seconds: sleep(seconds / 20)
    monkeypatch.setattr(uvicorn.server, "asyncio", looking)


@pytest.fixture
def model(openai_server: OpenAIServer) -> Iterator[GatedModel]:
    gated = GatedModel(openai_server)
    yield gated
    gated.open()


@pytest.fixture
def open_jobs(tmp_path: Path) -> Iterator[OpenJobs]:
    """Opens the jobs of `tmp_path/jobs`: `open_jobs("mode=core", parallel=1)`; closed with `jobs.close()`, or when
    the test ends."""
    with ExitStack() as opened:

        def open_them(
            *overrides: str, parallel: int = 2, queue: int = 2, **named: tuple[str, ...]
        ) -> Jobs:
            configurations = Configurations(load.composition(overrides), named or {"aeon": ()})
            opened.callback(configurations.close)
            capacity = Capacity(parallel=parallel, queue=queue)
            return opened.enter_context(Jobs.open(tmp_path / "jobs", configurations, capacity))

        yield open_them
