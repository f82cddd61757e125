"""The OpenAI adapter against a real server on loopback: what is sent, what is read, and connections."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from aeon.domain.errors import ProviderError
from aeon.domain.request import Message, Parameters, Usage
from tests.llm.openai.conftest import KEY, Connect
from tests.support.openai_server import Completion, Failure, OpenAIServer
from tests.support.requests import SCHEMA, request


def test_sends_a_strict_json_schema_request_and_returns_the_text(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = {"answer": "because"}
    response = connect(model="m-1").complete(request())
    assert response.text == '{"answer": "because"}'
    assert (response.model, response.finish_reason, response.response_id) == (
        "scripted-1",
        "stop",
        "chatcmpl-1",
    )
    assert response.synthetic is False
    [received] = openai_server.requests
    assert received.body == {
        "model": "m-1",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Why?"},
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "plan", "schema": SCHEMA, "strict": True},
        },
    }
    assert received.headers["authorization"] == f"Bearer {KEY}"


def test_a_schema_that_is_not_strict_is_sent_as_such(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["tool_arguments"] = {"anything": 1}
    connect().complete(request("tool_arguments", schema={"type": "object"}, strict=False))
    assert openai_server.requests[0].strict is False


def test_the_requests_parameters_win_over_the_providers(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = {"answer": "x"}
    adapter = connect(
        model="base", temperature=0.0, max_tokens=100, effort="low", extra_body={"seed": 7}
    )
    adapter.complete(request(parameters=Parameters(model="better", effort="high")))
    body = openai_server.requests[0].body
    sent = {
        name: body[name]
        for name in ("model", "temperature", "max_completion_tokens", "reasoning_effort", "seed")
    }
    assert sent == {
        "model": "better",
        "temperature": 0.0,
        "max_completion_tokens": 100,
        "reasoning_effort": "high",
        "seed": 7,
    }


def test_the_token_limit_goes_by_the_name_that_the_server_knows(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = {"answer": "x"}
    connect(max_tokens=50, max_tokens_parameter="max_tokens").complete(request())
    body = openai_server.requests[0].body
    assert body["max_tokens"] == 50
    assert "max_completion_tokens" not in body


@pytest.mark.parametrize("name", ["Authorization", "authorization"])
def test_extra_headers_go_with_every_request_and_win_over_the_key(
    name: str, openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = {"answer": "x"}
    for key in (KEY, None):
        connect(key, headers={"X-Team": "blue", name: "Basic abc"}).complete(request())
    for received in openai_server.requests:
        assert (received.headers["x-team"], received.headers["authorization"]) == (
            "blue",
            "Basic abc",
        )


def test_without_a_key_no_authorization_is_sent_even_if_the_environment_has_one(
    openai_server: OpenAIServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    openai_server.script["plan"] = {"answer": "x"}
    connect(None).complete(request())
    assert "authorization" not in openai_server.requests[0].headers


def test_text_in_any_script_arrives_as_it_was_written(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = lambda received: Completion({"answer": received.user})
    text = 'quotes " \\ ${x} {{ y }} \n\ttabs, 中文, עברית, 🙂, \u2028'
    response = connect().complete(request(messages=(Message("user", text),)))
    assert openai_server.requests[0].user == text
    assert response.text.isascii()


def test_usage_has_cached_and_reasoning_tokens(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 64, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 12},
    }
    openai_server.script["plan"] = Completion({"answer": "x"}, usage=usage)
    assert connect().complete(request()).usage == Usage(100, 20, 64, 12, 1)


@pytest.mark.parametrize(
    "written",
    [
        {"prompt_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 80}},
        {"prompt_tokens_details": {"cached_tokens": 10, "cache_creation_tokens": 80}},
        {"prompt_tokens_details": {"cached_tokens": 10}, "cache_creation_input_tokens": 80},
        {"prompt_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 99}},
    ],
)
def test_usage_has_the_tokens_that_were_written_to_a_cache(
    openai_server: OpenAIServer, connect: Connect, written: dict[str, Any]
) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 20, **written}
    openai_server.script["plan"] = Completion({"answer": "x"}, usage=usage)
    assert connect().complete(request()).usage.cache_write_tokens == 80


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        (None, Usage(requests=1)),
        ({}, Usage(requests=1)),
        (
            {"prompt_tokens": 3, "completion_tokens": None, "prompt_tokens_details": None},
            Usage(3, requests=1),
        ),
        ({"prompt_tokens": "many"}, Usage(requests=1)),
    ],
)
def test_usage_that_is_missing_or_odd_counts_as_nothing_and_costs_no_answer(
    usage: Any, read: Usage, openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = Completion({"answer": "x"}, usage=usage)
    response = connect().complete(request())
    assert (response.text, response.usage) == ('{"answer": "x"}', read)


def test_64_calls_are_in_flight_at_once(openai_server: OpenAIServer, connect: Connect) -> None:
    together = threading.Barrier(64, timeout=60)
    openai_server.script["step"] = lambda received: (
        together.wait(),
        Completion({"answer": received.user}),
    )[1]
    openai_server.script["plan"] = {"answer": "x"}
    adapter = connect(timeout_seconds=90)
    adapter.complete(request())
    asked = [request("step", messages=(Message("user", str(number)),)) for number in range(64)]
    with ThreadPoolExecutor(64) as pool:
        responses = list(pool.map(adapter.complete, asked))
    assert [response.text for response in responses] == [
        f'{{"answer": "{number}"}}' for number in range(64)
    ]
    assert openai_server.max_in_flight == 64


@pytest.mark.slow
def test_no_more_than_max_concurrency_are_in_flight_and_waiting_is_not_a_timeout(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["step"] = Completion({"answer": "x"}, delay=0.5)
    adapter = connect(max_concurrency=2, timeout_seconds=5)
    with ThreadPoolExecutor(22) as pool:
        responses = list(pool.map(adapter.complete, [request("step")] * 22))
    assert len(responses) == 22
    assert openai_server.max_in_flight == 2


def test_closing_ends_a_call_under_way(openai_server: OpenAIServer, connect: Connect) -> None:
    arrived, release = threading.Event(), threading.Event()
    openai_server.script["plan"] = lambda _: (arrived.set(), release.wait(90), Failure(500))[2]
    adapter = connect()
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(adapter.complete, request())
        assert arrived.wait(60)
        adapter.close()
        with pytest.raises(ProviderError, match="closed while a plan call was under way"):
            call.result(60)
    release.set()


def test_closing_ends_the_calls_that_wait_for_the_first_one_too(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    arrived, release = threading.Event(), threading.Event()
    openai_server.script["plan"] = lambda _: (arrived.set(), release.wait(90), Failure(500))[2]
    adapter = connect()
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(adapter.complete, request())]
        assert arrived.wait(60)
        calls += [pool.submit(adapter.complete, request()) for _ in range(3)]
        time.sleep(0.3)
        adapter.close()
        for call in calls:
            with pytest.raises(ProviderError, match="closed while"):
                call.result(60)
    release.set()
    assert len(openai_server.requests) == 1


def test_a_closed_adapter_connects_again_when_it_is_used_again(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = {"answer": "x"}
    adapter = connect()
    for _ in range(2):
        assert adapter.complete(request()).text == '{"answer": "x"}'
        adapter.close()
    adapter.close()


def test_a_connection_is_kept_for_the_next_call(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = {"answer": "x"}
    adapter = connect()
    for _ in range(5):
        adapter.complete(request())
    assert openai_server.connections == 1


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_leaves_its_parents_connection_alone(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = {"answer": "x"}
    adapter = connect()
    adapter.complete(request())
    child = os.fork()
    if not child:
        try:
            adapter.complete(request())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    adapter.complete(request())
    assert openai_server.connections == 2


def test_importing_and_building_the_adapter_imports_no_event_loop_and_no_tls() -> None:
    code = (
        "import sys; from aeon.llm.openai.adapter import OpenAIAdapter; from aeon.llm.settings import OpenAIProvider;"
        "OpenAIAdapter(OpenAIProvider(), 'k');"
        "print([m for m in ('openai', 'aiohttp', 'asyncio', 'truststore') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_a_process_that_never_closes_its_adapter_ends_silently(openai_server: OpenAIServer) -> None:
    openai_server.script["plan"] = {"answer": "x"}
    code = (
        "from aeon.llm.openai.adapter import OpenAIAdapter; from aeon.llm.settings import OpenAIProvider;"
        "from tests.support.requests import request;"
        f"print(OpenAIAdapter(OpenAIProvider(base_url={openai_server.url!r}), 'k').complete(request()).text)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert (done.stdout.strip(), done.stderr) == ('{"answer": "x"}', "")
