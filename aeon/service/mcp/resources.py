"""The results of runs as resources: `aeon://runs/ID/answer`, `/report` and `/history`."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from aeon.domain.errors import AeonError
from aeon.observability.artefacts import ANSWER, HISTORY
from aeon.report.ending import REPORT
from aeon.report.words import one_line
from aeon.service.folder import JobStatus
from aeon.service.jobs import Jobs
from aeon.service.mcp.calls import run_in_thread
from aeon.service.mcp.results import make_uri

_MOST_LISTED = 50
_LONGEST_TASK = 80


class _File(NamedTuple):
    """A file of a run, as a resource."""

    path: str
    media_type: str
    description: str


_FILES = {
    "answer": _File(ANSWER, "text/markdown", "The answer of a run"),
    "report": _File(REPORT, "text/html", "The page of a run: how its answer came about"),
    "history": _File(HISTORY, "application/json", "Every pass of a run: plans, results, scores"),
}


class RunResources:
    """Lists and reads the results of runs."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    async def list_resources(
        self, _ctx: ServerRequestContext, _params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        """List the answers of the latest runs."""
        latest = await run_in_thread(self._jobs.list_latest, _MOST_LISTED)
        answered = [status for status in latest if _find_file(status, "answer")]
        return ListResourcesResult(resources=[_describe_answer(status) for status in answered])

    async def list_templates(
        self, _ctx: ServerRequestContext, _params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        """List the kinds of resources of each run."""
        templates = [
            ResourceTemplate(
                uri_template=make_uri("{id}", name),
                name=name,
                description=file.description,
                mime_type=file.media_type,
            )
            for name, file in _FILES.items()
        ]
        return ListResourceTemplatesResult(resource_templates=templates)

    async def read(
        self, _ctx: ServerRequestContext, params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        """Return the content of a resource. Raises MCPError for one that does not exist."""
        content = await run_in_thread(self._read, str(params.uri))
        return ReadResourceResult(contents=[content])

    def _read(self, uri: str) -> TextResourceContents:
        scheme, _, rest = uri.partition("://runs/")
        job_id, _, name = rest.partition("/")
        try:
            if scheme != "aeon" or name not in _FILES:
                raise FileNotFoundError
            path = _find_file(self._jobs.find(job_id), name)
            if path is None:
                raise FileNotFoundError
            text = path.read_text(encoding="utf-8")
        except (AeonError, OSError, ValueError):
            problem = "There is no such resource, or not yet"
            raise MCPError(INVALID_PARAMS, problem, {"uri": uri}) from None
        return TextResourceContents(uri=uri, text=text, mime_type=_FILES[name].media_type)


def _find_file(status: JobStatus, name: str) -> Path | None:
    path = status.run / _FILES[name].path if status.run else None
    return path if path is not None and path.is_file() else None


def _describe_answer(status: JobStatus) -> Resource:
    task = status.record.task or str(status.result.get("task", ""))
    return Resource(
        uri=make_uri(status.record.id, "answer"),
        name=status.record.id,
        title=one_line(task, _LONGEST_TASK),
        description=_FILES["answer"].description,
        mime_type=_FILES["answer"].media_type,
    )
