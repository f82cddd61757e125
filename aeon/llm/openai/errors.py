"""The OpenAI SDK's failures as Aeon's errors, in tables.

`STATUS_ERRORS` (the server answered with an error status: what it means, `error_table` and the status say) and
`OTHER_ERRORS` have every exception class of the SDK by name, so that this module need not import it; a test fails when
the SDK adds one. `BELOW_THE_SDK` has failures of the transport that the SDK lets through or calls a connection error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import urlsplit

from aeon.domain.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    Filtered,
    LLMError,
    NotAnAPI,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    RequestRefused,
    ServerFailed,
    Truncated,
)
from aeon.llm.dialects.error_table import Meaning
from aeon.llm.dialects.refusal import Refusal, refusal_of
from aeon.llm.openai.connection_errors import connection_failed, proxy_hint, root_text
from aeon.llm.openai.endpoint import Endpoint
from aeon.llm.openai.waiting import retry_after

STATUS_ERRORS = frozenset(
    {
        "APIStatusError",
        "BadRequestError",
        "AuthenticationError",
        "OAuthError",
        "PermissionDeniedError",
        "NotFoundError",
        "ConflictError",
        "UnprocessableEntityError",
        "RateLimitError",
        "InternalServerError",
    }
)

OTHER_ERRORS: Mapping[str, type[LLMError]] = {
    "OpenAIError": ProviderError,
    "APIError": ProviderError,
    "APIConnectionError": ConnectionFailed,
    "APITimeoutError": ConnectionFailed,
    "APIResponseValidationError": NotAnAPI,
    "LengthFinishReasonError": Truncated,
    "ContentFilterFinishReasonError": Filtered,
    "SubjectTokenProviderError": AuthenticationFailed,
    "InvalidWebhookSignatureError": ProviderError,
    "WebSocketConnectionClosedError": ConnectionFailed,
    "WebSocketQueueFullError": ProviderError,
}

BELOW_THE_SDK: Mapping[str, type[LLMError]] = {
    "TimeoutError": ConnectionFailed,
    "ClientError": NotAnAPI,
    "TooManyRedirects": NotAnAPI,
    "DecodingError": NotAnAPI,
    "UnsupportedProtocol": NotAnAPI,
    "UnicodeEncodeError": RequestRefused,
    "UnreadableResponse": NotAnAPI,
}

_BY_STATUS: Mapping[int, type[ProviderError]] = {
    401: AuthenticationFailed,
    402: QuotaExhausted,
    403: AuthenticationFailed,
    408: ServerFailed,
    409: ServerFailed,
    429: RateLimited,
}
_BY_MEANING: Mapping[Meaning, type[ProviderError]] = {
    "key": AuthenticationFailed,
    "credit": QuotaExhausted,
    "model": RequestRefused,
    "context": RequestRefused,
}

# Where the next response should begin, there is the rest of a JSON document.
_GOES_ON = re.compile(r"Bad status line.*:\s+b['\"]\s*\{", re.DOTALL)
K = TypeVar("K")


def translate(error: BaseException, endpoint: Endpoint) -> LLMError | None:
    """The error of Aeon for a failure of the SDK or of its transport; None for one that no table has."""
    refusal = refused_by(error, endpoint)
    if refusal is not None:
        return of_refusal(refusal, endpoint)
    kind = _find(error.__cause__, BELOW_THE_SDK) or _find(error, OTHER_ERRORS) or _find(error, BELOW_THE_SDK)
    return _MESSAGES.get(kind, _other)(kind, error, endpoint) if kind is not None else None


def refused_by(error: BaseException, endpoint: Endpoint) -> Refusal | None:
    """What the server said in an error of the SDK; None where it gave no status."""
    if STATUS_ERRORS.isdisjoint(cls.__name__ for cls in type(error).__mro__):
        return None
    status: Any = error
    headers, code = status.response.headers, status.status_code
    is_page = "html" in headers.get("content-type", "").lower()
    said = "an HTML page" if is_page else status.body or "no reason given"
    return replace(
        refusal_of(code, said, endpoint.name, endpoint.key_sent),
        is_page=is_page,
        retry_after=retry_after(headers, limited=code == 429),
        location=headers.get("location", ""),
    )


def of_refusal(refusal: Refusal, endpoint: Endpoint) -> LLMError:
    """The error for what a server said, with an error's status or in the body of a response that has none."""
    said, code = endpoint.clean(refusal.message), refusal.status_code
    if refusal.meaning == "filter":
        return _filtered(said, endpoint)
    kind = _kind_of(refusal, endpoint)
    message = f"{endpoint.address} answered {'an error' if code == 200 else code}: {said}"
    if refusal.location:
        message += f"; it redirects to {endpoint.clean(refusal.location)}, which is not followed"
    failure = kind(message, status=code, retry_after=refusal.retry_after, hint=_HINTS[kind](refusal, endpoint))
    # Another endpoint has a model of its own, which may not refuse the same.
    failure.falls_back |= code == 404 or refusal.meaning in ("model", "context")
    return failure


def _filtered(said: str, endpoint: Endpoint) -> Filtered:
    """The prompt itself was withheld: nothing was generated, and nothing paid."""
    return Filtered(
        f"the content filter of {endpoint.address} withheld the prompt: {said}",
        hint="Word the task or its inputs differently, or use a provider with another filter.",
    )


def _find(error: BaseException | None, table: Mapping[str, type[K]]) -> type[K] | None:
    """The table's entry for the error's class, or for the nearest of its bases."""
    return next((table[cls.__name__] for cls in type(error).__mro__ if cls.__name__ in table), None)


def _kind_of(refusal: Refusal, endpoint: Endpoint) -> type[ProviderError]:
    """By what it means, else by the answer's format that it refuses, else by its status."""
    code = refusal.status_code
    if refusal.meaning is not None and refusal.meaning in _BY_MEANING:
        return _BY_MEANING[refusal.meaning]
    if _refuses_form(refusal, endpoint):
        return RequestRefused
    if code in _BY_STATUS:
        return _BY_STATUS[code]
    if code >= 500:
        return ServerFailed
    return NotAnAPI if refusal.is_page or code in range(201, 400) else RequestRefused


def _is_form_set(endpoint: Endpoint) -> bool:
    return endpoint.structured_output in ("json_schema", "json_object")


def _refuses_form(refusal: Refusal, endpoint: Endpoint) -> bool:
    """Whether a server refuses an answer's format: with any status but an outage's, and with some of those where the
    form is configured, so that no other is tried."""
    if not (refusal.of_the_request and refusal.of_the_format):
        return False
    return refusal.status_code < 500 or (_is_form_set(endpoint) and refusal.status_code in (500, 501))


def _key_hint(_refusal: Refusal, endpoint: Endpoint) -> str:
    if not endpoint.key_sent:
        return f"No key is sent to {endpoint.address}: set the environment variable {endpoint.key_env}."
    return f"Check the key in the environment variable {endpoint.key_env}, and that it may use this model and server."


def _not_an_api_hint(_refusal: Refusal | None, endpoint: Endpoint) -> str:
    return f"Check provider.base_url ({endpoint.address}): an OpenAI-compatible API's address usually ends in /v1."


def _refused_hint(refusal: Refusal, endpoint: Endpoint) -> str:
    if refusal.meaning == "context":
        return (
            "The prompt, with room for an answer, is too long for the model: choose one with a larger context, give it "
            "less material, or lower provider.max_tokens where it is set."
        )
    if refusal.meaning == "model":
        return "Check provider.model (and roles.*.model): `aeon doctor` tries the model of each role."
    if refusal.status_code == 404 and "parameter" not in refusal.message.lower():
        has_path = urlsplit(endpoint.base_url).path.strip("/")
        ends = "." if has_path else ": an OpenAI-compatible API's address usually ends in /v1."
        return f"Check provider.model, and provider.base_url ({endpoint.address}){ends}"
    if refusal.status_code == 407:
        return f"{proxy_hint(endpoint)} It wants a user and a password: http://USER:PASSWORD@HOST:PORT."
    if _is_form_set(endpoint) and _refuses_form(refusal, endpoint):
        form = endpoint.structured_output
        return f"The server does not take provider.structured_output={form}; auto finds out what it takes."
    another = "; provider.structured_output=prompt tells the schema in the prompt alone."
    return (
        "Check provider.model and its parameters (temperature, max_tokens, effort, extra_body) against the server. "
        "reasoning=none sends no effort" + ("." if endpoint.structured_output == "prompt" else another)
    )


def _rate_hint(_refusal: Refusal, _endpoint: Endpoint) -> str:
    return "Lower provider.max_concurrency, set provider.requests_per_minute or tokens_per_minute, or name a fallback."


def _credit_hint(_refusal: Refusal, endpoint: Endpoint) -> str:
    return (
        f"The account of the key in {endpoint.key_env} has no credit left: add some at the provider, or name another "
        "provider in provider.fallbacks. Waiting does not help."
    )


def _server_hint(_refusal: Refusal, endpoint: Endpoint) -> str:
    keyless = "" if endpoint.key_sent else f" No key is sent to it: if it wants one, set {endpoint.key_env}."
    return f"The server at {endpoint.address} fails: see its log or status page, and try again later.{keyless}"


_HINTS: Mapping[type[ProviderError], Callable[[Refusal, Endpoint], str]] = {
    AuthenticationFailed: _key_hint,
    RequestRefused: _refused_hint,
    NotAnAPI: _not_an_api_hint,
    RateLimited: _rate_hint,
    QuotaExhausted: _credit_hint,
    ServerFailed: _server_hint,
}


def _not_an_api(_kind: type[LLMError], error: BaseException, endpoint: Endpoint) -> LLMError:
    text = root_text(error)
    if _GOES_ON.search(text):
        return ConnectionFailed(
            f"{endpoint.address} answered more than it announced",
            hint=f"The server at {endpoint.address}, or a proxy before it, gives a Content-Length that is too short, "
            "or a body to a status that has none: see its log.",
        )
    return not_an_api(text, endpoint)


def not_an_api(said: str, endpoint: Endpoint) -> NotAnAPI:
    """The error for an answer that is no chat completion."""
    message = f"{endpoint.address} answered something that is no chat completion: {endpoint.clean(said)}"
    return NotAnAPI(message, hint=_not_an_api_hint(None, endpoint))


def _unsendable(_kind: type[LLMError], error: BaseException, endpoint: Endpoint) -> LLMError:
    return RequestRefused(
        f"the prompt cannot be sent: {endpoint.clean(str(error))}",
        hint="Some text in the prompt (task, inputs, a tool's or a step's result) is not valid Unicode.",
    )


def _other(kind: type[LLMError], error: BaseException, endpoint: Endpoint) -> LLMError:
    return kind(endpoint.clean(str(error)) or type(error).__name__)


_MESSAGES: Mapping[type[LLMError], Callable[[type[LLMError], BaseException, Endpoint], LLMError]] = {
    ConnectionFailed: connection_failed,
    NotAnAPI: _not_an_api,
    RequestRefused: _unsendable,
}
