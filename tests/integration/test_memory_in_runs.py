"""Memory reaches the reasoning: what it holds is shown where a run plans, works, refines and judges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aeon.app.aeon import Aeon
from aeon.domain.errors import ConfigError
from aeon.domain.result import RunResult
from aeon.memory.run_memory import InMemory
from aeon.tools.registry import ApprovalRequest
from tests.integration.test_artefacts_of_runs import converging
from tests.support.fences import texts_in
from tests.support.scripted_model import ScriptedModel, assessment, plan, planned, unfinished

NOTE = '{"key":"guest","value":"Ada, who likes <milk>"}'
WRITE = planned("keep", tool="memory_write", arguments='{"key": "guest", "value": "Grace"}')


def run(
    directory: Path, model: ScriptedModel, *overrides: str, memory: Any = None, approve: Any = None
) -> RunResult:
    given = ("provider=simulated", "provider.retry.initial_seconds=0", *overrides)
    with Aeon.from_config(given, environ={}, memory=memory) as aeon:
        aeon._process = replace(aeon._process, adapter=model)
        return aeon.run("make tea", directory=directory, approve=approve)


def shown(model: ScriptedModel) -> Mapping[str, set[bool]]:
    """By call, whether its prompts show the note."""
    calls = {request.call for request in model.requests}
    return {call: {NOTE in prompt for prompt in model.prompts(call)} for call in calls}


@pytest.mark.parametrize("source", ["override", "file", "python", "python's own memory"])
def test_what_memory_holds_is_shown_fenced_in_every_call_that_plans_works_and_judges(
    source: str, tmp_path: Path
) -> None:
    model, text = converging(), "Ada, who likes <milk>"
    (tmp_path / "memory.yaml").write_text("guest: Ada, who likes <milk>\n", encoding="utf-8")
    own = InMemory()
    own.write("guest", text)
    overrides, memory = {
        "override": (f"memory.entries.guest={text}", None),
        "file": (f"memory.entries_file={tmp_path / 'memory.yaml'}", None),
        "python": ("memory=in_memory", {"guest": text}),
        "python's own memory": ("memory=in_memory", own),
    }[source]
    assert run(tmp_path / "run", model, overrides, memory=memory).converged
    told = shown(model)
    reasoning = ("plan", "subplan", "refinement", "step", "semantic_validation", "convergence")
    assert {call: told[call] for call in reasoning} == {call: {True} for call in reasoning}
    for call in reasoning:
        assert all(
            texts_in(prompt, "memory") == [f"[\n{NOTE}\n]"] for prompt in model.prompts(call)
        )


def test_a_run_sees_what_earlier_runs_of_its_namespace_wrote_but_not_the_results_of_their_steps(
    tmp_path: Path,
) -> None:
    shared = (
        "memory=sqlite",
        f"memory.path={tmp_path / 'memory.sqlite'}",
        "memory.namespace=house",
    )
    first = ScriptedModel(plan=plan(WRITE, planned("drink", "keep")))
    run(
        tmp_path / "1",
        first,
        *shared,
        "mode=core",
        "tools=builtin",
        "tools.approval.memory_write=always",
    )
    assert '"value":"Grace"' not in first.prompts("plan")[0]
    remembered = '[\n{"key":"guest","value":"Grace"}\n]'
    assert texts_in(first.prompts("step")[0], "memory") == [remembered]
    look = planned("look", tool="memory_search", arguments='{"prefix": ""}')
    second = ScriptedModel(plan=plan(look))
    result = run(tmp_path / "2", second, *shared, "tools=builtin")
    assert '{"key":"guest","value":"Grace"}' in second.prompts("plan")[0]
    (shown_to_the_judge,) = texts_in(second.prompts("semantic_validation")[1], "memory")
    assert "step/" not in shown_to_the_judge
    assert result.history.passes[1].execution_results["look"].step_output == '{"guest": "Grace"}'


def test_steps_of_one_batch_are_shown_the_memory_they_started_with(tmp_path: Path) -> None:
    model = ScriptedModel(plan=plan(WRITE, "beside", planned("after", "keep", "beside")))
    model._answers["convergence"] = [unfinished(), assessment()]
    run(
        tmp_path,
        model,
        "tools=builtin",
        "tools.approval.memory_write=always",
        "execution.max_parallel=1",
    )
    shown = {
        r.site.step_id: "Grace" in r.messages[1].content for r in model.requests if r.call == "step"
    }
    assert shown == {"beside": False, "after": True}


def test_a_person_is_asked_before_memory_is_written(tmp_path: Path) -> None:
    asked: list[ApprovalRequest] = []
    own = InMemory()
    with_nobody = run(
        tmp_path / "1", ScriptedModel(plan=plan(WRITE)), "tools=builtin", "mode=core", memory=own
    )
    assert "there is nobody to ask" in (
        with_nobody.history.passes[1].execution_results["keep"].error or ""
    )
    assert own.read("guest") is None

    def approve(request: ApprovalRequest) -> bool:
        asked.append(request)
        return True

    run(
        tmp_path / "2",
        ScriptedModel(plan=plan(WRITE)),
        "tools=builtin",
        "mode=core",
        memory=own,
        approve=approve,
    )
    assert [request.tool.name for request in asked] == ["memory_write"]
    assert own.read("guest") == "Grace"


def test_a_resumed_run_is_shown_what_the_first_was_shown(tmp_path: Path) -> None:
    own = InMemory()
    own.write("guest", "Ada")
    steps = plan(WRITE, planned("drink", "keep"))
    tools = ("mode=core", "tools=builtin", "tools.approval.memory_write=always")
    first = ScriptedModel(plan=steps)
    run(tmp_path / "1", first, *tools, memory=own)
    assert own.read("guest") == "Grace"
    again = ScriptedModel(plan=steps)
    result = run(tmp_path / "2", again, *tools, f"resume={tmp_path / '1'}", memory=own)
    assert again.requests == []
    assert result.termination_reason == "completed"


def test_more_than_prompts_may_show_is_cut_with_a_note(tmp_path: Path) -> None:
    model = ScriptedModel()
    run(
        tmp_path,
        model,
        "memory.entries.a=xxxxxxxxxx",
        "memory.entries.b=y",
        "memory.max_characters=5",
    )
    prompt = model.prompts("step")[0]
    assert '[\n{"key":"a","value":"xxxx","characters_left_out":6}\n]' in prompt
    assert "Entries of memory that are not shown: 1." in prompt


def test_nobody_seeds_the_results_of_steps() -> None:
    with pytest.raises(ConfigError, match="those of the steps' results"):
        Aeon.from_config(["provider=simulated", "+memory.entries={step/a: x}"], environ={})
    with pytest.raises(ConfigError, match="those of the steps' results"):
        Aeon.from_config(["provider=simulated"], environ={}, memory={"step/a": "x"})


@pytest.mark.parametrize("content", ["[1]", "a: {b", "? [1]\n: x\n"])
def test_a_file_of_entries_that_is_none_is_named(content: str, tmp_path: Path) -> None:
    path = tmp_path / "memory.yaml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"memory\.yaml"):
        Aeon.from_config(["provider=simulated", f"memory.entries_file={path}"], environ={})
