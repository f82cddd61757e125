"""The openai package's client as it is used here: when it is loaded, and what it is held to."""

import inspect
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import openai
import pytest

from aeon.domain.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    LLMError,
    NotAnAPI,
    RequestRefused,
    ServerFailed,
)
from aeon.llm.openai.adapter import OpenAIAdapter
from aeon.llm.openai.client import Client
from aeon.llm.openai.endpoint import Endpoint
from aeon.llm.openai.failures import error_of_exception, find_proxy
from aeon.llm.settings import OpenAIProvider
from tests.llm.openai.conftest import Connect
from tests.support.lookups import record_lookups
from tests.support.openai_server import OpenAIServer
from tests.support.raw_server import RawServer, response, sends
from tests.support.requests import request
from tests.support.socks_proxy import SocksProxy
from tests.support.timing import SOON

CASSETTE = Path(__file__).parents[3] / "examples/cassettes/web-architecture.aeon"
WITHOUT_REQUESTS = {
    "help": ["--help"],
    "version": ["--version"],
    "tools": ["tools"],
    "render": ["render", "step", "task=plan a move"],
    "replay": [f"store.path={CASSETTE}", "store.mode=replay", "store.match=order"],
    "simulated": ["task=plan a move", "provider=simulated", "mode=core"],
}


@pytest.mark.slow
@pytest.mark.parametrize("arguments", WITHOUT_REQUESTS.values(), ids=WITHOUT_REQUESTS)
def test_what_sends_no_request_loads_no_sdk(arguments: list[str], tmp_path: Path) -> None:
    code = (
        "import sys; from aeon.__main__ import main\n"
        "try: status = main(sys.argv[1:])\n"
        "except SystemExit as end: status = end.code\n"
        "print([name for name in ('openai',) if name in sys.modules], status or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
    )
    assert done.stdout.splitlines()[-1] in ("[] 0", "[] 3")


def sdk_errors() -> dict[str, type[openai.OpenAIError]]:
    found = {**vars(openai), **vars(openai._exceptions)}
    return {
        name: kind
        for name, kind in found.items()
        if inspect.isclass(kind) and issubclass(kind, openai.OpenAIError) and name[0] != "_"
    }


REQUEST = httpx2.Request("POST", "http://models.invalid/v1/chat/completions")
OF_A_STATUS = {
    "APIStatusError",
    "AuthenticationError",
    "BadRequestError",
    "ConflictError",
    "InternalServerError",
    "NotFoundError",
    "OAuthError",
    "PermissionDeniedError",
    "RateLimitError",
    "UnprocessableEntityError",
}
"""They carry the response, which is read as one."""
OF_NO_RESPONSE = {
    "APIConnectionError": openai.APIConnectionError(request=REQUEST),
    "APITimeoutError": openai.APITimeoutError(request=REQUEST),
    "OpenAIError": openai.OpenAIError("no token"),
    "SubjectTokenProviderError": openai._exceptions.SubjectTokenProviderError("no token"),
}
NEVER_RAISED_HERE = {
    "APIError",  # but for its subclasses, and for an error within a stream, which is read as one
    "APIResponseValidationError",  # where the SDK is strict
    "ContentFilterFinishReasonError",  # of `parse`
    "LengthFinishReasonError",  # of `parse`
    "WebSocketConnectionClosedError",
    "WebSocketQueueFullError",
}


@pytest.mark.slow
def test_every_error_of_the_sdk_is_in_one_of_these_tables() -> None:
    assert set(sdk_errors()) == OF_A_STATUS | set(OF_NO_RESPONSE) | NEVER_RAISED_HERE
    assert all(issubclass(sdk_errors()[name], openai.APIStatusError) for name in OF_A_STATUS)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("APIConnectionError", NotAnAPI),
        ("APITimeoutError", ConnectionFailed),
        ("OpenAIError", AuthenticationFailed),
        ("SubjectTokenProviderError", AuthenticationFailed),
    ],
)
def test_an_error_without_a_response_is_mapped(name: str, kind: type[LLMError]) -> None:
    assert type(error_of_exception(OF_NO_RESPONSE[name], Endpoint(OpenAIProvider()), 1.0)) is kind


def dripping_headers(connection: socket.socket) -> None:
    for byte in b"HTTP/1.1 200 OK\r\nx-filler: " + b"x" * 200:
        connection.sendall(bytes([byte]))
        time.sleep(0.05)


@pytest.mark.slow
def test_a_server_that_sends_a_byte_of_its_headers_now_and_then_is_left() -> None:
    with RawServer(dripping_headers) as server:
        adapter = OpenAIAdapter(OpenAIProvider(base_url=server.url, timeout_seconds=0.3))
        begin = time.monotonic()
        with pytest.raises(ConnectionFailed, match=r"no answer within 0\.3 s"):
            adapter.complete(request())
        assert time.monotonic() - begin < SOON
        adapter.close()


@pytest.mark.parametrize("charset", ["punycode", "idna", "rot13", "no-such", "utf-7", "zlib"])
@pytest.mark.parametrize(("status", "kind"), [("200 OK", NotAnAPI), ("500 Oh", ServerFailed)])
@pytest.mark.timeout(30)
def test_a_charset_that_a_server_names_is_not_used(
    charset: str, status: str, kind: type[LLMError]
) -> None:
    headers = {"content-type": f"text/plain; charset={charset}"}
    body = b"a-" + b"b" * 200_000
    with RawServer(sends(response(body, status, headers))) as server:
        adapter = OpenAIAdapter(OpenAIProvider(base_url=server.url))
        with pytest.raises(kind):
            adapter.complete(request())
        adapter.close()


def test_a_proxy_of_socks_says_what_to_install(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "socks5://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setitem(sys.modules, "socksio", None)
    with pytest.raises(ConnectionFailed, match="socksio") as raised:
        connect(base_url="http://models.invalid/v1").complete(request())
    assert not raised.value.retryable
    assert "pip install socksio" in raised.value.hint


def test_a_proxy_of_socks_is_asked_to_look_the_server_up(
    openai_server: OpenAIServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("socksio")
    openai_server.script["plan"] = {"answer": "x"}
    with SocksProxy(urlsplit(openai_server.url).port or 0) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("NO_PROXY", "")
        adapter = connect(base_url="http://models.invalid/v1")
        assert [adapter.complete(request()).text for _ in range(2)] == ['{"answer": "x"}'] * 2
    assert proxy.asked == ["models.invalid"]


def test_no_proxy_goes_around_the_proxy(
    openai_server: OpenAIServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    openai_server.script["plan"] = {"answer": "x"}
    assert connect().complete(request()).text == '{"answer": "x"}'


def test_names_of_this_machine_are_looked_up_nowhere(
    openai_server: OpenAIServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    openai_server.script["plan"] = {"answer": "x"}
    looked_up = record_lookups(monkeypatch)
    address = openai_server.url.replace("127.0.0.1", "models.localhost")
    assert connect(base_url=address).complete(request()).text == '{"answer": "x"}'
    assert looked_up == {"127.0.0.1"}
    assert openai_server.requests[0].headers["host"].startswith("models.localhost:")


def test_the_query_of_an_address_goes_with_every_request(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    with pytest.raises(RequestRefused, match=r"chat/completions\?team=blue"):
        connect(base_url=f"{openai_server.url}?team=blue").complete(request())


def test_a_request_is_one_packet_with_few_headers(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = {"answer": "x"}
    connect().complete(request())
    headers = openai_server.requests[0].headers
    assert not [name for name in headers if name.startswith("x-stainless")]
    assert headers["user-agent"].startswith("OpenAI/Python")


@pytest.mark.parametrize("host", ["localhost", "models.localhost"])
def test_names_of_this_machine_go_to_no_proxy(
    connect: Connect, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    address = openai_server.url.replace("127.0.0.1", host)
    openai_server.script["plan"] = {"answer": "x"}
    assert connect(base_url=address).complete(request()).text == '{"answer": "x"}'
    assert find_proxy(address) is None
    assert find_proxy("http://example.org") == "http://127.0.0.1:9"


def test_certificates_are_loaded_for_https_alone(openai_server: OpenAIServer) -> None:
    openai_server.script["plan"] = {"answer": "x"}
    loaded = []
    for address in (openai_server.url, openai_server.url.replace("http:", "https:")):
        client = Client(Endpoint(OpenAIProvider(base_url=address), "k"))
        with suppress(openai.APIConnectionError):
            client.post(b"{}", "m", time.monotonic() + SOON)
        loaded.append("_context" in vars(client.sdk._client))
        client.close()
    assert loaded == [False, True]
