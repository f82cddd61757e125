"""What servers of many kinds mean by their errors: bodies as they were seen, each with what must come of it."""

import pytest

from aeon.domain.errors import (
    AuthenticationFailed,
    Filtered,
    LLMError,
    QuotaExhausted,
    RequestRefused,
    ServerFailed,
)
from aeon.llm.dialects.refusal import read_refusal
from tests.llm.openai.conftest import Connect
from tests.support.openai_server import Failure, OpenAIServer, error
from tests.support.requests import request


def litellm(message: str, kind: str, status: int = 400) -> Failure:
    return Failure(
        status,
        body={"error": {"message": message, "type": kind, "param": None, "code": str(status)}},
    )


REFUSED_KEYS = {
    "LiteLLM without a database": litellm("No connected db.", "no_db_connection"),
    "LiteLLM, of the provider behind it": litellm(
        "litellm.AuthenticationError: AuthenticationError: OpenAIException - Incorrect API key provided",
        "auth_error",
    ),
    "LiteLLM with a database": Failure(
        401,
        body={
            "error": {
                "message": "Authentication Error",
                "type": "token_not_found_in_db",
                "code": "401",
            }
        },
    ),
    "Gemini, in a list": Failure(
        400,
        body='[{"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.", '
        '"status": "INVALID_ARGUMENT"}}]',
    ),
    "xAI": Failure(
        400,
        body={
            "code": "Client specified an invalid argument",
            "error": "Incorrect API key provided: x",
        },
    ),
    "llama-server": Failure(
        401,
        body={"error": {"code": 401, "message": "Invalid API Key", "type": "authentication_error"}},
    ),
    "llama-cpp-python": Failure(401, body={"detail": "Invalid API key"}),
    "vLLM": Failure(401, body={"error": "Unauthorized"}),
    "in a body that says all is well": Failure(200, body={"error": {"message": "Invalid API key"}}),
}


@pytest.mark.parametrize("said", REFUSED_KEYS.values(), ids=REFUSED_KEYS)
def test_a_refused_key_is_one_wherever_it_is_said(
    said: Failure, openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = said
    with pytest.raises(AuthenticationFailed) as raised:
        connect(effort="low", temperature=0.5).complete(request())
    assert "OPENAI_API_KEY" in raised.value.hint
    assert raised.value.falls_back
    assert len(openai_server.requests) == 1


def test_a_server_that_fails_without_a_word_may_want_a_key(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = Failure(
        500, body="Internal Server Error", headers={"content-type": "text/plain"}
    )
    for key in ("k", None):
        with pytest.raises(ServerFailed, match="answered 500") as outage:
            connect(key, name="litellm", api_key_env="LITELLM_API_KEY").complete(request())
        assert outage.value.retryable
        assert ("LITELLM_API_KEY" in outage.value.hint) == (key is None)


UNKNOWN_MODELS = {
    "OpenAI": error(
        404, "The model `x` does not exist or you do not have access to it.", "model_not_found"
    ),
    "LiteLLM": litellm(
        "/chat/completions: Invalid model name passed in model=x. Call `/v1/models` to view available models for your "
        "key.",
        "invalid_request_error",
    ),
    "OpenRouter": Failure(
        400, body={"error": {"message": "x is not a valid model ID", "code": 400}}
    ),
    "DeepSeek": error(400, "Model Not Exist", "invalid_request_error"),
    "Mistral": Failure(
        400, body={"object": "error", "message": "Invalid model: x", "type": "invalid_model"}
    ),
    "Ollama": error(404, 'model "x" not found, try pulling it first', "api_error"),
}


@pytest.mark.parametrize("said", UNKNOWN_MODELS.values(), ids=UNKNOWN_MODELS)
def test_an_unknown_model_is_asked_for_once_and_another_endpoint_may_have_one(
    said: Failure, openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = said
    with pytest.raises(RequestRefused) as raised:
        connect(effort="low", temperature=0.5).complete(request())
    assert raised.value.falls_back
    assert "provider.model" in raised.value.hint
    assert len(openai_server.requests) == 1


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (
            error(
                400,
                "Your credit balance is too low to access the Anthropic API.",
                "invalid_request_error",
            ),
            None,
        ),
        (Failure(200, body={"error": {"message": "withheld", "code": "content_filter"}}), Filtered),
    ],
)
def test_credit_and_filters_are_told_by_words_and_in_any_status(
    said: Failure, kind: type[LLMError] | None, openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = said
    with pytest.raises(kind or QuotaExhausted):
        connect().complete(request())
    assert len(openai_server.requests) == 1


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (429, "Rate limit of your API key reached"),
        (400, "temperature is not supported with this model"),
        (400, "This model does not support response_format json_schema: it is not available"),
        (404, "No endpoints found that can handle the requested parameters."),
        (400, "the request is not valid: " + "x" * 600 + "invalid api key"),
        (503, "no healthy upstream"),
        (500, "out of memory"),
    ],
)
def test_what_is_in_no_row_means_what_its_status_says(status: int, message: str) -> None:
    assert read_refusal(status, {"error": {"message": message}}).meaning is None
