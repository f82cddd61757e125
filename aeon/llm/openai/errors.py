"""Maps error responses and failed connections to Aeon's errors."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from dataclasses import replace
from http.client import HTTPException, IncompleteRead
from typing import Any
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
)
from aeon.domain.values import shown_address
from aeon.llm.dialects.refusal import Refusal, read_refusal
from aeon.llm.openai.endpoint import Endpoint
from aeon.llm.openai.transport import NotConnected, Response, proxy_of
from aeon.llm.openai.waiting import retry_after

_BY_MEANING: Mapping[str, type[ProviderError]] = {
    "key": AuthenticationFailed,
    "credit": QuotaExhausted,
    "model": RequestRefused,
    "context": RequestRefused,
}
_BY_STATUS: Mapping[int, type[ProviderError]] = {
    401: AuthenticationFailed,
    402: QuotaExhausted,
    403: AuthenticationFailed,
    408: ServerFailed,
    409: ServerFailed,
    429: RateLimited,
}
_API_HINT = "Check provider.base_url ({address}): an OpenAI-compatible API's address usually ends in /v1."
_HINTS: Mapping[Any, str] = {
    AuthenticationFailed: "Check the key in the environment variable {key_env}, and that it may use this model and "
    "server.",
    QuotaExhausted: "The account of the key in {key_env} has no credit left: add some at the provider, or name another "
    "provider in provider.fallbacks. Waiting does not help.",
    RateLimited: "Lower provider.max_concurrency, set provider.requests_per_minute or tokens_per_minute, or name a "
    "fallback.",
    ServerFailed: "The server at {address} fails: see its log or status page, and try again later.",
    NotAnAPI: _API_HINT,
    "context": "The prompt, with room for an answer, is too long for the model: choose one with a larger context, give "
    "it less material, or lower provider.max_tokens where it is set.",
    "model": "Check provider.model (and roles.*.model): `aeon doctor` tries the model of each role.",
    "form": "The server does not take provider.structured_output={form}; auto finds out what it takes.",
    404: f"Check provider.model. {_API_HINT}",
    RequestRefused: "Check provider.model and its parameters (temperature, max_tokens, effort, extra_body) against the "
    "server. reasoning=none sends no effort; provider.structured_output=prompt tells the schema in the prompt alone.",
}


def refusal_in(response: Response) -> Refusal:
    """Read the refusal in a response with an error status."""
    is_page = "html" in response.headers.get("content-type", "").lower()
    try:
        body = "an HTML page" if is_page else json.loads(response.body)
    except (ValueError, RecursionError):
        body = response.body.decode("utf-8", "replace")
    return replace(
        read_refusal(response.status, body or "no reason given"),
        is_page=is_page,
        retry_after=retry_after(dict(response.headers.items()), limited=response.status == 429),
        location=response.headers.get("location", ""),
    )


def error_of_refusal(refusal: Refusal, endpoint: Endpoint) -> LLMError:
    """The error for a refusal, whether it came with an error status or in the body of a 200."""
    quoted, code = endpoint.clean(refusal.message), refusal.status_code
    if refusal.meaning == "filter":
        return Filtered(
            f"the content filter of {endpoint.address} withheld the prompt: {quoted}",
            hint="Word the task or its inputs differently, or use a provider with another filter.",
        )
    kind, topic = _kind_and_topic(refusal, endpoint)
    settings = endpoint.settings
    hint = _HINTS[topic].format(address=endpoint.address, key_env=settings.api_key_env, form=settings.structured_output)
    if not endpoint.key_sent and kind in (AuthenticationFailed, ServerFailed):
        hint += f" No key is sent to it: if it wants one, set {settings.api_key_env}."
    message = f"{endpoint.address} answered {'an error' if code == 200 else code}: {quoted}"
    if refusal.location:
        message += f"; it redirects to {endpoint.clean(refusal.location)}, which is not followed"
    failure = kind(message, status=code, retry_after=refusal.retry_after, hint=hint)
    # Another endpoint has a model of its own, which may not refuse the same.
    failure.falls_back |= code == 404 or refusal.meaning in ("model", "context")
    return failure


def _kind_and_topic(refusal: Refusal, endpoint: Endpoint) -> tuple[type[ProviderError], Any]:
    """The error for a refusal, and the key of its hint."""
    code = refusal.status_code
    if refusal.meaning is not None:
        kind = _BY_MEANING[refusal.meaning]
        return kind, refusal.meaning if kind is RequestRefused else kind
    is_of_form = refusal.is_about_request and refusal.is_about_format
    if is_of_form and code <= 501 and endpoint.settings.structured_output in ("json_schema", "json_object"):
        return RequestRefused, "form"
    if code >= 500 or (code in _BY_STATUS and not is_of_form):
        kind = _BY_STATUS.get(code, ServerFailed)
        return kind, kind
    if refusal.is_page or 200 < code < 400:
        return NotAnAPI, NotAnAPI
    return RequestRefused, 404 if code == 404 else RequestRefused


def not_an_api(quoted: str, endpoint: Endpoint) -> NotAnAPI:
    """The error for an answer that is no chat completion."""
    message = f"{endpoint.address} answered something that is no chat completion: {endpoint.clean(quoted)}"
    return NotAnAPI(message, hint=_API_HINT.format(address=endpoint.address))


def error_of_exception(error: Exception, endpoint: Endpoint, allowed: float) -> LLMError | None:
    """The error for a request that was not answered in the seconds allowed; None for an exception that is a bug."""
    match error:
        case UnicodeEncodeError():
            return RequestRefused(
                f"the prompt cannot be sent: {endpoint.clean(str(error))}",
                hint="Some text in the prompt (task, inputs, a tool's or a step's result) is not valid Unicode.",
            )
        case NotConnected():
            return _not_connected(error, endpoint)
        case TimeoutError(errno=None):
            return ConnectionFailed(
                f"{endpoint.address} gave no answer within {allowed:.3g} s",
                hint=f"Check provider.base_url ({endpoint.address}); a slow model, or one that is still loading, may "
                f"need more than provider.timeout_seconds={endpoint.settings.timeout_seconds:g}.",
                sent=True,
                timed_out=True,
            )
        case OSError() | IncompleteRead():
            reason = "it ended half-way" if isinstance(error, IncompleteRead) else endpoint.clean(str(error))
            return ConnectionFailed(
                f"the connection to {endpoint.address} broke off: {reason}",
                hint=f"Check provider.base_url ({endpoint.address}) and the network; see the server's log. A server "
                "that always dies on this request may not bear its schema: provider.structured_output=prompt.",
                sent=True,
            )
        case HTTPException():
            return not_an_api(str(error) or type(error).__name__, endpoint)
    return None


def _not_connected(error: NotConnected, endpoint: Endpoint) -> ConnectionFailed:
    """Nothing was sent. A failure of TLS is not tried again."""
    address, cause, text = endpoint.address, error.__cause__, endpoint.clean(str(error))
    if isinstance(cause, ssl.SSLError):
        failure = ConnectionFailed(
            f"no secure connection to {address}: {text}",
            hint="Where the certificate is your own or your company's, name the file of its authority in the "
            "environment variable SSL_CERT_FILE; a server that speaks plain HTTP has an address with http://.",
        )
        failure.retryable = False
        return failure
    url = urlsplit(endpoint.base_url)
    if proxy := proxy_of(url):
        return ConnectionFailed(
            f"no connection to {address}: its proxy: {text}",
            hint=f"Requests go through the proxy {shown_address(proxy.geturl())} (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY): "
            f"check it, or set NO_PROXY={url.hostname} to go around it.",
        )
    text = "refused, nothing listens there" if isinstance(cause, ConnectionRefusedError) else text
    hint = f"Is the server running? Check provider.base_url ({address}), its port, and the network."
    return ConnectionFailed(f"no connection to {address}: {text}", hint=hint)
