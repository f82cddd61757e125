"""`/v1/chat/completions` and `/v1/models`, as the unmodified client of OpenAI has them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from openai.types.chat import ChatCompletion

from tests.service.gates import GatedModel, wait_for, wait_until
from tests.service.http.conftest import Served, Start

SIMULATED = ("provider=simulated", "provider.seed=1")
TEA = [{"role": "user", "content": "make tea"}]


def read_pieces(stream: Iterable[Any], served: Served) -> tuple[list[str], int, Any]:
    """The texts of a stream, how many of them came while a run was under way, and its last chunk."""
    pieces = []
    while_running = 0
    for chunk in stream:
        if piece := chunk.choices[0].delta.content:
            pieces.append(piece)
            while_running += served.jobs.count()["running"]
    return pieces, while_running, chunk


def read_first_piece(chunks: Iterator[Any]) -> str:
    """The first text of a stream."""
    pieces = (chunk.choices[0].delta.content for chunk in chunks)
    return next(piece for piece in pieces if piece)


def test_the_named_configurations_are_the_models(start: Start):
    client = start(*SIMULATED, small=("mode=single",), large=()).connect()
    assert [model.id for model in client.models.list()] == ["small", "large"]
    assert client.models.retrieve("small").owned_by == "aeon"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-5")


def test_a_missing_input_is_named_without_the_words_of_the_command_line(
    start: Start, tmp_path: Path
):
    (tmp_path / "plan.yaml").write_text(
        "goal: g\ninputs: {size: its size}\nsteps: [{id: a, description: 'Do ${inputs.size}'}]\n"
    )
    client = start(*SIMULATED, f"plan_file={tmp_path}/plan.yaml").connect()
    with pytest.raises(openai.BadRequestError, match=r"it needs inputs\.size") as refused:
        client.chat.completions.create(model="aeon", messages=TEA)  # type: ignore[arg-type]
    assert "input_files" not in refused.value.message


def test_a_task_is_answered_with_its_figures(start: Start):
    client = start(*SIMULATED).connect()
    completion = client.chat.completions.create(
        model="aeon",
        messages=TEA,  # type: ignore[arg-type]
        metadata={"for": "me"},
        temperature=0.3,
    )
    choice = completion.choices[0]
    metadata = completion.metadata
    assert choice.message.content
    assert choice.finish_reason == "stop"
    assert completion.usage
    assert completion.usage.total_tokens > 0
    assert metadata["for"] == "me"
    assert metadata["termination_reason"] == "converged"
    assert json.loads(metadata["scores"])["completeness_score"] == 0.97
    assert json.loads(metadata["cost"]) == 0
    assert ChatCompletion.model_validate(completion.model_dump(exclude_unset=True))
    assert completion.id == f"chatcmpl-{metadata['run_id']}"


def test_a_run_that_did_not_converge_is_an_answer_that_says_so(start: Start):
    client = start("provider=simulated", "provider.seed=4").connect()
    completion = client.chat.completions.create(model="aeon", messages=TEA)  # type: ignore[arg-type]
    metadata = completion.metadata
    assert completion.choices[0].finish_reason == "stop"
    assert metadata["termination_reason"] == "ttl_expired"
    assert metadata["converged"] == "false"


def test_a_run_that_failed_is_a_502_that_no_client_asks_for_again(start: Start):
    served = start("provider=simulated", "provider.seed=8")
    with pytest.raises(openai.InternalServerError) as failed:
        served.connect(max_retries=2).chat.completions.create(model="aeon", messages=TEA)  # type: ignore[arg-type]
    assert failed.value.status_code == 502
    assert failed.value.body["type"] == "server_error"  # type: ignore[index, call-overload]
    assert len(served.jobs.list_latest(9)) == 1


def test_the_last_message_is_the_task_and_the_earlier_ones_are_an_input(start: Start):
    served = start(*SIMULATED, small=("mode=single",))
    said = [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": [{"type": "text", "text": "hello"}]},
        {"role": "assistant", "content": "hello to you"},
    ]
    served.connect().chat.completions.create(
        model="small",
        messages=[*said, *TEA],  # type: ignore[arg-type, list-item]
        extra_body={"inputs": {"house": "a teapot"}},
    )
    (status,) = served.jobs.list_latest(9)
    assert status.record.task == "make tea"
    assert status.record.inputs["house"] == "a teapot"
    assert json.loads(status.record.inputs["conversation"]) == [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "hello to you"},
    ]


def test_the_answer_comes_as_the_model_writes_it_where_it_is_final(start: Start, model: GatedModel):
    model.open()
    model.server.may_end.clear()
    served = start(*model.overrides)
    said = [{"role": "user", "content": "abcdefghij" * 30}]
    chunks = iter(
        served.connect().chat.completions.create(model="aeon", messages=said, stream=True)  # type: ignore[call-overload]
    )
    first = read_first_piece(chunks)
    assert served.jobs.count()["running"] == 1
    model.server.may_end.set()
    pieces, _, last = read_pieces(chunks, served)
    assert "".join([first, *pieces]) == "jihgfedcba" * 30
    assert pieces
    assert last.choices[0].finish_reason == "stop"
    assert last.metadata["termination_reason"] == "completed"
    assert last.metadata["converged"] == "false"


@pytest.mark.slow
def test_an_answer_that_may_still_change_comes_when_it_is_the_answer(start: Start):
    served = start("provider=simulated", "provider.seed=9", "provider.latency_seconds=0.02")
    with served.connect().chat.completions.with_streaming_response.create(
        model="aeon",
        messages=TEA,  # type: ignore[arg-type]
        stream=True,
        stream_options={"include_usage": True},
    ) as response:
        lines = list(response.iter_lines())
    chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    text = "".join(each["choices"][0]["delta"].get("content", "") for each in chunks[:-1])
    (status,) = served.jobs.list_latest(9)
    assert text == status.result["answer"]
    assert chunks[-1]["usage"]["total_tokens"] > 0
    assert lines[-2] == "data: [DONE]"
    assert any(line.startswith(": pass 1") for line in lines)


def test_a_stream_of_a_run_that_fails_ends_with_the_error(start: Start):
    client = start("provider=simulated", "provider.seed=8").connect()
    with pytest.raises(openai.APIError, match="provider fails"):
        list(client.chat.completions.create(model="aeon", messages=TEA, stream=True))  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"model": "aeon", "messages": []}, "messages"),
        ({"model": "aeon", "messages": "tea"}, "messages"),
        ({"model": "aeon", "messages": [{"role": "assistant", "content": "x"}]}, "messages"),
        ({"model": "aeon", "messages": [{"content": "x"}]}, "messages[0]"),
        (
            {
                "model": "aeon",
                "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}],
            },
            "messages[0].content[0]",
        ),
        ({"model": "aeon", "messages": TEA, "n": 2}, "n"),
        ({"model": "aeon", "messages": TEA, "tools": [{"type": "function"}]}, "tools"),
        (
            {"model": "aeon", "messages": TEA, "response_format": {"type": "json_object"}},
            "response_format",
        ),
        ({"model": "aeon", "messages": TEA, "logprobs": True}, "logprobs"),
        ({"model": "aeon", "messages": TEA, "stop": "\n"}, "stop"),
        ({"model": "aeon", "messages": TEA, "stream": "yes"}, "stream"),
        ({"model": "aeon", "messages": TEA, "stream_options": [1]}, "stream_options"),
        ({"model": "aeon", "messages": TEA, "top_k": 1}, "top_k"),
        ({"model": "aeon", "messages": TEA, "inputs": {"a": 1}}, "inputs"),
        ({"model": "aeon", "messages": TEA * 2, "inputs": {"conversation": "x"}}, "inputs"),
        (
            {"model": "aeon", "messages": TEA, "metadata": {str(n): "" for n in range(17)}},
            "metadata",
        ),
        ({"model": "aeon", "messages": TEA, "metadata": {"a": "\ud800"}}, None),
        ({"model": 3, "messages": TEA}, "model"),
        ({"model": "aeon", "messages": [{"role": "user", "content": "  "}]}, None),
        ({"model": "aeon", "messages": [{"role": "user", "content": "\ud800"}]}, None),
    ],
)
def test_what_cannot_be_answered_is_refused_in_openais_form(
    start: Start, body: dict[str, object], param: str | None
):
    served = start(*SIMULATED)
    response = httpx2.post(
        f"{served.url}/v1/chat/completions",
        content=json.dumps(body),
        headers={"content-type": "application/json"},
    )
    assert response.status_code == 400, response.text
    assert response.json()["error"]["type"] == "invalid_request_error"
    assert response.json()["error"]["param"] == param
    assert served.jobs.list_latest(1) == []


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, '{"model": NaN'])
def test_a_body_that_is_no_object_is_refused(start: Start, text: str):
    served = start(*SIMULATED, most=200_000)
    for path in ("chat/completions", "responses"):
        response = httpx2.post(
            f"{served.url}/v1/{path}", content=text, headers={"content-type": "application/json"}
        )
        assert response.status_code == 400
        assert response.json()["error"]["message"]


def test_a_path_that_is_not_there_and_a_method_that_is_not_taken(start: Start):
    served = start(*SIMULATED)
    assert httpx2.get(f"{served.url}/v1/embeddings").json()["error"]["message"] == "Not Found"
    assert httpx2.get(f"{served.url}/v1/chat/completions").status_code == 405


def test_beyond_the_queue_clients_are_asked_to_come_again(start: Start, model: GatedModel):
    served = start(*model.overrides, parallel=1, queue=0)
    client = served.connect()
    client.responses.create(model="aeon", input="abc", background=True)
    with pytest.raises(openai.RateLimitError) as refused:
        client.chat.completions.create(model="aeon", messages=TEA)  # type: ignore[arg-type]
    assert refused.value.response.headers["retry-after"] == "5"
    assert refused.value.code == "rate_limit_exceeded"


@pytest.mark.slow
@pytest.mark.parametrize("streams", [True, False])
def test_the_run_of_a_client_that_goes_away_is_stopped(
    start: Start, model: GatedModel, streams: bool
):
    served = start(*model.overrides, "execution.grace_seconds=0.1")
    with httpx2.Client() as client:
        sending = {"model": "aeon", "messages": TEA, "stream": streams}
        with pytest.raises(httpx2.ReadTimeout):
            client.post(f"{served.url}/v1/chat/completions", json=sending, timeout=1)
    wait_for(lambda: served.jobs.list_latest(1))
    job_id = served.jobs.list_latest(1)[0].record.id
    status = wait_until(served.jobs, job_id, "cancelled")
    assert status.record.cancelled == "its client went away"


def test_a_run_that_was_cancelled_is_not_asked_for_again_by_its_client(
    start: Start, model: GatedModel
):
    served = start(*model.overrides, "execution.grace_seconds=0.1")
    client = served.connect(max_retries=1)
    with ThreadPoolExecutor() as waiting:
        asked = waiting.submit(client.chat.completions.create, model="aeon", messages=TEA)  # type: ignore[call-overload]
        wait_for(lambda: served.jobs.list_latest(1))
        served.jobs.cancel(served.jobs.list_latest(1)[0].record.id, "it was cancelled")
        with pytest.raises(openai.InternalServerError, match="it was cancelled"):
            asked.result(30)
    assert len(served.jobs.list_latest(2)) == 1


def test_a_stop_of_the_server_tells_clients_that_wait(start: Start, model: GatedModel):
    served = start(*model.overrides, "execution.grace_seconds=0.1")
    client = served.connect()
    stream = client.chat.completions.create(model="aeon", messages=TEA, stream=True)  # type: ignore[call-overload]
    assert next(stream).metadata["run_id"]
    served.jobs.close()
    with pytest.raises(openai.APIError, match="being stopped"):
        list(stream)
    with pytest.raises(openai.RateLimitError):
        client.chat.completions.create(model="aeon", messages=TEA)  # type: ignore[arg-type]


def test_a_slow_reader_holds_nobody_up(start: Start):
    served = start(*SIMULATED, small=("mode=single",))
    client = served.connect()
    slow = client.chat.completions.create(model="small", messages=TEA, stream=True)  # type: ignore[call-overload]
    assert client.models.list().data
    assert client.chat.completions.create(model="small", messages=TEA).choices  # type: ignore[arg-type]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in slow)


def test_a_stream_whose_text_is_withdrawn_ends_with_an_error(start: Start, model: GatedModel):
    malformed = json.dumps({"working": None, "answer": "abc " * 50, "more": 1})
    model.server.script = {
        "direct": malformed,
        "repair": {"working": None, "answer": "xyz"},
    }
    model.server.may_end.clear()
    served = start(*model.overrides)
    chunks = iter(
        served.connect().chat.completions.create(model="aeon", messages=TEA, stream=True)  # type: ignore[call-overload]
    )
    assert read_first_piece(chunks).startswith("abc ")
    model.server.may_end.set()
    with pytest.raises(openai.APIError, match="withdrawn"):
        list(chunks)
    (status,) = served.jobs.list_latest(9)
    assert status.result["answer"] == "xyz"


@pytest.mark.slow
def test_of_several_steps_the_final_one_is_streamed(start: Start):
    served = start(*SIMULATED, "mode=core", "provider.latency_seconds=0.2")
    stream = served.connect().chat.completions.create(model="aeon", messages=TEA, stream=True)  # type: ignore[call-overload]
    pieces, while_running, _ = read_pieces(stream, served)
    (status,) = served.jobs.list_latest(9)
    assert "".join(pieces) == status.result["answer"]
    assert while_running > 0


def test_a_plan_file_is_a_model_that_names_the_inputs_it_lacks(start: Start, tmp_path: Path):
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "goal: g\ntask: Review it\ninputs: {text: a text}\nsteps:\n  - {id: r, description: 'Review ${inputs.text}'}\n"
    )
    served = start(*SIMULATED, "mode=core", f"plan_file={plan}")
    client = served.connect()
    with pytest.raises(openai.BadRequestError, match=r"inputs\.text"):
        client.chat.completions.create(model="aeon", messages=TEA)  # type: ignore[arg-type]
    given = {"inputs": {"text": str(plan)}}
    client.chat.completions.create(model="aeon", messages=TEA, extra_body=given)  # type: ignore[arg-type]
    (status,) = served.jobs.list_latest(9)
    assert status.run is not None
    recorded = json.loads((status.run / "run.json").read_text())
    assert recorded["inputs"] == {"text": str(plan)}, "a text of a client is never a path"
