"""Errors in the form of OpenAI's interface."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from aeon.domain.errors import AeonError, ConfigError
from aeon.domain.values import JsonObject
from aeon.files.secret_forms import mask
from aeon.service.folder import UnreadableJob
from aeon.service.jobs import JobNotFound, QueueFull

RETRY_SECONDS = 5
"""After how many seconds a client may ask again that was refused for want of room."""
NO_RETRY = {"x-should-retry": "false"}
"""What keeps OpenAI's clients from asking for a whole run again by themselves."""


class ApiError(Exception):
    """A refusal: its status, a message for people, and a code for programs."""

    def __init__(
        self,
        status: int,
        message: str,
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.headers = dict(headers or {})

    def describe(self) -> JsonObject:
        """Return the body."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        message = mask(self.message.encode()).decode()
        content = {"message": message, "type": kind, "param": self.param, "code": self.code}
        return {"error": content}

    def respond(self) -> JSONResponse:
        """Return the response."""
        return JSONResponse(self.describe(), self.status, headers=self.headers)


def refuse(message: str, param: str | None = None, code: str | None = None) -> ApiError:
    """Return the error for a request that cannot be answered."""
    return ApiError(400, message, code, param)


def describe_failure(message: str, code: str | None) -> ApiError:
    """Return the error for a run that failed."""
    return ApiError(502, message, code, headers=NO_RETRY)


def as_api_error(error: Exception) -> ApiError:
    """Convert an error of Aeon's, or of Starlette's, to one of the interface."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, HTTPException):
        return ApiError(error.status_code, str(error.detail), headers=error.headers)
    if isinstance(error, QueueFull):
        again = {"retry-after": str(RETRY_SECONDS)}
        return ApiError(429, f"{error.message}. {error.hint}", "rate_limit_exceeded", headers=again)
    if isinstance(error, JobNotFound):
        return ApiError(404, error.message, "not_found")
    if isinstance(error, UnreadableJob):
        return ApiError(500, error.message, "unreadable", headers=NO_RETRY)
    if isinstance(error, AeonError):
        status = 400 if isinstance(error, ConfigError) else 503
        return ApiError(status, f"{error.message}. {error.hint}".strip(), type(error).__name__)
    return ApiError(500, "Aeon failed unexpectedly; its log says how", headers=NO_RETRY)


async def handle_error(_request: Request, error: Exception) -> Response:
    """Handle an error, for `exception_handlers` of Starlette."""
    return as_api_error(error).respond()
