"""The server's application: the endpoint of each path."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from aeon.domain.errors import AeonError
from aeon.service.http.completions import create_completion, find_model, list_models
from aeon.service.http.course import Courses
from aeon.service.http.errors import ApiError, handle_error
from aeon.service.http.guard import Access, Guard
from aeon.service.http.pages import (
    answer_questions,
    follow_events,
    list_runs,
    send_script,
    send_style,
    show_course,
    show_metrics,
    show_questions,
    show_run,
)
from aeon.service.http.responses import cancel_response, create_response, retrieve_response
from aeon.service.jobs import Jobs

_ROUTES = (
    Route("/v1/chat/completions", create_completion, methods=["POST"]),
    Route("/v1/responses", create_response, methods=["POST"]),
    Route("/v1/responses/{id}", retrieve_response, methods=["GET"]),
    Route("/v1/responses/{id}/cancel", cancel_response, methods=["POST"]),
    Route("/v1/models", list_models, methods=["GET"]),
    Route("/v1/models/{name:path}", find_model, methods=["GET"]),
    Route("/runs", list_runs, methods=["GET"]),
    Route("/runs/{id}", show_run, methods=["GET"]),
    Route("/runs/{id}/course", show_course, methods=["GET"]),
    Route("/runs/{id}/events", follow_events, methods=["GET"]),
    Route("/runs/{id}/questions", show_questions, methods=["GET"]),
    Route("/runs/{id}/questions", answer_questions, methods=["POST"]),
    Route("/live.js", send_script, methods=["GET"]),
    Route("/page.css", send_style, methods=["GET"]),
    Route("/metrics", show_metrics, methods=["GET"]),
)


def make_app(jobs: Jobs, access: Access) -> Starlette:
    """Return the application that serves jobs to clients with access."""
    handled: tuple[type[Exception], ...] = (ApiError, AeonError, HTTPException, Exception)
    app = Starlette(
        routes=[Route("/healthz", say_healthy, methods=["GET"]), *_ROUTES],
        middleware=[Middleware(Guard, access=access)],
        exception_handlers=dict.fromkeys(handled, handle_error),
    )
    app.state.jobs = jobs
    app.state.courses = Courses()
    return app


async def say_healthy(_request: Request) -> Response:
    """Report that the server answers."""
    return JSONResponse({"status": "ok"})
