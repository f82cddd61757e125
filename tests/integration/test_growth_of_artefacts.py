"""The artefacts of an adaptive run grow with the run, not with its square, although its plan stands in every pass."""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon, read_history
from tests.support.scripted_model import (
    ScriptedModel,
    assessment,
    clear,
    planned,
    profile,
    unfinished,
)

SIZES = (20, 40, 80)
MOST = 1.15


def layered(steps: int) -> list[dict[str, Any]]:
    """Steps in layers of four, each on two steps of the layer before."""
    return [
        planned(f"s{n}", *(f"s{n // 4 * 4 - 4 + (n + o) % 4}" for o in range(2) if n >= 4))
        for n in range(steps)
    ]


def sizes(directory: Path, steps: int) -> dict[str, int]:
    """The bytes of each file of a run in `steps / 4` passes."""
    model = ScriptedModel(
        task_profile=profile(),
        plan={"goal": "layers of work", "steps": layered(steps)},
        step=clear("found: " + "detail " * 20),
        convergence=[*[unfinished()] * (steps // 4 - 1), assessment()],
    )
    overrides = ["ttl.base=1000", "ttl.limit=3000", "limits.max_passes=null", "store=off"]
    with Aeon.from_config(overrides, adapter=model, environ={}) as aeon:
        result = aeon.run("the task", directory=directory)
    assert result.passes == steps // 4
    assert read_history(directory) == result.history
    return {path.name: path.stat().st_size for path in directory.iterdir()}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, int]]:
    return [sizes(tmp_path_factory.mktemp("growth") / "run", steps) for steps in SIZES]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["history.json", "events.jsonl", "cycles.jsonl", "result.json"])
def test_an_artefact_grows_with_the_run(measured: list[dict[str, int]], name: str) -> None:
    values = [math.log(files[name]) for files in measured]
    assert statistics.linear_regression([math.log(size) for size in SIZES], values).slope <= MOST
