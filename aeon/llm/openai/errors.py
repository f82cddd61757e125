"""Maps error responses and failed connections to Aeon's errors."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Mapping
from dataclasses import replace
from http.client import BadStatusLine, HTTPException, IncompleteRead
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
from aeon.llm.dialects.refusal import Meaning, Refusal, read_refusal
from aeon.llm.openai.connection import OverlongResponse, Response, UnreadableResponse
from aeon.llm.openai.endpoint import Endpoint
from aeon.llm.openai.transport import NotConnected, proxy_of
from aeon.llm.openai.waiting import retry_after

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


def refusal_in(response: Response, endpoint: Endpoint) -> Refusal:
    """Read the refusal in a response with an error status."""
    is_page = "html" in response.headers.get("content-type", "").lower()
    body = "an HTML page" if is_page else _read_json(response.body) or "no reason given"
    return replace(
        read_refusal(response.status, body, endpoint.name, endpoint.key_sent),
        is_page=is_page,
        retry_after=retry_after(dict(response.headers.items()), limited=response.status == 429),
        location=response.headers.get("location", ""),
    )


def error_of_exception(error: Exception, endpoint: Endpoint) -> LLMError | None:
    """The error for a request that was not answered; None for an exception that is a bug."""
    match error:
        case UnicodeEncodeError():
            return RequestRefused(
                f"the prompt cannot be sent: {endpoint.clean(str(error))}",
                hint="Some text in the prompt (task, inputs, a tool's or a step's result) is not valid Unicode.",
            )
        case NotConnected():
            return _not_connected(error, endpoint)
        case OverlongResponse():
            return ConnectionFailed(
                f"{endpoint.address} answered more than it announced",
                hint=f"The server at {endpoint.address}, or a proxy before it, gives a Content-Length that is too "
                "short, or a body to a status that has none: see its log.",
            )
        case OSError() | IncompleteRead():
            return _broken_off(error, endpoint)
        case UnreadableResponse() | BadStatusLine() | HTTPException():
            return not_an_api(str(error) or type(error).__name__, endpoint)
    return None


def error_of_refusal(refusal: Refusal, endpoint: Endpoint) -> LLMError:
    """The error for a refusal, whether it came with an error status or in the body of a 200."""
    quoted, code = endpoint.clean(refusal.message), refusal.status_code
    if refusal.meaning == "filter":
        return _filtered(quoted, endpoint)
    kind = _kind_of(refusal, endpoint)
    message = f"{endpoint.address} answered {'an error' if code == 200 else code}: {quoted}"
    if refusal.location:
        message += f"; it redirects to {endpoint.clean(refusal.location)}, which is not followed"
    failure = kind(message, status=code, retry_after=refusal.retry_after, hint=_HINTS[kind](refusal, endpoint))
    # Another endpoint has a model of its own, which may not refuse the same.
    failure.falls_back |= code == 404 or refusal.meaning in ("model", "context")
    return failure


def _filtered(quoted: str, endpoint: Endpoint) -> Filtered:
    """The prompt itself was withheld: nothing was generated, and nothing paid."""
    return Filtered(
        f"the content filter of {endpoint.address} withheld the prompt: {quoted}",
        hint="Word the task or its inputs differently, or use a provider with another filter.",
    )


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
    if not (refusal.is_about_request and refusal.is_about_format):
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
        return f"{_proxy_hint(endpoint)} It wants a user and a password: http://USER:PASSWORD@HOST:PORT."
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


def not_an_api(quoted: str, endpoint: Endpoint) -> NotAnAPI:
    """The error for an answer that is no chat completion."""
    message = f"{endpoint.address} answered something that is no chat completion: {endpoint.clean(quoted)}"
    return NotAnAPI(message, hint=_not_an_api_hint(None, endpoint))


def _broken_off(error: Exception, endpoint: Endpoint) -> ConnectionFailed:
    """The connection ended, or the time was up, after the request was sent."""
    address = endpoint.address
    timed_out = isinstance(error, TimeoutError) and error.errno is None
    if timed_out:
        waited = endpoint.timeout_seconds if endpoint.waited_seconds is None else endpoint.waited_seconds
        message = f"{address} gave no answer within {waited:.3g} s"
        hint = (
            f"Check provider.base_url ({address}); a slow model, or one that is still loading, may need more than "
            f"provider.timeout_seconds={endpoint.timeout_seconds:g}."
        )
    else:
        reason = "it ended half-way" if isinstance(error, IncompleteRead) else endpoint.clean(str(error))
        message = f"the connection to {address} broke off: {reason}"
        hint = f"Check provider.base_url ({address}) and the network{_through_proxy(endpoint)}; see the server's log."
        if endpoint.structured_output in ("auto", "json_schema"):
            hint += (
                " A server that always dies on this request may not bear its schema: provider.structured_output=prompt."
            )
    failure = ConnectionFailed(message, hint=hint)
    failure.timed_out, failure.sent = timed_out, True
    return failure


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
    if error.by_proxy:
        return ConnectionFailed(f"no connection to {address}: its proxy: {text}", hint=_proxy_hint(endpoint))
    if isinstance(cause, ConnectionRefusedError):
        return ConnectionFailed(
            f"no connection to {address}: refused, nothing listens there",
            hint=f"Is the server running, and is its port that of provider.base_url ({address})?",
        )
    return ConnectionFailed(
        f"no connection to {address}: {text}", hint=f"Check provider.base_url ({address}) and the network."
    )


def _proxy_hint(endpoint: Endpoint) -> str:
    return (
        f"Requests go through the proxy {_proxy(endpoint) or 'of the environment'} (HTTP_PROXY, HTTPS_PROXY, "
        f"ALL_PROXY): check it, or set NO_PROXY={urlsplit(endpoint.base_url).hostname} to go around it."
    )


def _through_proxy(endpoint: Endpoint) -> str:
    proxy = _proxy(endpoint)
    return f", and the proxy {proxy}" if proxy else ""


def _proxy(endpoint: Endpoint) -> str:
    """The proxy that the environment names for an address, without its user; empty where there is none."""
    proxy = proxy_of(urlsplit(endpoint.base_url))
    return shown_address(proxy.geturl()) if proxy else ""


def _read_json(body: bytes) -> Any:
    """The body as JSON, else as text."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")
