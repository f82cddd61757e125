"""The provider's batch interface: files up and down, and batches made, found, asked for and cancelled."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from http.client import HTTPMessage
from typing import IO, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import httpx2

from aeon.domain.errors import LLMError, NotAnAPI
from aeon.llm.openai.endpoint import Endpoint
from aeon.llm.openai.errors import error_of_exception, error_of_refusal, refusal_in
from aeon.llm.openai.transport import NotConnected, Response, tls_context

T = TypeVar("T")
ENDPOINT = "/v1/chat/completions"
LABEL = "aeon_round"
"""What a batch's metadata call the round that it was made for."""


class Batch:
    """A batch as the provider tells of it."""

    def __init__(self, told: dict[str, Any]) -> None:
        counts: dict[str, Any] = told.get("request_counts") or {}
        self.told, self.id, self.status = told, str(told["id"]), str(told["status"])
        self.is_over = self.status in ("completed", "failed", "expired", "cancelled")
        self.done = sum(int(counts.get(name) or 0) for name in ("completed", "failed"))
        self.files = [
            str(told[name]) for name in ("output_file_id", "error_file_id") if told.get(name)
        ]
        self.errors: list[dict[str, Any]] = (told.get("errors") or {}).get("data") or []

    def is_of(self, round_id: str, file: str | None) -> bool:
        """Whether it was made for a round, or of its file."""
        label = (self.told.get("metadata") or {}).get(LABEL)
        return label == round_id or (file is not None and self.told.get("input_file_id") == file)


class Result(NamedTuple):
    """The response to one request of a batch."""

    id: str
    status: int
    body: bytes


class BatchAPI:
    """One server's interface. Every method raises an LLMError."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint, self._url = endpoint, urlsplit(endpoint.base_url)
        self._seconds = endpoint.settings.timeout_seconds

    def upload(self, name: str, lines: IO[bytes]) -> str:
        """Upload a file of requests. Returns its id."""
        file = {"file": (name, lines, "application/jsonl")}
        return self._call(
            "POST", "/files", lambda told: str(told["id"]), data={"purpose": "batch"}, files=file
        )

    def create(self, file: str, round_id: str) -> Batch:
        """Make a batch of an uploaded file."""
        body = {
            "input_file_id": file,
            "endpoint": ENDPOINT,
            "completion_window": "24h",
            "metadata": {LABEL: round_id},
        }
        return self._call("POST", "/batches", Batch, json=body)

    def get(self, batch: str) -> Batch:
        """How far a batch is."""
        return self._call("GET", f"/batches/{batch}", Batch)

    def cancel(self, batch: str) -> Batch:
        """Have a batch ended; what is answered of it by then can be read."""
        return self._call("POST", f"/batches/{batch}/cancel", Batch)

    def find(self, round_id: str, file: str | None, since: float) -> Batch | None:
        """The batch that was made for a round, among those made `since` then."""
        page: dict[str, str] = {"limit": "100"}
        while True:
            told, found = self._call(
                "GET", "/batches", lambda told: (told, [*map(Batch, told["data"])]), params=page
            )
            if made := next((batch for batch in found if batch.is_of(round_id, file)), None):
                return made
            # Their clock may differ from ours.
            if (
                not (found and told.get("has_more"))
                or found[-1].told.get("created_at", 0) < since - 86400
            ):
                return None
            page["after"] = found[-1].id

    def results(self, file: str) -> Iterator[Result]:
        """The responses in a file, in whatever order; without those of requests that were not carried out."""
        with (
            self._errors(),
            self._client.stream("GET", self._address(f"/files/{file}/content")) as response,
        ):
            if not response.is_success:
                response.read()
                raise self._refusal(response)
            yield from filter(None, map(_read_result, response.iter_lines()))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _call(self, method: str, path: str, read: Callable[[Any], T], **sent: Any) -> T:
        with self._errors():
            response = self._client.request(method, self._address(path), **sent)
        if not response.is_success:
            raise self._refusal(response)
        try:
            return read(response.json())
        except (ValueError, KeyError, TypeError, AttributeError):
            raise self._no_batches(f"answered {path} with something else") from None

    @cached_property
    def _client(self) -> httpx2.Client:
        headers = {
            name: value for name, value in self._endpoint.headers.items() if name != "Content-Type"
        }
        verify = tls_context() if self._url.scheme == "https" else True
        return httpx2.Client(headers=headers, verify=verify, timeout=self._seconds)

    def _address(self, path: str) -> str:
        return self._url._replace(path=self._url.path.rstrip("/") + path).geturl()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except httpx2.HTTPError as error:
            is_unsent = isinstance(
                error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.ProxyError
            )
            is_late = isinstance(error, httpx2.TimeoutException)
            known = (
                NotConnected(str(error))
                if is_unsent
                else TimeoutError()
                if is_late
                else OSError(str(error))
            )
            raise error_of_exception(known, self._endpoint, self._seconds) or error from None

    def _refusal(self, response: httpx2.Response) -> LLMError:
        if response.status_code in (404, 405, 501) and response.request.method == "POST":
            what = f"answered {response.status_code} to {response.url.path}"
            return self._no_batches(what, response.status_code)
        headers = HTTPMessage()
        for name, value in response.headers.items():
            headers[name] = value
        return error_of_refusal(
            refusal_in(Response(response.status_code, headers, response.content)), self._endpoint
        )

    def _no_batches(self, what: str, status: int = 200) -> LLMError:
        hint = "provider.batch=false asks it call by call, at the full price."
        return NotAnAPI(
            f"{self._endpoint.address} takes no batches: it {what}", hint=hint, status=status
        )


def _read_result(line: str) -> Result | None:
    try:
        told = json.loads(line)
        name, response, error = (
            str(told["custom_id"]),
            told.get("response"),
            told.get("error") or {},
        )
        if response:
            body = response["body"]  # Llama Stack has it as a text
            text = body if isinstance(body, str) else json.dumps(body)
            return Result(name, int(response["status_code"]), text.encode())
        is_left = str(error.get("code")) in ("batch_expired", "batch_cancelled")
        return None if is_left else Result(name, 500, json.dumps({"error": error}).encode())
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
