"""The OpenAI SDK's failures as Aeon's errors, in tables.

`STATUS_ERRORS` (the server answered with an error status) and `OTHER_ERRORS` have every exception class of the SDK by
name, so that this module need not import it; a test fails when the SDK adds one. `BELOW_THE_SDK` has failures of the
transport that the SDK lets through or calls a connection error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

from aeon.errors import (
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
from aeon.llm.adapters.endpoint import Endpoint, causes
from aeon.llm.adapters.refusal import DOUBTFUL, NO_CREDIT, OF_PARAMETERS, Refusal, refusal_of
from aeon.llm.adapters.waiting import retry_after

STATUS_ERRORS: Mapping[str, type[ProviderError]] = {
    "APIStatusError": RequestRefused,
    "BadRequestError": RequestRefused,
    "AuthenticationError": AuthenticationFailed,
    "OAuthError": AuthenticationFailed,
    "PermissionDeniedError": AuthenticationFailed,
    "NotFoundError": RequestRefused,
    "ConflictError": ServerFailed,
    "UnprocessableEntityError": RequestRefused,
    "RateLimitError": RateLimited,
    "InternalServerError": ServerFailed,
}

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

_BY_CODE: Mapping[int, type[ProviderError]] = {
    401: AuthenticationFailed,
    402: QuotaExhausted,
    403: AuthenticationFailed,
    408: ServerFailed,
    409: ServerFailed,
    429: RateLimited,
}

FILTERED = frozenset({"content_filter", "content_policy_violation", "data_inspection_failed"})
"""The codes of a refusal that is a content filter's."""

# Where the next response should begin, there is the rest of a JSON document.
_GOES_ON = re.compile(r"Bad status line.*:\s+b['\"]\s*\{", re.DOTALL)
K = TypeVar("K")


def translate(error: BaseException, endpoint: Endpoint) -> LLMError | None:
    """The error of Aeon for a failure of the SDK or of its transport; None for one that no table has."""
    by_status = _find(error, STATUS_ERRORS)
    if by_status is not None and getattr(error, "code", None) in FILTERED:
        return _filtered(error, endpoint)
    if by_status is not None:
        return _of_status(_refine(by_status, error, endpoint), error, endpoint)
    kind = _find(error.__cause__, BELOW_THE_SDK) or _find(error, OTHER_ERRORS) or _find(error, BELOW_THE_SDK)
    return _MESSAGES.get(kind, _other)(kind, error, endpoint) if kind is not None else None


def _filtered(error: Any, endpoint: Endpoint) -> Filtered:
    """The prompt itself was withheld: nothing was generated, and nothing paid."""
    return Filtered(
        f"the content filter of {endpoint.address} withheld the prompt: {endpoint.clean(_said(error))}",
        hint="Word the task or its inputs differently, or use a provider with another filter.",
    )


def refused_by(error: BaseException) -> Refusal | None:
    """What the server said in an error of the SDK; None where it gave no status, or a page."""
    if _find(error, STATUS_ERRORS) is None or _is_page(error):
        return None
    status: Any = error
    return refusal_of(status.status_code, status.body)


def of_refusal(refusal: Refusal, endpoint: Endpoint) -> ProviderError:
    """The error for what a server said in a response whose own status was none of an error."""
    code = refusal.status_code
    kind = _BY_CODE.get(code, ServerFailed if code >= 500 else RequestRefused)
    kind = QuotaExhausted if refusal.code in NO_CREDIT else kind
    kind = RequestRefused if refusal.too_long or _is_form_refused(refusal, endpoint) else kind
    message = f"{endpoint.address} answered an error: {endpoint.clean(refusal.message)}"
    failure = kind(message, status=code, hint=_HINTS[kind](refusal, endpoint))
    failure.falls_back |= _is_of_the_model(refusal)
    return failure


def _find(error: BaseException | None, table: Mapping[str, type[K]]) -> type[K] | None:
    """The table's entry for the error's class, or for the nearest of its bases."""
    return next((table[cls.__name__] for cls in type(error).__mro__ if cls.__name__ in table), None)


def _refine(kind: type[ProviderError], error: Any, endpoint: Endpoint) -> type[ProviderError]:
    """The SDK has no class for 408 and for redirects; and a page where an API would refuse says that it is none."""
    if _too_long(error) or _is_form_refused(error, endpoint):
        return RequestRefused
    if error.status_code == 408 and not _is_of_the_format(error):
        return ServerFailed
    refusal = refused_by(error)
    codes = (error.code, error.type, refusal.code if refusal is not None else "")
    if error.status_code == 402 or not NO_CREDIT.isdisjoint(codes):
        return QuotaExhausted
    if error.status_code < 400 or (kind is RequestRefused and _is_page(error)):
        return NotAnAPI
    return RequestRefused if _is_of_the_format(error) else kind


def _is_of_the_format(error: BaseException) -> bool:
    """Whether a server refuses an answer's format, with a status that means something else elsewhere."""
    refusal = refused_by(error)
    return refusal is not None and refusal.status_code < 500 and refusal.of_the_request and refusal.of_the_format


def _is_form_refused(error: Any, endpoint: Endpoint) -> bool:
    """Whether a server does not take the form that is configured, though it has the status of an outage."""
    refusal = _refusal(error)
    if refusal is None or endpoint.structured_output not in ("json_schema", "json_object"):
        return False
    by_status = refusal.status_code in OF_PARAMETERS or refusal.status_code == DOUBTFUL
    return by_status and refusal.of_the_request and refusal.of_the_format


def _of_status(kind: type[ProviderError], error: Any, endpoint: Endpoint) -> ProviderError:
    """An HTTP status that is an error, with what the server said about it."""
    message = f"{endpoint.address} answered {error.status_code}: {endpoint.clean(_said(error))}"
    if redirected := error.response.headers.get("location"):
        message += f"; it redirects to {endpoint.clean(redirected)}, which is not followed"
    asked = retry_after(error.response.headers)
    failure = kind(message, status=error.status_code, retry_after=asked, hint=_HINTS[kind](error, endpoint))
    failure.falls_back |= _is_of_the_model(error)
    return failure


def _is_of_the_model(error: Any) -> bool:
    """Whether another endpoint, with a model of its own, may not refuse the same."""
    return error.status_code == 404 or error.code == "model_not_found" or _too_long(error)


def _too_long(error: Any) -> bool:
    refusal = _refusal(error)
    return refusal is not None and refusal.too_long


def _refusal(error: Any) -> Refusal | None:
    return error if isinstance(error, Refusal) else refused_by(error)


def _said(error: Any) -> str:
    """What the server said, in its own words; a page is not quoted."""
    if _is_page(error):
        return "an HTML page"
    body = error.body
    if isinstance(body, Mapping):
        return refusal_of(error.status_code, body).message
    return str(body or "no reason given")


def _is_page(error: Any) -> bool:
    return "html" in error.response.headers.get("content-type", "").lower()


def _key_hint(_error: Any, endpoint: Endpoint) -> str:
    return f"Check the key in the environment variable {endpoint.key_env}, and that it may use this model and server."


def _not_an_api_hint(_error: Any, endpoint: Endpoint) -> str:
    return f"Check provider.base_url ({endpoint.address}): an OpenAI-compatible API's address usually ends in /v1."


def _refused_hint(error: Any, endpoint: Endpoint) -> str:
    if _too_long(error):
        return (
            "The prompt, with room for an answer, is too long for the model: choose one with a larger context, give it "
            "less material, or lower provider.max_tokens where it is set."
        )
    if error.status_code == 404 and "parameter" not in str(getattr(error, "message", "")).lower():
        has_path = urlsplit(endpoint.base_url).path.strip("/")
        ends = "." if has_path else ": an OpenAI-compatible API's address usually ends in /v1."
        return f"Check provider.model, and provider.base_url ({endpoint.address}){ends}"
    if _is_form_refused(error, endpoint):
        form = endpoint.structured_output
        return f"The server does not take provider.structured_output={form}; auto finds out what it takes."
    another = "; provider.structured_output=prompt tells the schema in the prompt alone."
    return (
        "Check provider.model and its parameters (temperature, max_tokens, effort, extra_body) against the server. "
        "reasoning=none sends no effort" + ("." if endpoint.structured_output == "prompt" else another)
    )


def _rate_hint(_error: Any, _endpoint: Endpoint) -> str:
    return "Lower provider.max_concurrency, set provider.requests_per_minute or tokens_per_minute, or name a fallback."


def _credit_hint(_error: Any, endpoint: Endpoint) -> str:
    return (
        f"The account of the key in {endpoint.key_env} has no credit left: add some at the provider, or name another "
        "provider in provider.fallbacks. Waiting does not help."
    )


def _server_hint(_error: Any, endpoint: Endpoint) -> str:
    return f"The server at {endpoint.address} fails: see its log or status page, and try again later."


_HINTS: Mapping[type[ProviderError], Callable[[Any, Endpoint], str]] = {
    AuthenticationFailed: _key_hint,
    RequestRefused: _refused_hint,
    NotAnAPI: _not_an_api_hint,
    RateLimited: _rate_hint,
    QuotaExhausted: _credit_hint,
    ServerFailed: _server_hint,
}


def _connection(_kind: type[LLMError], error: BaseException, endpoint: Endpoint) -> LLMError:
    if _timed_out(error):
        message = f"{endpoint.address} gave no answer within {endpoint.timeout_seconds:g} s"
    else:
        message = f"no connection to {endpoint.address}: {endpoint.clean(_root_text(error))}"
    return ConnectionFailed(
        message,
        hint=f"Is a server running there? Check provider.base_url ({endpoint.address}), the network and any proxy; "
        f"a slow model may need more than provider.timeout_seconds={endpoint.timeout_seconds:g}.",
    )


def _timed_out(error: BaseException) -> bool:
    """By what is behind it: the transport calls some broken connections timeouts, and the system has its own."""
    return any(isinstance(cause, TimeoutError) and cause.errno is None for cause in causes(error))


def _not_an_api(_kind: type[LLMError], error: BaseException, endpoint: Endpoint) -> LLMError:
    text = _root_text(error)
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
    ConnectionFailed: _connection,
    NotAnAPI: _not_an_api,
    RequestRefused: _unsendable,
}


def _root_text(error: BaseException) -> str:
    """What the first cause says: the SDK itself only says "Connection error."."""
    root = causes(error)[-1]
    return str(root) or type(root).__name__
