"""Calls of tools: each starts a job. The client that made the call waits for it, gets its progress,
and is asked the run's questions; one that supports tasks gets the job's id instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import ParamSpec, TypeVar

import anyio
from anyio import to_thread
from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
)
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from aeon.domain.errors import AeonError
from aeon.domain.plan import OpenQuestion
from aeon.service.jobs import Follower, JobNotFound, JobRequest, Jobs
from aeon.service.mcp import results
from aeon.service.mcp.progress import RunProgress
from aeon.service.mcp.questions import has_dismissed, make_forms, read_answers
from aeon.service.mcp.tools import ServedTool

P = ParamSpec("P")
R = TypeVar("R")
_CANCELLED = "the client cancelled the call"


class ToolCalls:
    """Carries out calls of tools."""

    def __init__(self, jobs: Jobs, tools: Mapping[str, ServedTool]) -> None:
        self._jobs = jobs
        self._tools = tools

    async def call(
        self, ctx: ServerRequestContext, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        """Carry out a call, or one that continues with answers, to the end of its job, or until it
        waits for a person. Raises MCPError."""
        progress = RunProgress()
        try:
            if params.request_state is None:
                job_id = await self.begin(params, follower=progress.follower)
            else:
                job_id = await self._go_on(params)
                self._jobs.follow(job_id, progress.follower)
            return await self._attend(ctx, job_id, progress, params.input_responses or {})
        except AeonError as error:
            return results.describe_error(error)

    async def begin(
        self,
        params: CallToolRequestParams,
        *,
        background: bool = False,
        follower: Follower | None = None,
    ) -> str:
        """Start the job of a call and return its id. Raises AeonError for a job that cannot start,
        MCPError for an unknown tool."""
        tool = self._find_tool(params.name)
        order = tool.read_order(params.arguments or {})
        request = JobRequest(
            tool.name, order.task, order.inputs, background=background, note={"tool": tool.name}
        )
        return await run_in_thread(self._jobs.submit, request, follower)

    def _find_tool(self, name: str) -> ServedTool:
        tool = self._tools.get(name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"There is no tool {name[:100]!r}")
        return tool

    async def _go_on(self, params: CallToolRequestParams) -> str:
        """Settle the client's answers to the job that an earlier round of the same call started,
        and return its id. Raises AeonError, and MCPError where the state does not belong to such a
        round."""
        order = self._find_tool(params.name).read_order(params.arguments or {})
        job_id = params.request_state or ""
        try:
            record = (await run_in_thread(self._jobs.find, job_id)).record
        except JobNotFound:
            raise MCPError(INVALID_PARAMS, "requestState names no run") from None
        began = (record.configuration, record.task, record.inputs)
        if began != (params.name, order.task, dict(order.inputs)):
            raise MCPError(INVALID_PARAMS, "requestState is of another call")
        await self.answer(job_id, params.input_responses or {})
        return job_id

    async def answer(self, job_id: str, responses: Mapping[str, object]) -> None:
        """Settle the open questions that were answered, ignoring other responses. Raises
        AeonError."""
        questions = await run_in_thread(self._jobs.list_open_questions, job_id)
        answers = read_answers(questions, responses)
        if answers:
            await run_in_thread(self._jobs.settle, job_id, answers)

    async def _attend(
        self,
        ctx: ServerRequestContext,
        job_id: str,
        progress: RunProgress,
        responses: Mapping[str, object],
    ) -> CallToolResult | InputRequiredResult:
        """Attend a job until it has ended or waits for a person whom the client is to ask, or
        cannot. A client that disconnects ends its job."""
        try:
            while True:
                status = await run_in_thread(self._jobs.find, job_id)
                if status.has_ended:
                    return await run_in_thread(results.make_result, status)
                questions = await run_in_thread(self._jobs.list_open_questions, job_id)
                if not questions:
                    await progress.report(ctx)
                    continue
                if not can_ask(ctx) or has_dismissed(questions, responses):
                    return results.describe_waiting(status, questions)
                if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
                    forms = make_forms(questions)
                    return InputRequiredResult(input_requests=forms, request_state=job_id)
                responses = await _ask(ctx, questions)
                await self.answer(job_id, responses)
                self._jobs.follow(job_id, progress.follower)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await run_in_thread(self._jobs.cancel, job_id, _CANCELLED)
            raise


def can_ask(ctx: ServerRequestContext) -> bool:
    """Check whether the client shows forms."""
    capabilities = ctx.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities else None
    if elicitation is None:
        return False
    return elicitation.form is not None or elicitation.url is None


async def _ask(
    ctx: ServerRequestContext, questions: Iterable[OpenQuestion]
) -> dict[str, ElicitResult]:
    """Ask the client's person each question, until one is dismissed, and return the answers by the
    ids of the questions."""
    responses: dict[str, ElicitResult] = {}
    for name, form in make_forms(questions).items():
        params = form.params
        assert isinstance(params, ElicitRequestFormParams)
        responses[name] = await ctx.session.elicit_form(
            params.message, params.requested_schema, ctx.request_id
        )
        if responses[name].action == "cancel":
            break
    return responses


async def run_in_thread(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a function that reads or writes files in its own thread, and return its result."""
    return await to_thread.run_sync(partial(function, *args, **kwargs))
