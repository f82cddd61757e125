"""Polls responses made in the background until they are done, and cancels them with their run.
After a kill, the resumed run waits for the earlier response, whose id the run had stored."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import httpx2
from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError, OpenAI, Timeout
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from aeon.domain.errors import StopRequested
from aeon.domain.request import LLMRequest, Usage
from aeon.domain.values import JsonObject
from aeon.llm.openai.client import ends_at, response_of
from aeon.llm.openai.connection import ConnectionClosed
from aeon.llm.openai.endpoint import Response
from aeon.llm.protocols import CALL_HEADERS, RUN
from aeon.llm.watching import tell_waiting
from aeon.store.notes import NOTES, RequestNotes

_log = logging.getLogger("aeon")
_UNDER_WAY = ("queued", "in_progress")
_IN_VAIN = ("cancelled", "failed")
_LOST = (
    "The server does not give the answer that an earlier run was waiting for (%s): it is asked for "
    "anew, and paid for anew."
)
_NOTED = "response"
_FIRST_WAIT_SECONDS = 0.2
_MOST_WAIT_SECONDS = 5.0
_WAIT_FACTOR = 1.5
_SLICE_SECONDS = 0.1
_REQUEST_SECONDS = 30.0
_MOST_FAILURES = 5
"""After this many failed polls in a row, the call has failed."""
_TRANSIENT = (408, 409, 429)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundWait:
    """The terms of a wait: its request, its deadline (as `time.monotonic()` counts), whether the
    connection `is_closed`, and `about`, which identifies the server, the model and the call in
    notes."""

    sdk: OpenAI
    request: LLMRequest
    deadline: float
    is_closed: Callable[[], bool]
    about: Mapping[str, str]


def answer_in_background(wait: BackgroundWait, create: Callable[[], Response]) -> Response:
    """Return the finished response: the one that an interrupted run left under way, else a new one
    from `create`.

    Cancels it at the deadline, when its run is stopped, when the connection is closed, or when
    polling fails. Raises APITimeoutError, StopRequested, ConnectionClosed, StoreFailed, and what
    the SDK raises.
    """
    notes = NOTES.get()
    left = _pick_up(wait, notes) if notes else None
    if left is not None:
        return _wait_until_done(wait, left)
    created = create()
    document = _read(created)
    try:
        if notes and document.get("status") in _UNDER_WAY:
            notes.write(wait.about, {_NOTED: document["id"]})
    except Exception:  # without a note nobody would find it again, and it would be paid for
        _cancel(wait.sdk, document["id"])
        raise
    return _wait_until_done(wait, created)


def _pick_up(wait: BackgroundWait, notes: RequestNotes) -> Response | None:
    """Return the current response of an earlier run; None if there is none, the server does not
    give it, or it ended without an answer."""
    note = notes.find(wait.about)
    if note is None:
        return None
    response = _retrieve(wait.sdk, str(note[_NOTED]), wait.deadline)
    why = _find_loss(response)
    if why is not None:
        _log.warning(_LOST, why)
        return None
    if response.status < 300:
        # This run's own note is withdrawn once there is an answer, and no further attempt finds it:
        # a response of no use is picked up once.
        notes.write(wait.about, note)
    return response


def _find_loss(response: Response) -> str | None:
    """Return why the response of an earlier run is lost; None if it is not."""
    if 400 <= response.status < 500 and response.status not in _TRANSIENT:
        return str(response.status)
    state = _read(response).get("status")
    return state if state in _IN_VAIN else None


def _wait_until_done(wait: BackgroundWait, response: Response) -> Response:
    """Poll a response until it is done, and return it."""
    document = _read(response)
    seconds = _FIRST_WAIT_SECONDS
    while document.get("status") in _UNDER_WAY:
        status = document["status"].replace("_", " ")
        tell_waiting(wait.request, 0.0, f"in the background: {status}")
        try:
            _wait_for_turn(wait, seconds)
            response = _retrieve(wait.sdk, document["id"], wait.deadline)
        except Exception:
            _abandon(wait.sdk, document["id"])
            raise
        if response.status >= 300:
            _abandon(wait.sdk, document["id"])
        document = _read(response)
        seconds = min(_MOST_WAIT_SECONDS, seconds * _WAIT_FACTOR)
    return response


def _wait_for_turn(wait: BackgroundWait, seconds: float) -> None:
    """Wait until the next poll. Raises the reason why there is to be none."""
    request = wait.request
    until = min(wait.deadline, time.monotonic() + seconds)
    while (left := until - time.monotonic()) > 0:
        if RUN.get().stop():
            message = f"stopped while a {request.call} call was under way in the background"
            raise StopRequested(message, usage=Usage.of_unanswered(request))
        if wait.is_closed():
            raise ConnectionClosed
        time.sleep(min(left, _SLICE_SECONDS))
    if time.monotonic() >= wait.deadline:
        raise APITimeoutError(httpx2.Request("GET", "/responses"))


def _retrieve(sdk: OpenAI, response_id: str, deadline: float) -> Response:
    """Return the current response; failures that may pass are retried a few times."""
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


def _abandon(sdk: OpenAI, response_id: str) -> None:
    """Cancel a response that is not waited for any longer, and withdraw its note. The note of one
    that is not cancelled, such as one that is done, stays: a resumed run may find its answer."""
    notes = NOTES.get()
    if _cancel(sdk, response_id) == "cancelled" and notes:
        notes.clear()


def _cancel(sdk: OpenAI, response_id: str) -> str | None:
    """Cancel a response, and return its status; None if it is unknown."""
    # A response that is done, or a server that is gone, needs no cancelling.
    with suppress(APIError), ends_at(time.monotonic() + _REQUEST_SECONDS):
        answered = sdk.responses.with_raw_response.cancel(response_id, **_options())
        return _read(response_of(answered.http_response)).get("status")
    return None


def _options() -> JsonObject:
    return {
        "extra_headers": dict(CALL_HEADERS.get()) or None,
        "timeout": Timeout(_REQUEST_SECONDS),
    }


def _read(response: Response) -> JsonObject:
    try:
        document = json.loads(response.body)
    except (ValueError, RecursionError):
        return {}
    is_response = isinstance(document, dict) and isinstance(document.get("id"), str)
    return document if is_response else {}
