"""Jobs that a client waits for: requested, followed, and stopped when the client disconnects."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from aeon.domain.errors import ConfigError
from aeon.domain.values import JsonMapping, JsonObject
from aeon.execution.settings import UNJUDGED_MODES
from aeon.service.folder import JobStatus
from aeon.service.http.errors import NO_RETRY, ApiError, describe_failure, refuse
from aeon.service.http.feed import Feed
from aeon.service.jobs import JobRequest, Jobs

GONE = "its client went away"
_HEARTBEAT_SECONDS = 10.0
_PAUSE_SECONDS = 0.05


class Attended:
    """A job and the client that waits for it."""

    def __init__(self, jobs: Jobs, job_id: str, feed: Feed, *, background: bool) -> None:
        self.jobs = jobs
        self.job_id = job_id
        self.feed = feed
        self._background = background

    @classmethod
    async def begin(cls, jobs: Jobs, asked: JobRequest, *, with_text: bool = False) -> Attended:
        """Submit a job. Raises ApiError for an unknown configuration, and the errors of
        `Jobs.submit`."""
        if asked.configuration not in jobs.configurations.names:
            known = ", ".join(jobs.configurations.names)
            message = f"The model {asked.configuration[:200]!r} does not exist. There are: {known}."
            raise ApiError(404, message, "model_not_found", "model")
        settings = jobs.configurations.find(asked.configuration).settings
        is_plain = settings.execution.samples == 1 and settings.answer.json_schema is None
        feed = Feed(is_final=is_plain and settings.mode.kind in UNJUDGED_MODES)
        follower = feed.make_follower(with_text=with_text)
        try:
            job_id = await run_in_threadpool(jobs.submit, asked, follower)
        except ConfigError as error:
            # Hints address people at a command line. Only one names a way for a client.
            setting, _, _ = error.hint.partition(" ")
            way = f". Send its text, or have {setting} set on the server"
            message = error.message + (way if setting.startswith("input_as.") else "")
            raise refuse(message, code=type(error).__name__) from None
        return cls(jobs, job_id, feed, background=asked.background)

    async def find(self) -> JobStatus:
        """Return the present state of the job."""
        return await run_in_threadpool(self.jobs.find, self.job_id)

    async def wait(self, request: Request) -> JobStatus | None:
        """Wait until the job has ended, and return it; None where its client disconnected first."""
        ended = asyncio.create_task(self.feed.wait_for_end())
        gone = asyncio.create_task(_wait_until_gone(request))
        try:
            await asyncio.wait((ended, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
            gone.cancel()
            self.leave()
        return await self.find() if self.feed.has_ended else None

    def leave(self) -> None:
        """Stop following: a job that is not in the background is stopped."""
        if self.feed.has_ended or self._background:
            return
        asyncio.get_running_loop().run_in_executor(None, self.jobs.cancel, self.job_id, GONE)


class AttendedStream(StreamingResponse):
    """Server-sent events of a job; following stops when they end, however they end."""

    def __init__(self, attended: Attended, events: AsyncIterator[str]) -> None:
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(events, media_type="text/event-stream", headers=headers)
        self._attended = attended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._attended.leave()


async def follow_text(attended: Attended) -> AsyncIterator[str | Comment | JobStatus]:
    """Yield the output of a job: pieces of its answer, comments, and the job once it has ended.
    Raises ApiError for a job without an answer, and when text already sent is withdrawn."""
    feed = attended.feed
    sent = ""
    while not feed.has_ended:
        if not await feed.wait(_HEARTBEAT_SECONDS):
            yield Comment("waiting")
        while feed.lines:
            yield Comment(feed.lines.popleft())
        text = feed.read_text()
        if len(text) > len(sent) and text.startswith(sent):
            yield text[len(sent) :]
            sent = text
            # Each reading begins at the start of the text, so that pieces are read many at once.
            await asyncio.sleep(_PAUSE_SECONDS)
    status = await attended.find()
    text = read_answer(status)
    if not text.startswith(sent):
        message = "the text so far was withdrawn: the model broke off and answered anew. The answer"
        raise describe_failure(f"{message} is at /runs/{attended.job_id}", "text_withdrawn")
    if text[len(sent) :]:
        yield text[len(sent) :]
    yield status


class Comment(str):
    """A line for people who watch."""

    __slots__ = ()

    def encode_line(self) -> str:
        """Encode it as a comment of server-sent events, which clients ignore."""
        return f": {' '.join(self.split())}\n\n"


def encode_event(data: JsonMapping | str, name: str = "") -> str:
    """Encode a server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {text}\n\n"


def read_answer(status: JobStatus) -> str:
    """Return the text for a client of a job that has ended, or waits for a person. Raises ApiError
    for a job that failed or was stopped."""
    if status.state == "failed":
        message, kind = read_failure(status)
        raise describe_failure(f"{message} (/runs/{status.record.id})", kind)
    if status.state == "waiting":
        return "\n\n".join(("The run waits for a person:", *_list_questions(status)))
    if status.state != "done":
        cancelled = status.record.cancelled
        why = cancelled or "the server is being stopped"
        # After a run was stopped for good, the client must not request it again.
        headers = NO_RETRY if cancelled else None
        raise ApiError(503, f"the run was stopped: {why}", "stopped", headers=headers)
    return str(status.result.get("answer", ""))


def read_failure(status: JobStatus) -> tuple[str, str]:
    """Return why a job failed: the message, and the kind of error."""
    if problem := status.record.problem:
        return f"{problem.message} {problem.hint}".strip(), problem.kind
    error = status.result.get("error") or {}
    return str(error.get("message") or "the run failed"), str(error.get("kind") or "failed")


def _list_questions(status: JobStatus) -> list[str]:
    asked = [str(each["text"]) for each in status.result.get("waits_for", ())]
    return [*asked, f"To answer: /runs/{status.record.id}/questions"]


def describe_metadata(status: JobStatus) -> dict[str, str]:
    """Describe a run in addition to its answer, and repeat what its client gave: all in texts, as
    OpenAI's interface requires. What is no text is written as JSON."""
    given = status.record.note.get("metadata")
    own = _describe_run(status)
    if status.state == "waiting":
        own["questions"] = f"/runs/{status.record.id}/questions"
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in {**(given if isinstance(given, dict) else {}), **own}.items()
    }


def _describe_run(status: JobStatus) -> JsonObject:
    result = status.result
    total = (result.get("usage") or {}).get("total") or {}
    scores = result.get("scores") or {}
    return {
        "run_id": status.record.id,
        "termination_reason": result.get("termination_reason") or status.state,
        "converged": bool(result.get("converged")),
        "scores": {name: score for name, score in scores.items() if isinstance(score, float)},
        "cost": total.get("cost"),
    }


def read_tokens(status: JobStatus) -> tuple[int, int]:
    """Return the input and output tokens of a run."""
    total = (status.result.get("usage") or {}).get("total") or {}
    return int(total.get("input_tokens") or 0), int(total.get("output_tokens") or 0)


async def _wait_until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
