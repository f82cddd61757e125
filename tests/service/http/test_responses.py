"""`/v1/responses`, as the unmodified client of OpenAI has it."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import openai
import pytest
from openai.types.responses import ResponseIncompleteEvent

from tests.service.gates import GatedModel, wait_for
from tests.service.http.conftest import Start

SIMULATED = ("provider=simulated", "provider.seed=1")


def test_a_response_has_the_answer(start: Start):
    client = start(*SIMULATED).connect()
    response = client.responses.create(
        model="aeon", input="make tea", instructions="be kind", metadata={"for": "me"}
    )
    assert response.status == "completed"
    assert response.output_text
    assert response.metadata
    assert response.metadata["for"] == "me"
    assert response.metadata["termination_reason"] == "converged"
    assert response.usage
    assert client.responses.retrieve(response.id).output_text == response.output_text


def test_a_response_in_the_background_is_asked_for_later(start: Start, model: GatedModel):
    client = start(*model.overrides).connect()
    response = client.responses.create(model="aeon", input="abc", background=True)
    assert response.status in ("queued", "in_progress")
    model.open()
    while response.status != "completed":
        time.sleep(0.02)
        response = client.responses.retrieve(response.id)
    assert response.output_text == "cba"


@pytest.mark.slow
def test_a_response_is_cancelled(start: Start, model: GatedModel):
    client = start(*model.overrides, "execution.grace_seconds=0.1").connect()
    response = client.responses.create(model="aeon", input="abc", background=True)
    wait_for(lambda: model.server.requests)
    client.responses.cancel(response.id)
    wait_for(lambda: client.responses.retrieve(response.id).status == "cancelled")
    assert client.responses.cancel(response.id).status == "cancelled"


@pytest.mark.slow
def test_a_response_that_is_waited_for_is_cancelled(start: Start, model: GatedModel):
    served = start(*model.overrides, "execution.grace_seconds=0.1")
    client = served.connect()
    with ThreadPoolExecutor() as waiting:
        asked = waiting.submit(client.responses.create, model="aeon", input="abc")
        wait_for(lambda: served.jobs.list_latest(1))
        client.responses.cancel(f"resp_{served.jobs.list_latest(1)[0].record.id}")
        assert asked.result(30).status == "cancelled"


@pytest.mark.slow
def test_a_response_that_failed_says_why(start: Start):
    client = start("provider=simulated", "provider.seed=8").connect()
    response = client.responses.create(model="aeon", input="abc", background=True)
    wait_for(lambda: client.responses.retrieve(response.id).status == "failed")
    error = client.responses.retrieve(response.id).error
    assert error
    assert "provider fails" in error.message
    with pytest.raises(openai.InternalServerError):
        client.responses.create(model="aeon", input="abc")


@pytest.mark.slow
def test_a_response_is_streamed(start: Start, model: GatedModel):
    model.open()
    model.server.piece_seconds = 0.02
    client = start(*model.overrides).connect()
    with client.responses.stream(model="aeon", input="abcdefghij" * 9) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert final.output_text == "jihgfedcba" * 9
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert kinds.count("response.output_text.delta") > 1


def test_a_stream_of_a_run_that_fails_ends_so(start: Start):
    client = start("provider=simulated", "provider.seed=8").connect()
    events = list(client.responses.create(model="aeon", input="abc", stream=True))
    assert events[-1].type == "response.failed"


def test_a_stream_of_a_run_that_waits_ends_incomplete(start: Start, tmp_path: Path):
    plan = tmp_path / "plan.yaml"
    plan.write_text("goal: g\nsteps: [{id: m, description: Measure the room, agent: person}]\n")
    served = start(*SIMULATED, "mode=core", f"plan_file={plan}", "interaction=defer")
    client = served.connect()
    events = list(client.responses.create(model="aeon", input="abc", stream=True))
    last = events[-1]
    assert last.type == "response.incomplete"
    assert ResponseIncompleteEvent.model_validate(last.model_dump(exclude_unset=True))
    assert last.response.status == "incomplete"
    assert last.response.incomplete_details
    assert "Measure the room" in last.response.output_text
    assert last.response.metadata["questions"].endswith("/questions")
    (item,) = last.response.output
    assert item.status == "incomplete"
    (done,) = (event for event in events if event.type == "response.output_item.done")
    assert done.item == item
    assert client.responses.retrieve(last.response.id).status == "in_progress"


def test_a_run_in_the_background_goes_on_without_its_stream(start: Start, model: GatedModel):
    client = start(*model.overrides).connect()
    stream = client.responses.create(model="aeon", input="abc", stream=True, background=True)
    first = next(iter(stream))
    assert first.type == "response.created"
    stream.close()
    model.open()
    wait_for(lambda: client.responses.retrieve(first.response.id).status == "completed")


@pytest.mark.parametrize(
    "name", ["resp_x", "resp_..", "x" * 300, "%2e%2e%2f%2e%2e%2fetc", "resp_" + "0" * 32]
)
def test_what_is_no_id_is_not_found(start: Start, name: str):
    client = start(*SIMULATED).connect()
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(name)
    with pytest.raises(openai.NotFoundError):
        client.responses.cancel(name)


@pytest.mark.parametrize(
    "given",
    [
        {"input": []},
        {"input": "abc", "tools": [{"type": "web_search"}]},
        {"input": "abc", "previous_response_id": "resp_1"},
        {"input": "abc", "text": {"format": {"type": "json_object"}}},
        {"input": [{"type": "function_call_output", "call_id": "1", "output": "x"}]},
    ],
)
def test_what_a_run_cannot_do_is_refused(start: Start, given: dict[str, object]):
    client = start(*SIMULATED).connect()
    with pytest.raises(openai.BadRequestError):
        client.responses.create(model="aeon", **given)  # type: ignore[call-overload]
