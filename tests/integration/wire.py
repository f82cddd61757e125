"""Whole runs against a real server on loopback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aeon import Aeon, RunResult
from tests.support import scripted_model as scripted
from tests.support.fences import texts_in
from tests.support.openai_server import OpenAIServer, Received, Script
from tests.support.raw_server import RawServer

TASK = "design a web application with user authentication"


def worked(request: Received) -> dict[str, Any]:
    """A step done well: its output repeats its goal."""
    (goal,) = texts_in(request.user, "step_goal")
    return scripted.clear(f"Work on: {goal}")


def script(**answers: Script) -> dict[str, Script]:
    """A run that converges in one pass, with whatever is different."""
    return {**scripted.defaults(), "step": worked, **answers}


def overrides(server_url: str, *more: str) -> list[str]:
    return [
        "provider=openai",
        f"provider.base_url={server_url}",
        "provider.model=scripted",
        "provider.retry.initial_seconds=0",
        "provider.retry.jitter_seconds=0",
        *more,
    ]


def run(
    server: OpenAIServer | RawServer, *more: str, directory: Path | None = None, **options: Any
) -> RunResult:
    with Aeon.from_config(
        overrides(server.url, *more), environ={"OPENAI_API_KEY": "sk-test"}
    ) as aeon:
        return aeon.run(TASK, directory=directory, **options)
