"""`/v1/chat/completions` and `/v1/models`."""

from __future__ import annotations

from collections.abc import AsyncIterator

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
    read_tokens,
)
from aeon.service.http.errors import ApiError, as_api_error
from aeon.service.http.requests import read_chat, read_object, read_usage_wish
from aeon.service.jobs import Jobs
from aeon.service.record import JobRecord


async def create_completion(request: Request) -> Response:
    """Run a task, and return its answer, whole or as a stream."""
    jobs: Jobs = request.app.state.jobs
    body = await read_object(request)
    asked = read_chat(body)
    streams = body.get("stream") is True
    attended = await Attended.begin(jobs, asked, with_text=streams)
    if streams:
        with_usage = read_usage_wish(body)
        return AttendedStream(attended, _stream(attended, with_usage=with_usage))
    status = await attended.wait(request)
    if status is None:
        return Response(status_code=499)
    message = {"role": "assistant", "content": read_answer(status), "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    completion = {
        **_describe_head(status.record, "chat.completion"),
        "choices": [choice],
        "usage": _describe_usage(status),
        "metadata": describe_metadata(status),
    }
    return JSONResponse(completion)


async def _stream(attended: Attended, *, with_usage: bool) -> AsyncIterator[str]:
    record = (await attended.find()).record
    head = _describe_head(record, "chat.completion.chunk")
    # Sent at once, so that a client whose connection breaks knows where its run is.
    metadata = {"run_id": record.id}
    yield _encode_chunk(head, {"role": "assistant", "content": ""}, metadata=metadata)
    try:
        async for each in follow_text(attended):
            if isinstance(each, Comment):
                yield each.encode_line()
            elif isinstance(each, str):
                yield _encode_chunk(head, {"content": each})
            else:
                metadata = describe_metadata(each)
                yield _encode_chunk(head, {}, "stop", metadata=metadata)
                if with_usage:
                    usage = {**head, "choices": [], "usage": _describe_usage(each)}
                    yield encode_event(usage)
    except ApiError as error:
        yield encode_event(error.describe())
    except Exception as error:
        yield encode_event(as_api_error(error).describe())
        raise
    yield encode_event("[DONE]")


def _encode_chunk(
    head: JsonObject,
    delta: JsonObject,
    finish_reason: str | None = None,
    metadata: JsonObject | None = None,
) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
    more = {"metadata": metadata} if metadata else {}
    return encode_event({**head, "choices": [choice], **more})


def _describe_head(record: JobRecord, kind: str) -> JsonObject:
    return {
        "id": f"chatcmpl-{record.id}",
        "object": kind,
        "created": int(record.created_at.timestamp()),
        "model": record.configuration,
    }


def _describe_usage(status: JobStatus) -> dict[str, int]:
    read, written = read_tokens(status)
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
    }


async def list_models(request: Request) -> Response:
    """List the named configurations."""
    names = request.app.state.jobs.configurations.names
    return JSONResponse({"object": "list", "data": [_describe_model(name) for name in names]})


async def find_model(request: Request) -> Response:
    """Describe one named configuration."""
    name = request.path_params["name"]
    if name not in request.app.state.jobs.configurations.names:
        raise ApiError(404, f"The model {name[:200]!r} does not exist", "model_not_found", "model")
    return JSONResponse(_describe_model(name))


def _describe_model(name: str) -> JsonObject:
    return {"id": name, "object": "model", "created": 0, "owned_by": "aeon"}
