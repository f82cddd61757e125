from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from aeon.domain.errors import NotSimulated, ServerFailed
from aeon.domain.graph import final_steps, find_cycle, layers
from aeon.domain.plan import Plan
from aeon.domain.request import CallName, LLMAdapter, LLMRequest, Message
from aeon.llm.settings import SimulatedProvider
from aeon.simulated.adapter import SimulatedAdapter
from aeon.simulated.scenario import SEEDS as SCENARIOS_OF_SEEDS
from aeon.simulated.scenario import load_scenario
from tests.simulated.simulated_requests import (
    CALLS,
    SECTIONS,
    TASK,
    a_step,
    blocked,
    of_issues,
    of_plan,
    of_step,
    of_task,
    request,
    schema_of,
    table_of_seeds,
)

UNTIDY, FAILING = 5, 8
SEEDS = [seed for seed in range(10) if seed not in (UNTIDY, FAILING)]


def adapter(seed: int = 0, **given: Any) -> SimulatedAdapter:
    return SimulatedAdapter(SimulatedProvider(seed=seed, **given))


def answer(asked: LLMRequest, seed: int = 0) -> Any:
    return json.loads(adapter(seed).complete(asked).text)


def assert_valid(asked: LLMRequest, value: Any) -> None:
    errors = list(Draft202012Validator(dict(asked.schema)).iter_errors(value))
    assert not errors, f"{value}: {errors[0].message}"


def situations(call: CallName, text: str = "") -> list[LLMRequest]:
    """The same call at several points of a run."""
    gather, draft, merge = a_step("gather"), a_step("draft", "gather"), a_step("merge", "draft")
    done = [a_step("gather", status="complete"), blocked("draft", "gather"), merge]
    failed = [a_step("gather", status="failed"), a_step("draft", "gather", status="invalid"), merge]
    finished = [{**step, "status": "complete"} for step in (gather, draft, merge)]
    plans = [(gather, draft, merge), done, failed, finished, ()]
    return [
        request(call, of_task(), of_plan(*p), of_issues("draft"), of_step(2, 3), text)
        for p in plans
    ]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("seed", SEEDS)
def test_every_call_is_answered_by_its_schema(call: CallName, seed: int) -> None:
    for asked in situations(call):
        assert_valid(asked, answer(asked, seed))


@pytest.mark.parametrize("call", CALLS)
def test_a_prompt_that_says_nothing_is_answered_by_its_schema(call: CallName) -> None:
    for asked in (request(call, ""), LLMRequest(call, (), schema_of(call))):
        assert_valid(asked, answer(asked))


@pytest.mark.parametrize("call", CALLS)
def test_any_schema_is_obeyed(call: CallName) -> None:
    for asked in situations(call):
        other = LLMRequest(asked.call, asked.messages, SECTIONS)
        assert_valid(other, answer(other))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("seed", [0, 5, 9])
def test_the_wording_of_a_prompt_changes_no_answer(call: CallName, seed: int) -> None:
    for asked in situations(call):
        edited = replace(asked, messages=(Message("user", "<task>\nMy own words\n</task>"),))
        assert adapter(seed).complete(edited).text == adapter(seed).complete(asked).text


@pytest.mark.parametrize("call", CALLS)
def test_the_same_request_gets_the_same_answer_whatever_was_asked_before_and_at_the_same_time(
    call: CallName,
) -> None:
    asked = situations(call) * 4
    expected = [adapter(3).complete(one) for one in asked]
    shared = adapter(3)
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(shared.complete, reversed(asked)))
    assert list(reversed(together)) == expected


def test_the_place_in_the_run_does_not_change_an_answer() -> None:
    here, there = (
        request("plan", of_task(), cycle=1, sequence=5),
        request("plan", of_task(), cycle=9, sequence=77),
    )
    assert adapter().complete(here) == adapter().complete(there)


def test_another_seed_answers_otherwise() -> None:
    assert len({adapter(seed).complete(request("plan", of_task())).text for seed in SEEDS}) > 3


def test_it_is_an_adapter_that_says_it_is_synthetic_and_what_it_cost() -> None:
    asked = request("plan", of_task())
    response = adapter().complete(asked)
    assert isinstance(adapter(), LLMAdapter)
    assert (response.synthetic, response.model, response.finish_reason) == (
        True,
        "simulated",
        "stop",
    )
    sent = sum(len(m.content) for m in asked.messages) + len(json.dumps(asked.schema))
    assert (response.usage.input_tokens, response.usage.output_tokens) == (
        sent // 4,
        len(response.text) // 4,
    )
    assert response.usage.requests == 1
    assert response.response_id is not None


def test_an_answer_takes_the_configured_time() -> None:
    start = time.perf_counter()
    adapter(latency_seconds=0.05).complete(request("plan", of_task()))
    assert time.perf_counter() - start >= 0.05


@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_is_a_graph_of_three_to_six_steps_that_ends_with_one(seed: int) -> None:
    raw = answer(request("plan", of_task()), seed)
    steps = [{k: v for k, v in step.items() if k != "arguments"} for step in raw["steps"]]
    plan = Plan.model_validate({"goal": raw["goal"], "steps": steps})
    assert 3 <= len(plan.steps) <= 6
    assert len(final_steps(plan)) == 1
    assert find_cycle(plan.steps) == ()
    assert 2 <= len(layers(plan)) <= 4
    assert TASK in raw["goal"]
    assert all(
        step.description.startswith("(simulated)") and step.tool is None for step in plan.steps
    )


@pytest.mark.parametrize(
    ("task", "shown"),
    [
        ("设计一个带有用户身份验证的网络应用程序" * 20, "设计一个带有用户身份验证"),
        ("e\u0301" * 300, "e\u0301e\u0301"),
        ("a\x00b\nc\ud800d", "a b c d"),
        ("word " * 100, "word word"),
    ],
)
def test_a_plan_names_its_task_in_any_script(task: str, shown: str) -> None:
    goal = answer(request("plan", of_task(task)))["goal"]
    named = goal.removeprefix("(simulated) A complete answer to: ")
    assert named.startswith(shown)
    assert len(named) <= 61


def test_a_step_names_itself_and_what_came_in() -> None:
    incoming = "(simulated) Output of step gather (1 of 3): the facts\nmore"
    asked = request("step", of_task(), of_step(3, 3, "Write it", incoming, step_id="write"))
    value = answer(asked)
    assert value["step_output"].startswith("(simulated) Output of step write (3 of 3): Write it\n")
    assert "gather (1 of 3): the facts" in value["step_output"]
    assert TASK in value["step_output"]
    other = answer(request("step", of_step(1, 3, "Look", "A person's own text")), seed=1)
    assert "What came in: A person's own text" in other["step_output"]


@pytest.mark.parametrize(("seed", "times"), [(0, 1), (1, 0), (2, 2), (3, 1), (6, 20)])
def test_the_second_step_is_blocked_as_often_as_the_seed_says(seed: int, times: int) -> None:
    previous: str | None = None
    states = []
    for _ in range(times + 1 if times < 20 else times):
        value = answer(request("step", of_step(2, 4, previous=previous)), seed)
        states.append(value["clarity_state"])
        previous = value["step_output"]
    assert states[:times] == ["BLOCKED"] * times
    assert times == 20 or states[-1] != "BLOCKED"


def test_a_blocked_step_goes_through_once_its_goal_is_clarified_even_without_its_previous_output() -> (
    None
):
    steps = (
        a_step("gather", status="complete"),
        blocked("draft", "gather"),
        a_step("end", "draft"),
    )
    change = answer(request("refinement", of_task(), of_plan(*steps)))["actions"][0]
    assert (change["action_type"], change["target_step_id"], change["new_step"]["step_id"]) == (
        "MODIFY",
        "draft",
        "draft",
    )
    assert change["new_step"]["dependencies"] == ["gather"]
    clarified = change["new_step"]["description"]
    assert answer(request("step", of_step(2, 4, clarified)))["clarity_state"] != "BLOCKED"


def test_refinement_targets_only_what_may_be_changed_under_its_id() -> None:
    steps = (
        a_step("a", status="complete"),
        blocked("b", "a"),
        a_step("c", "a"),
        a_step("d", "b", "c"),
    )
    for seed in SEEDS:
        asked = request("refinement", of_task(), of_plan(*steps), of_issues("a", "b", "c"))
        changes = answer(asked, seed)["actions"]
        same_id = [
            c["target_step_id"]
            for c in changes
            if c["action_type"] in ("MODIFY", "REMOVE", "SUBPLAN_CREATE")
        ]
        fresh = [
            c["new_step"]["step_id"] for c in changes if c["action_type"] in ("ADD", "REPLACE")
        ]
        assert set(same_id) <= {"b", "c", "d"}
        assert not set(fresh) & {"a", "b", "c", "d"}


def test_refinement_leaves_alone_what_is_left_to_a_person() -> None:
    steps = (blocked("b"), blocked("c"), a_step("d", "b", "c"))
    changes = answer(
        request("refinement", of_task(), of_plan(*steps), {"closed_steps": ["b", "x"]})
    )["actions"]
    assert [change["target_step_id"] for change in changes] == ["c"]


def test_a_failed_step_is_replaced_under_a_new_id_without_its_tool() -> None:
    steps = (a_step("a", status="failed", tool="search", arguments={"q": 1}), a_step("b", "a"))
    change = answer(request("refinement", of_task(), of_plan(*steps)))["actions"][0]
    assert (change["action_type"], change["target_step_id"]) == ("REPLACE", "a")
    assert (change["new_step"]["step_id"], change["new_step"]["tool"]) == ("a-2", None)


def test_a_step_keeps_its_tool_and_arguments_when_it_is_reworded() -> None:
    steps = (
        a_step("a", status="complete"),
        blocked("b", tool="search", arguments={"q": 1}),
        a_step("c", "b"),
    )
    step = answer(request("refinement", of_task(), of_plan(*steps)))["actions"][0]["new_step"]
    assert (step["tool"], json.loads(step["arguments"])) == ("search", {"q": 1})


def test_a_review_names_steps_of_the_plan_and_says_nothing_of_what_was_made_specific() -> None:
    steps = (a_step("a"), a_step("b", "a"), a_step("c", "b"))
    issues = answer(request("semantic_validation", of_plan(*steps)))["issues"]
    assert [issue["location"]["step_id"] for issue in issues] == ["b"]
    assert isinstance(json.loads(issues[0]["proposed_repair"]["changes"]), dict)
    change = answer(request("refinement", of_plan(*steps), of_issues("b")))["actions"][0]
    assert change["addresses_issues"] == ["i1"]
    changed = {"artifact_type": "step", "changed": [change["new_step"]]}
    assert answer(request("semantic_validation", of_plan(*steps), changed))["issues"] == []


def test_strict_calls_its_own_addition_critical() -> None:
    steps = (a_step("a"), a_step("b", "a"))
    changes = answer(request("refinement", of_task(), of_plan(*steps)), seed=7)["actions"]
    added = [change["new_step"] for change in changes if change["action_type"] == "ADD"]
    changed = {"artifact_type": "step", "changed": added}
    issues = answer(request("semantic_validation", of_plan(*steps), changed), seed=7)["issues"]
    assert [(i["severity"], i["location"]["step_id"]) for i in issues] == [
        ("CRITICAL", added[0]["step_id"])
    ]


@pytest.mark.parametrize("done", range(5))
def test_scores_follow_the_share_of_finished_steps(done: int) -> None:
    steps = [a_step(str(n), status="complete" if n < done else "pending") for n in range(4)]
    value = answer(request("convergence", of_plan(*steps)))
    if done == 4:
        scores = [value[f"{name}_score"] for name in ("completeness", "coherence", "consistency")]
        assert all(score >= least for score, least in zip(scores, (0.95, 0.9, 0.9), strict=True))
        assert value["issues"] == []
    else:
        assert value["completeness_score"] == pytest.approx(0.9 * done / 4, abs=0.01)
        assert value["issues"][0]["blocking"] is False


def test_a_step_whose_place_another_took_does_not_count() -> None:
    steps = (a_step("a", status="invalid", replaced_by="a-2"), a_step("a-2", status="complete"))
    assert answer(request("convergence", of_plan(*steps)))["completeness_score"] >= 0.95


def test_every_criterion_is_answered_by_its_name() -> None:
    criteria = {
        "criteria": [{"name": "cited", "description": "x"}, {"name": "短い", "description": "y"}]
    }
    done = request("convergence", criteria, of_plan(a_step("a", status="complete")))
    begun = request("convergence", criteria, of_plan(a_step("a")))
    assert [(c["name"], c["met"]) for c in answer(done)["criteria"]] == [
        ("cited", True),
        ("短い", True),
    ]
    assert [(c["name"], c["met"]) for c in answer(begun)["criteria"]] == [
        ("cited", False),
        ("短い", False),
    ]


def test_a_profile_is_updated_from_the_one_before() -> None:
    before = answer(request("task_profile", of_task()))
    known = {"observed": {"profile": {**before, "profile_version": 1}}}
    after = answer(request("task_profile", of_task(), known))
    assert after["reasoning_depth"] == before["reasoning_depth"] + 1
    assert after["expected_step_count"] == before["expected_step_count"]


def test_a_repair_keeps_what_was_there() -> None:
    original = {"steps": [{"step_id": "a", "description": "Do it"}], "unknown": 1}
    asked = request("repair", {"call": "plan", "original": json.dumps(original)})
    value = answer(asked)
    assert_valid(asked, value)
    assert value["steps"][0]["description"] == "Do it"
    assert value["steps"][0]["dependencies"] == []


@pytest.mark.parametrize("call", [call for call in CALLS if call != "repair"])
def test_a_repair_of_something_unreadable_is_an_answer_of_the_call(call: CallName) -> None:
    asked = request("repair", {"call": call, "original": '{"goal": "cut o'}, schema=schema_of(call))
    value = answer(asked)
    assert_valid(asked, value)
    assert value == json.loads(adapter().complete(asked).text)


def test_an_untidy_answer_is_mended_by_the_repair_that_follows() -> None:
    asked = request("plan", of_task())
    spoiled = adapter(UNTIDY).complete(asked).text
    assert not Draft202012Validator(schema_of("plan")).is_valid(json.loads(spoiled))
    repair = request("repair", {"call": "plan", "original": spoiled})
    assert answer(repair, UNTIDY)["steps"] == json.loads(spoiled)["steps"]


def test_an_untidy_step_may_be_no_json_at_all() -> None:
    texts = [adapter(UNTIDY).complete(request("step", of_step(n, 40))).text for n in range(1, 40)]
    whole = [text for text in texts if text.endswith("}")]
    assert 0 < len(whole) < len(texts)


@pytest.mark.parametrize(
    ("seed", "call"), [(8, "step"), (18, "convergence"), (28, "plan"), (38, "semantic_validation")]
)
def test_a_failing_seed_fails_one_call_for_ever_and_answers_the_others(
    seed: int, call: CallName
) -> None:
    for other in CALLS:
        asked = request(other, of_task(), of_step(4, 4))
        for _ in range(3):
            if other == call:
                with pytest.raises(ServerFailed, match=f"with seed {seed}") as caught:
                    adapter(seed).complete(asked)
                assert "provider.seed=0" in caught.value.hint
            else:
                assert_valid(asked, answer(asked, seed))
    assert_valid(request("step"), answer(request("step", of_step(1, 4)), 8))


def test_the_answer_of_a_person_s_schema_takes_the_place_of_the_text() -> None:
    schema = {
        **schema_of("step"),
        "properties": {**schema_of("step")["properties"], "step_output": SECTIONS},
    }
    schema["$defs"] = SECTIONS["$defs"]
    asked = request("step", of_step(3, 3), schema=schema)
    value = answer(asked)
    assert_valid(asked, value)
    assert len(value["step_output"]["sections"]) >= 2


def test_a_tool_is_never_planned() -> None:
    step = schema_of("plan")["$defs"]["step"]
    tools = {
        **step,
        "properties": {
            **step["properties"],
            "tool": {"type": ["string", "null"], "enum": ["delete", None]},
        },
    }
    schema = {**schema_of("plan"), "$defs": {"step": tools}}
    for seed in SEEDS:
        assert {
            s["tool"] for s in answer(request("plan", of_task(), schema=schema), seed)["steps"]
        } == {None}


def test_the_documentation_has_the_table_of_seeds() -> None:
    described = {
        tuple(path.stem.split("-")): load_scenario(path).description
        for path in SCENARIOS_OF_SEEDS.glob("?-*.yaml")
    }
    assert described == {(row.digit, row.name): row.summary for row in table_of_seeds()}
    assert len(described) == 10


def test_every_way_to_end_is_among_the_first_ten_seeds() -> None:
    endings = {row.ending for row in table_of_seeds()}
    assert endings == {"converged", "ttl_expired", "stalled", "failed"}


@pytest.mark.parametrize(
    ("call", "variables"), [("tool_arguments", {}), ("repair", {"call": "tool_arguments"})]
)
@pytest.mark.parametrize("seed", [0, UNTIDY])
def test_no_arguments_of_a_tool_are_made_up(
    call: CallName, variables: dict[str, Any], seed: int
) -> None:
    schema = {
        "type": "object",
        "properties": {"issues": {"type": "string"}},
        "required": ["issues"],
    }
    asked = request(call, {**variables, "original": '{"issue": "x"}'}, schema=schema)
    with pytest.raises(NotSimulated, match="makes no arguments up"):
        adapter(seed).complete(asked)


@pytest.mark.slow
def test_a_simulated_run_loads_no_dialect_of_a_server() -> None:
    code = (
        "import sys; from aeon import Aeon\n"
        "with Aeon.from_config(['provider=simulated', 'observability=none'], environ={}) as aeon:\n"
        "    aeon.run('plan a move')\n"
        "print(*(name for name in sys.modules if name.startswith('aeon.llm.dialects')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
