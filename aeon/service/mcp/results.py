"""Jobs in the form for MCP clients: the result of a call, and a run's open questions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mcp.types import CallToolResult, TextContent

from aeon.domain.assessment import SCORE_CODES
from aeon.domain.errors import AeonError
from aeon.domain.plan import OpenQuestion
from aeon.domain.values import JsonMapping, JsonObject
from aeon.observability import artefacts
from aeon.report.ending import headline
from aeon.service.folder import JobStatus

_FIGURES = ("converged", "termination_reason", "synthetic")


def make_result(status: JobStatus) -> CallToolResult:
    """Return the result of the call that started an ended job: the answer, and the facts about the
    run. A run that failed or was cancelled is an error. If a run did not converge, or lacked
    something, that stands below its answer."""
    record = status.record
    if status.state == "cancelled":
        return make_error(f"The run was cancelled: {record.cancelled}", status)
    if record.problem is not None:
        return make_error(f"{record.problem.message}\n{record.problem.hint}".rstrip(), status)
    if status.run is None or not status.result:
        return make_error("The run has ended, and what it left was removed since.", status)
    if status.state == "done":
        return _describe_run(status, status.run)
    error = status.result.get("error") or {}
    return make_error(f"{error.get('message', '')}\n{error.get('hint') or ''}".strip(), status)


def make_error(text: str, status: JobStatus | None = None) -> CallToolResult:
    """Return the result of a call that failed."""
    known = {"run_id": status.record.id} if status else None
    return CallToolResult(content=[_write(text)], structured_content=known, is_error=True)


def describe_error(error: AeonError) -> CallToolResult:
    """Return the result of a call that could not be carried out."""
    return make_error(f"{error.message}\n{error.hint}".rstrip())


def describe_waiting(status: JobStatus, questions: Iterable[OpenQuestion]) -> CallToolResult:
    """Return the result of a call whose run waits for a person whom this client does not ask."""
    known = {"run_id": status.record.id, "state": "waiting"}
    content = [_write(write_waiting(status, questions))]
    return CallToolResult(content=content, structured_content=known)


def write_waiting(status: JobStatus, questions: Iterable[OpenQuestion]) -> str:
    """Describe a run's open questions, and how a person answers."""
    lines = ["The run waits for a person, and goes on once they have answered:"]
    lines += [f"{each.id}: {each.text}" for each in questions]
    lines.append(f"They answer with: aeon answer {status.run} ID=TEXT")
    lines.append(f"The answer will be at {make_uri(status.record.id, 'answer')}")
    return "\n".join(lines)


def make_uri(job_id: str, name: str) -> str:
    """Return the URI of a resource of a job."""
    return f"aeon://runs/{job_id}/{name}"


def _describe_run(status: JobStatus, run: Path) -> CallToolResult:
    result = status.result
    answer = str(result.get("answer", ""))
    content = [_write(answer)]
    try:
        whole = artefacts.load(run)
    except AeonError as error:
        return make_error(error.message, status)
    if whole.exit_status != 0 or whole.degraded or whole.synthetic:
        content.append(_write(headline(whole)))
    known: JsonObject = {"run_id": status.record.id, "answer": answer}
    known |= {name: result.get(name) for name in _FIGURES}
    known["scores"] = {name: _find_score(result, name) for name in SCORE_CODES}
    known["cost"] = _find_cost(result)
    known["resources"] = {
        name: make_uri(status.record.id, name) for name in ("answer", "report", "history")
    }
    return CallToolResult(content=content, structured_content=known)


def _find_score(result: JsonMapping, name: str) -> object:
    return (result.get("scores") or {}).get(f"{name}_score")


def _find_cost(result: JsonMapping) -> object:
    usage = result.get("usage") or {}
    return (usage.get("total") or {}).get("cost")


def _write(text: str) -> TextContent:
    return TextContent(type="text", text=text)
