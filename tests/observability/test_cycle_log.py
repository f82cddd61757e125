from pathlib import Path
from typing import Any

import pytest

from aeon.domain import events as e
from aeon.domain.checks import ToolResult
from aeon.domain.refinement import RepairRecord
from aeon.domain.request import CallSite, Usage
from aeon.files.jsonl import read_lines
from aeon.observability.cycle_log import CycleLog, plan_at
from aeon.plan.transitions import abandon_step
from tests.observability.support import PLAN, REPAIR, Story, feed, logged, realistic_run


def test_every_cycle_is_one_line_with_what_the_specification_names(tmp_path: Path) -> None:
    lines = logged(tmp_path, realistic_run())
    assert [line["step_number"] for line in lines] == list(range(len(lines)))
    asked = {
        "step_number",
        "plan_state",
        "llm_output",
        "supervisor_actions",
        "tool_calls",
        "ttl_remaining",
        "errors",
    }
    assert all(asked | {"timestamp"} <= set(line) for line in lines)
    assert [line["call"] for line in lines[:4]] == [
        "task_profile",
        "plan",
        "semantic_validation",
        "refinement",
    ]
    assert lines[4] | {"plan_state": None} == {
        "format": "aeon.cycle/1",
        "run_id": "run-1",
        "step_number": 4,
        "cycle": 4,
        "sequence": lines[4]["sequence"],
        "pass_number": 1,
        "phase": "EXECUTE",
        "call": "step",
        "step_id": "gather",
        "round": 0,
        "reasoning_mode": "deep",
        "timestamp": lines[4]["timestamp"],
        "end_time": lines[4]["end_time"],
        "plan_state": None,
        "llm_output": "output of gather",
        "supervisor_actions": [],
        "tool_calls": [],
        "ttl_remaining": 30,
        "errors": [],
        "usage": {
            "input_tokens": 1000,
            "output_tokens": 200,
            "cached_tokens": 400,
            "reasoning_tokens": 50,
            "cache_write_tokens": 0,
            "requests": 1,
        },
        "models": ["model-1"],
        "endpoints": [],
        "response_ids": ["response-4"],
        "synthetic": False,
    }


def test_a_repair_keeps_the_bad_answer_its_errors_and_each_attempt(tmp_path: Path) -> None:
    line = next(line for line in logged(tmp_path, realistic_run()) if line["supervisor_actions"])
    assert line["llm_output"] == '{"issues": [{"severity": "high"}]}'
    assert line["supervisor_actions"] == [
        {
            "action": "repair",
            "call": "semantic_validation",
            "errors": ["/issues/0/severity: 'high' is not one of LOW, MEDIUM, HIGH, CRITICAL"],
            "attempts": ['{"issues": [{"severity": "HIGH"}]}'],
            "outcome": "repaired",
        }
    ]
    assert line["usage"]["requests"] == 2
    assert [(error["type"], error["transient"]) for error in line["errors"]] == [
        ("RateLimited", True)
    ]


def test_an_error_that_was_tried_again_has_its_class_and_its_message_apart(tmp_path: Path) -> None:
    story = Story()
    site = story.dispatch("plan", "PLAN", 1, None)
    error = "ServerFailed: http://x/v1 answered 503: busy"
    story.tell(e.RetryScheduled(site=site, call="plan", attempt=2, seconds=1.5, error=error), site)
    story.tell(e.CycleFinished(site=site, call="plan"), site)
    (line,) = logged(tmp_path, story.told)
    assert line["errors"] == [
        {
            "call": "plan",
            "type": "ServerFailed",
            "message": "http://x/v1 answered 503: busy (attempt 2, retried after 1.5 s)",
            "transient": True,
        }
    ]


def test_each_repair_of_a_cycle_names_its_own_attempts_only(tmp_path: Path) -> None:
    story = Story()
    site = story.dispatch("step", "EXECUTE", 1, PLAN, "gather")
    told = (("tool_arguments", ("no", "arguments")), ("step", ("a step",)))
    for call, texts in told:
        for text in texts:
            story.answer(site, "repair", text)
        record: RepairRecord = REPAIR.model_copy(update={"call": call, "attempts": len(texts)})
        story.tell(e.RepairFinished(site=site, record=record), site)
    story.tell(e.StepFinished(pass_number=1, cycle=1, step=PLAN.step("gather")), site)
    (line,) = logged(tmp_path, story.told)
    assert [(a["call"], tuple(a["attempts"])) for a in line["supervisor_actions"]] == list(told)


def test_an_abandoned_step_is_logged_as_such_with_the_tool_it_was_waiting_for(
    tmp_path: Path,
) -> None:
    story = Story()
    site = story.dispatch("tool", "EXECUTE", 1, PLAN, "gather")
    call_tool(story, site, {"url": "first"}, ends=True)
    call_tool(story, site, {"url": "second"}, ends=False)
    story.tell(e.StepFinished(pass_number=1, cycle=0, step=abandon_step(PLAN.step("gather"))), site)
    (line,) = logged(tmp_path, story.told)
    assert [(error["call"], error["type"]) for error in line["errors"]] == [("tool", "Abandoned")]
    calls = [
        (call["tool"], call["arguments"], call["output"], call["error"])
        for call in line["tool_calls"]
    ]
    assert calls == [
        ("fetch", {"url": "first"}, "page", None),
        ("fetch", {"url": "second"}, None, "Abandoned"),
    ]


def test_an_abandoned_step_keeps_the_error_that_its_call_ended_with(tmp_path: Path) -> None:
    story = Story()
    site = story.dispatch("step", "EXECUTE", 1, PLAN, "gather")
    story.ends(site, "step", "LimitReached")
    story.tell(e.StepFinished(pass_number=1, cycle=1, step=abandon_step(PLAN.step("gather"))), site)
    (line,) = logged(tmp_path, story.told)
    assert [error["type"] for error in line["errors"]] == ["LimitReached", "Abandoned"]


def test_a_tool_in_flight_when_the_run_ends_is_in_the_line(tmp_path: Path) -> None:
    story = Story()
    call_tool(story, story.dispatch("tool", "EXECUTE", 1, PLAN, "gather"), {"url": "u"}, ends=False)
    (line,) = logged(tmp_path, story.told)
    assert [(call["arguments"], call["error"]) for call in line["tool_calls"]] == [
        ({"url": "u"}, "Abandoned")
    ]


def call_tool(story: Story, site: CallSite, arguments: dict[str, Any], *, ends: bool) -> None:
    story.tell(e.ToolStarted(site=site, step_id="gather", tool="fetch", arguments=arguments), site)
    if ends:
        result = ToolResult(tool="fetch", arguments=arguments, output="page", text="page")
        story.tell(e.ToolCalled(site=site, step_id="gather", result=result), site)


def test_every_line_has_a_running_number_and_only_what_was_paid_for_a_cycle(tmp_path: Path) -> None:
    story = Story()
    story.call("task_profile", "PROFILE", 0)
    story.call("plan", "PLAN", 0)
    free = story.dispatch("tool", "EXECUTE", 1, PLAN, "gather")
    paid = story.dispatch("step", "EXECUTE", 1, PLAN, "auth")
    for site, step_id in ((paid, "auth"), (free, "gather")):
        story.tell(e.StepFinished(pass_number=1, cycle=site.cycle, step=PLAN.step(step_id)), site)
    lines = logged(tmp_path, story.told)
    assert [(line["call"], line["step_number"], line["cycle"]) for line in lines] == [
        ("task_profile", 0, 0),
        ("plan", 1, 1),
        ("batch", 2, None),
        ("tool", 3, None),
        ("step", 4, 2),
    ]


def test_a_run_without_a_profile_counts_its_lines_from_one(tmp_path: Path) -> None:
    story = Story()
    story.call("plan", "PLAN", 0)
    story.call("step", "EXECUTE", 1, PLAN)
    assert [line["step_number"] for line in logged(tmp_path, story.told)] == [1, 2]


def test_a_cycle_that_fails_is_logged_with_its_error(tmp_path: Path) -> None:
    story = Story()
    site = story.dispatch("plan", "PLAN", 0)
    failed = e.CallFailed(
        site=site,
        call="plan",
        role="planner",
        error="ServerFailed",
        message="503",
        usage=Usage(requests=3),
        seconds=1,
    )
    story.tell(failed, site)
    story.ends(site, "plan", "ServerFailed")
    (line,) = logged(tmp_path, story.told)
    assert line["llm_output"] is None
    assert line["errors"] == [
        {"call": "plan", "type": "ServerFailed", "message": "503", "transient": False}
    ]
    assert line["usage"]["requests"] == 3


def test_an_error_that_no_request_made_is_logged_too(tmp_path: Path) -> None:
    story = Story()
    site = story.dispatch("plan", "PLAN", 0)
    story.answer(site, "plan", "no JSON")
    story.ends(site, "plan", "ValidationError")
    (line,) = logged(tmp_path, story.told)
    assert line["llm_output"] == "no JSON"
    assert [error["type"] for error in line["errors"]] == ["ValidationError"]


@pytest.mark.parametrize("told_end", [True, False])
def test_a_cycle_left_open_is_written_when_the_run_ends(tmp_path: Path, told_end: bool) -> None:
    story = Story()
    late = story.dispatch("step", "EXECUTE", 1, PLAN, "gather")
    if told_end:
        end = e.RunFinished(
            termination_reason="interrupted", converged=False, passes=0, ttl_used=1, ttl_allocated=9
        )
        story.tell(end)
    story_end = len(story.told)
    log = CycleLog(tmp_path / "cycles.jsonl", print)
    feed(log, story.told[:story_end])
    log.close()
    story.ends(late, "step")
    feed(log, story.told[story_end:])
    (line,) = read_lines(tmp_path / "cycles.jsonl")
    assert [error["type"] for error in line["errors"]] == ["Abandoned"]
    assert plan_at([line], 1) == PLAN


def test_lines_sorted_by_cycle_do_not_depend_on_the_order_the_cycles_end_in(tmp_path: Path) -> None:
    def run(folder: str, order: list[int]) -> list[dict[str, Any]]:
        story = Story()
        sites = [
            story.dispatch("step", "EXECUTE", 1, PLAN, step.step_id) for step in PLAN.steps[:3]
        ]
        for index in order:
            story.answer(sites[index], "step", f"answer {index}")
            story.ends(sites[index], "step")
        (tmp_path / folder).mkdir()
        lines = sorted(logged(tmp_path / folder, story.told), key=lambda line: line["step_number"])
        return [line | {"timestamp": "", "end_time": ""} for line in lines]

    assert run("one", [0, 1, 2]) == run("other", [2, 0, 1])
