"""What a run stores grows with its steps, not with their square, although its prompts hold all that went before."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon
from aeon.domain.request import LLMRequest
from tests.store.test_texts import MOST, words
from tests.support.scripted_model import ScriptedModel, assessment, plan, planned, worked

WIDTH = 5
LIMITS = ("ttl.limit=2000", "ttl.base=1000", "limits.max_passes=300", "execution.max_steps=300")


def size_of_store(directory: Path, mode: str, steps: int) -> int:
    """The bytes of the store of a run in layers of steps, each of which sees what the layers before it gave."""
    given = [planned(f"s{n}", *([f"s{n - WIDTH}"] if n >= WIDTH else [])) for n in range(steps)]
    done: list[str | None] = []

    def step(request: LLMRequest) -> dict[str, Any]:
        done.append(request.site.step_id)
        output = "\n".join(words(steps * len(done) + line)[:120] for line in range(10))
        return {**worked(request), "step_output": output}

    model = ScriptedModel(
        plan=plan(*given),
        step=step,
        convergence=lambda _: assessment(0.95 if len(done) == steps else 0.3),
    )
    with Aeon.from_config((f"mode={mode}", *LIMITS), environ={}, adapter=model) as aeon:
        result = aeon.run("make tea", directory=directory)
    assert len(done) == steps, result.error
    return (directory / "store.sqlite").stat().st_size


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["core", "adaptive"])
def test_the_store_of_a_run_grows_with_its_steps(tmp_path: Path, mode: str) -> None:
    small, large = (size_of_store(tmp_path / str(steps), mode, steps) for steps in (30, 120))
    assert math.log(large / small, 4) <= MOST, (small, large)
