"""Runs for people: a list, a page for each, live while it runs, and its open questions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from jinja2 import Environment, FileSystemLoader
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)

from aeon.domain.errors import ConfigError
from aeon.report import html
from aeon.service.folder import JobStatus
from aeon.service.http.attended import Comment, encode_event
from aeon.service.http.course import Courses
from aeon.service.http.errors import ApiError, refuse
from aeon.service.http.requests import read_object
from aeon.service.jobs import Jobs

_ASSETS = Path(__file__).with_name("assets")
_STYLE = Path(html.__file__).with_name("assets") / "page.css"
_PAGE = 50
_LOOK_SECONDS = 0.25
_HEARTBEAT_LOOKS = 40
_BLOCK = 2**18
_OWN_PAGE = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}
# The page contains a model's text: it may do nothing in the server's name.
_REPORT = {**_OWN_PAGE, "content-security-policy": "sandbox allow-scripts; frame-ancestors 'none'"}
_FORM = "application/x-www-form-urlencoded"


async def list_runs(request: Request) -> Response:
    """The latest runs."""
    jobs = _jobs_of(request)
    before = request.query_params.get("before", "")
    found = await run_in_threadpool(jobs.list_latest, _PAGE + 1, before)
    more = len(found) > _PAGE
    return _show("runs", runs=found[:_PAGE], more=more, counts=jobs.count())


async def show_run(request: Request) -> Response:
    """Show the page of a run: its end, or its progress."""
    status = await _find(request)
    if report := _find_report(status):
        return FileResponse(report, media_type="text/html", headers=_REPORT)
    course = await _courses_of(request).draw(status.run, is_awaited=False) if status.run else ""
    return _show("run", run=status, course=course)


def _find_report(status: JobStatus) -> Path | None:
    """Return the page of a run that has ended, where it has one. That of a run that was cancelled
    while it waited would still ask for an answer."""
    is_waiting = status.result.get("termination_reason") == "waiting"
    if status.run is None or not status.has_ended or is_waiting:
        return None
    report = status.run / "report.html"
    return report if report.is_file() else None


async def show_course(request: Request) -> Response:
    """Show the course of a run: the part of its page that changes while it runs."""
    status = await _find(request)
    course = await _courses_of(request).draw(status.run) if status.run else ""
    return Response(course, media_type="text/html", headers=_OWN_PAGE)


async def follow_events(request: Request) -> Response:
    """Stream the events of a run as server-sent events, up to its end."""
    status = await _find(request)
    started = _read_place(request.headers.get("last-event-id", ""))
    events = _tail(_jobs_of(request), status.record.id, started)
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


def _read_place(text: str) -> tuple[int, int]:
    """Return the run, counted from 0, and the byte after the last event that a client has seen."""
    run, _, byte = text.partition(".")
    if not (run.isdecimal() and byte.isdecimal() and len(text) < 20):
        return 0, 0
    return int(run), int(byte)


async def _tail(jobs: Jobs, job_id: str, place: tuple[int, int]) -> AsyncIterator[str]:
    """Yield the lines in the journals of a job's runs, and those written later."""
    run, byte = place
    looks = 0
    while True:
        status = await run_in_threadpool(jobs.find, job_id)
        is_live = status.state in ("queued", "running") and not jobs.is_stopping
        journals = [path / "events.jsonl" for path in jobs.folder.list_runs(job_id)]
        lines = (
            await run_in_threadpool(_read_lines, journals[run], byte) if run < len(journals) else []
        )
        for line in lines:
            byte += len(line)
            yield f"id: {run}.{byte}\n{encode_event(line.decode('utf-8', 'replace').rstrip())}"
        if lines:
            continue
        if run + 1 < len(journals):
            run += 1
            byte = 0
            continue
        if not is_live:
            yield encode_event({"state": status.state}, "end")
            return
        looks += 1
        if looks % _HEARTBEAT_LOOKS == 0:
            yield Comment("waiting").encode_line()
        await asyncio.sleep(_LOOK_SECONDS)


def _read_lines(journal: Path, byte: int) -> list[bytes]:
    """Read the next whole lines of a journal, from a byte on."""
    try:
        with journal.open("rb") as file:
            file.seek(byte)
            block = file.read(_BLOCK)
            if b"\n" not in block:
                block += file.readline()
    except OSError:
        return []
    lines = block.splitlines(keepends=True)
    return [line for line in lines if line.endswith(b"\n")]


async def show_questions(request: Request) -> Response:
    """Show a run's open questions: a form for browsers, else JSON."""
    status = await _find(request)
    return await _show_open(request, status, {})


async def _show_open(
    request: Request, status: JobStatus, given: Mapping[str, str], problem: str = ""
) -> Response:
    jobs = _jobs_of(request)
    questions = await run_in_threadpool(jobs.list_open_questions, status.record.id)
    if "text/html" not in request.headers.get("accept", ""):
        listed = [question.model_dump(mode="json") for question in questions]
        return JSONResponse({"format": "aeon.questions/1", "questions": listed})
    shown = {question.id: given.get(question.id, "") for question in questions}
    code = 400 if problem else 200
    return _show("questions", code, run=status, questions=questions, given=shown, problem=problem)


async def answer_questions(request: Request) -> Response:
    """Accept answers: an object of texts by the ids of questions, or the form."""
    jobs = _jobs_of(request)
    status = await _find(request)
    if not request.headers.get("content-type", "").startswith(_FORM):
        answers = await read_object(request)
        if not all(isinstance(text, str) for text in answers.values()):
            raise refuse('answers are an object of texts: {"ID": "TEXT"}')
        settled = await run_in_threadpool(jobs.settle, status.record.id, answers)
        return JSONResponse({"run_id": status.record.id, "state": settled.state})
    if request.headers.get("origin") is None:
        # Every browser names the page that a form is sent from, and the guard has checked it.
        raise ApiError(403, "a form is sent from this server's own page", "origin_refused")
    body = (await request.body()).decode("utf-8", "replace")
    # Browsers end the lines of a form with \r\n.
    fields = {name: text.replace("\r\n", "\n") for name, text in parse_qsl(body)}
    try:
        if fields:
            await run_in_threadpool(jobs.settle, status.record.id, fields)
    except ConfigError as error:
        return await _show_open(request, status, fields, f"{error.message}. {error.hint}")
    return RedirectResponse(f"/runs/{status.record.id}", 303)


async def send_script(_request: Request) -> Response:
    """The script of the page of a run under way."""
    return FileResponse(_ASSETS / "live.js", media_type="text/javascript", headers=_OWN_PAGE)


async def send_style(_request: Request) -> Response:
    """The style sheet of the pages."""
    return FileResponse(_STYLE, media_type="text/css", headers=_OWN_PAGE)


async def show_metrics(request: Request) -> Response:
    """Report the state of the server in Prometheus's format."""
    jobs = _jobs_of(request)
    spent = jobs.configurations.spent
    lines = ["# TYPE aeon_jobs gauge"]
    lines += [f'aeon_jobs{{state="{state}"}} {count}' for state, count in jobs.count().items()]
    lines.append("# TYPE aeon_jobs_ended_total counter")
    for (name, end), count in sorted(jobs.ended.items()):
        lines.append(f'aeon_jobs_ended_total{{model="{_escape(name)}",state="{end}"}} {count}')
    figures = {"llm_calls": spent.calls, "tokens": spent.usage.total_tokens, "cost": spent.cost}
    for name, figure in figures.items():
        if figure is None:  # the price of a model is not known
            continue
        lines += [f"# TYPE aeon_{name}_total counter", f"aeon_{name}_total {figure}"]
    kind = "text/plain; version=0.0.4; charset=utf-8"
    return PlainTextResponse("\n".join(lines) + "\n", media_type=kind)


def _escape(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _jobs_of(request: Request) -> Jobs:
    jobs: Jobs = request.app.state.jobs
    return jobs


def _courses_of(request: Request) -> Courses:
    courses: Courses = request.app.state.courses
    return courses


async def _find(request: Request) -> JobStatus:
    return await run_in_threadpool(_jobs_of(request).find, str(request.path_params["id"]))


def _show(name: str, code: int = 200, **values: Any) -> Response:
    page = _templates().get_template(f"{name}.html.j2").render(**values)
    return Response(page, code, media_type="text/html", headers=_OWN_PAGE)


@cache
def _templates() -> Environment:
    templates = Environment(autoescape=True, loader=FileSystemLoader(_ASSETS))
    templates.filters["state"] = _name_state
    return templates


def _name_state(status: JobStatus) -> str:
    """Name the state of a job for a person, with how its run ended."""
    reason = status.result.get("termination_reason")
    if status.state != "done" or not reason:
        return {"waiting": "waiting for a person"}.get(status.state, status.state)
    return str(reason).replace("_", " ")
