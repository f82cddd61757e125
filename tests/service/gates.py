"""A model that holds its answers back until a test opens the gate, and waiting for what becomes of jobs."""

from __future__ import annotations

import re
import threading
from typing import Any, Protocol

from aeon.service.folder import JobStatus
from aeon.service.jobs import Jobs
from aeon.service.record import JobState
from tests.support.openai_server import OpenAIServer, Received
from tests.support.timing import wait_for


class OpenJobs(Protocol):
    """See the fixture `open_jobs`."""

    def __call__(
        self, *overrides: str, parallel: int = 2, queue: int = 2, **named: tuple[str, ...]
    ) -> Jobs: ...


class GatedModel:
    """Answers each task with itself, reversed, once the gate is open. `server.requests` counts."""

    def __init__(self, server: OpenAIServer) -> None:
        self.server = server
        self.gate = threading.Event()
        server.script = {"direct": self._answer}

    @property
    def overrides(self) -> list[str]:
        """What has a run be one call of this model."""
        return [*self.server.overrides, "provider.require_key=false", "mode=single"]

    def open(self) -> None:
        """Let everything be answered from now on."""
        self.gate.set()

    def _answer(self, request: Received) -> dict[str, Any]:
        assert self.gate.wait(30)
        task = re.search(r"<task[^>]*>\s*(.*?)\s*</task", request.user, re.DOTALL)
        assert task is not None, request.user
        return {"working": None, "answer": task[1][::-1]}


def wait_until(jobs: Jobs, job_id: str, *states: JobState) -> JobStatus:
    """The job once it is in one of these states."""
    wait_for(lambda: jobs.find(job_id).state in states)
    return jobs.find(job_id)
