"""Sprint 1's acceptance scenarios and edge cases, black-box, through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from aeon.domain.plan import Plan
from aeon.domain.result import SIMULATED_LINE
from aeon.files.resources import resource_root
from aeon.observability.cycle_log import plan_at, plan_of
from tests.e2e.conftest import Core, own, plan, planned

SUM = planned("add", tool="calculator", arguments={"expression": "5 + 10"})
NO_TOOL_FITS: dict[str, Any] = {"answer": {"tool": None, "arguments": None}}
SAYS = {"answer": {"step_output": "said", "clarity_state": "CLEAR"}}


def answer_of(out: str) -> str:
    first, _, rest = out.partition("\n")
    assert first == SIMULATED_LINE
    return rest.rstrip("\n")


# US1: a plan from words


def test_a_task_becomes_a_plan_with_goal_ids_descriptions_and_statuses(core: Core) -> None:
    run = core({}, task="calculate the sum of 5 and 10")
    made = next(event for event in run.events if event["event"] == "plan_made")["plan"]
    assert made["goal"]
    assert made["steps"]
    assert {step["status"] for step in made["steps"]} == {"pending"}
    assert all(step["step_id"] and step["description"] for step in made["steps"])
    assert made["task"] == "calculate the sum of 5 and 10"
    assert Plan.model_validate(made)


# US2: step by step


def test_steps_run_one_after_the_other_from_pending_over_running_to_complete(core: Core) -> None:
    run = core({"plan": plan(planned("a"), planned("b"), planned("c", "a", "b")), "step": {**SAYS}})
    told = [
        (e["event"], e["step"]["step_id"], e["step"]["status"])
        for e in run.events
        if e["event"].startswith("step_")
    ]
    assert told == [
        (event, step_id, status)
        for step_id in "abc"
        for event, status in (("step_started", "running"), ("step_finished", "complete"))
    ]
    assert (run.status, run.result["termination_reason"]) == (0, "completed")
    assert "Completed." in run.err


def test_after_a_failed_step_the_later_ones_run_and_see_its_error(core: Core) -> None:
    broken = planned("b", tool="closed", arguments={"article": "A-1"})
    run = core({"plan": plan(planned("a"), broken, planned("c"))}, *own("closed"))
    assert run.statuses == {"a": "complete", "b": "failed", "c": "complete"}
    assert (run.status, run.result["termination_reason"]) == (3, "step_failed")
    assert "  failed: b: " in run.err
    assert "the shop is closed" in run.err


def test_steps_keep_the_order_of_the_plan(core: Core) -> None:
    run = core({"plan": plan(planned("last", "first"), planned("first")), "step": {**SAYS}})
    started = [e["step"]["step_id"] for e in run.events if e["event"] == "step_started"]
    assert started == ["first", "last"]


# US3: the supervisor


def test_malformed_json_is_repaired_and_the_run_goes_on(core: Core) -> None:
    calls = {
        "plan": plan(planned("a")),
        "step": [{"text": '{"step_output": "half'}],
        "repair": {"answer": {"step_output": "whole", "clarity_state": "CLEAR"}},
    }
    run = core(calls)
    assert (run.status, answer_of(run.out)) == (0, "whole")
    (action,) = run.cycle_of("a")["supervisor_actions"]
    assert (action["call"], action["outcome"], len(action["attempts"])) == ("step", "repaired", 1)
    assert "repair  step a  repaired after 1 attempt" in run.err


@pytest.mark.parametrize(
    ("malformed", "said"),
    [
        ([planned("a", "b"), planned("b", "a")], "loop"),
        ([planned("a"), planned("a")], "unique"),
        ([planned("a", "nowhere")], "not a step of the plan"),
        ([{"step_id": "a"}], "description"),
    ],
)
def test_a_plan_with_a_wrong_structure_goes_through_repair(
    core: Core, malformed: list[Any], said: str
) -> None:
    whole_steps = [
        {"provides": [], "handoff_to_next": None, "tool": None, "arguments": None, **step}
        for step in malformed
    ]
    wrong = {"text": json.dumps({"goal": "g", "steps": whole_steps})}
    run = core({"plan": wrong, "repair": plan(planned("a"), planned("b", "a"))})
    assert run.status == 0
    assert list(run.steps) == ["a", "b"]
    (action,) = run.cycles[0]["supervisor_actions"]
    assert any(said in error for error in action["errors"])


def test_what_two_repairs_do_not_mend_is_unrecoverable_and_told_as_such(core: Core) -> None:
    run = core({"plan": {"text": "no plan"}, "repair": {"text": "still none"}})
    assert (run.status, run.result["termination_reason"]) == (1, "failed")
    assert run.result["error"]["type"] == "ValidationError"
    (line,) = run.cycles
    assert len(line["supervisor_actions"][0]["attempts"]) == 2
    assert line["supervisor_actions"][0]["outcome"] == "unrecoverable"
    assert [error["type"] for error in line["errors"]] == ["ValidationError"]
    assert "Error: plan" in run.err


def test_a_step_that_cannot_be_repaired_fails_and_the_run_goes_on(core: Core) -> None:
    calls = {
        "plan": plan(planned("a"), planned("b")),
        "step": [{"when": {"step_id": "a"}, "text": "no JSON"}],
        "repair": {"text": "still none"},
    }
    run = core(calls)
    assert run.statuses == {"a": "failed", "b": "complete"}
    assert run.status == 3


# US4: tools


def test_a_plan_calls_a_tool_and_the_next_cycle_gets_its_result(core: Core) -> None:
    run = core(
        {"plan": plan(SUM, planned("say", "add"))},
        "tools=builtin",
        task="calculate the sum of 5 and 10",
    )
    line = run.cycle_of("add")
    (call,) = line["tool_calls"]
    assert (call["tool"], call["arguments"], call["output"], call["error"]) == (
        "calculator",
        {"expression": "5 + 10"},
        15,
        None,
    )
    assert (line["cycle"], line["llm_output"]) == (None, None)
    assert run.steps["add"]["step_output"] == "15"
    assert "Output of step add: 15" in run.steps["say"]["step_output"]
    assert "15" in answer_of(run.out)
    assert run.status == 0


def test_invalid_arguments_are_repaired_before_the_tool_is_called(core: Core) -> None:
    wrong = planned("buy", tool="price", arguments={"article": "A-1", "pieces": "three"})
    calls = {"plan": plan(wrong), "repair": {"answer": {"article": "A-1", "pieces": 3}}}
    run = core(calls, *own("price"))
    assert answer_of(run.out) == "28.5"
    line = run.cycle_of("buy")
    assert line["supervisor_actions"][0]["call"] == "tool_arguments"
    assert "pieces" in line["supervisor_actions"][0]["errors"][0]
    assert [call["arguments"] for call in line["tool_calls"]] == [{"article": "A-1", "pieces": 3}]


def test_arguments_that_cannot_be_repaired_fail_the_step_and_the_tool_is_never_called(
    core: Core,
) -> None:
    wrong = planned("buy", tool="price", arguments={"article": "A-1", "pieces": "three"})
    run = core(
        {"plan": plan(wrong), "repair": {"answer": {"article": 1, "pieces": "four"}}}, *own("price")
    )
    assert run.statuses == {"buy": "failed"}
    assert run.cycle_of("buy")["tool_calls"] == []
    assert run.status == 3


def test_arguments_that_a_step_does_not_give_are_asked_for(core: Core) -> None:
    calls = {
        "plan": plan(planned("buy", tool="price")),
        "tool_arguments": {"answer": {"article": "A-1", "pieces": 2}},
    }
    run = core(calls, *own("price"))
    assert answer_of(run.out) == "19.0"
    line = run.cycle_of("buy")
    assert line["cycle"] == 2
    assert json.loads(line["llm_output"]) == {"article": "A-1", "pieces": 2}
    assert line["tool_calls"][0]["output"] == 19.0


@pytest.mark.parametrize(
    "given", [{}, {"arguments": {"article": "A-1", "pieces": "three"}}], ids=("none", "wrong")
)
def test_without_a_script_no_tool_is_called_with_arguments_that_were_made_up(
    core: Core, given: dict[str, Any]
) -> None:
    run = core(
        {"plan": plan(planned("buy", tool="price", **given), planned("say", "buy"))}, *own("price")
    )
    assert run.statuses == {"buy": "complete", "say": "complete"}
    assert run.cycle_of("buy")["tool_calls"] == []
    output = run.steps["buy"]["step_output"]
    assert (
        output
        == "(simulated) Tool 'price' was not called: the simulated provider makes no arguments up for it."
    )


# US5: memory


def test_what_a_step_gave_is_read_from_memory_by_a_later_one(core: Core) -> None:
    look = planned("look", "add", tool="memory_read", arguments={"key": "step/add/output"})
    miss = planned("miss", "look", tool="memory_read", arguments={"key": "step/none/output"})
    find = planned("find", "miss", tool="memory_search", arguments={"prefix": "step/add/"})
    run = core({"plan": plan(SUM, look, miss, find)}, "tools=builtin")
    assert json.loads(run.steps["look"]["step_output"]) == {"found": True, "value": "15"}
    assert json.loads(run.steps["miss"]["step_output"]) == {"found": False, "value": None}
    assert json.loads(run.steps["find"]["step_output"]) == {"step/add/output": "15"}


# US6: TTL


def test_a_spent_budget_ends_a_run_with_a_structured_response(core: Core) -> None:
    calls = {"plan": plan(planned("a"), planned("b", "a"), planned("c", "b")), "step": {**SAYS}}
    run = core(calls, "ttl.base=2")
    assert run.status == 3
    assert run.result["termination_reason"] == "ttl_expired"
    assert run.result["ttl"] == {"allocated": 2, "used": 2, "remaining": 0}
    response = run.result["ttl_expiration"]
    assert (response["converged"], response["result_type"]) == (False, "ttl_expired")
    assert response["latest_pass_result"] is not None
    assert run.statuses == {"a": "complete", "b": "pending", "c": "pending"}
    assert answer_of(run.out) == "said"
    assert "Finished without completing: the TTL is spent (ttl_expired)." in run.err
    assert "the TTL is spent" in run.err


def test_each_cycle_leaves_one_less(core: Core) -> None:
    run = core(
        {"plan": plan(planned("a"), SUM, planned("c", "a", "add"))}, "tools=builtin", "ttl.base=9"
    )
    assert [(line["call"], line["ttl_remaining"]) for line in run.cycles] == [
        ("plan", 8),
        ("step", 7),
        ("tool", 7),
        ("step", 6),
    ]


def test_a_spent_budget_ends_it_before_tool_steps_that_take_no_cycle(core: Core) -> None:
    run = core({"plan": plan(SUM, {**SUM, "step_id": "again"})}, "tools=builtin", "ttl.base=1")
    assert (run.status, run.result["termination_reason"]) == (3, "ttl_expired")
    assert run.result["ttl"]["remaining"] == 0
    assert run.statuses == {"add": "pending", "again": "pending"}


def test_a_limit_on_the_ttl_holds_in_core_mode(core: Core) -> None:
    run = core({"plan": plan(SUM)}, "tools=builtin", "ttl.limit=5")
    assert run.result["ttl"] == {"allocated": 5, "used": 1, "remaining": 4}


def test_the_last_cycles_tool_call_is_not_cut_off_by_the_budget(core: Core) -> None:
    calls = {
        "plan": plan(planned("buy", tool="price")),
        "tool_arguments": {"answer": {"article": "A-1", "pieces": 2}},
    }
    run = core(calls, *own("price"), "ttl.base=2")
    assert (run.status, answer_of(run.out)) == (0, "19.0")


# US7: the log


FR_038 = {
    "step_number",
    "plan_state",
    "llm_output",
    "supervisor_actions",
    "tool_calls",
    "ttl_remaining",
    "errors",
}
CORRELATION = {"run_id", "pass_number", "step_id", "call", "sequence", "timestamp"}


def test_every_cycle_and_every_tool_step_is_a_line_with_every_field(core: Core) -> None:
    broken = planned("b", tool="closed", arguments={"article": "A-1"})
    lost = planned("d", tool="oracle")
    calls = {
        "plan": plan(SUM, broken, planned("c", "add"), lost),
        "step": [{"when": {"step_id": "c"}, "fail": "refused"}],
        "repair": NO_TOOL_FITS,
    }
    run = core(calls, "tools=builtin", *own("closed"))
    assert [line["step_id"] for line in run.cycles] == [None, "add", "b", "c", "d"]
    assert [line["step_number"] for line in run.cycles] == [1, 2, 3, 4, 5]
    assert [line["cycle"] for line in run.cycles] == [1, None, None, 2, 3]
    assert all(set(line) >= FR_038 | CORRELATION for line in run.cycles)
    assert {line["run_id"] for line in run.cycles} == {run.result["run_id"]}
    assert [line["pass_number"] for line in run.cycles] == [0, 1, 2, 3, 4]
    sequences = [line["sequence"] for line in run.cycles]
    assert sequences == sorted(set(sequences))
    errors = {
        line["step_id"]: [(e["type"], e["message"]) for e in line["errors"]] for line in run.cycles
    }
    assert errors["add"] == []
    assert errors["b"] == [("StepError", "Tool 'closed': RuntimeError: the shop is closed")]
    assert [kind for kind, _ in errors["c"]] == ["Refused"]
    assert errors["d"] == [("StepError", "Tool 'oracle' not found in registry")]
    assert run.cycle_of("d")["supervisor_actions"][0]["errors"] == [
        "/tool: Tool 'oracle' not found in registry"
    ]


def test_the_log_is_as_its_published_schema_says(core: Core) -> None:
    schema = json.loads((resource_root() / "schemas" / "artefacts" / "cycles.json").read_bytes())
    run = core({"plan": plan(SUM, planned("a", tool="oracle"))}, "tools=builtin")
    for line in run.cycles:
        Draft202012Validator(schema).validate(line)


def test_the_plan_of_any_line_is_rebuilt(core: Core) -> None:
    run = core({"plan": plan(SUM, planned("a", "add"), planned("b", "a"))}, "tools=builtin")
    before_b = plan_at(run.cycles, run.cycle_of("b")["cycle"])
    assert before_b is not None
    assert [step.status for step in before_b.steps] == ["complete", "complete", "running"]
    of_tool = plan_of(run.cycles, run.cycle_of("add")["sequence"])
    assert of_tool is not None
    assert [step.status for step in of_tool.steps] == ["running", "pending", "pending"]
    assert plan_at(run.cycles, 1) is None


# US8: the ways of carrying out a step


def test_a_missing_tool_is_repaired_and_the_repaired_step_replaces_the_original(core: Core) -> None:
    lost = planned("buy", tool="prices", arguments={"article": "A-1", "pieces": 2})
    repair = {"answer": {"tool": "price", "arguments": '{"article": "A-1", "pieces": 2}'}}
    run = core({"plan": plan(lost), "repair": repair}, *own("price"))
    step = run.steps["buy"]
    assert (step["tool"], step["status"], step["step_output"]) == ("price", "complete", "19.0")
    assert step["errors"] == ["Tool 'prices' not found in registry"]
    assert run.cycle_of("buy")["tool_calls"][0]["tool"] == "price"
    assert run.advisories("unknown_tool") == ["Step buy: Tool 'prices' not found in registry"]
    assert run.advisories("repaired_step") == ["Step buy was repaired: it uses tool 'price' now"]
    assert "warning  unknown_tool buy  Step buy: Tool 'prices' not found in registry" in run.err
    assert "Step buy was repaired: it uses tool 'price' now" in run.err


def test_a_missing_tool_that_no_repair_finds_is_done_by_the_model(core: Core) -> None:
    calls = {"plan": plan(planned("buy", tool="prices")), "repair": NO_TOOL_FITS, "step": {**SAYS}}
    run = core(calls, *own("price"))
    assert (run.status, answer_of(run.out)) == (0, "said")
    assert run.advisories("fallback_step") == ["Step buy is carried out by the model instead"]
    assert "Step buy is carried out by the model instead" in run.err
    assert run.result["ttl"]["used"] == 2


def test_a_repair_may_not_name_a_tool_that_does_not_exist(core: Core) -> None:
    calls = {
        "plan": plan(planned("buy", tool="prices")),
        "repair": {"answer": {"tool": "another", "arguments": None}},
        "step": {**SAYS},
    }
    run = core(calls, *own("price"))
    action = run.cycle_of("buy")["supervisor_actions"][0]
    assert (len(action["attempts"]), action["outcome"]) == (2, "unrecoverable")
    assert run.advisories("fallback_step")
    assert run.cycle_of("buy")["tool_calls"] == []


def test_the_simulated_provider_never_puts_a_tool_in_the_place_of_a_missing_one(core: Core) -> None:
    run = core({"plan": plan(planned("buy", tool="prices"))}, *own("price"))
    assert run.cycle_of("buy")["tool_calls"] == []
    assert run.advisories("fallback_step")


def test_the_program_shows_every_steps_output_whichever_way_it_ran(core: Core) -> None:
    steps = (SUM, planned("lost", tool="oracle"), planned("say", "add", "lost"))
    calls = {
        "plan": plan(*steps),
        "step": {"answer": {"step_output": "by the model", "clarity_state": "CLEAR"}},
    }
    run = core(calls, "tools=builtin")
    assert "output  add  15" in run.err
    assert "output  lost  by the model" in run.err
    assert "output  say  by the model" in run.err
    assert "tool  calculator add  gave a result" in run.err


def test_warnings_are_given_even_where_no_progress_is_shown(core: Core) -> None:
    run = core({"plan": plan(planned("lost", tool="oracle"))}, "progress=none", "tools=builtin")
    assert "Warning: Step lost: Tool 'oracle' not found in registry" in run.err
    assert "Warning: Step lost is carried out by the model instead" in run.err


# A person's plan

WORKFLOW = """\
goal: g
inputs: {article: a number}
steps:
  - {id: buy, description: "price of ${inputs.article}", tool: price,
     arguments: {article: "${inputs.article}", pieces: 3}}
  - {id: double, description: twice, depends_on: [buy], tool: calculator,
     arguments: {expression: "${steps.buy.output} * 2"}}
  - {id: both, description: tool and agent, depends_on: [double], tool: echo, agent: llm, arguments: {text: hello}}
  - {id: neither, description: neither tool nor agent, depends_on: [both]}
"""


def of_a_file(tmp_path: Path, text: str) -> str:
    (tmp_path / "mine.yaml").write_text(text)
    return f"plan_file={tmp_path / 'mine.yaml'}"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["core", "adaptive"])
def test_a_persons_plan_runs_with_references_in_both_modes(
    core: Core, tmp_path: Path, mode: str
) -> None:
    options = (of_a_file(tmp_path, WORKFLOW), "tools=builtin", *own("price"), "inputs.article=A-7")
    run = core({"step": {**SAYS}, "repair": NO_TOOL_FITS}, *options, mode=mode)
    assert run.status == 0
    assert run.steps["buy"]["description"] == "price of A-7"
    assert run.steps["double"]["step_output"] == "57"
    assert run.steps["both"]["step_output"] == "hello"
    assert run.steps["neither"]["errors"] == ["The step names neither a tool nor agent: llm"]
    assert run.advisories("fallback_step") == ["Step neither is carried out by the model instead"]


def test_a_person_is_warned_of_a_missing_tool_before_and_during_the_run(
    core: Core, tmp_path: Path
) -> None:
    text = "goal: g\nsteps:\n  - {id: a, description: d, tool: oracle, arguments: {}}\n"
    run = core(
        {"repair": NO_TOOL_FITS, "step": {**SAYS}}, of_a_file(tmp_path, text), "tools=builtin"
    )
    before, _, during = run.err.partition(" run ")
    assert "Warning: " in before
    assert "mine.yaml:3" in before
    assert "oracle" in before
    assert "warning  unknown_tool a" in during


def test_tools_of_the_run_itself_are_not_called_missing(core: Core, tmp_path: Path) -> None:
    text = "goal: g\nsteps:\n  - {id: a, description: d, tool: memory_search, arguments: {prefix: ''}}\n"
    run = core({}, of_a_file(tmp_path, text), "tools=builtin")
    assert "Warning: " not in run.err
    assert run.statuses == {"a": "complete"}


def test_a_reference_to_a_failed_step_fails_the_step_that_needs_it(
    core: Core, tmp_path: Path
) -> None:
    text = """\
goal: g
steps:
  - {id: a, description: d, tool: closed, arguments: {article: x}}
  - {id: b, description: d, depends_on: [a], tool: echo, arguments: {text: "${steps.a.output}"}}
  - {id: c, description: d, agent: llm}
"""
    run = core({}, of_a_file(tmp_path, text), "tools=builtin", *own("closed"))
    assert run.statuses == {"a": "failed", "b": "failed", "c": "complete"}
    assert "step `a` has no output" in run.steps["b"]["errors"][-1]
    assert run.result["ttl"]["used"] == 1


# Edge cases


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("hangs", "took longer than 0.2 seconds"),
        ("closed", "the shop is closed"),
        ("odd", "not JSON"),
        ("lies", "output schema"),
        ("quits", "SystemExit: 7"),
    ],
)
def test_a_tool_that_misbehaves_fails_its_step_and_the_run_goes_on(
    core: Core, tool: str, said: str
) -> None:
    arguments = {"article": "x"} if tool == "closed" else {"text": "x"}
    calls = {"plan": plan(planned("bad", tool=tool, arguments=arguments), planned("good"))}
    run = core(calls, *own(tool), "tools.timeout_seconds=0.2")
    assert run.statuses == {"bad": "failed", "good": "complete"}
    assert said in run.steps["bad"]["errors"][-1]
    assert said in run.steps["good"]["step_output"]
    assert said in run.cycle_of("bad")["tool_calls"][0]["error"]
    assert run.status == 3


def test_what_a_tool_prints_is_no_part_of_the_answer(core: Core) -> None:
    run = core(
        {"plan": plan(planned("talk", tool="talks", arguments={"text": "hello"}))}, *own("talks")
    )
    assert answer_of(run.out) == "hello"
    assert "NOISE" not in run.out
    assert "NOISE hello" in run.err


@pytest.mark.slow
def test_a_hundred_megabytes_are_cut_and_that_is_said(core: Core) -> None:
    calls = {
        "plan": plan(planned("big", tool="huge", arguments={"text": "x"}), planned("say", "big"))
    }
    run = core(calls, *own("huge"))
    assert run.statuses == {"big": "complete", "say": "complete"}
    assert len(run.steps["big"]["step_output"]) < 21_000
    assert "99,980,000 characters cut" in run.err


def test_when_the_provider_is_down_the_step_fails_and_the_run_ends(core: Core) -> None:
    calls = {"plan": plan(planned("a"), planned("b")), "step": [{"fail": 503}]}
    run = core(calls, "provider.retry.attempts=2")
    assert (run.status, run.result["termination_reason"]) == (1, "failed")
    assert run.statuses == {"a": "failed", "b": "pending"}
    assert [e["transient"] for e in run.cycle_of("a")["errors"]] == [True, False]


def test_a_plan_of_ten_steps_runs_whole(core: Core) -> None:
    steps = [planned("s0"), *(planned(f"s{n}", f"s{n - 1}") for n in range(1, 10))]
    run = core({"plan": plan(*steps), "step": {**SAYS}})
    assert (run.status, set(run.statuses.values())) == (0, {"complete"})


@pytest.mark.slow
def test_a_plan_of_thirty_steps_is_not_cut_by_a_limit_on_passes(core: Core) -> None:
    steps = [planned(f"s{n}", tool="echo", arguments={"text": str(n)}) for n in range(30)]
    run = core({"plan": plan(*steps)}, "tools=builtin")
    assert (run.status, len(run.statuses)) == (0, 30)


def test_tools_cost_adaptive_mode_nothing_and_all_start_at_once(core: Core) -> None:
    tools = [planned(f"t{n}", tool="echo", arguments={"text": str(n)}) for n in range(20)]
    steps = [*tools, *(planned(f"m{n}") for n in range(5))]
    run = core({"plan": plan(*steps)}, "tools=builtin", "ttl.limit=6", mode="adaptive")
    first = next(
        e["ready"] for e in run.events if e["event"] == "pass_started" and e["pass_number"] == 1
    )
    started = [
        e["step"]["step_id"]
        for e in run.events
        if e["event"] == "step_started" and e["pass_number"] == 1
    ]
    assert len(first) == 25
    assert started == [*(f"t{n}" for n in range(20)), "m0"]
    assert all(run.statuses[f"t{n}"] == "complete" for n in range(20))


@pytest.mark.slow
def test_twenty_hostile_tools_in_one_batch_hold_nobody_up(core: Core) -> None:
    kinds = ["hangs", "quits", "odd", "lies", "talks"] * 4
    steps = [planned(f"t{n}", tool=kind, arguments={"text": "x"}) for n, kind in enumerate(kinds)]
    options = (*own(*set(kinds)), "tools.timeout_seconds=0.3", "limits.max_passes=1")
    run = core({"plan": plan(*steps, planned("m"))}, *options, mode="adaptive")
    expected = {
        f"t{n}": "complete" if kind == "talks" else "failed" for n, kind in enumerate(kinds)
    }
    assert {step_id: run.statuses[step_id] for step_id in expected} == expected
    assert run.statuses["m"] == "complete"
    assert run.out.splitlines()[0] == SIMULATED_LINE
    assert "NOISE" not in run.out
