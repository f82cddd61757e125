import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aeon import events as e
from aeon.llm.interface import CallSite, Usage
from aeon.observability.cycle_log import CycleLog, plan_at, plan_of
from aeon.observability.jsonl import read_lines
from aeon.plan.models import FollowUpQuestion, Plan, PlanStep, renumbered
from aeon.plan.transitions import abandoned
from aeon.supervisor.models import RepairRecord
from aeon.tools.models import ToolResult
from tests.observability.support import PLAN, REPAIR, Story, chain_run, feed, realistic_run


def logged(folder: Path, told: tuple[e.Recorded, ...] | list[e.Recorded]) -> list[dict[str, Any]]:
    log = CycleLog(folder / "cycles.jsonl")
    feed(log, told)
    log.close()
    return list(read_lines(folder / "cycles.jsonl"))


def plans_of(told: tuple[e.Recorded, ...] | list[e.Recorded]) -> dict[int, Plan | None]:
    return {r.event.site.cycle: r.event.plan for r in told if isinstance(r.event, e.CycleStarted)}


def test_every_cycle_is_one_line_with_what_the_specification_names(tmp_path: Path) -> None:
    lines = logged(tmp_path, realistic_run())
    assert [line["step_number"] for line in lines] == list(range(len(lines)))
    asked = {"step_number", "plan_state", "llm_output", "supervisor_actions", "tool_calls", "ttl_remaining", "errors"}
    assert all(asked | {"timestamp"} <= set(line) for line in lines)
    assert [line["call"] for line in lines[:4]] == ["task_profile", "plan", "semantic_validation", "refinement"]
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
            "requests": 1,
        },
        "models": ["model-1"],
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
    assert [(error["type"], error["transient"]) for error in line["errors"]] == [("RateLimited", True)]


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


def test_an_abandoned_step_is_logged_as_such_with_the_tool_it_was_waiting_for(tmp_path: Path) -> None:
    story = Story()
    site = story.dispatch("tool", "EXECUTE", 1, PLAN, "gather")
    call_tool(story, site, {"url": "first"}, ends=True)
    call_tool(story, site, {"url": "second"}, ends=False)
    story.tell(e.StepFinished(pass_number=1, cycle=0, step=abandoned(PLAN.step("gather"))), site)
    (line,) = logged(tmp_path, story.told)
    assert [(error["call"], error["type"]) for error in line["errors"]] == [("tool", "Abandoned")]
    calls = [(call["tool"], call["arguments"], call["output"], call["error"]) for call in line["tool_calls"]]
    assert calls == [("fetch", {"url": "first"}, "page", None), ("fetch", {"url": "second"}, None, "Abandoned")]


def test_an_abandoned_step_keeps_the_error_that_its_call_ended_with(tmp_path: Path) -> None:
    story = Story()
    site = story.dispatch("step", "EXECUTE", 1, PLAN, "gather")
    story.ends(site, "step", "LimitReached")
    story.tell(e.StepFinished(pass_number=1, cycle=1, step=abandoned(PLAN.step("gather"))), site)
    (line,) = logged(tmp_path, story.told)
    assert [error["type"] for error in line["errors"]] == ["LimitReached", "Abandoned"]


def test_a_tool_in_flight_when_the_run_ends_is_in_the_line(tmp_path: Path) -> None:
    story = Story()
    call_tool(story, story.dispatch("tool", "EXECUTE", 1, PLAN, "gather"), {"url": "u"}, ends=False)
    (line,) = logged(tmp_path, story.told)
    assert [(call["arguments"], call["error"]) for call in line["tool_calls"]] == [({"url": "u"}, "Abandoned")]


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
        ("step", 3, 2),
        ("tool", 2, None),
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
        site=site, call="plan", role="planner", error="ServerFailed", message="503", usage=Usage(requests=3), seconds=1
    )
    story.tell(failed, site)
    story.ends(site, "plan", "ServerFailed")
    (line,) = logged(tmp_path, story.told)
    assert line["llm_output"] is None
    assert line["errors"] == [{"call": "plan", "type": "ServerFailed", "message": "503", "transient": False}]
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
        end = e.RunFinished(termination_reason="interrupted", converged=False, passes=0, ttl_used=1, ttl_allocated=9)
        story.tell(end)
    story_end = len(story.told)
    log = CycleLog(tmp_path / "cycles.jsonl")
    feed(log, story.told[:story_end])
    log.close()
    story.ends(late, "step")
    feed(log, story.told[story_end:])
    (line,) = read_lines(tmp_path / "cycles.jsonl")
    assert [error["type"] for error in line["errors"]] == ["Abandoned"]
    assert plan_at([line], 1) == PLAN


def test_the_plan_of_every_cycle_can_be_rebuilt(tmp_path: Path) -> None:
    told = realistic_run()
    lines = logged(tmp_path, told)
    assert {cycle: plan_at(lines, cycle) for cycle in plans_of(told)} == plans_of(told)


def test_a_cycle_that_is_not_there_or_builds_on_one_that_is_not_is_a_lookup_error(tmp_path: Path) -> None:
    lines = logged(tmp_path, realistic_run())
    with pytest.raises(LookupError, match="no cycle 99"):
        plan_at(lines, 99)
    with pytest.raises(LookupError, match=r"the plan of line \d+ builds on that of line \d+, which is missing"):
        plan_at([line for line in lines if line["step_number"] != 4], 5)


def test_the_journal_grows_linearly_with_the_run(tmp_path: Path) -> None:
    sizes = []
    for length in (40, 80):
        (folder := tmp_path / str(length)).mkdir()
        logged(folder, chain_run(length))
        sizes.append((folder / "cycles.jsonl").stat().st_size)
    assert sizes[1] < 2.1 * sizes[0]


def test_an_added_step_costs_itself_and_not_the_whole_plan(tmp_path: Path) -> None:
    steps = tuple(PlanStep(step_id=f"s{n}", description="d") for n in range(100))
    longer = renumbered((*steps[:50], PlanStep(step_id="new", description="d"), *steps[50:]))
    story = Story()
    story.call("refinement", "REFINE", 1, Plan(goal="g", steps=renumbered(steps)))
    story.call("step", "EXECUTE", 2, Plan(goal="g", steps=longer))
    state = logged(tmp_path, story.told)[1]["plan_state"]
    assert state["order"] == {"start": 50, "removed": 0, "inserted": ["new"]}
    assert state["steps"] == [{"step_id": "new", "fields": {"description": "d"}}]


def steps_strategy() -> st.SearchStrategy[tuple[PlanStep, ...]]:
    step = st.builds(
        PlanStep,
        step_id=st.sampled_from([*"abcdefgh"]),
        description=st.sampled_from(["-", "one", "two"]),
        status=st.sampled_from(["pending", "running", "complete", "failed"]),
        dependencies=st.lists(st.sampled_from([*"abc"]), max_size=2).map(tuple),
        step_output=st.none() | st.text(max_size=5),
        arguments=st.none() | st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
        agent=st.sampled_from([None, "llm"]),
        incomplete=st.booleans(),
    )
    return st.lists(step, max_size=6, unique_by=lambda s: s.step_id).map(tuple).map(renumbered)


questions = st.lists(st.builds(FollowUpQuestion, question=st.just("why?"), assumption=st.text(max_size=3)), max_size=2)
plans = st.builds(
    Plan,
    goal=st.sampled_from(["", "g", "h"]),
    task=st.sampled_from(["", "t"]),
    steps=steps_strategy(),
    questions=questions.map(tuple),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.none() | plans, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_any_sequence_of_plans_is_rebuilt_whatever_order_the_cycles_end_in(
    tmp_path_factory: pytest.TempPathFactory, sequence: list[Plan | None], rng: random.Random
) -> None:
    story = Story()
    sites = [story.dispatch("step", "EXECUTE", 1, plan) for plan in sequence]
    rng.shuffle(sites)
    for site in sites:
        story.ends(site, "step")
    lines = logged(tmp_path_factory.mktemp("run"), story.told)
    assert {cycle: plan_at(lines, cycle) for cycle in plans_of(story.told)} == dict(enumerate(sequence, start=1))


batches = st.lists(st.lists(st.none() | plans, min_size=1, max_size=4), min_size=1, max_size=5)


def told_in_batches(of: list[list[Plan | None]], rng: random.Random) -> Story:
    """Batches one after the other; the calls of each are dispatched in order and end in any order."""
    story = Story()
    for batch in of:
        sites = [story.dispatch("step", "EXECUTE", 1, plan) for plan in batch]
        rng.shuffle(sites)
        for site in sites:
            story.ends(site, "step")
    return story


@settings(max_examples=60, deadline=None)
@given(batches, st.randoms(use_true_random=False))
def test_of_a_run_that_was_killed_every_line_that_is_there_is_rebuilt(
    tmp_path_factory: pytest.TempPathFactory, of: list[list[Plan | None]], rng: random.Random
) -> None:
    story = told_in_batches(of, rng)
    plans_told = {r.sequence: r.event.plan for r in story.told if isinstance(r.event, e.CycleStarted)}
    lines = logged(tmp_path_factory.mktemp("run"), story.told)
    for length in range(1, len(lines) + 1):
        there = lines[:length]
        rebuilt = {line["sequence"]: plan_of(there, line["sequence"]) for line in there}
        assert rebuilt == {sequence: plans_told[sequence] for sequence in rebuilt}


@settings(max_examples=60, deadline=None)
@given(batches, st.randoms(use_true_random=False))
def test_the_plans_of_the_lines_do_not_depend_on_the_order_the_cycles_end_in(
    tmp_path_factory: pytest.TempPathFactory, of: list[list[Plan | None]], rng: random.Random
) -> None:
    def states() -> dict[int, Any]:
        lines = logged(tmp_path_factory.mktemp("run"), told_in_batches(of, rng).told)
        return {line["sequence"]: line["plan_state"] for line in lines}

    assert states() == states()


def test_lines_sorted_by_cycle_do_not_depend_on_the_order_the_cycles_end_in(tmp_path: Path) -> None:
    def run(folder: str, order: list[int]) -> list[dict[str, Any]]:
        story = Story()
        sites = [story.dispatch("step", "EXECUTE", 1, PLAN, step.step_id) for step in PLAN.steps[:3]]
        for index in order:
            story.answer(sites[index], "step", f"answer {index}")
            story.ends(sites[index], "step")
        (tmp_path / folder).mkdir()
        lines = sorted(logged(tmp_path / folder, story.told), key=lambda line: line["step_number"])
        return [line | {"timestamp": "", "end_time": ""} for line in lines]

    assert run("one", [0, 1, 2]) == run("other", [2, 0, 1])
