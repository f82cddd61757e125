"""Rounds of tool calls in whole runs: what is recorded of them, gone on with, and replayed."""

from __future__ import annotations

import json
import re
import threading
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon
from aeon.cli.commands.cassette import export
from aeon.domain.request import LLMRequest
from aeon.domain.result import RunResult
from aeon.files.jsonl import read_lines
from aeon.kernel.control import RunControl
from aeon.observability.cycle_log import plan_of, with_whole_plans
from aeon.tools.function import tool
from tests.integration.artefacts import Late
from tests.support.otlp_collector import OtlpCollector
from tests.support.scripted_model import ScriptedModel, assessment, clear, plan, planned

SEEN: list[str] = []


@tool
def look_up(word: str) -> str:
    """Look a word up."""
    SEEN.append(word)
    return word.upper()


@tool(side_effects=True)
def order(word: str) -> str:
    """Order something."""
    SEEN.append(f"order {word}")
    return "ordered"


@pytest.fixture(autouse=True)
def nothing_was_called() -> Iterator[None]:
    SEEN.clear()
    yield
    SEEN.clear()


def calls(*words: str, name: str = "look_up") -> dict[str, Any]:
    asked = [{"tool": name, "arguments": json.dumps({"word": word})} for word in words]
    return {"tool_calls": asked, "answer": None}


def three_rounds(request: LLMRequest) -> dict[str, Any]:
    """Two rounds of calls, the words of which name the step, and then the answer."""
    step = str(request.site.step_id)
    number = len(request.messages) // 2
    return clear(f"{step} done") if number == 3 else calls(f"{step}{number}", f"{step}{number}x")


def run(directory: Path, model: Any, *overrides: str, tools: Any = (look_up, order)) -> RunResult:
    keys = ("execution.step_tools=all", *overrides)
    with Aeon.from_config(keys, environ={}, adapter=model, tools=tools) as aeon:
        return aeon.run("make tea", directory=directory)


def scripted(step: Any = three_rounds) -> ScriptedModel:
    return ScriptedModel(
        plan=plan("a", "b", planned("c", "a", "b")), step=step, convergence=assessment()
    )


def test_each_round_has_a_line_with_its_calls(tmp_path: Path) -> None:
    run(tmp_path, scripted())
    lines = [line for line in read_lines(tmp_path / "cycles.jsonl") if line["step_id"] == "a"]
    assert [line["round"] for line in lines] == [0, 1, 2]
    assert len({(line["cycle"], line["step_number"], line["sequence"]) for line in lines}) == 1
    called = [[one["arguments"]["word"] for one in line["tool_calls"]] for line in lines]
    assert called == [["a1", "a1x"], ["a2", "a2x"], []]
    assert [json.loads(line["llm_output"]).get("tool_calls") is None for line in lines] == [
        False,
        False,
        True,
    ]


@pytest.mark.parametrize("form", ["full", "delta"])
def test_the_plan_of_every_line_can_be_rebuilt(form: str, tmp_path: Path) -> None:
    run(tmp_path, scripted(), f"observability.plan_state={form}")
    lines = read_lines(tmp_path / "cycles.jsonl")
    assert all(
        line["plan_state"]["plan"]["steps"]
        for line in with_whole_plans(lines)
        if line["call"] == "step"
    )
    assert all(plan_of(lines, line["sequence"]) for line in lines if line["call"] == "step")


@pytest.mark.slow
def test_the_journals_do_not_depend_on_which_step_is_faster(tmp_path: Path) -> None:
    found = []
    for seed in range(3):
        directory = tmp_path / str(seed)
        run(directory, Late(scripted(), seed), "store=off")
        events = read_lines(directory / "events.jsonl")
        numbered = sorted((line["sequence"], line["part"], line["event"]) for line in events)
        cycles = read_lines(directory / "cycles.jsonl")
        found.append((numbered, [(one["cycle"], one["step_id"], one["round"]) for one in cycles]))
    assert found[0] == found[1] == found[2]


def test_the_journals_do_not_depend_on_which_call_is_faster(tmp_path: Path) -> None:
    def record(first: str) -> tuple[Any, ...]:
        gates = {word: threading.Event() for word in ("tea", "pot")}
        gates[first].set()

        @tool(name="look_up")
        def waiting(word: str) -> str:
            """Look a word up."""
            gates[word].wait(30)
            for gate in gates.values():
                gate.set()
            return word.upper()

        directory = tmp_path / first
        later = one_step(lambda request: answer_after(request, calls("tea", "pot")))
        keys = ("execution.step_tools=all", "mode=core", "store=off")
        with Aeon.from_config(keys, environ={}, adapter=later, tools=[waiting]) as aeon:
            aeon.run("make tea", directory=directory)
        lines = read_lines(directory / "events.jsonl")
        numbered = sorted(
            (line["sequence"], line["part"], line["event"], line.get("number")) for line in lines
        )
        cycles = read_lines(directory / "cycles.jsonl")
        called = [[one["text"] for one in line["tool_calls"]] for line in cycles]
        return numbered, called

    first = record("tea")
    assert ["TEA", "POT"] in first[1]
    assert record("pot") == first


def answer_after(request: LLMRequest, asked: dict[str, Any]) -> dict[str, Any]:
    """These calls, and then the answer."""
    return clear("done") if len(request.messages) > 2 else asked


def test_a_stop_lets_no_further_call_of_a_round_begin(tmp_path: Path) -> None:
    control = RunControl()
    made: list[str] = []

    @tool(name="look_up")
    def stopping(word: str) -> str:
        """Look a word up."""
        made.append(word)
        control.request_stop()
        return word

    model = one_step(calls("tea", "pot", "cup"))
    keys = ("execution.step_tools=all", "mode=core", "execution.max_parallel=1")
    with Aeon.from_config(keys, environ={}, adapter=model, tools=[stopping, order]) as aeon:
        first = aeon.run("make tea", directory=tmp_path / "first", control=control)
    assert (first.termination_reason, made) == ("interrupted", ["tea"])
    model = one_step(lambda request: answer_after(request, {}))
    second = run(tmp_path / "second", model, f"resume={tmp_path / 'first'}")
    assert (second.answer, sorted(SEEN)) == ("done", ["cup", "pot"])


def test_the_result_has_the_rounds_of_each_step(tmp_path: Path) -> None:
    run(tmp_path, scripted())
    history = json.loads((tmp_path / "history.json").read_text(encoding="utf-8"))
    used = history["passes"][1]["execution_results"]["a"]["tool_use"]
    assert used["ended_by"] == "answer"
    assert [[one["tool"] for one in made] for made in used["rounds"]] == [["look_up"] * 2] * 2


def one_step(step: Any) -> ScriptedModel:
    return ScriptedModel(plan=plan("a"), step=step)


def test_a_run_goes_on_after_the_last_round_that_was_finished(tmp_path: Path) -> None:
    control = RunControl()

    @tool(name="look_up")
    def stopping(word: str) -> str:
        """Look a word up."""
        if word == "a2x":
            control.request_stop()
        return str(look_up.invoke({"word": word}))

    keys = ("execution.step_tools=all", "mode=core")
    model = one_step(three_rounds)
    with Aeon.from_config(keys, environ={}, adapter=model, tools=[stopping, order]) as aeon:
        first = aeon.run("make tea", directory=tmp_path / "first", control=control)
    assert (first.termination_reason, first.ttl.used) == ("interrupted", 3)
    model = one_step(three_rounds)
    second = run(tmp_path / "second", model, f"resume={tmp_path / 'first'}")
    assert second.answer == "a done"
    assert sorted(SEEN) == ["a1", "a1x", "a2", "a2x"]
    assert [len(request.messages) for request in model.requests] == [6]
    assert second.ttl.used == 4


def test_a_recording_replays_rounds_without_model_and_tools(tmp_path: Path) -> None:
    recorded = run(tmp_path / "run", one_step(three_rounds), "mode=core")
    assert recorded.answer == "a done"
    given = {"answered_by": None, "note": None, "force": False, "files": None}
    export(Namespace(run=tmp_path / "run", out=tmp_path / "tea.aeon", **given))
    SEEN.clear()
    for source in (tmp_path / "run", tmp_path / "tea.aeon"):
        model = one_step("not asked")
        replay = ("mode=core", "store.mode=replay", f"store.path={source}")
        replayed = run(tmp_path / f"of-{source.name}", model, *replay)
        assert replayed.answer == "a done"
        assert replayed.ttl.used == recorded.ttl.used
        assert model.requests == []
    assert SEEN == []


def with_a_vain_round(request: LLMRequest) -> Any:
    """A call, a response with neither calls nor an answer, and then the answer."""
    rounds = [calls("tea"), "Let me see.", clear("done")]
    return rounds[request.site.round]


def test_a_round_that_was_asked_again_is_replayed(tmp_path: Path) -> None:
    recorded = run(tmp_path / "run", one_step(with_a_vain_round), "mode=core")
    model = one_step("not asked")
    replay = ("mode=core", "store.mode=replay", f"store.path={tmp_path / 'run'}")
    replayed = run(tmp_path / "again", model, *replay)
    assert (recorded.answer, replayed.answer) == ("done", "done")
    assert (recorded.ttl.used, replayed.ttl.used) == (4, 4)
    assert model.requests == []


def test_a_tool_with_effects_is_asked_about_and_called_once(tmp_path: Path) -> None:
    asked: list[str] = []

    def step(request: LLMRequest) -> Any:
        later = len(request.messages) > 2
        return clear("done") if later else calls("tea", "tea", name="order")

    def approve(question: Any) -> bool:
        asked.append(f"{question.step.step_id} {question.tool.name} {question.arguments['word']}")
        return True

    keys = ("execution.step_tools=[order]", "mode=core", "tools.approval.order=ask")
    with Aeon.from_config(keys, environ={}, adapter=one_step(step), tools=[order]) as aeon:
        aeon.run("make tea", directory=tmp_path, approve=approve)
    assert asked == ["a order tea"]
    assert SEEN == ["order tea"]


def test_calls_of_tools_are_spans_under_their_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OtlpCollector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        run(tmp_path, one_step(three_rounds), "mode=core", "store=off", "observability.otel=true")
        (step,) = collector.of("step")
        called = collector.of("execute_tool")
        assert [span.name for span in called] == ["execute_tool look_up"] * 4
        assert {span.parent for span in called} == {step.id}
        rounds = [
            chat.attributes.get("aeon.round", 0)
            for chat in collector.of("chat")
            if chat.parent == step.id
        ]
        assert sorted(rounds) == [0, 1, 2]


def test_the_page_has_every_call_of_a_step(tmp_path: Path) -> None:
    run(tmp_path, one_step(three_rounds), "mode=core")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert len(re.findall("look_up a, pass 1", page)) == 4
    rounds = re.findall(r"step a(?: \(round (\d)\))?, pass 1", page)
    assert rounds == ["", "2", "3"]


PLAN = """
goal: make tea
steps:
  - {id: a, description: find the tea, agent: llm, tools: [look_up]}
"""


def test_the_reviewer_of_a_plan_file_learns_what_its_tools_are(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(PLAN, encoding="utf-8")
    model = one_step(three_rounds)
    run(tmp_path / "run", model, f"plan_file={file}", "execution.step_tools=none")
    system = model.prompts("semantic_validation")[0]
    assert "A step that lists tools is carried out by a language model" in system
    plain = one_step(clear("tea"))
    run(tmp_path / "plain", plain, "execution.step_tools=none")
    assert "lists tools" not in plain.prompts("semantic_validation")[0]


def test_who_judges_learns_that_what_unseen_calls_gave_counts_as_given(tmp_path: Path) -> None:
    known = "what their tool_calls gave counts as given"
    model = one_step(three_rounds)
    run(tmp_path / "run", model, "execution.step_tools=[look_up]")
    assert known in model.prompts("convergence")[0]
    assert known in model.prompts("semantic_validation")[-1]
    assert known not in "".join([*model.prompts("plan"), *model.prompts("task_profile")])
    plain = one_step(clear("tea"))
    run(tmp_path / "plain", plain, "execution.step_tools=none")
    assert known not in plain.prompts("convergence")[0]


def test_calls_that_wait_for_a_person_are_spans_that_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OtlpCollector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        keys = ("interaction=defer", "tools.approval.order=ask", "observability.otel=true")
        model = one_step(calls("tea", "pot", name="order"))
        waiting = run(tmp_path, model, "mode=core", *keys)
        assert (waiting.exit_status, SEEN) == (6, [])
        called = collector.of("execute_tool")
        assert [span.name for span in called] == ["execute_tool order"]
