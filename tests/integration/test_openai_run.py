"""A whole run over the wire: order, prompts, schemas, deltas, budget, repair, limits."""

from __future__ import annotations

import json

from aeon.files.jsonl import read_lines
from aeon.report.ending import headline
from tests.integration.wire import TASK, run, script, worked
from tests.support.fences import texts_in
from tests.support.scripted_model import (
    add,
    assessment,
    blocked,
    issue,
    modify,
    plan,
    planned,
    refinement,
    report,
    unfinished,
)

PHASE_B = ["task_profile", "plan", "semantic_validation", "refinement"]
EVALUATE = ["semantic_validation", "convergence"]


def test_the_server_sees_the_phases_in_order_and_refuses_no_schema(start_server):
    server = start_server(
        script(plan=plan("a", planned("b", "a")), convergence=[unfinished(), assessment()]),
        key="sk-test",
    )
    result = run(server)
    assert server.names == [*PHASE_B, "step", *EVALUATE, "step", *EVALUATE]
    assert server.refused == []
    assert result.converged
    assert result.answer == "Work on: do b"
    assert all(request.strict for request in server.requests)
    assert all(TASK in request.user for request in server.requests)


def test_tools_that_do_not_exist_cannot_even_be_named_on_the_wire(start_server):
    server = start_server(script(plan=plan("a", "b")))
    run(server)
    for name in ("plan", "refinement"):
        (request, *_) = server.of(name)
        assert not {"tool", "arguments"} & request.schema["$defs"]["step"]["properties"].keys()


def test_a_delta_changes_only_what_it_names_and_the_rest_is_executed_once(start_server):
    def step(request):
        again = "<previous_output-" in request.user
        return (
            blocked()
            if "do b" in request.user.split("Your goal")[1] and not again
            else worked(request)
        )

    server = start_server(
        script(
            plan=plan("a", "b", planned("c", "a", "b")),
            step=step,
            semantic_validation=[report(), report(issue("i1", "b")), report(), report(), report()],
            refinement=[refinement(), refinement(modify("b", addresses_issues=["i1"]))],
            convergence=[unfinished(), unfinished(0.5), assessment()],
        )
    )
    result = run(server)
    assert result.converged
    goals = [goal for request in server.of("step") for goal in texts_in(request.user, "step_goal")]
    assert sorted(goals[:2]) == ["do a", "do b"]
    assert goals[2:] == ["do b better", "do c"]
    (change,) = result.history.passes[1].refinement.changes
    assert (change.before.description, change.after.description) == ("do b", "do b better")


def test_a_malformed_answer_is_repaired_under_the_name_repair_and_recorded(start_server, tmp_path):
    broken = {**assessment(), "completeness_score": 1.7}
    server = start_server(script(convergence=[broken], repair=["```json\n{}\n```", assessment()]))
    result = run(server, directory=tmp_path)
    assert server.names[-3:] == ["convergence", "repair", "repair"]
    first, second = server.of("repair")
    assert "/completeness_score" in first.user
    assert "1.7" in first.user
    assert first.schema == server.of("convergence")[0].schema
    assert second.user != first.user
    (record,) = result.repairs
    assert (record.call, record.attempts, record.outcome) == ("convergence", 2, "repaired")
    assert record.input_tokens == 200
    assert result.usage.by_call["repair"].requests == 2
    lines = list(read_lines(tmp_path / "cycles.jsonl"))
    assert [line["call"] for line in lines] == [*PHASE_B[:3], "step", *EVALUATE]
    assert lines[-1]["supervisor_actions"]


def test_a_cap_on_calls_is_never_exceeded_and_names_itself(start_server):
    server = start_server(script(plan=plan(*"abcdefgh"), convergence=unfinished()))
    result = run(server, "limits.max_llm_calls=7", "execution.max_parallel=8")
    assert len(server.requests) == 7
    assert result.termination_reason == "max_llm_calls"
    assert result.exit_status == 3
    assert result.usage.total.requests == 7


def test_a_cap_on_tokens_ends_the_run_with_what_it_has(start_server):
    server = start_server(script(plan=plan("a", planned("b", "a")), convergence=unfinished()))
    result = run(server, "limits.max_tokens=550")
    assert result.termination_reason == "max_tokens"
    assert result.overrun is not None
    assert (result.overrun.cap, result.overrun.used) == (550, result.usage.total.total_tokens)
    assert "the cap of 550 tokens was reached with" in headline(result)
    assert result.usage.total.total_tokens <= 720


def test_reasoning_modes_and_roles_choose_model_and_parameters(start_server):
    server = start_server(script())
    run(
        server,
        "reasoning.balanced.effort=medium",
        "roles.grader.model=judge-1",
        "roles.worker.temperature=0.5",
        "provider.max_tokens=900",
    )
    assert server.of("convergence")[0].body["model"] == "judge-1"
    assert server.of("step")[0].body["temperature"] == 0.5
    assert server.of("step")[0].body["reasoning_effort"] == "medium"
    assert "reasoning_effort" not in server.of("task_profile")[0].body
    assert server.of("plan")[0].body["max_completion_tokens"] == 900


def test_an_answer_schema_reaches_the_wire_and_the_answer_is_its_json(start_server, tmp_path):
    schema = {
        "type": "object",
        "properties": {"routes": {"type": "array", "items": {"type": "string"}}},
        "required": ["routes"],
        "additionalProperties": False,
    }
    file = tmp_path / "answer.json"
    file.write_text(json.dumps(schema))

    def step(request):
        answer = worked(request)
        final = "<answer_schema" in request.user
        return {**answer, "step_output": {"routes": ["/login"]}} if final else answer

    server = start_server(
        script(
            plan=plan("a", planned("b", "a")), step=step, convergence=[unfinished(), assessment()]
        )
    )
    result = run(server, f"answer.schema={file}")
    assert json.loads(result.answer) == {"routes": ["/login"]}
    first, last = server.of("step")
    assert first.schema["properties"]["step_output"]["type"] == "string"
    assert last.schema["properties"]["step_output"]["properties"]["routes"]
    assert last.strict


def test_a_plan_without_one_final_step_is_repaired_when_the_answer_has_a_schema(
    start_server, tmp_path
):
    file = tmp_path / "answer.json"
    file.write_text(
        '{"type": "object", "properties": {}, "required": [], "additionalProperties": false}'
    )
    server = start_server(
        script(
            plan=plan("a", "b"),
            repair=plan("a", planned("b", "a")),
            step=lambda r: {
                **worked(r),
                "step_output": {} if "<answer_schema" in r.user else "text",
            },
            convergence=assessment(),
        )
    )
    result = run(server, f"answer.schema={file}")
    assert "exactly one step that no other depends on" in server.of("repair")[0].user
    assert result.answer == "{}"


def test_inputs_are_fenced_into_the_prompts_and_hashed(start_server):
    server = start_server(script(plan=plan("a", "b")))
    text = "line one\r\nline </input> two\n"
    result = run(server, inputs={"notes": text})
    for name in (
        "task_profile",
        "plan",
        "step",
        "convergence",
        "refinement",
        "semantic_validation",
    ):
        assert text in server.of(name)[0].user
    assert list(result.hashes.inputs) == ["notes"]


def test_an_added_step_runs_in_the_next_pass_and_becomes_the_answer(start_server):
    server = start_server(
        script(
            refinement=[refinement(add("more", "only")), refinement()],
            convergence=[unfinished(), assessment()],
        )
    )
    assert run(server).answer == "Work on: do more"
