"""A person's own client of the openai package, Azure's client, and tokens in place of a key."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI, AzureOpenAI, OpenAI
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from aeon import Aeon
from aeon.domain.errors import AuthenticationFailed, ConfigError, ConnectionFailed, ServerFailed
from aeon.llm.openai.adapter import OpenAIAdapter
from aeon.llm.settings import OpenAIProvider
from tests.llm.openai.conftest import Connect
from tests.support.openai_server import Failure, OpenAIServer
from tests.support.requests import request
from tests.support.simulated_server import simulated

FOREIGN = "sk-the-key-of-this-client"


@pytest.fixture
def client(openai_server: OpenAIServer) -> Iterator[OpenAI]:
    """A client as a person makes it, with retries of its own."""
    with OpenAI(base_url=openai_server.url, api_key=FOREIGN, max_retries=2) as made:
        yield made


def adapter_of(client: OpenAI, **settings: Any) -> OpenAIAdapter:
    return OpenAIAdapter(OpenAIProvider(**settings), client=client)


def test_a_given_client_sends_the_requests_with_its_address_and_key(
    openai_server: OpenAIServer, client: OpenAI
) -> None:
    openai_server.script["plan"] = {"answer": "because"}
    answer = adapter_of(client, extra_body={"top_k": 3}).complete(request())
    assert answer.text == '{"answer": "because"}'
    [received] = openai_server.requests
    assert received.headers["authorization"] == f"Bearer {FOREIGN}"
    assert (received.strict, received.body["top_k"]) == (True, 3)


def test_what_is_put_around_its_method_sees_each_call(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As instruments of OpenTelemetry, Langfuse and others do."""
    from openai.resources.chat.completions import Completions

    seen: list[str] = []
    create = Completions.create

    def watched(self: Completions, *given: Any, **named: Any) -> Any:
        seen.append(named["model"])
        return create(self, *given, **named)

    monkeypatch.setattr(Completions, "create", watched)
    openai_server.script["plan"] = {"answer": "x"}
    with OpenAI(base_url=openai_server.url, api_key="k") as made:
        adapter_of(made, model="m-1").complete(request())
    assert seen == ["m-1"]


def test_its_failures_are_mapped_and_retried_here_alone(
    openai_server: OpenAIServer, client: OpenAI
) -> None:
    openai_server.script["plan"] = Failure(503, body={"error": {"message": f"busy {FOREIGN}"}})
    with pytest.raises(ServerFailed) as raised:
        adapter_of(client).complete(request())
    assert len(openai_server.requests) == 1
    assert FOREIGN not in raised.value.message
    openai_server.script["plan"] = Failure(delay=0.6)
    with pytest.raises(ConnectionFailed, match=r"no answer within 0\.2 s"):
        adapter_of(client, timeout_seconds=0.2).complete(request())


def test_it_streams(openai_server: OpenAIServer, client: OpenAI) -> None:
    openai_server.script["plan"] = {"answer": "x"}
    assert adapter_of(client, stream="always").complete(request()).text == '{"answer": "x"}'


def test_an_http_client_of_ones_own_is_used() -> None:
    def answer(sent: httpx2.Request) -> httpx2.Response:
        message = {"role": "assistant", "content": '{"answer": "mock"}'}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return httpx2.Response(200, json={"choices": [choice]})

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    with OpenAI(base_url="http://models.invalid/v1", api_key="k", http_client=http) as made:
        assert adapter_of(made).complete(request()).text == '{"answer": "mock"}'


def test_the_hooks_and_cookies_of_its_http_client_stay_in_use(openai_server: OpenAIServer) -> None:
    openai_server.script["plan"] = {"answer": "x"}
    seen: list[str] = []
    http = httpx2.Client(
        cookies={"team": "blue"},
        event_hooks={
            "request": [lambda sent: seen.append(f"{sent.method} {sent.url.path}")],
            "response": [lambda received: seen.append(str(received.status_code))],
        },
    )
    with OpenAI(base_url=openai_server.url, api_key="k", http_client=http) as made:
        adapter_of(made).complete(request())
    assert seen == ["POST /v1/chat/completions", "200"]
    assert openai_server.requests[0].headers["cookie"] == "team=blue"


def test_an_instrument_of_opentelemetry_makes_a_span_of_each_call(
    openai_server: OpenAIServer, client: OpenAI
) -> None:
    openinference = pytest.importorskip("openinference.instrumentation.openai")
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    instrument = openinference.OpenAIInstrumentor()
    instrument.instrument(tracer_provider=provider)
    openai_server.script["plan"] = {"answer": "x"}
    try:
        adapter_of(client, model="m-1").complete(request())
    finally:
        instrument.uninstrument()
    [span] = spans.get_finished_spans()
    assert span.attributes["llm.output_messages.0.message.content"] == '{"answer": "x"}'
    assert span.attributes["llm.token_count.total"] == 120


def test_a_whole_run_is_made_through_a_client_that_stays_the_callers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with (
        OpenAIServer(simulated()) as server,
        OpenAI(base_url=server.url, api_key=FOREIGN) as client,
    ):
        with Aeon.from_config(["mode=core"], environ={}, client=client) as aeon:
            result = aeon.run("plan a move")
        assert result.answer
        assert {sent.headers["authorization"] for sent in server.requests} == {f"Bearer {FOREIGN}"}
        assert not client.is_closed()


def test_a_factory_is_named_in_the_configuration(
    openai_server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    code = f"from openai import OpenAI\ndef make(): return OpenAI(base_url={openai_server.url!r}, api_key='k-of-mine')\n"
    (tmp_path / "clients_of_mine.py").write_text(code)
    openai_server.script["plan"] = {"answer": "x"}
    given = ["provider.client=clients_of_mine:make", "mode=core"]
    with Aeon.from_config(given, environ={}) as aeon:
        adapter = next(iter(aeon._process.adapter)).adapter
        assert adapter.complete(request()).text == '{"answer": "x"}'
    assert openai_server.requests[0].headers["authorization"] == "Bearer k-of-mine"


@pytest.mark.parametrize(
    ("overrides", "given", "message"),
    [
        (
            ["provider.client=nowhere:make"],
            None,
            "provider.client=nowhere:make: cannot be imported",
        ),
        (["provider.client=openai:AsyncOpenAI"], None, "asynchronous"),
        (["provider.client=builtins:dict"], None, "dict is no client"),
        (["provider=simulated"], OpenAI(api_key="k"), "uses no server"),
        ([], object(), "object is no client"),
        ([], AsyncOpenAI(api_key="k"), "asynchronous"),
    ],
)
def test_what_is_no_client_is_refused_before_any_call(
    overrides: list[str], given: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with pytest.raises(ConfigError, match=message):
        Aeon.from_config(overrides, environ={}, client=given)


def test_a_dated_version_of_azure_has_its_paths_and_its_header(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    address = openai_server.url.removesuffix("/v1")
    adapter = connect(base_url=address, api_version="2024-10-21", model="my deployment")
    with pytest.raises(Exception, match="no such path") as raised:
        adapter.complete(request())
    path = "/openai/deployments/my%20deployment/chat/completions?api-version=2024-10-21"
    assert path in str(raised.value)


def test_azures_key_goes_in_its_own_header() -> None:
    seen: list[httpx2.Headers] = []

    def answer(sent: httpx2.Request) -> httpx2.Response:
        seen.append(sent.headers)
        return httpx2.Response(401, json={"error": {"message": "no"}})

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    azure = AzureOpenAI(
        azure_endpoint="http://models.invalid",
        api_version="2024-10-21",
        api_key="azure-key",
        http_client=http,
    )
    with azure, pytest.raises(AuthenticationFailed):
        adapter_of(azure).complete(request())
    assert seen[0]["api-key"] == "azure-key"


TOKENS = iter(f"a-token-of-the-moment-{number}" for number in range(100))


def give_token() -> str:
    """A token that is another each time."""
    return next(TOKENS)


@pytest.mark.parametrize("version", [None, "2024-10-21"])
def test_a_token_is_asked_for_with_each_request_and_never_shown(
    version: str | None, connect: Connect, openai_server: OpenAIServer
) -> None:
    named = f"{__name__}:give_token"
    adapter = connect(None, token_provider=named, api_version=version, model="m")
    tokens = []

    def echo(received: Any) -> Failure:
        tokens.append(received.headers["authorization"])
        return Failure(401, body={"error": {"message": f"not you: {tokens[-1]}"}})

    openai_server.script["plan"] = echo
    if version:
        openai_server.path = f"/v1/deployments/m/chat/completions?api-version={version}"
    for _ in range(2):
        with pytest.raises(AuthenticationFailed) as raised:
            adapter.complete(request())
        assert "a-token" not in raised.value.message
    assert len(set(tokens)) == 2
    assert all(token.startswith("Bearer a-token-of-the-moment") for token in tokens)


def test_entra_without_its_package_says_what_to_install(connect: Connect) -> None:
    with pytest.raises(ConfigError, match="azure-identity") as raised:
        connect(None, token_provider="entra").complete(request())
    assert "pip install" in raised.value.hint
