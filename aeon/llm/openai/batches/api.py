"""The provider's batch interface: uploads and downloads files, and creates, finds, polls and
cancels batches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Literal, NamedTuple

from aeon.domain.errors import LLMError, NotAnAPI
from aeon.domain.values import JsonObject
from aeon.llm.openai.connection import Connection
from aeon.llm.openai.endpoint import Endpoint, Response
from aeon.llm.openai.errors import error_of_refusal, refusal_in

if TYPE_CHECKING:
    from httpx2 import Request
    from openai import OpenAI

ENDPOINT: Literal["/v1/chat/completions"] = "/v1/chat/completions"
LABEL = "aeon_round"
"""The metadata key of a batch that names its round."""


class RequestBatch:
    """A batch, from the fields that the provider reports."""

    def __init__(self, fields: JsonObject) -> None:
        counts: JsonObject = fields.get("request_counts") or {}
        self.fields = fields
        self.id = str(fields["id"])
        self.status = str(fields["status"])
        self.is_over = self.status in ("completed", "failed", "expired", "cancelled")
        self.done = sum(int(counts.get(name) or 0) for name in ("completed", "failed"))
        self.files = [
            str(fields[name]) for name in ("output_file_id", "error_file_id") if fields.get(name)
        ]
        self.errors: list[JsonObject] = (fields.get("errors") or {}).get("data") or []

    def is_of(self, round_id: str, file: str | None) -> bool:
        """Whether it was created for this round or from its file."""
        label = (self.fields.get("metadata") or {}).get(LABEL)
        return label == round_id or (file is not None and self.fields.get("input_file_id") == file)


class Result(NamedTuple):
    """The response to one request of a batch."""

    id: str
    status: int
    body: bytes


class BatchAPI:
    """One server's interface. Every method raises an LLMError."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._connection = Connection(endpoint)
        self._seconds = endpoint.settings.timeout_seconds

    def upload(self, name: str, lines: IO[bytes]) -> str:
        """Upload a file of requests. Returns its id."""
        with self._sdk("/files") as sdk:
            file = (name, lines, "application/jsonl")
            return _read_id(sdk.files.create(file=file, purpose="batch"))

    def create(self, file: str, round_id: str) -> RequestBatch:
        """Create a batch from an uploaded file."""
        with self._sdk("/batches") as sdk:
            made = sdk.batches.create(
                input_file_id=file,
                endpoint=ENDPOINT,
                completion_window="24h",
                metadata={LABEL: round_id},
            )
            return _read_batch(made)

    def get(self, batch: str) -> RequestBatch:
        """Return the current state of a batch."""
        with self._sdk(f"/batches/{batch}") as sdk:
            return _read_batch(sdk.batches.retrieve(batch))

    def cancel(self, batch: str) -> RequestBatch:
        """Cancel a batch; requests answered by then can still be read."""
        with self._sdk(f"/batches/{batch}/cancel") as sdk:
            return _read_batch(sdk.batches.cancel(batch))

    def find(self, round_id: str, file: str | None, since: float) -> RequestBatch | None:
        """Return the batch created for a round, of those created after `since` (Unix time, less a
        day for clocks that differ); None if there is none."""
        with self._sdk("/batches") as sdk:
            first = sdk.batches.list(limit=100)
            if not hasattr(first, "iter_pages"):
                raise ValueError("no list")
            for page in first.iter_pages():
                found = [_read_batch(one) for one in page.data]
                if made := next((batch for batch in found if batch.is_of(round_id, file)), None):
                    return made
                # The server's clock may differ from ours.
                is_old = found and found[-1].fields.get("created_at", 0) < since - 86400
                if is_old or not page.has_more:
                    break
        return None

    def results(self, file: str) -> Iterator[Result]:
        """Yield the responses in a file, in any order, without those of requests that were not
        executed."""
        with self._sdk(f"/files/{file}/content") as sdk:
            from aeon.llm.openai.client import of_any_length

            with (
                of_any_length(),
                sdk.files.with_streaming_response.content(file) as response,
            ):
                yield from filter(None, map(_read_result, response.iter_lines()))

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    @contextmanager
    def _sdk(self, path: str) -> Iterator[OpenAI]:
        from openai import APIStatusError

        from aeon.llm.openai.client import response_of
        from aeon.llm.openai.failures import error_of_exception

        closings = self._connection.closings
        try:
            with self._connection.client(closings) as client:
                yield client.sdk
        except APIStatusError as error:
            raise self._refusal(response_of(error.response), error.request) from None
        except ValueError:  # also for invalid JSON
            raise self._no_batches(f"answered {path} with something else") from None
        except Exception as error:
            raise error_of_exception(error, self._endpoint, self._seconds) or error from None

    def _refusal(self, response: Response, request: Request) -> LLMError:
        if response.status in (404, 405, 501) and request.method == "POST":
            what = f"answered {response.status} to {request.url.path}"
            return self._no_batches(what, response.status)
        return error_of_refusal(refusal_in(response), self._endpoint)

    def _no_batches(self, what: str, status: int = 200) -> LLMError:
        hint = "provider.batch=false sends each call by itself, at the full price."
        return NotAnAPI(
            f"{self._endpoint.address} takes no batches: it {what}", hint=hint, status=status
        )


def _read_batch(answered: object) -> RequestBatch:
    # The SDK does not check what a server returns, which may be a text or a page.
    fields = answered.to_dict(mode="json", warnings=False) if hasattr(answered, "to_dict") else {}
    try:
        return RequestBatch(fields)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("no batch") from error


def _read_id(answered: object) -> str:
    name = getattr(answered, "id", None)
    if not isinstance(name, str):
        raise ValueError("no id")
    return name


def _read_result(line: str) -> Result | None:
    try:
        fields = json.loads(line)
        name = str(fields["custom_id"])
        response = fields.get("response")
        error = fields.get("error") or {}
        if response:
            body = response["body"]  # a text in Llama Stack
            text = body if isinstance(body, str) else json.dumps(body)
            return Result(name, int(response["status_code"]), text.encode())
        is_left = str(error.get("code")) in ("batch_expired", "batch_cancelled")
        return None if is_left else Result(name, 500, json.dumps({"error": error}).encode())
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
