"""A server of OpenAI's batch interface, written from its published reference: `/v1/files`, `/v1/batches`.

    with BatchServer(simulated()) as server:
        server.fates = [Fate(failing={2: 500}), Fate(status="expired", left=(1,))]   # of the first two batches
        ...                       # OpenAIProvider(base_url=server.url, batch=True)
        server.batches            # as they were made, with their requests in `lines`

A request to the interface itself fails as `trouble` says, by method and path, as often as it has failures. The script
is that of `OpenAIServer`; what is not in a batch is answered at once.
"""

import json
import re
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.openai_server import (
    Completion,
    Failure,
    OpenAIServer,
    Script,
    error,
    wire_completion,
)

KEYS = {"input_file_id", "endpoint", "completion_window", "metadata"}


@dataclass(frozen=True)
class Fate:
    """What becomes of a batch, `seconds` after it was made. Its lines are numbered from 1: `failing` are answered with
    a status, `left` are not carried out (in an expired or cancelled batch), `lost` have no line of results, `double`
    two; `errors` are those of a batch that failed as a whole."""

    status: str = "completed"
    seconds: float = 0.3
    failing: Mapping[int, int] = field(default_factory=dict)
    left: Sequence[int] = ()
    lost: Sequence[int] = ()
    double: Sequence[int] = ()
    errors: Sequence[Mapping[str, Any]] = ()


@dataclass
class Made:
    """A batch that was made; `told` is the object of the reference."""

    told: dict[str, Any]
    lines: list[dict[str, Any]]
    fate: Fate
    made: float = field(default_factory=time.monotonic)

    @property
    def size(self) -> int:
        return len(self.lines)


class BatchServer:
    """The server; a context manager."""

    def __init__(self, script: Mapping[str, Script]) -> None:
        self.model = OpenAIServer(script)  # what answers the requests; it never listens
        self.fates: list[Fate] = []
        self.seconds = 0.3
        self.says_text = False  # as Llama Stack does: the body of a response is a text
        self.slow = 0.0  # seconds before each response, when what was asked for is done
        self.trouble: dict[tuple[str, str], list[Failure]] = {}
        self.after: dict[tuple[str, str], list[Failure]] = {}
        self.files: dict[str, bytes] = {}
        self.batches: list[Made] = []
        self.calls: list[tuple[str, str]] = []
        self.lock = threading.RLock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.owner = self  # type: ignore[attr-defined]

    def __enter__(self) -> "BatchServer":
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self.model._server.server_close()

    @property
    def url(self) -> str:
        """What goes into `provider.base_url`."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def requests(self) -> list[dict[str, Any]]:
        """Every request of every batch."""
        return [line for made in self.batches for line in made.lines]

    def answer(
        self, method: str, path: str, query: Mapping[str, Any], headers: Any, raw: bytes
    ) -> Any:
        """An object, bytes, or a Failure."""
        if method == "POST" and path == "/v1/files":
            return self._take_file(headers, raw)
        if path == "/v1/chat/completions":
            status, body = self._ask(json.loads(raw), None)
            return body if status == 200 else Failure(status, body=body)
        if path == "/v1/batches":
            return self._make(json.loads(raw)) if method == "POST" else self._list(query)
        if found := re.fullmatch(r"/v1/files/([\w-]+)/content", path):
            return self.files.get(found[1]) or error(404, f"No such File object: {found[1]}")
        if found := re.fullmatch(r"/v1/batches/([\w-]+)(/cancel)?", path):
            made = next((one for one in self.batches if one.told["id"] == found[1]), None)
            if made is None:
                return error(404, f"No batch found with id '{found[1]}'.")
            if found[2]:
                done = range(1, made.size // 2 + 1)
                made.fate = Fate(
                    "cancelled", 0, left=[n for n in range(1, made.size + 1) if n not in done]
                )
            return self._progress(made)
        return error(404, f"Invalid URL ({method} {path})")

    def _take_file(self, headers: Any, raw: bytes) -> Any:
        boundary = b"--" + re.search(r"boundary=(\S+)", headers["content-type"])[1].encode()  # type: ignore[index]
        parts = {}
        for part in raw.split(boundary)[1:-1]:
            head, _, body = part.partition(b"\r\n\r\n")
            parts[re.search(rb'name="(\w+)"', head)[1].decode()] = (head, body[:-2])  # type: ignore[index]
        if parts["purpose"][1] != b"batch" or b'filename="' not in parts["file"][0]:
            return error(400, "purpose and file are required")
        name = f"file-{len(self.files) + 1}"
        self.files[name] = parts["file"][1]
        return {
            "id": name,
            "object": "file",
            "bytes": len(parts["file"][1]),
            "purpose": "batch",
            "filename": "x.jsonl",
        }

    def _make(self, body: Any) -> Any:
        if (
            set(body) - KEYS
            or body["completion_window"] != "24h"
            or body["endpoint"] != "/v1/chat/completions"
        ):
            return error(400, f"invalid batch: {body}")
        if body["input_file_id"] not in self.files:
            return error(400, "no such file")
        lines = [json.loads(line) for line in self.files[body["input_file_id"]].splitlines()]
        number = len(self.batches) + 1
        told = {
            "id": f"batch_{number}",
            "object": "batch",
            "status": "validating",
            "errors": None,
            **body,
        }
        told |= {"output_file_id": None, "error_file_id": None, "created_at": int(time.time())}
        fate = self.fates[number - 1] if number <= len(self.fates) else Fate(seconds=self.seconds)
        if problem := _problem(lines):
            fate = Fate("failed", 0, errors=[problem])
        self.batches.append(Made(told, lines, fate))
        return told

    def _list(self, query: Mapping[str, Any]) -> Any:
        newest = [self._progress(made) for made in reversed(self.batches)]
        after = query.get("after", [None])[0]
        start = next((n + 1 for n, told in enumerate(newest) if told["id"] == after), 0)
        page = newest[start : start + 2]  # small, so that more than one is asked for
        more = start + 2 < len(newest)
        return {"object": "list", "data": page, "has_more": more, "first_id": None, "last_id": None}

    def _progress(self, made: Made) -> dict[str, Any]:
        told, fate, age = made.told, made.fate, time.monotonic() - made.made
        if told["status"] in ("validating", "in_progress", "finalizing"):
            share = min(1.0, age / fate.seconds) if fate.seconds else 1.0
            told["status"] = (
                "in_progress" if share < 0.9 else "finalizing" if share < 1 else fate.status
            )
            told["request_counts"] = {
                "total": made.size,
                "completed": int(share * made.size),
                "failed": 0,
            }
            if share >= 1:
                self._end(made)
        return told

    def _end(self, made: Made) -> None:
        fate, told, output, errors = made.fate, made.told, [], []
        if fate.status == "failed":
            told["errors"] = {"object": "list", "data": [*fate.errors]}
            return
        for number, line in enumerate(made.lines, start=1):
            into, result = (
                output,
                {"id": f"batch_req_{number}", "custom_id": line["custom_id"], "error": None},
            )
            if number in fate.left:
                message = "This request could not be executed before the completion window expired."
                into, result = (
                    errors,
                    {**result, "response": None, "error": {"code": f"batch_{fate.status}"}},
                )
                result["error"]["message"] = message
            else:
                status, body = self._ask(line["body"], fate.failing.get(number))
                body = json.dumps(body) if self.says_text else body
                result["response"] = {
                    "status_code": status,
                    "request_id": f"req_{number}",
                    "body": body,
                }
                into = output if status == 200 else errors
            if number not in fate.lost:
                into += [json.dumps(result)] * (2 if number in fate.double else 1)
        for key, lines in (("output_file_id", output), ("error_file_id", errors)):
            if lines:
                told[key] = f"file-{len(self.files) + 1}"
                self.files[told[key]] = ("\n".join(reversed(lines)) + "\n").encode()  # in no order

    def _ask(self, body: Any, failing: int | None) -> tuple[int, Any]:
        answer = error(failing, "made to fail") if failing else self.model.answer(body, {})
        if isinstance(answer, Failure):
            return answer.status, answer.body
        whole = answer if isinstance(answer, Completion) else Completion(answer)
        return 200, wire_completion(whole, len(self.model.requests), body["model"])


def _problem(lines: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    ids = [line.get("custom_id") for line in lines]
    if len(set(ids)) < len(ids):
        return {
            "code": "duplicate_custom_id",
            "message": "a custom_id stands twice",
            "line": None,
            "param": None,
        }
    if len({line["body"]["model"] for line in lines}) > 1:
        message = "The provided input file must contain only one model"
        return {"code": "mismatched_model", "message": message, "line": None, "param": "body.model"}
    if any((line["method"], line["url"]) != ("POST", "/v1/chat/completions") for line in lines):
        return {
            "code": "invalid_url",
            "message": "The URL does not match",
            "line": 1,
            "param": "url",
        }
    return None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._serve("GET")

    def do_POST(self) -> None:
        self._serve("POST")

    def _serve(self, method: str) -> None:
        owner: BatchServer = self.server.owner  # type: ignore[attr-defined]
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if "chunked" in self.headers.get("transfer-encoding", ""):
            return self._send(411, b'{"error": {"message": "length required"}}')
        url = urlsplit(self.path)
        with owner.lock:
            key = (method, re.sub(r"(?<=/)(file-|batch_)\d+", "*", url.path))
            owner.calls.append(key)
            failures = owner.trouble.get(key)
            answer = failures.pop(0) if failures else None
            if answer is None:
                answer = owner.answer(method, url.path, parse_qs(url.query), self.headers, raw)
                if owner.after.get(key):
                    answer = owner.after[key].pop(0)
        time.sleep(owner.slow)
        if isinstance(answer, Failure):
            if answer.reset:
                self.close_connection = True
                return self.connection.close()
            return self._send(answer.status, json.dumps(answer.body).encode(), answer.headers)
        return self._send(200, answer if isinstance(answer, bytes) else json.dumps(answer).encode())

    def _send(self, status: int, raw: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: Any) -> None:
        """Standard error belongs to the program under test."""
