"""One direct call as a configured run: what it refuses, and what it is given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aeon import Aeon
from aeon.domain.errors import ConfigError
from tests.support.scripted_model import ScriptedModel

SINGLE = ["mode=single", "provider=simulated"]


def test_tools_are_refused_before_the_call() -> None:
    with pytest.raises(ConfigError, match="without tools, and there are tools: echo") as refused:
        Aeon.from_config([*SINGLE, "tools=builtin"], environ={})
    assert "tools=none" in refused.value.hint


def test_a_plan_is_refused_before_the_call(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"task": "t", "steps": [{"id": "a", "description": "d"}]}))
    with pytest.raises(ConfigError, match=r"plan_file=.*plan\.json is a plan"):
        Aeon.from_config([*SINGLE, f"plan_file={plan}"], environ={})


def test_inputs_and_context_are_given_to_the_call() -> None:
    model = ScriptedModel()
    with Aeon.from_config(["mode=single"], adapter=model, environ={}) as aeon:
        result = aeon.run("make tea", inputs={"note": "mind the milk"}, context={"cups": 2})
    assert result.exit_status == 0
    (prompt,) = model.prompts("direct")
    assert "mind the milk" in prompt
    assert '"cups":2' in prompt


def test_a_resumed_run_asks_for_nothing_again(tmp_path: Path) -> None:
    model = ScriptedModel()
    with Aeon.from_config(["mode=single"], adapter=model, environ={}) as aeon:
        first = aeon.run("make tea", directory=tmp_path / "run")
    with Aeon.from_config(
        [f"resume={tmp_path / 'run'}", "trust=true"], adapter=model, environ={}
    ) as aeon:
        again = aeon.run(directory=tmp_path / "again")
    assert again.answer == first.answer
    assert model.calls == ["direct"]
