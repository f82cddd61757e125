"""Calls by clients that wait: what they are told meanwhile, what they are asked, what they are given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import InputRequiredResult

from aeon.observability import artefacts
from aeon.service.mcp import progress
from aeon.service.mcp.tools import RUN_TASK
from tests.service.gates import GatedModel, OpenJobs, wait_for
from tests.service.mcp.clients import Person, open_server, run_client, write_plans
from tests.support.openai_server import OpenAIServer
from tests.support.scripted_model import clear, defaults, plan, planned, refinement

SIMULATED = ("provider=simulated", "provider.seed=1")
ASKING = (*SIMULATED, "mode=core", "tools=builtin", "tools.approval={calculator: ask}")
BOTH_ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])


def text_of(result: Any) -> str:
    return "\n".join(each.text for each in result.content)


@BOTH_ERAS
def test_the_result_of_a_call_is_the_answer_of_its_run(
    open_jobs: OpenJobs, model: GatedModel, mode: str
):
    server, jobs = open_server(open_jobs, None, *model.overrides)
    model.open()

    async def talk(client: Client) -> None:
        result = await client.call_tool(RUN_TASK, {"task": "abc", "inputs": {"notes": "mine"}})
        assert [each.text for each in result.content] == ["cba"]
        assert not result.is_error
        known = result.structured_content
        assert known["answer"] == "cba"
        assert known["termination_reason"] == "completed"
        status = jobs.find(known["run_id"])
        assert status.record.inputs == {"notes": "mine"}
        assert status.result["run_id"] == known["run_id"]

    run_client(server, talk, mode)


@BOTH_ERAS
def test_progress_tells_how_far_the_run_is(open_jobs: OpenJobs, model: GatedModel, mode: str):
    server, _ = open_server(open_jobs, None, *model.overrides)
    told: list[tuple[float, str]] = []

    async def note(progress: float, _total: float | None, message: str | None) -> None:
        told.append((progress, message or ""))
        if "step" in told[-1][1]:
            model.open()

    async def talk(client: Client) -> None:
        await client.call_tool(RUN_TASK, {"task": "make tea"}, progress_callback=note)

    run_client(server, talk, mode)
    numbers = [number for number, _ in told]
    assert numbers == sorted(set(numbers))


@pytest.mark.slow
def test_a_client_hears_of_a_run_that_has_no_news(
    open_jobs: OpenJobs, model: GatedModel, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(progress, "SECONDS_OF_SILENCE", 0.0)
    server, _ = open_server(open_jobs, None, *model.overrides)
    told: list[tuple[float, str]] = []

    async def note(number: float, _total: float | None, message: str | None) -> None:
        told.append((number, message or ""))
        if [text for _, text in told].count(message or "") == 2:
            model.open()

    async def talk(client: Client) -> None:
        await client.call_tool(RUN_TASK, {"task": "make tea"}, progress_callback=note)

    run_client(server, talk)
    numbers = [number for number, _ in told]
    assert numbers == sorted(set(numbers))
    texts = [text for _, text in told]
    assert len(set(texts)) < len(texts)


def test_a_run_that_did_not_converge_says_so_below_its_answer(open_jobs: OpenJobs):
    server, _ = open_server(open_jobs, None, *SIMULATED, "limits.max_passes=1")

    async def talk(client: Client) -> None:
        result = await client.call_tool(RUN_TASK, {"task": "make tea"})
        assert not result.is_error
        assert "limits.max_passes" in result.content[-1].text
        assert result.structured_content["converged"] is False

    run_client(server, talk)


def test_a_run_that_failed_is_an_error_of_the_tool(open_jobs: OpenJobs, model: GatedModel):
    server, _ = open_server(open_jobs, None, *model.overrides)
    model.server.script = {}

    async def talk(client: Client) -> None:
        result = await client.call_tool(RUN_TASK, {"task": "abc"})
        assert result.is_error
        assert "400" in text_of(result)

    run_client(server, talk)


@pytest.mark.parametrize(
    ("tool", "arguments", "problem"),
    [
        (RUN_TASK, {}, "'task' is a required property"),
        (RUN_TASK, {"task": " "}, "the task is empty"),
        (RUN_TASK, {"task": "x", "overrides": ["store=off"]}, "'overrides' was unexpected"),
        (RUN_TASK, {"task": "x", "inputs": {"a": 1}}, "/inputs/a: 1 is not of type 'string'"),
        ("describe", {"place": "Oslo", "words": 0}, "/words: 0 is less than the minimum of 1"),
        ("describe", {"place": "Oslo", "plan_file": "x"}, "'plan_file' was unexpected"),
    ],
)
def test_arguments_that_do_not_fit_are_an_error_of_the_tool(
    open_jobs: OpenJobs, tmp_path: Path, tool: str, arguments: dict[str, Any], problem: str
):
    server, jobs = open_server(
        open_jobs, write_plans(tmp_path / "plans"), *SIMULATED, "tools=builtin"
    )

    async def talk(client: Client) -> None:
        result = await client.call_tool(tool, arguments)
        assert result.is_error
        assert problem in text_of(result)

    run_client(server, talk)
    assert jobs.list_latest(1) == []


def test_a_tool_that_is_not_there_is_an_error_of_the_protocol(open_jobs: OpenJobs):
    server, _ = open_server(open_jobs, None, *SIMULATED)

    async def talk(client: Client) -> None:
        with pytest.raises(MCPError, match="There is no tool 'rm'"):
            await client.call_tool("rm", {})

    run_client(server, talk)


def test_more_calls_than_the_queue_takes_are_refused(open_jobs: OpenJobs, model: GatedModel):
    server, jobs = open_server(open_jobs, None, *model.overrides)  # 2 run, 2 wait

    async def talk(client: Client) -> None:
        async with anyio.create_task_group() as calls:
            for text in ("abc", "def", "ghi", "jkl"):
                calls.start_soon(client.call_tool, RUN_TASK, {"task": text})
            while sum(jobs.count().values()) < 4:
                await anyio.sleep(0.01)
            refused = await client.call_tool(RUN_TASK, {"task": "mno"})
            model.open()
        assert refused.is_error
        assert "Ask again later" in text_of(refused)

    run_client(server, talk)


@BOTH_ERAS
def test_the_person_behind_the_client_is_asked_for_an_approval(
    open_jobs: OpenJobs, tmp_path: Path, mode: str
):
    server, jobs = open_server(open_jobs, write_plans(tmp_path / "plans"), *ASKING)
    person = Person(confirm=True)

    async def talk(client: Client) -> None:
        result = await client.call_tool("sum", {})
        assert result.structured_content["answer"].endswith("42")
        assert len(jobs.folder.list_runs(result.structured_content["run_id"])) == 2

    run_client(server, talk, mode, elicitation_callback=person)
    assert len(person.seen) == 1
    assert '"expression": "40 + 2"' in person.seen[0]


@BOTH_ERAS
@pytest.mark.parametrize(
    ("person", "answer"), [(Person(answer="Bergen"), "Bergen"), (Person("decline"), None)]
)
def test_a_question_of_the_planner_is_answered_or_left_to_its_assumption(
    open_jobs: OpenJobs, openai_server: OpenAIServer, mode: str, person: Person, answer: str | None
):
    asked = {"question": "Which city?", "assumption": "Oslo", "step_id": "only"}
    openai_server.script = {
        **defaults(),
        "plan": plan("only", planned("last", "only")),
        "refinement": refinement(questions=[asked]),
        "step": clear("done"),
    }
    server, jobs = open_server(
        open_jobs, None, *openai_server.overrides, "provider.require_key=false"
    )
    person.seen.clear()

    async def talk(client: Client) -> None:
        result = await client.call_tool(RUN_TASK, {"task": "plan a trip"})
        run = jobs.find(result.structured_content["run_id"]).run
        assert run is not None
        (question,) = artefacts.load(run).follow_up_questions
        assert question.answer == answer

    run_client(server, talk, mode, elicitation_callback=person)
    (shown,) = person.seen
    assert "Which city?" in shown
    assert "Assumed for now: Oslo" in shown


@BOTH_ERAS
def test_an_approval_that_is_declined_is_a_no(open_jobs: OpenJobs, tmp_path: Path, mode: str):
    server, _ = open_server(open_jobs, write_plans(tmp_path / "plans"), *ASKING)

    async def talk(client: Client) -> None:
        result = await client.call_tool("sum", {})
        assert not result.structured_content["converged"]
        assert "42" not in result.structured_content["answer"]

    run_client(server, talk, mode, elicitation_callback=Person("decline"))


@BOTH_ERAS
def test_a_step_of_a_person_is_done_at_the_client(open_jobs: OpenJobs, tmp_path: Path, mode: str):
    server, _ = open_server(open_jobs, write_plans(tmp_path / "plans"), *ASKING)

    async def talk(client: Client) -> None:
        result = await client.call_tool("by_hand", {})
        assert result.structured_content["answer"].endswith("A line.")

    run_client(server, talk, mode, elicitation_callback=Person(answer="A line."))


@BOTH_ERAS
@pytest.mark.parametrize("person", [None, Person("cancel"), Person("decline")])
def test_what_nobody_answers_now_can_be_answered_later(
    open_jobs: OpenJobs, tmp_path: Path, mode: str, person: Person | None
):
    server, jobs = open_server(open_jobs, write_plans(tmp_path / "plans"), *ASKING)

    async def talk(client: Client) -> None:
        result = await client.call_tool("by_hand", {})
        assert "Write a line" in text_of(result)
        assert "aeon answer" in text_of(result)
        known = result.structured_content
        assert known["state"] == "waiting"
        question = jobs.list_open_questions(known["run_id"])[0]
        jobs.settle(known["run_id"], {question.id: "Later."})
        wait_for(lambda: jobs.find(known["run_id"]).has_ended)
        answer = await client.read_resource(f"aeon://runs/{known['run_id']}/answer")
        assert "Later." in answer.contents[0].text  # type: ignore[union-attr]

    run_client(server, talk, mode, elicitation_callback=person)


def test_a_round_of_another_call_is_refused(open_jobs: OpenJobs, tmp_path: Path):
    server, _ = open_server(open_jobs, write_plans(tmp_path / "plans"), *ASKING)

    async def talk(client: Client) -> None:
        waiting = await client.session.call_tool("sum", {}, allow_input_required=True)
        assert isinstance(waiting, InputRequiredResult)
        state = waiting.request_state
        for tool, given in (("by_hand", state), ("sum", f"{state}0"), ("sum", "../..")):
            with pytest.raises(MCPError, match="requestState"):
                await client.session.call_tool(
                    tool, {}, request_state=given, allow_input_required=True
                )

    run_client(server, talk, elicitation_callback=Person())


@BOTH_ERAS
def test_a_call_that_the_client_gives_up_ends_its_run(
    open_jobs: OpenJobs, model: GatedModel, mode: str
):
    server, jobs = open_server(open_jobs, None, *model.overrides)

    async def talk(client: Client) -> None:
        with anyio.move_on_after(30) as scope:
            async with anyio.create_task_group() as calls:
                calls.start_soon(client.call_tool, RUN_TASK, {"task": "abc"})
                while not model.server.requests:
                    await anyio.sleep(0.01)
                calls.cancel_scope.cancel()
        assert not scope.cancelled_caught
        while jobs.list_latest(1)[0].record.cancelled is None:
            await anyio.sleep(0.01)

    run_client(server, talk, mode)
    assert json.dumps(jobs.list_latest(1)[0].record.cancelled) == '"the client cancelled the call"'
