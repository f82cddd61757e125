"""A step that the model carries out, in a whole run (Sprint 1 FR-057)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from aeon.app.aeon import Aeon
from aeon.domain.errors import Truncated
from aeon.files.fences import without_codes
from aeon.files.jsonl import read_lines
from aeon.memory.run_memory import InMemory
from tests.support.scripted_model import ScriptedModel, clear, plan

NOTE = '<memory>\n[\n{"key":"guest","value":"likes milk"}\n]\n</memory>'


@pytest.mark.parametrize("mode", ["core", "adaptive"])
def test_a_reasoning_step_is_shown_memory_and_its_result_is_stored_and_logged(
    tmp_path: Path, mode: str
) -> None:
    memory = InMemory()
    memory.write("guest", "likes milk")
    model = ScriptedModel(plan=plan("pour"), step=clear("poured", "wipe up"))
    chosen = ["provider=simulated", f"mode={mode}"]
    with Aeon.from_config(chosen, environ={}, memory=memory) as aeon:
        aeon._process = replace(aeon._process, adapter=model)
        result = aeon.run("make tea", directory=tmp_path / "run")
    (prompt,) = model.prompts("step")
    assert NOTE in without_codes(prompt)
    (step,) = result.history.passes[-1].steps
    assert (step.status, step.step_output) == ("complete", "poured")
    assert memory.read("step/pour/output") == "poured"
    assert memory.read("step/pour/handoff") == "wipe up"
    lines = read_lines(tmp_path / "run" / "cycles.jsonl")
    (logged,) = [line for line in lines if line["call"] == "step"]
    assert json.loads(logged["llm_output"])["step_output"] == "poured"


def test_a_reasoning_step_with_an_error_is_not_complete_and_stores_nothing() -> None:
    memory = InMemory()
    model = ScriptedModel(plan=plan("pour"), step=Truncated("cut off"))
    with Aeon.from_config(["provider=simulated", "mode=core"], environ={}, memory=memory) as aeon:
        aeon._process = replace(aeon._process, adapter=model)
        result = aeon.run("make tea")
    (step,) = result.history.passes[-1].steps
    assert step.status == "failed"
    assert memory.read("step/pour/output") is None
