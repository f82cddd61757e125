"""Every way in which a provider fails, over a real connection: the error, its words and its hint."""

import pytest

from aeon.domain.errors import (
    AeonError,
    AuthenticationFailed,
    ConfigError,
    ConnectionFailed,
    EmptyAnswer,
    Filtered,
    NotAnAPI,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    Refused,
    RequestRefused,
    ServerFailed,
    Truncated,
)
from aeon.domain.request import Message, Usage, estimate_tokens
from aeon.llm.openai.adapter import OpenAIAdapter
from aeon.llm.settings import OpenAIProvider
from tests.llm.openai.conftest import KEY, Connect
from tests.support.able_server import AbleServer
from tests.support.openai_server import Completion, Failure, OpenAIServer, error
from tests.support.requests import request


@pytest.mark.parametrize(
    ("answer", "kind", "hint"),
    [
        (Completion('{"answer": "bec', finish_reason="length"), Truncated, "provider.max_tokens"),
        (Completion(None, finish_reason="length"), Truncated, "provider.max_tokens"),
        (Completion(None, refusal="I cannot help with that."), Refused, "another model"),
        (Completion(None, finish_reason="content_filter"), Filtered, "another filter"),
        (Completion(None), EmptyAnswer, "structured output"),
        (Completion(" \n"), EmptyAnswer, "structured output"),
    ],
)
def test_an_answer_without_a_usable_text_is_an_error_that_knows_what_was_paid(
    answer: Completion,
    kind: type[AeonError],
    hint: str,
    openai_server: OpenAIServer,
    connect: Connect,
) -> None:
    openai_server.script["plan"] = answer
    with pytest.raises(kind) as failure:
        connect().complete(request())
    assert failure.value.usage == Usage(100, 20, requests=1)
    assert "plan" in failure.value.message
    assert hint in failure.value.hint
    assert failure.value.retryable == (kind is EmptyAnswer)


@pytest.mark.parametrize(
    "usage", [None, {"prompt_tokens": 100}, {"prompt_tokens": 0, "completion_tokens": 0}]
)
@pytest.mark.parametrize("text", [None, "cut of"])
def test_an_answer_without_a_usable_text_says_whether_its_cost_is_known(
    text: str | None, usage: dict[str, int] | None, openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = Completion(text, finish_reason="length", usage=usage)
    with pytest.raises(Truncated) as failure:
        connect().complete(request())
    assert not failure.value.usage_reported
    openai_server.script["plan"] = Completion(text, finish_reason="length")
    with pytest.raises(Truncated) as failure:
        connect().complete(request())
    assert failure.value.usage_reported


def test_a_part_of_the_tokens_is_never_more_than_the_whole(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = Completion(
        '{"answer": "x"}',
        usage={
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "prompt_tokens_details": {"cached_tokens": 5000},
            "completion_tokens_details": {"reasoning_tokens": 5000},
        },
    )
    assert connect().complete(request()).usage == Usage(100, 20, 100, 20, requests=1)


@pytest.mark.parametrize("code", ["content_filter", "content_policy_violation"])
def test_a_prompt_that_is_filtered_is_no_refusal_of_a_parameter(
    code: str, openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = error(400, "The prompt triggered the policy", code)
    with pytest.raises(Filtered, match="triggered the policy") as failure:
        connect().complete(request())
    assert "another filter" in failure.value.hint
    assert failure.value.usage == Usage()
    assert len(openai_server.requests) == 1


def test_a_refusal_is_quoted(openai_server: OpenAIServer, connect: Connect) -> None:
    openai_server.script["plan"] = Completion(None, refusal="I cannot help with that.")
    with pytest.raises(Refused, match="I cannot help with that"):
        connect().complete(request())


@pytest.mark.parametrize(
    ("failure", "kind", "retryable", "message", "hint"),
    [
        (
            error(400, "temperature is not supported"),
            RequestRefused,
            False,
            "temperature is not supported",
            "model",
        ),
        (
            error(400, "too long", "context_length_exceeded"),
            RequestRefused,
            False,
            "too long",
            "larger context",
        ),
        (
            error(400, "This model's maximum context length is 9 tokens."),
            RequestRefused,
            False,
            "9",
            "larger context",
        ),
        (
            error(400, "litellm.ContextWindowExceededError: no"),
            RequestRefused,
            False,
            "no",
            "larger context",
        ),
        (
            error(400, "exceeds the available context size (9)"),
            RequestRefused,
            False,
            "9",
            "larger context",
        ),
        (
            error(500, "exceeds the available context size (9)"),
            RequestRefused,
            False,
            "9",
            "larger context",
        ),
        (error(401, "no such key"), AuthenticationFailed, False, "no such key", "OPENAI_API_KEY"),
        (error(403, "not yours"), AuthenticationFailed, False, "not yours", "OPENAI_API_KEY"),
        (error(404, "no such model"), RequestRefused, False, "no such model", "provider.model"),
        (
            Failure(404, body={"detail": "Not Found"}),
            RequestRefused,
            False,
            "Not Found",
            "provider.base_url",
        ),
        (error(408, "late"), ServerFailed, True, "late", "fails"),
        (error(409, "busy"), ServerFailed, True, "busy", "fails"),
        (error(413, "too large"), RequestRefused, False, "too large", "model"),
        (error(422, "odd"), RequestRefused, False, "odd", "model"),
        (error(429, "slow down"), RateLimited, True, "slow down", "provider.max_concurrency"),
        (
            error(429, "no credit", "insufficient_quota"),
            QuotaExhausted,
            False,
            "no credit",
            "add some at the provider",
        ),
        (error(402, "pay first"), QuotaExhausted, False, "pay first", "provider.fallbacks"),
        (error(500, "oh dear"), ServerFailed, True, "oh dear", "fails"),
        (error(503, "overloaded"), ServerFailed, True, "overloaded", "fails"),
        (Failure(502, html=True), ServerFailed, True, "HTML page", "fails"),
        (Failure(404, html=True), NotAnAPI, False, "HTML page", "provider.base_url"),
        (Failure(500, body=""), ServerFailed, True, "no reason given", "fails"),
        (Failure(418, body='["odd"]'), RequestRefused, False, "odd", "model"),
    ],
)
def test_an_error_status_is_mapped_with_the_servers_words_and_a_hint(
    failure: Failure,
    kind: type[ProviderError],
    retryable: bool,
    message: str,
    hint: str,
    openai_server: OpenAIServer,
    connect: Connect,
) -> None:
    openai_server.script["plan"] = failure
    with pytest.raises(ProviderError) as raised:
        connect().complete(request())
    assert type(raised.value) is kind
    assert (raised.value.retryable, raised.value.status) == (retryable, failure.status)
    assert str(failure.status) in raised.value.message
    assert message in raised.value.message
    assert hint in raised.value.hint
    assert len(openai_server.requests) == 1, "the SDK must not retry by itself"


@pytest.mark.parametrize(
    "failure",
    [
        error(400, "too long", "context_length_exceeded"),
        error(400, "litellm.ContextWindowExceededError: no"),
        Failure(
            200,
            body={
                "error": {"code": 400, "message": "exceeds the available context size (9 tokens)"}
            },
        ),
    ],
)
def test_a_prompt_too_long_is_tried_in_no_other_form_and_another_endpoint_may_have_room(
    failure: Failure, openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = failure
    with pytest.raises(RequestRefused) as raised:
        connect().complete(request())
    assert raised.value.falls_back
    assert "larger context" in raised.value.hint
    assert len(openai_server.requests) == 1


@pytest.mark.parametrize(
    "failure",
    [
        Failure(200, html=True),
        Failure(200, body="not json", headers={"content-type": "application/json"}),
        Failure(200, body="just text", headers={"content-type": "text/plain"}),
        Failure(200, body=""),
        Failure(200, body="[]"),
        Failure(200, body={"choices": [{"message": {"content": 7}}]}),
        Failure(200, headers={"content-encoding": "gzip"}),
        Failure(308, headers={"location": "/v1/chat/completions"}),
    ],
)
def test_what_is_no_chat_completion_names_the_base_url(
    failure: Failure, openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = failure
    with pytest.raises(NotAnAPI) as raised:
        connect().complete(request())
    assert openai_server.url in raised.value.hint
    assert not raised.value.retryable


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        ({"error": {"message": "no credit"}}, RequestRefused, 200),
        ({"error": "no credit"}, RequestRefused, 200),
        ({"error": {"message": "no credit", "code": 402}}, QuotaExhausted, 402),
        ({"error": {"message": "no credit", "code": "401"}}, AuthenticationFailed, 401),
        ({"error": {"message": "no credit", "code": 429}}, RateLimited, 429),
        ({"error": {"message": "no credit", "code": 502}}, ServerFailed, 502),
        (
            {
                "choices": [
                    {"message": {"content": "half"}, "error": {"message": "no credit", "code": 503}}
                ]
            },
            ServerFailed,
            503,
        ),
        (
            {"error": {"message": "no credit"}, "choices": [{"message": {"content": "{}"}}]},
            RequestRefused,
            200,
        ),
    ],
)
def test_an_error_in_an_answer_that_says_all_is_well_is_that_error(
    body: dict[str, object],
    kind: type[ProviderError],
    status: int,
    openai_server: OpenAIServer,
    connect: Connect,
) -> None:
    openai_server.script["plan"] = Failure(200, body=body)
    with pytest.raises(ProviderError, match="no credit") as raised:
        connect().complete(request())
    assert (type(raised.value), raised.value.status) == (kind, status)


@pytest.mark.parametrize("body", ['{"id": "x", "choices": [{"mess', '{"id": '])
def test_half_a_response_can_be_tried_again(
    body: str, openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = Failure(200, body=body)
    with pytest.raises(ConnectionFailed, match="half a response") as raised:
        connect().complete(request())
    assert raised.value.retryable


@pytest.mark.parametrize("choices", [[], None])
def test_a_completion_without_a_choice_is_the_servers_fault(
    choices: list[object] | None, openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = Failure(200, body={"id": "x", "choices": choices})
    with pytest.raises(ServerFailed, match="without any choice") as raised:
        connect().complete(request())
    assert raised.value.retryable
    assert "base_url" not in raised.value.hint


def test_a_stream_that_nobody_asked_for_is_called_one(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    stream = 'data: {"choices": [{"delta": {"content": "{"}}]}\n\ndata: [DONE]\n\n'
    openai_server.script["plan"] = Failure(
        200, body=stream, headers={"content-type": "text/event-stream"}
    )
    with pytest.raises(NotAnAPI) as raised:
        connect().complete(request())
    assert "streams" in raised.value.hint


def test_a_redirect_is_not_followed_and_says_where_it_leads(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = Failure(
        307, headers={"location": "http://127.0.0.1:9/elsewhere"}
    )
    with pytest.raises(NotAnAPI, match=r"127\.0\.0\.1:9/elsewhere, which is not followed"):
        connect().complete(request())


def test_what_the_server_says_is_shortened(openai_server: OpenAIServer, connect: Connect) -> None:
    openai_server.script["plan"] = error(400, "x" * 10_000)
    with pytest.raises(RequestRefused) as raised:
        connect().complete(request())
    assert len(raised.value.message) < 400


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "7", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_the_wait_that_the_server_asks_for_is_kept(
    status: int,
    headers: dict[str, str],
    seconds: float | None,
    openai_server: OpenAIServer,
    connect: Connect,
) -> None:
    openai_server.script["plan"] = Failure(status, headers=headers)
    with pytest.raises(ProviderError) as raised:
        connect().complete(request())
    assert raised.value.retry_after == seconds


@pytest.mark.slow
@pytest.mark.parametrize(
    "failure", [Failure(reset=True), Failure(200, headers={"content-length": "9999"})]
)
def test_a_broken_connection_can_be_retried(
    failure: Failure, openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = failure
    with pytest.raises(ConnectionFailed) as raised:
        connect(timeout_seconds=0.5, timeout_per="attempt").complete(request())
    assert openai_server.url in raised.value.message
    assert "provider.base_url" in raised.value.hint
    assert raised.value.retryable


def test_a_reset_is_not_called_a_timeout(openai_server: OpenAIServer, connect: Connect) -> None:
    openai_server.script["plan"] = Failure(reset=True)
    with pytest.raises(ConnectionFailed, match="reset"):
        connect().complete(request())


@pytest.mark.parametrize("failure", [Failure(delay=0.6), Failure(reset=True)])
def test_what_was_sent_and_not_answered_is_counted_as_an_estimate(
    failure: Failure, openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = failure
    with pytest.raises(ConnectionFailed) as raised:
        connect(timeout_seconds=0.15).complete(request())
    assert raised.value.usage == Usage(input_tokens=estimate_tokens(request()), requests=1)
    assert raised.value.usage.input_tokens > 0
    assert not raised.value.usage_reported


def test_what_was_never_sent_is_not_counted(openai_server: OpenAIServer, connect: Connect) -> None:
    with pytest.raises(ConnectionFailed, match="refused, nothing listens there") as raised:
        connect(base_url="http://127.0.0.1:9/v1").complete(request())
    assert raised.value.usage == Usage()
    assert "timeout_seconds" not in raised.value.hint


def test_requests_go_through_the_proxy_of_the_environment_and_name_their_server_whole(
    openai_server: OpenAIServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", openai_server.url)
    monkeypatch.setenv("NO_PROXY", "")
    with pytest.raises(
        RequestRefused, match=r"no such path: http://models\.invalid/v1/chat/completions"
    ):
        connect(base_url="http://models.invalid/v1").complete(request())


def test_a_proxy_that_fails_is_named(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9/?secret")
    monkeypatch.setenv("NO_PROXY", "")
    with pytest.raises(ConnectionFailed, match="its proxy") as raised:
        connect(base_url="http://models.invalid/v1").complete(request())
    assert "http://127.0.0.1:9" in raised.value.hint
    assert "NO_PROXY=models.invalid" in raised.value.hint
    assert "secret" not in raised.value.hint + raised.value.message


def test_a_failure_of_tls_is_not_tried_again(openai_server: OpenAIServer, connect: Connect) -> None:
    with pytest.raises(ConnectionFailed, match="no secure connection") as raised:
        connect(base_url=openai_server.url.replace("http:", "https:")).complete(request())
    assert not raised.value.retryable
    assert "SSL_CERT_FILE" in raised.value.hint
    assert "http://" in raised.value.hint
    assert raised.value.usage == Usage()


def test_a_server_that_is_not_there_is_named(openai_server: OpenAIServer) -> None:
    with OpenAIServer() as gone:
        url = gone.url
    adapter = OpenAIAdapter(OpenAIProvider(base_url=url), KEY)
    with pytest.raises(ConnectionFailed) as raised:
        adapter.complete(request())
    adapter.close()
    assert url in raised.value.message
    assert url in raised.value.hint


def test_a_slow_server_ends_the_attempt_after_its_time(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = Failure(delay=0.6)
    with pytest.raises(ConnectionFailed, match=r"no answer within 0\.15 s") as raised:
        connect(timeout_seconds=0.15).complete(request())
    assert "provider.timeout_seconds=0.15" in raised.value.hint


@pytest.mark.parametrize(
    "url", ["localhost:8000/v1", "ftp://example.org", "http://", "http://[::1", "nonsense"]
)
def test_a_base_url_that_is_none_is_refused_before_any_call(url: str, connect: Connect) -> None:
    with pytest.raises(ConfigError, match="base_url") as raised:
        connect(base_url=url)
    assert "http://localhost:8000/v1" in raised.value.hint


def test_a_prompt_that_is_not_unicode_is_refused(connect: Connect) -> None:
    with pytest.raises(RequestRefused, match="surrogates") as raised:
        connect().complete(request(messages=(Message("user", "half \ud83d a pair"),)))
    assert "Unicode" in raised.value.hint


@pytest.mark.parametrize("status", [429, 403, 200])
@pytest.mark.parametrize(
    "code", ["insufficient_quota", "billing_not_active", "insufficient_credits"]
)
def test_an_account_without_credit_that_is_told_in_a_bare_word_is_not_asked_again(
    code: str, status: int, openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = Failure(status, body={"error": code})
    with pytest.raises(QuotaExhausted) as raised:
        connect().complete(request())
    assert not raised.value.retryable


@pytest.mark.parametrize(
    "says",
    [
        error(400, "response_format: input should be 'text'"),
        error(500, "response_format: input should be 'text'"),
        Failure(
            200, body={"error": {"code": 500, "message": "response_format: input should be 'text'"}}
        ),
    ],
)
@pytest.mark.parametrize("form", ["json_schema", "json_object"])
def test_a_form_of_ones_own_that_is_refused_is_no_outage(
    form: str, says: Failure, connect: Connect
) -> None:
    with AbleServer(forms={"text"}, says=says) as server:
        with pytest.raises(RequestRefused) as raised:
            connect(base_url=server.url, structured_output=form).complete(request())
        assert len(server.bodies) == 1
    assert f"provider.structured_output={form}" in raised.value.hint
    assert "auto" in raised.value.hint
    assert not raised.value.retryable


def test_an_overloaded_server_is_one_whatever_it_says_of_the_form(connect: Connect) -> None:
    overloaded = AbleServer(forms={"text"}, says=error(503, "structured output is overloaded"))
    with overloaded as server, pytest.raises(ServerFailed) as raised:
        connect(base_url=server.url, structured_output="json_schema").complete(request())
    assert raised.value.retryable


def test_an_address_without_a_path_that_has_nothing_is_shown_how_addresses_end(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    with pytest.raises(RequestRefused) as raised:
        connect(base_url=openai_server.url.removesuffix("/v1")).complete(request())
    assert "/v1" in raised.value.hint
