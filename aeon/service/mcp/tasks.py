"""Tasks, the extension of MCP by which a client gets an id at once and comes back for the rest: the
id of the task is that of the job, whose folder outlasts every server."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from mcp.server import ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver.server import require_client_extension
from mcp.shared.exceptions import MCPError
from mcp.types import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    EmptyResult,
    RequestParams,
)
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from aeon.domain.errors import AeonError
from aeon.domain.plan import OpenQuestion
from aeon.domain.values import JsonObject
from aeon.service.folder import JobStatus
from aeon.service.jobs import JobNotFound, Jobs
from aeon.service.mcp import results
from aeon.service.mcp.calls import ToolCalls, can_ask, run_in_thread
from aeon.service.mcp.questions import make_forms

TASKS = "io.modelcontextprotocol/tasks"
_VERSIONS = frozenset(MODERN_PROTOCOL_VERSIONS)
_POLL_MILLISECONDS = 1_000
_STATES = {
    "queued": "working",
    "running": "working",
    "waiting": "working",
    "done": "completed",
    "failed": "completed",
    "cancelled": "cancelled",
}
"""A run that failed is a call with an error in its result, not an error of the protocol. What waits
is `input_required` for a client that can ask."""
_CANCELLED = "the client cancelled the task"


class TaskParams(RequestParams):
    """The parameters of `tasks/get` and `tasks/cancel`."""

    task_id: str


class TaskAnswers(TaskParams):
    """The parameters of `tasks/update`."""

    input_responses: JsonObject


class TasksExtension(Extension):
    """Returns each call of a client that supports tasks as one, and serves `tasks/get`,
    `tasks/update` and `tasks/cancel`."""

    identifier = TASKS

    def __init__(self, jobs: Jobs, calls: ToolCalls) -> None:
        self._jobs = jobs
        self._calls = calls

    def methods(self) -> Sequence[MethodBinding]:
        """Return the methods added to those of the protocol."""
        return (
            MethodBinding("tasks/get", TaskParams, self._get, _VERSIONS),
            MethodBinding("tasks/update", TaskAnswers, self._update, _VERSIONS),
            MethodBinding("tasks/cancel", TaskParams, self._cancel, _VERSIONS),
        )

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: ServerRequestContext, call_next: CallNext
    ) -> HandlerResult:
        """Return a call as a task, for clients that support tasks; else its own result."""
        if not _knows_tasks(ctx):
            return await call_next(ctx)
        try:
            job_id = await self._calls.begin(params, background=True)
        except AeonError as error:
            return results.describe_error(error)
        status = await self._find(job_id)
        return {**_describe_task(status, "working"), "resultType": "task"}

    async def _get(self, ctx: ServerRequestContext, params: TaskParams) -> HandlerResult:
        status = await self._find_for(ctx, params)
        questions: Sequence[OpenQuestion] = ()
        if status.state == "waiting":
            questions = await run_in_thread(self._jobs.list_open_questions, params.task_id)
        if questions and can_ask(ctx):
            return _describe_open(status, questions)
        task = _describe_task(status, _STATES[status.state])
        if questions:
            task["statusMessage"] = results.write_waiting(status, questions)
        if task["status"] == "completed":
            result = await run_in_thread(results.make_result, status)
            task["result"] = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        return task

    async def _update(self, ctx: ServerRequestContext, params: TaskAnswers) -> HandlerResult:
        await self._find_for(ctx, params)
        try:
            await self._calls.answer(params.task_id, params.input_responses)
        except AeonError as error:
            raise MCPError(INVALID_PARAMS, error.message) from None
        return EmptyResult(result_type="complete")

    async def _cancel(self, ctx: ServerRequestContext, params: TaskParams) -> HandlerResult:
        await self._find_for(ctx, params)
        try:
            await run_in_thread(self._jobs.cancel, params.task_id, _CANCELLED)
        except AeonError as error:
            raise MCPError(INTERNAL_ERROR, error.message) from None
        return EmptyResult(result_type="complete")

    async def _find_for(self, ctx: ServerRequestContext, params: TaskParams) -> JobStatus:
        """Return the job of a task. Raises MCPError for a client that does not support tasks, a
        header that names another task than the request, and an unknown task."""
        require_client_extension(ctx, TASKS)
        headers = getattr(ctx.request, "headers", {})
        if headers.get("mcp-name", params.task_id) != params.task_id:
            raise MCPError(HEADER_MISMATCH, "Mcp-Name is not the id of the task")
        return await self._find(params.task_id)

    async def _find(self, job_id: str) -> JobStatus:
        try:
            return await run_in_thread(self._jobs.find, job_id)
        except JobNotFound:
            raise MCPError(INVALID_PARAMS, "There is no task of this id") from None
        except AeonError as error:
            raise MCPError(INTERNAL_ERROR, error.message) from None


def _knows_tasks(ctx: ServerRequestContext) -> bool:
    capabilities = ctx.session.client_capabilities
    extensions = capabilities.extensions if capabilities else None
    return ctx.protocol_version in _VERSIONS and TASKS in (extensions or {})


def _describe_open(status: JobStatus, questions: Sequence[OpenQuestion]) -> JsonObject:
    forms = make_forms(questions)
    task = _describe_task(status, "input_required")
    task["inputRequests"] = {
        name: form.model_dump(by_alias=True, mode="json", exclude_none=True)
        for name, form in forms.items()
    }
    return task


def _describe_task(status: JobStatus, state: str) -> JsonObject:
    """Describe a task without the fields of its state. It exists as long as its folder."""
    record = status.record
    updated = record.ended_at or _find_change(status)
    return {
        "taskId": record.id,
        "status": state,
        "statusMessage": f"the run is {status.state}",
        "createdAt": record.created_at.isoformat(),
        "lastUpdatedAt": updated.isoformat(),
        "ttlMs": None,
        "pollIntervalMs": _POLL_MILLISECONDS,
    }


def _find_change(status: JobStatus) -> datetime:
    """Return when something was last written in the folder of a job's run."""
    if status.run is None:
        return status.record.created_at
    return datetime.fromtimestamp(status.run.stat().st_mtime, UTC)
