"""Maps error responses and failed connections to Aeon's errors."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from aeon.domain.errors import (
    AuthenticationFailed,
    Filtered,
    LLMError,
    NotAnAPI,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    RequestRefused,
    ServerFailed,
)
from aeon.llm.dialects.refusal import Refusal, read_refusal
from aeon.llm.openai.endpoint import Endpoint, Response

FILTER_HINT = "Word the task or its inputs differently, or use a provider with another filter."
_API_HINT = (
    "Check provider.base_url ({address}): an OpenAI-compatible API's address usually ends in /v1."
)
_TOPIC_OF_STATUS = {
    401: "key",
    402: "credit",
    403: "key",
    408: "failure",
    409: "failure",
    429: "limit",
}
_KINDS: Mapping[str, type[ProviderError]] = {
    "key": AuthenticationFailed,
    "credit": QuotaExhausted,
    "limit": RateLimited,
    "failure": ServerFailed,
    "api": NotAnAPI,
}
"""The errors of topics; any other topic is `RequestRefused`."""
_HINTS = {
    "key": "Check the key in the environment variable {key_env}, and that it may use "
    "this model and server.",
    "credit": "The account of the key in {key_env} has no credit left: add some at the provider, "
    "or name another provider in provider.fallbacks. Waiting does not help.",
    "limit": "Lower provider.max_concurrency, set provider.requests_per_minute or "
    "tokens_per_minute, or name a fallback.",
    "failure": "The server at {address} fails: see its log or status page, and try again later.",
    "context": "The prompt, with room for an answer, is too long for the model: choose one with a "
    "larger context, give it less material, or lower provider.max_tokens if it is set.",
    "model": "Check provider.model (and roles.*.model): `aeon doctor` tries the model of "
    "each role.",
    "form": "The server does not accept provider.structured_output={form}; auto finds out "
    "what it accepts.",
    "api": _API_HINT,
    "path": f"Check provider.model. {_API_HINT}",
    "request": "Check provider.model and its parameters (temperature, max_tokens, effort, "
    "extra_body) against the server. reasoning=none sends no effort; "
    "provider.structured_output=prompt puts the schema in the prompt alone.",
}
_BEHIND_A_PROXY = "llm_provider-"  # LiteLLM's prefix for the headers of the provider behind it
_RESET = "x-ratelimit-reset-"
# OpenAI's form of a duration: `1d2h3m4.5s` or `250ms`.
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+\.?\d*)s)?(?:(\d+\.?\d*)ms)?")


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
        retry_after=retry_after(response.headers, limited=response.status == 429),
        location=response.headers.get("location", ""),
    )


def retry_after(headers: Mapping[str, str], *, limited: bool = False) -> float | None:
    """Return the seconds that a server, or one behind a proxy, asks to wait, never negative; None
    if it does not say.

    From `retry-after-ms` or `Retry-After` (seconds or a date); for a `limited` (429) response
    without them, from the `x-ratelimit-reset-*` (seconds or a duration) of the exhausted limits.
    """
    lowered = {name.lower(): value for name, value in headers.items()}
    behind = {name.removeprefix(_BEHIND_A_PROXY): value for name, value in lowered.items()}
    given = behind | lowered
    asked = _read_retry_after(given)
    return _reset_seconds(given) if asked is None and limited else asked


def _read_retry_after(given: Mapping[str, str]) -> float | None:
    milliseconds = _duration(given.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = given.get("retry-after", "")
    seconds = _duration(text)
    if seconds is not None or not text:
        return seconds
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (until.astimezone(UTC) - datetime.now(UTC)).total_seconds())


def _reset_seconds(given: Mapping[str, str]) -> float | None:
    names = (header.removeprefix(_RESET) for header in given if header.startswith(_RESET))
    used_up = (name for name in names if not _duration(given.get(f"x-ratelimit-remaining-{name}")))
    return max(filter(None, (_duration(given[_RESET + name]) for name in used_up)), default=None)


def _duration(text: str | None) -> float | None:
    text = (text or "").strip()
    found = _DURATION.fullmatch(f"{text}s" if text[-1:].isdigit() else text) if text else None
    if found is None:
        return None
    days, hours, minutes, seconds, milliseconds = (float(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds + milliseconds / 1000


def error_of_refusal(refusal: Refusal, endpoint: Endpoint) -> LLMError:
    """Return the error for a refusal, whether it came with an error status or in the body of a
    200."""
    quoted = endpoint.clean(refusal.message)
    code = refusal.status_code
    settings = endpoint.settings
    if refusal.meaning == "filter":
        problem = f"the content filter of {endpoint.address} withheld the prompt: {quoted}"
        return Filtered(problem, hint=FILTER_HINT)
    topic = _topic_of(refusal, settings.structured_output)
    kind = _KINDS.get(topic, RequestRefused)
    hint = _HINTS[topic].format(
        address=endpoint.address, key_env=settings.api_key_env, form=settings.structured_output
    )
    if not endpoint.key_sent and kind in (AuthenticationFailed, ServerFailed):
        hint += f" No key is sent to it: if it needs one, set {settings.api_key_env}."
    if settings.api == "responses" and code in (404, 405, 501):
        hint += " It may have no Responses API: `aeon doctor` says so; try provider.api=chat."
    message = f"{endpoint.address} answered {'an error' if code == 200 else code}: {quoted}"
    if refusal.location:
        message += f"; it redirects to {endpoint.clean(refusal.location)}, which is not followed"
    failure = kind(message, status=code, retry_after=refusal.retry_after, hint=hint)
    # Another endpoint uses its own model, which may accept the request.
    failure.falls_back |= code == 404 or refusal.meaning in ("model", "context")
    return failure


def _topic_of(refusal: Refusal, form: str) -> str:
    code = refusal.status_code
    if refusal.meaning is not None:
        return refusal.meaning
    is_of_form = refusal.is_about_request and refusal.is_about_format
    if is_of_form and code <= 501 and form in ("json_schema", "json_object"):
        return "form"
    if code in _TOPIC_OF_STATUS and not is_of_form:
        return _TOPIC_OF_STATUS[code]
    return "api" if refusal.is_page and code < 500 else _topic_of_status(code)


def _topic_of_status(code: int) -> str:
    if code >= 500:
        return "failure"
    if 200 < code < 400:
        return "api"
    return "path" if code == 404 else "request"


def not_an_api(quoted: str, endpoint: Endpoint) -> NotAnAPI:
    """Return the error for an answer that is no chat completion."""
    problem = (
        f"{endpoint.address} answered something that is no chat completion: "
        f"{endpoint.clean(quoted)}"
    )
    return NotAnAPI(problem, hint=_API_HINT.format(address=endpoint.address))
