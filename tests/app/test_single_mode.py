"""One direct call as a configured run: what it refuses, and what it is given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aeon import Aeon
from aeon.app.attendance import Attendance
from aeon.checks.selection import read_outer_checks
from aeon.domain.errors import ConfigError
from aeon.domain.request import LLMRequest
from aeon.report.record import load_record
from tests.support.scripted_model import ScriptedModel, clear

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


@pytest.mark.parametrize("key", ["ttl.base", "limits.max_llm_calls"])
def test_samples_that_the_budget_does_not_hold_are_refused(key: str) -> None:
    chosen = ["execution.samples=8", "execution.select=pairwise", f"{key}=20"]
    with pytest.raises(ConfigError, match=rf"takes 22 LLM cycles, and {key}=20") as refused:
        Aeon.from_config([*SINGLE, *chosen], environ={})
    assert f"{key}=22" in refused.value.hint


BY_CHECK = ["mode=single", "execution.samples=2", "execution.select=check"]
RUBRIC = "convergence.checks.kind={type: llm-rubric, value: It is kind.}"


@pytest.mark.parametrize("more", [[], [RUBRIC, "answer.judge=true"]])
def test_samples_that_no_program_checks_cannot_be_chosen_by_checks(more: list[str]) -> None:
    model = ScriptedModel()
    with (
        Aeon.from_config([*BY_CHECK, *more], adapter=model, environ={}) as aeon,
        pytest.raises(ConfigError, match=r"execution\.select=check: no check"),
    ):
        aeon.run("add 7 and 8")
    assert model.calls == []


def test_the_checks_of_a_row_choose_among_samples() -> None:
    answers = [{"working": None, "answer": text} for text in ("14", "15")]
    row = read_outer_checks({"right": {"type": "equals", "value": "15"}})
    overrides = [*BY_CHECK, "execution.max_parallel=1"]
    with Aeon.from_config(overrides, adapter=ScriptedModel(direct=answers), environ={}) as aeon:
        result = aeon.prepare_run("add 7 and 8", checks=row).to_end(Attendance())
    assert result.answer == "15"


def test_the_checks_of_a_plan_file_choose_among_samples(tmp_path: Path) -> None:
    answers = [clear("14"), clear("15")]
    checks = {"right": {"type": "equals", "value": "15"}}
    steps = [{"id": "a", "description": "add 7 and 8", "checks": checks}]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"goal": "g", "task": "t", "steps": steps}))
    overrides = [*BY_CHECK, "mode=core", f"plan_file={plan}", "execution.max_parallel=1"]
    with Aeon.from_config(overrides, adapter=ScriptedModel(step=answers), environ={}) as aeon:
        assert aeon.run().answer == "15"


def test_each_sample_is_stored_and_none_is_asked_again(tmp_path: Path) -> None:
    model = ScriptedModel(direct=[{"working": None, "answer": text} for text in ("14", "15", "15")])
    with Aeon.from_config(
        ["mode=single", "execution.samples=3", "execution.select=vote", "execution.max_parallel=1"],
        adapter=model,
        environ={},
    ) as aeon:
        first = aeon.run("add 7 and 8", directory=tmp_path / "run")
    assert first.answer == "15"
    assert first.usage.total.requests == 3
    with Aeon.from_config(
        [f"resume={tmp_path / 'run'}", "trust=true"], adapter=model, environ={}
    ) as aeon:
        again = aeon.run(directory=tmp_path / "again")
    assert again.answer == "15"
    assert len(model.requests) == 3


def test_the_page_shows_each_sample_with_its_own_answer(tmp_path: Path) -> None:
    def answer(request: LLMRequest) -> dict[str, object]:
        return {"working": None, "answer": f"sample {request.sample}"}

    with Aeon.from_config(
        ["mode=single", "execution.samples=4"], adapter=ScriptedModel(direct=answer), environ={}
    ) as aeon:
        aeon.run("make tea", directory=tmp_path / "run")
    calls = load_record(tmp_path / "run").calls
    samples = [(call.read_request() or {})["sample"] for call in calls]
    numbers = [sample[1] if isinstance(sample, list) else 0 for sample in samples]
    assert sorted(numbers) == [0, 1, 2, 3]
    for number, call in zip(numbers, calls, strict=True):
        assert f"sample {number}" in (call.text or "")


@pytest.mark.parametrize("mode", ["single", "core"])
@pytest.mark.parametrize("most", [100, 0])
def test_checks_leave_the_answer_as_it_is(mode: str, most: int) -> None:
    check = f"convergence.checks.brief={{type: word-count, value: {{max: {most}}}}}"
    model = ScriptedModel()
    with Aeon.from_config([f"mode={mode}", check], adapter=model, environ={}) as aeon:
        result = aeon.run("make tea")
    with Aeon.from_config([f"mode={mode}"], adapter=ScriptedModel(), environ={}) as aeon:
        plain = aeon.run("make tea")
    assert result.answer == plain.answer != ""
    assert [one.passed for one in result.checks] == [most > 0]
    assert result.best_pass is None
