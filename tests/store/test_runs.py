"""Whole runs that are recorded, replayed and cached."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon
from aeon.domain.errors import ConfigError, ServerFailed, StoreFailed, Truncated
from aeon.domain.request import LLMAdapter, LLMRequest
from aeon.domain.result import RunResult
from aeon.kernel.control import RunControl
from aeon.llm.prices import PriceList
from aeon.llm.settings import RetrySettings
from aeon.llm.stack.build import EndpointAdapter, Endpoints
from aeon.store.interface import AnswerSource
from aeon.store.lookup import ByKey
from aeon.store.models import Entry, StoreRequest
from aeon.store.opening import open_source
from aeon.store.sqlite_store import SqliteStore
from aeon.tools.registry import Tool
from tests.integration.artefacts import Late, documents
from tests.support.scripted_model import ScriptedModel, assessment, blocked, plan, planned, worked
from tests.support.timing import SOON
from tests.tools.builders import a_tool

pytestmark = pytest.mark.slow

OPENAI = ("provider=openai", "provider.model=some-model", "execution.max_parallel=4")


def recorded(
    directory: Path, model: LLMAdapter, *overrides: str, tools: Sequence[Tool] = (), **more: Any
) -> RunResult:
    """A run of a scripted model, as if OpenAI had answered."""
    with Aeon.from_config(
        (*OPENAI, *overrides), environ={"OPENAI_API_KEY": "a-key"}, tools=tools
    ) as aeon:
        aeon._process = replace(aeon._process, adapter=alone(model))
        return aeon.run("make tea", directory=directory, **more)


def alone(model: LLMAdapter) -> Endpoints:
    """The only endpoint, tried once."""
    return Endpoints(
        [EndpointAdapter("openai", model, RetrySettings(attempts=1), PriceList(model="some-model"))]
    )


def replayed(
    directory: Path, source: Path, *overrides: str, tools: Sequence[Tool] = (), **more: Any
) -> RunResult:
    """A replay, without a key and with nothing in the place of the model."""
    given = (*OPENAI, *overrides, "store=replay", f"store.path={source}")
    with Aeon.from_config(given, environ={}, tools=tools) as aeon:
        return aeon.run("make tea", directory=directory, **more)


def comparable(directory: Path) -> dict[str, Any]:
    """A run's artefacts without what says that, and from where, it was replayed."""
    found = documents(directory)
    for name in ("configuration", "parent", "provider"):
        found["result"].pop(name, None)
    return found


def demanding() -> ScriptedModel:
    """A run of several passes: parallel steps, one of them blocked once, a repair, a failing and a truncated answer."""

    def step(request: LLMRequest) -> Any:
        step_id, number = request.site.step_id, request.site.pass_number
        if step_id == "b" and number == 1:
            return blocked()
        if step_id == "c" and number == 1:
            return Truncated("cut off", model="scripted")
        return worked(request)

    return ScriptedModel(
        plan=["no JSON at all", plan("a", "b", "c", "d", planned("e", "a", "d"))],
        repair=json.dumps(plan("a", "b", "c", "d", planned("e", "a", "d"))),
        step=step,
        convergence=[assessment(0.2), ServerFailed("down for a moment"), assessment(0.9)],
    )


def test_a_replay_is_the_run_again_without_a_key_and_without_a_call(tmp_path: Path) -> None:
    first = recorded(tmp_path / "a", Late(demanding(), seed=1), "store.sample=2")
    again = replayed(tmp_path / "b", tmp_path / "a", "store.sample=2")
    assert again.answer == first.answer
    assert (again.passes, again.usage.total, again.termination_reason) == (
        first.passes,
        first.usage.total,
        first.termination_reason,
    )
    assert first.passes > 1
    assert comparable(tmp_path / "a") == comparable(tmp_path / "b")
    assert not (tmp_path / "b" / "store.sqlite").exists()


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(n, marks=pytest.mark.slow) for n in range(6, 12))]
)
def test_whatever_the_simulated_provider_does_its_replay_does_too(
    tmp_path: Path, seed: int
) -> None:
    given = ("provider=simulated", f"provider.seed={seed}", "provider.retry.initial_seconds=0")
    for name, more in (("a", ()), ("b", ("store=replay", f"store.path={tmp_path / 'a'}"))):
        with Aeon.from_config((*given, *more), environ={}) as aeon:
            aeon.run("make tea", directory=tmp_path / name)
    left, right = (documents(tmp_path / name) for name in "ab")
    for found in (left, right):
        # Whoever waited for a provider is not seen waiting in a replay.
        found["events"] = [line for line in found["events"] if line["event"] != "retry_scheduled"]
        for line in found["events"]:
            line.pop("part")
        for line in found["cycles"]:
            line["errors"] = [error for error in line["errors"] if not error.get("transient")]
        for name in ("configuration", "parent"):
            found["result"].pop(name, None)
    assert left == right


def test_tools_and_people_are_asked_once_for_a_recording_and_all_its_replays(
    tmp_path: Path,
) -> None:
    called: list[Mapping[str, Any]] = []
    tool = a_tool(lambda given: called.append(given) or len(called), name="count")
    steps = plan(
        planned("a", tool="count", arguments="{}"), planned("b", tool="count", arguments="{}")
    )
    for name in ("b", "c"):
        if not (tmp_path / "a").exists():
            recorded(tmp_path / "a", ScriptedModel(plan=steps), tools=[tool])
        replayed(tmp_path / name, tmp_path / "a", tools=[tool])
    assert len(called) == 2
    assert comparable(tmp_path / "a") == comparable(tmp_path / "b") == comparable(tmp_path / "c")


@pytest.mark.parametrize("late", ["b", "d"])
def test_the_first_divergence_in_the_order_of_dispatch_is_told_whichever_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: str
) -> None:
    recorded(tmp_path / "a", ScriptedModel(plan=plan("a", "b", "c", "d")))
    forget(tmp_path / "a" / "store.sqlite", "b", "d")
    find = ByKey.find

    def slowly(self: ByKey, asked: StoreRequest, reach: Any) -> Entry | None:
        if asked.path.step_id == late:
            time.sleep(0.3)
        return find(self, asked, reach)

    monkeypatch.setattr(ByKey, "find", slowly)
    result = replayed(tmp_path / "b", tmp_path / "a")
    assert result.termination_reason == "failed"
    assert result.exit_status == 1
    assert result.error is not None
    assert result.error.type == "StoreMiss"
    assert "the call 'step' (pass 1, EXECUTE, step b)" in result.error.message
    assert "step d" not in result.error.message.partition("\n")[0]


def forget(path: Path, *steps: str) -> None:
    """Take the answers to some steps out of a store."""
    store = SqliteStore(path)
    assert store._writer is not None
    for step in steps:
        store._writer.execute("DELETE FROM answers WHERE step_id = ?", (step,))
    store.close()


@pytest.mark.parametrize(
    "call", ["task_profile", "plan", "semantic_validation", "convergence", "refinement", "repair"]
)
def test_no_phase_takes_a_miss_for_a_failing_model(tmp_path: Path, call: str) -> None:
    recorded(tmp_path / "a", demanding(), "refinement.when=always")
    store = SqliteStore(tmp_path / "a" / "store.sqlite")
    assert store._writer is not None
    assert store._writer.execute("DELETE FROM answers WHERE call = ?", (call,)).rowcount > 0
    store.close()
    result = replayed(tmp_path / "b", tmp_path / "a", "refinement.when=always")
    assert result.error is not None
    assert result.error.type == "StoreMiss"
    assert f"the call '{call}'" in result.error.message


def test_a_recording_that_breaks_while_it_is_replayed_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(tmp_path / "a", ScriptedModel(plan=plan("a", "b")))
    get = SqliteStore.get

    def breaking(self: SqliteStore, key: str) -> Entry | None:
        entry = get(self, key)
        if entry is not None and entry.request.path.step_id == "b":
            raise StoreFailed("the disk is gone")
        return entry

    monkeypatch.setattr(SqliteStore, "get", breaking)
    result = replayed(tmp_path / "b", tmp_path / "a")
    assert result.error is not None
    assert (result.error.type, result.error.message) == ("StoreFailed", "the disk is gone")


def test_an_edited_prompt_is_shown_as_a_diff_and_can_be_tried_by_order(tmp_path: Path) -> None:
    first = recorded(tmp_path / "a", ScriptedModel(plan=plan("a", "b", planned("c", "a"))))
    edited = tmp_path / "prompts" / "default"
    edited.mkdir(parents=True)
    source = Path(__file__).parents[2] / "prompts" / "default" / "step.user.j2"
    (edited / "step.user.j2").write_text(source.read_text() + "\nBe brief.\n")
    prompts = f"prompts.dir={tmp_path / 'prompts'}"
    refused = replayed(tmp_path / "b", tmp_path / "a", prompts)
    assert refused.error is not None
    assert "\n+Be brief." in refused.error.message
    assert "store.match=order" in refused.error.hint
    tried = replayed(tmp_path / "c", tmp_path / "a", prompts, "store.match=order")
    assert tried.answer == first.answer
    assert tried.parent is not None
    assert tried.parent.differing == 2


@pytest.mark.parametrize("on_error", ["stop", "go_on"])
def test_a_store_that_fails_while_a_run_goes_on_ends_it_unless_it_is_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_error: str
) -> None:
    put = SqliteStore.put
    kept: list[Entry] = []

    def failing(self: SqliteStore, entry: Entry) -> None:
        if len(kept) == 3:
            raise StoreFailed("the disk is full")
        kept.append(entry)
        put(self, entry)

    monkeypatch.setattr(SqliteStore, "put", failing)
    said: list[str] = []
    model = ScriptedModel(plan=plan("a", "b", "c"))
    result = recorded(tmp_path / "a", model, f"store.on_error={on_error}", warn=said.append)
    if on_error == "stop":
        assert result.error is not None
        assert result.error.type == "UnstoredAnswer"
        assert len(model.requests) == 4
        assert said == []
    else:
        assert result.converged
        assert said == [
            "the disk is full; answers may have to be paid for again; the run continues"
        ]
    source = open_source(tmp_path / "a")
    assert len(list(source.entries())) == 3
    source.close()


def test_a_cache_pays_once_for_what_several_runs_ask(tmp_path: Path) -> None:
    cache = ("store=cache", f"store.path={tmp_path / 'shared.sqlite'}")
    model = ScriptedModel(plan=plan("a", "b"))
    first = recorded(tmp_path / "a", model, *cache)
    asked = len(model.requests)
    again = recorded(tmp_path / "b", model, *cache)
    assert len(model.requests) == asked
    assert again.usage.total == first.usage.total
    assert comparable(tmp_path / "a") == comparable(tmp_path / "b")


def test_a_replay_knows_what_its_recording_would_cost(tmp_path: Path) -> None:
    prices = (
        "provider.prices={scripted: {input: 1, output: 2}, some-model: {input: 1, output: 2}}",
        "limits.max_cost=5",
    )
    first = recorded(tmp_path / "a", ScriptedModel(), *prices[:1])
    again = replayed(tmp_path / "b", tmp_path / "a", *prices)
    assert again.converged
    assert again.usage.total == first.usage.total
    assert again.usage.total.cost


def test_a_pace_does_not_hold_a_replay_that_is_asked_to_stop(tmp_path: Path) -> None:
    recorded(tmp_path / "a", ScriptedModel(plan=plan("a", "b")))
    control = RunControl()
    began = time.monotonic()

    def stop(kernel: object) -> None:
        control.request_stop()

    result = replayed(
        tmp_path / "b", tmp_path / "a", "store.pace_seconds=60", control=control, on_start=stop
    )
    assert time.monotonic() - began < SOON
    assert result.exit_status == 130


def test_a_replay_of_nothing_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    for more in ((), (f"store.path={tmp_path / 'nothing'}",)):
        with pytest.raises(ConfigError, match=r"store\.path"):
            Aeon.from_config((*OPENAI, "store=replay", *more), environ={})
    assert list(tmp_path.iterdir()) == []


def test_neither_key_nor_header_is_in_a_store(tmp_path: Path) -> None:
    recorded(tmp_path / "a", ScriptedModel())
    assert b"a-key" not in (tmp_path / "a" / "store.sqlite").read_bytes()
    source: AnswerSource = open_source(tmp_path / "a")
    assert all("key" not in name for entry in source.entries() for name in entry.request.body)
    source.close()
