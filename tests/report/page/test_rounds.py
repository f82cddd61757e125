"""The rounds in which steps called tools: on the page, and on a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon
from aeon.cli.main import main
from aeon.domain.request import LLMRequest
from aeon.files.jsonl import read_lines
from aeon.report.items import list_items
from aeon.report.page.build import write_report
from aeon.report.page.passes import view_passes
from aeon.report.page.rounds import StepRounds
from aeon.report.record import load_record
from aeon.tools.function import tool
from tests.support.scripted_model import ScriptedModel, clear, plan

LONG = 200_000


@tool
def look_up(word: str) -> str:
    """Look a word up."""
    if word == "nowhere":
        raise ValueError("there is no such word")
    return f"the meaning of {word}"


@tool
def read_all(number: int) -> str:
    """Read a long text."""
    return "".join(f"{number} line {line} of a long text\n" for line in range(LONG))[:LONG]


@tool(side_effects=True)
def order(word: str) -> str:
    """Order something."""
    return f"{word} ordered"


def calls(*asked: tuple[str, Any]) -> dict[str, Any]:
    made = [{"tool": name, "arguments": json.dumps(given)} for name, given in asked]
    return {"tool_calls": made, "answer": None}


def in_turn(*rounds: Any) -> Callable[[LLMRequest], Any]:
    """These rounds, and then the answer."""

    def step(request: LLMRequest) -> Any:
        number = request.site.round
        return rounds[number] if number < len(rounds) else clear("done")

    return step


def run(
    directory: Path, step: Any, *overrides: str, tools: Sequence[Any] = (look_up, read_all, order)
) -> Path:
    model = ScriptedModel(plan=plan("a"), step=step)
    keys = ("mode=core", "execution.step_tools=all", "tools.approval.order=ask", *overrides)
    with Aeon.from_config(keys, environ={}, adapter=model, tools=tools) as aeon:
        aeon.run("make tea", directory=directory, approve=lambda _: True)
    return directory


TEA = ("look_up", {"word": "tea"})
NOWHERE = ("look_up", {"word": "nowhere"})
ORDER = ("order", {"word": "tea"})


def rounds_of(directory: Path) -> StepRounds:
    record = load_record(directory)
    views = view_passes(record.result.history, list_items(record))
    (found,) = [view.rounds["a"] for view in views if view.rounds]
    return found


def test_each_round_has_its_calls_with_result_error_and_approval(tmp_path: Path) -> None:
    step = in_turn(calls(TEA, NOWHERE), calls(TEA, ORDER, ("fly", {})))
    first, second = rounds_of(run(tmp_path, step)).rounds
    assert [call.result for call in first.calls] == ["the meaning of tea", ""]
    assert [call.error for call in first.calls] == ["", "ValueError: there is no such word"]
    assert all(call.seconds is not None for call in first.calls)
    again, bought, unknown = second.calls
    assert (again.repeated, again.result, again.anchor) == (
        True,
        "the meaning of tea",
        first.calls[0].anchor,
    )
    assert (bought.approved, bought.result) == (True, "tea ordered")
    assert "there is no tool 'fly'" in unknown.error
    assert unknown.anchor == ""
    assert (first.asked_by, second.asked_by) == ("call-2", "call-3")


def test_rounds_that_were_ended_say_why(tmp_path: Path) -> None:
    step = in_turn(calls(TEA), calls(NOWHERE))
    ended = rounds_of(run(tmp_path, step, "execution.max_tool_rounds=2"))
    assert ended.end == "asked to finish after the last round (execution.max_tool_rounds)"


def test_a_round_that_was_asked_again_is_shown(tmp_path: Path) -> None:
    step = in_turn(calls(TEA), "Let me see.", calls(NOWHERE))
    directory = run(tmp_path, step)
    whole = rounds_of(directory).rounds
    assert [one.number for one in whole] == [1, 2, 3]
    assert whole[1].describe() == "round 2: neither calls nor an answer, asked again"
    killed = rounds_of(cut_off(directory, after="tool_called")).rounds
    assert [one.describe(timed=False) for one in killed] == [
        one.describe(timed=False) for one in whole
    ]


def cut_off(directory: Path, *, after: str) -> Path:
    """The run as a kill leaves it, right after its last event of this name."""
    lines = list(read_lines(directory / "events.jsonl"))
    last = max(place for place, line in enumerate(lines) if line["event"] == after)
    text = "".join(json.dumps(line) + "\n" for line in lines[: last + 1])
    (directory / "events.jsonl").write_text(text, encoding="utf-8")
    for name in ("result.json", "history.json", "cycles.jsonl"):
        (directory / name).unlink()
    return directory


def test_a_run_that_was_killed_shows_the_rounds_that_it_had(tmp_path: Path) -> None:
    step = in_turn(calls(TEA, NOWHERE), calls(TEA, ORDER))
    killed = cut_off(run(tmp_path, step), after="tool_started")
    first, second = rounds_of(killed).rounds
    assert [call.result for call in first.calls] == ["the meaning of tea", ""]
    assert [(call.tool, call.outcome) for call in second.calls] == [
        ("look_up", "answered from the first equal call"),
        ("order", "no result"),
    ]


def test_calls_that_a_step_without_tools_only_speaks_of_are_not_shown(tmp_path: Path) -> None:
    pretended = {"tool_calls": [{"tool": "audit", "arguments": "{}"}]}
    model = ScriptedModel(plan=plan("a"), step=pretended, repair=clear("done"))
    with Aeon.from_config(["mode=core"], environ={}, adapter=model) as aeon:
        aeon.run("make tea", directory=tmp_path)
    record = load_record(tmp_path)
    views = view_passes(record.result.history, list_items(record))
    assert not any(view.rounds for view in views)


def test_an_answer_that_is_nested_too_deeply_has_its_page(tmp_path: Path) -> None:
    deep = "[" * 5_000
    model = ScriptedModel(plan=plan("a"), step=deep, repair=clear("done"))
    with Aeon.from_config(["mode=core"], environ={}, adapter=model) as aeon:
        aeon.run("make tea", directory=tmp_path)
    cut_off(tmp_path, after="call_answered")
    write_report(tmp_path)
    assert (tmp_path / "report.html").stat().st_size > 0


def test_without_a_store_a_killed_run_shows_the_calls_that_ended(tmp_path: Path) -> None:
    step = in_turn(calls(TEA, NOWHERE), calls(ORDER))
    killed = cut_off(run(tmp_path, step, "store=off"), after="tool_called")
    found = [[call.tool for call in one.calls] for one in rounds_of(killed).rounds]
    assert found == [["look_up", "look_up"], ["order"]]


def test_a_resumed_run_shows_all_of_its_rounds(tmp_path: Path) -> None:
    first = run(tmp_path / "first", in_turn(calls(TEA), calls(ORDER)))
    resumed = run(tmp_path / "second", in_turn(), f"resume={first}")
    found = [one.calls[0].result for one in rounds_of(resumed).rounds]
    assert found == ["the meaning of tea", "tea ordered"]


def test_a_run_without_journals_shows_the_calls_of_its_history(tmp_path: Path) -> None:
    directory = run(tmp_path, in_turn(calls(TEA)))
    (directory / "events.jsonl").unlink()
    (only,) = rounds_of(directory).rounds
    assert [call.outcome for call in only.calls] == ["18 characters"]


def test_the_page_shows_the_rounds_under_their_step(tmp_path: Path) -> None:
    page = (run(tmp_path, in_turn(calls(TEA, NOWHERE))) / "report.html").read_text("utf-8")
    _, _, panel = page.partition('<details class="rounds">')
    panel = panel.partition("</ol>")[0]
    assert "Tools called in 1 round" in panel
    assert "the meaning of tea" in panel
    assert "there is no such word" in panel
    assert 'href="#tool-1"' in panel


@pytest.mark.slow
def test_rounds_with_long_results_leave_a_page_of_a_sensible_size(tmp_path: Path) -> None:
    many = [calls(("read_all", {"number": number})) for number in range(8)]
    directory = run(tmp_path, in_turn(*many), f"tools.max_output_characters={LONG}")
    page = write_report(directory)
    assert len(rounds_of(directory).rounds) == 8
    assert page.stat().st_size < 1_000_000


def test_inspect_has_a_line_for_each_round(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = run(tmp_path, in_turn(calls(TEA, NOWHERE), calls(TEA)))
    assert main(["inspect", str(directory), "output=text"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("step a, ")]
    assert len(lines) == 2
    assert lines[0].startswith("step a, pass 1, round 1: 2 calls in ")
    assert 'look_up {"word": "tea"} (18 characters)' in lines[0]
    assert "(failed: ValueError: there is no such word)" in lines[0]
    assert "answered from the first equal call" in lines[1]
