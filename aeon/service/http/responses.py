"""`/v1/responses`: a run that a client waits for, follows, or requests again later and
elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from aeon.domain.values import JsonObject
from aeon.service.folder import JobStatus
from aeon.service.http.attended import (
    Attended,
    AttendedStream,
    Comment,
    describe_metadata,
    encode_event,
    follow_text,
    read_answer,
    read_failure,
    read_tokens,
)
from aeon.service.http.errors import ApiError, refuse
from aeon.service.http.requests import read_object, read_response
from aeon.service.jobs import Jobs

_STATES = {
    "queued": "queued",
    "running": "in_progress",
    "waiting": "in_progress",
    "done": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}
_PREFIX = "resp_"


async def create_response(request: Request) -> Response:
    """Run a task: in the background, or until its answer is complete, whole or as a stream."""
    jobs: Jobs = request.app.state.jobs
    body = await read_object(request)
    asked = read_response(body)
    streams = body.get("stream") is True
    attended = await Attended.begin(jobs, asked, with_text=streams)
    if streams:
        return AttendedStream(attended, _stream(attended))
    if asked.background:
        return JSONResponse(describe_response(await attended.find()))
    status = await attended.wait(request)
    if status is None:
        return Response(status_code=499)
    if status.state not in ("waiting", "cancelled"):
        read_answer(status)
    return JSONResponse(describe_response(status))


async def retrieve_response(request: Request) -> Response:
    """Return the present state of a run."""
    if request.query_params.get("stream") == "true":
        raise refuse("stream: a response is retrieved whole; /runs/ID/events follows it", "stream")
    jobs: Jobs = request.app.state.jobs
    status = await run_in_threadpool(jobs.find, _read_id(request))
    return JSONResponse(describe_response(status))


async def cancel_response(request: Request) -> Response:
    """Stop a run, at its next safe boundary."""
    jobs: Jobs = request.app.state.jobs
    status = await run_in_threadpool(jobs.cancel, _read_id(request), "its client cancelled it")
    return JSONResponse(describe_response(status))


def _read_id(request: Request) -> str:
    return str(request.path_params["id"]).removeprefix(_PREFIX)


async def _stream(attended: Attended) -> AsyncIterator[str]:
    numbers = count()

    def encode(kind: str, **values: Any) -> str:
        return encode_event({"type": kind, "sequence_number": next(numbers), **values}, kind)

    status = await attended.find()
    item_id = f"msg_{attended.job_id}"
    place = {"item_id": item_id, "output_index": 0, "content_index": 0}
    yield encode("response.created", response=describe_response(status))
    item = _describe_message(item_id, "in_progress", "")
    yield encode("response.output_item.added", output_index=0, item=item)
    yield encode("response.content_part.added", **place, part=_describe_text(""))
    text = ""
    try:
        async for each in follow_text(attended):
            if isinstance(each, Comment):
                yield each.encode_line()
            elif isinstance(each, str):
                text += each
                yield encode("response.output_text.delta", **place, delta=each, logprobs=[])
            else:
                status = each
    except ApiError as error:
        status = await attended.find()
        failed = describe_response(status)
        if status.state != "failed":
            failed |= {"status": "failed", "error": _describe_error(error.message)}
        yield encode("response.failed", response=failed)
        return
    yield encode("response.output_text.done", **place, text=text, logprobs=[])
    yield encode("response.content_part.done", **place, part=_describe_text(text))
    ended = "completed" if status.state == "done" else "incomplete"
    item = _describe_message(item_id, ended, text)
    yield encode("response.output_item.done", output_index=0, item=item)
    response = describe_response(status)
    if ended == "incomplete":
        # None of the interface's reasons is that a person has to answer first.
        details = {"reason": None}
        response |= {"status": ended, "incomplete_details": details, "output": [item]}
    yield encode(f"response.{ended}", response=response)


def describe_response(status: JobStatus) -> JsonObject:
    """Return a job as a response of OpenAI's interface."""
    record = status.record
    is_done = status.state == "done"
    text = read_answer(status) if is_done else ""
    output = [_describe_message(f"msg_{record.id}", "completed", text)] if is_done else []
    failure = _describe_error(read_failure(status)[0]) if status.state == "failed" else None
    return {
        "id": f"{_PREFIX}{record.id}",
        "object": "response",
        "created_at": int(record.created_at.timestamp()),
        "status": _STATES[status.state],
        "background": record.background,
        "model": record.configuration,
        "output": output,
        "error": failure,
        "incomplete_details": None,
        "instructions": None,
        "metadata": describe_metadata(status),
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "usage": _describe_usage(status) if is_done else None,
    }


def _describe_error(message: str) -> dict[str, str]:
    return {"code": "server_error", "message": message}


def _describe_text(text: str) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _describe_message(item_id: str, status: str, text: str) -> JsonObject:
    """Return the answer's message; one `in_progress` has no text yet."""
    return {
        "id": item_id,
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": [] if status == "in_progress" else [_describe_text(text)],
    }


def _describe_usage(status: JobStatus) -> JsonObject:
    read, written = read_tokens(status)
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + written,
    }
