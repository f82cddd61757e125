"""The program as a person runs it: a scenario for a model, a folder of own tools, and what comes out of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from aeon import read_history
from aeon.files.jsonl import read_lines
from tests.cli.conftest import Ended, RunAeon
from tests.cli.conftest import aeon as aeon

TOOLS = '''
import sys, time

def price(article: str, pieces: int = 1) -> float:
    """Tell the price of an article."""
    return 9.5 * pieces

def closed(article: str) -> float:
    """Tell the price of an article; the shop is closed."""
    raise RuntimeError("the shop is closed")

def talks(text: str) -> str:
    """Say a text aloud."""
    print("NOISE", text)
    sys.stdout.write("MORE NOISE")
    return text

def hangs(text: str) -> str:
    """Never come back."""
    time.sleep(60)
    return text

def huge(text: str) -> str:
    """Say a hundred megabytes."""
    return "x" * 100_000_000

def odd(text: str) -> object:
    """Give something that is no JSON."""
    return {"self": print}

def lies(text: str) -> int:
    """Promise a number."""
    return text

def quits(text: str) -> str:
    """Leave."""
    sys.exit(7)
'''


@dataclass(frozen=True)
class Run:
    """How a run ended and everything that it wrote."""

    status: int
    out: str
    err: str
    result: Mapping[str, Any]
    history: Mapping[str, Any]
    cycles: list[dict[str, Any]]
    events: list[dict[str, Any]]

    @property
    def steps(self) -> dict[str, dict[str, Any]]:
        """The steps as they stood at the end, by id."""
        return {step["step_id"]: step for step in self.history["passes"][-1]["steps"]}

    @property
    def statuses(self) -> dict[str, str]:
        return {step_id: step["status"] for step_id, step in self.steps.items()}

    def advisories(self, kind: str) -> list[str]:
        return [a["message"] for a in self.result["advisories"] if a["kind"] == kind]

    def cycle_of(self, step_id: str) -> dict[str, Any]:
        """The line of the log for a step."""
        (line,) = (line for line in self.cycles if line["step_id"] == step_id)
        return line


Core = Callable[..., Run]


def planned(step_id: str, *dependencies: str, **more: Any) -> dict[str, Any]:
    """A step as a planner names it; arguments given as a value go over the wire as JSON text."""
    if "arguments" in more:
        more["arguments"] = json.dumps(more["arguments"])
    return {
        "step_id": step_id,
        "description": f"do {step_id}",
        "dependencies": list(dependencies),
        **more,
    }


def plan(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"answer": {"goal": "the goal", "steps": list(steps)}}


@pytest.fixture
def core(aeon: RunAeon, tmp_path: Path) -> Core:
    """Runs the program in core mode with scripted calls: `core({"plan": plan(...)}, "tools=builtin")`."""
    (tmp_path / "shop_of_the_tests.py").write_text(TOOLS)

    def run(
        calls: Mapping[str, Any], *overrides: str, mode: str = "core", task: str = "make tea"
    ) -> Run:
        scenario = tmp_path / "scenario.yaml"
        scenario.write_text(yaml.safe_dump({"calls": dict(calls)}))
        ended = aeon(
            f"task={task}",
            f"mode={mode}",
            "provider=simulated",
            f"provider.scenario={scenario}",
            "provider.retry.initial_seconds=0",
            "progress=plain",
            *overrides,
        )
        return whole(ended, tmp_path)

    return run


def own(*names: str) -> list[str]:
    """The overrides that register tools of the folder."""
    return [f"tools.functions.{name}=shop_of_the_tests:{name}" for name in names]


def whole(ended: Ended, root: Path) -> Run:
    """A run with what it wrote into its directory, the newest there is."""
    directory = max((root / "outputs").glob("*/*"), key=lambda path: path.stat().st_mtime_ns)
    return Run(
        ended.status,
        ended.out,
        ended.err,
        json.loads((directory / "result.json").read_bytes()),
        read_history(directory).model_dump(mode="json"),
        list(read_lines(directory / "cycles.jsonl")),
        list(read_lines(directory / "events.jsonl")),
    )
