"""Responses that are made in the background: asked for until they are done, cancelled with their
run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httpx2
from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError, OpenAI, Timeout
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from aeon.domain.errors import StopRequested
from aeon.domain.request import LLMRequest, Usage
from aeon.llm.openai.client import ends_at, response_of
from aeon.llm.openai.connection import ConnectionClosed
from aeon.llm.openai.endpoint import Response
from aeon.llm.protocols import CALL_HEADERS, RUN
from aeon.llm.watching import tell_waiting

_UNDER_WAY = ("queued", "in_progress")
_FIRST_WAIT_SECONDS = 0.2
_MOST_WAIT_SECONDS = 5.0
_WAIT_FACTOR = 1.5
_SLICE_SECONDS = 0.1
_REQUEST_SECONDS = 30.0
_MOST_FAILURES = 5
"""So many failures in a row to learn how far a response is, and its call has failed."""
_TRANSIENT = (408, 409, 429)


def wait_for_response(
    sdk: OpenAI,
    created: Response,
    request: LLMRequest,
    deadline: float,
    is_closed: Callable[[], bool],
) -> Response:
    """Ask for a response that was created until it is done, and return it as it is then.

    It is cancelled at a `time.monotonic()`, when its run is stopped, when the connection
    `is_closed`, and where it cannot be asked for. Raises APITimeoutError, StopRequested,
    ConnectionClosed, and what the SDK raises.
    """
    current = created
    document = _read(created)
    wait = _FIRST_WAIT_SECONDS
    while document.get("status") in _UNDER_WAY:
        status = document["status"].replace("_", " ")
        tell_waiting(request, 0.0, f"in the background: {status}")
        try:
            _wait_for_turn(request, wait, deadline, is_closed)
            current = _retrieve(sdk, document["id"], deadline)
        except Exception:
            _cancel(sdk, document["id"])
            raise
        if current.status >= 300:
            _cancel(sdk, document["id"])
        document = _read(current)
        wait = min(_MOST_WAIT_SECONDS, wait * _WAIT_FACTOR)
    return current


def _wait_for_turn(
    request: LLMRequest, seconds: float, deadline: float, is_closed: Callable[[], bool]
) -> None:
    """Wait until the response is asked for again. Raises the reason why it is not to be."""
    until = min(deadline, time.monotonic() + seconds)
    while (left := until - time.monotonic()) > 0:
        if RUN.get().stop():
            message = f"stopped while a {request.call} call was under way in the background"
            raise StopRequested(message, usage=Usage.of_unanswered(request))
        if is_closed():
            raise ConnectionClosed
        time.sleep(min(left, _SLICE_SECONDS))
    if time.monotonic() >= deadline:
        raise APITimeoutError(httpx2.Request("GET", "/responses"))


def _retrieve(sdk: OpenAI, response_id: str, deadline: float) -> Response:
    """The response as it is now; what may pass by itself is tried again, a few times."""
    attempts = Retrying(
        stop=stop_after_attempt(_MOST_FAILURES),
        wait=wait_exponential(_FIRST_WAIT_SECONDS, max=_MOST_WAIT_SECONDS),
        retry=retry_if_exception(_may_pass),
        reraise=True,
    )
    try:
        return attempts(_ask_for, sdk, response_id, deadline)
    except APIStatusError as error:
        return response_of(error.response)


def _ask_for(sdk: OpenAI, response_id: str, deadline: float) -> Response:
    with ends_at(min(deadline, time.monotonic() + _REQUEST_SECONDS)):
        answered = sdk.responses.with_raw_response.retrieve(response_id, **_options())
    return response_of(answered.http_response)


def _may_pass(error: BaseException) -> bool:
    if isinstance(error, APIStatusError):
        return error.status_code in _TRANSIENT or error.status_code >= 500
    return isinstance(error, APIConnectionError)


def _cancel(sdk: OpenAI, response_id: str) -> None:
    # A response that is done by now, or a server that is gone, is left as it is.
    with suppress(APIError), ends_at(time.monotonic() + _REQUEST_SECONDS):
        sdk.responses.with_raw_response.cancel(response_id, **_options())


def _options() -> dict[str, Any]:
    return {
        "extra_headers": dict(CALL_HEADERS.get()) or None,
        "timeout": Timeout(_REQUEST_SECONDS),
    }


def _read(response: Response) -> dict[str, Any]:
    try:
        document = json.loads(response.body)
    except (ValueError, RecursionError):
        return {}
    is_response = isinstance(document, dict) and isinstance(document.get("id"), str)
    return document if is_response else {}
