"""An OpenAI-compatible HTTP server on loopback that answers from a script.

    with OpenAIServer({"plan": {...}, "step": [{"output": "a"}, Failure(500)]}) as server:
        ...                    # OpenAIProvider(base_url=server.url)
        server.names           # ["plan", "step", "step"], in the order of arrival

A script maps `response_format.json_schema.name` to what is answered: always the same, or a list (one for each request,
then 400), or a callable that is given the request. It is a real server: what a test sees of it went over the wire.
"""

import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tests.support.strict_subset import violations

COMPLETIONS = "/v1/chat/completions"
MODEL = "scripted-1"


@dataclass(frozen=True)
class Received:
    """A request as it arrived: its place in the order, the call's name, the body and the headers (lower case)."""

    index: int
    name: str
    body: Mapping[str, Any] = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)

    @property
    def schema(self) -> Mapping[str, Any]:
        """The JSON Schema that the answer must satisfy."""
        return self.body["response_format"]["json_schema"]["schema"]

    @property
    def strict(self) -> bool:
        """Whether strict mode was asked for."""
        return bool(self.body["response_format"]["json_schema"].get("strict"))

    def text_of(self, role: str) -> str:
        """All text of one role's messages."""
        return "\n".join(text_of(m) for m in self.body["messages"] if m["role"] == role)

    @property
    def system(self) -> str:
        """The system prompt."""
        return self.text_of("system")

    @property
    def user(self) -> str:
        """The user prompt."""
        return self.text_of("user")


@dataclass(frozen=True)
class Completion:
    """An answer with everything said: a dict is serialised, a text is sent as it is, None is no content."""

    content: Mapping[str, Any] | str | None = None
    finish_reason: str = "stop"
    refusal: str | None = None
    usage: Mapping[str, Any] | None = field(
        default_factory=lambda: {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    )
    model: str = MODEL
    delay: float = 0.0
    id: str | None = None
    tool_calls: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class Failure:
    """Anything but an answer: a status with an error body, a page, raw bytes, or a connection that is reset."""

    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | str | None = None
    delay: float = 0.0
    reset: bool = False
    html: bool = False


Answer = Mapping[str, Any] | str | Completion | Failure
Script = Answer | Sequence[Answer] | Callable[[Received], Answer]


class OpenAIServer:
    """The server; a context manager. `key`: the only bearer key that it accepts, None for any or none.

    `requests`, `refused` (why requests were answered with 400), `max_in_flight` and `connections` (how many were made)
    may be read at any time. Whoever asks for a stream gets one, a piece every `piece_seconds`; it ends once `may_end` is
    set, as it is at first.
    """

    handler: "type[Handler]"

    def __init__(
        self,
        script: Mapping[str, Script] | None = None,
        *,
        key: str | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self.path = COMPLETIONS
        self.script: dict[str, Script] = dict(script or {})
        self.key = key
        self.piece_seconds = 0.0
        self.may_end = threading.Event()
        self.may_end.set()
        self.requests: list[Received] = []
        self.refused: list[str] = []
        self.max_in_flight = 0
        self.connections = 0
        self._in_flight = 0
        self._asked: dict[str, int] = {}
        self._lock = threading.Lock()
        self._server = _Server((host, 0), self.handler)
        self._server.owner = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.002,), daemon=True
        )

    def __enter__(self) -> "OpenAIServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """What goes into `provider.base_url`."""
        host, port = self._server.server_address[:2]
        return f"http://{host}:{port}/v1"

    @property
    def overrides(self) -> list[str]:
        """What has the program ask it for a model `m`."""
        return ["provider=openai", f"provider.base_url={self.url}", "provider.model=m"]

    @property
    def names(self) -> list[str]:
        """The calls' names, in the order of arrival."""
        return [request.name for request in self.requests]

    def of(self, name: str) -> list[Received]:
        """The requests of one call, in the order of arrival."""
        return [request for request in self.requests if request.name == name]

    def start_over(self, script: Mapping[str, Script]) -> None:
        """Answer as a server at the same address that nobody has asked yet."""
        self.script = dict(script)
        self.requests.clear()
        self._asked.clear()

    def stop(self) -> None:
        """Stop answering, hang up, and wait until every handler has ended."""
        self._server.shutdown()
        self._server.hang_up()
        self._server.server_close()
        self._thread.join()

    def answer(self, body: Any, headers: Mapping[str, str]) -> Answer:
        """What the script answers; 400 for what a real server would refuse, 401 for a wrong key."""
        if self.key is not None and headers.get("authorization") != f"Bearer {self.key}":
            return error(401, "Incorrect API key provided", code="invalid_api_key")
        problems = problems_of(body)
        if problems:
            return self._refuse("; ".join(problems))
        with self._lock:
            name = body["response_format"]["json_schema"]["name"]
            request = Received(len(self.requests), name, body, headers)
            self.requests.append(request)
            turn = self._asked[name] = self._asked.get(name, 0) + 1
        if name not in self.script:
            return self._refuse(f"the script has no answer for {name!r}")
        scripted = self.script[name]
        if callable(scripted):
            return scripted(request)
        if isinstance(scripted, Sequence) and not isinstance(scripted, str):
            return (
                scripted[turn - 1]
                if turn <= len(scripted)
                else self._refuse(f"no answer is left for {name!r}")
            )
        return scripted

    def _refuse(self, why: str) -> Failure:
        self.refused.append(why)
        return error(400, why)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Counts a request as in flight."""
        with self._lock:
            self._in_flight += 1
            self.max_in_flight = max(self.max_in_flight, self._in_flight)
        try:
            yield
        finally:
            with self._lock:
                self._in_flight -= 1


def text_of(message: Mapping[str, Any]) -> str:
    """A message's text, in one piece or in content parts."""
    content = message["content"]
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content if part["type"] == "text")


def is_content(content: Any) -> bool:
    """Whether a message's content is a text, or parts of which none is an empty text."""
    if isinstance(content, str):
        return True
    return isinstance(content, list) and all(map(_is_part, content))


def _is_part(part: Mapping[str, Any]) -> bool:
    if part.get("type") == "text":
        return bool(part.get("text"))
    try:
        _type_of_parts().validate_python(part)
    except ValidationError:
        return False
    return True


@cache
def _type_of_parts() -> TypeAdapter[Any]:
    """The openai package's own type of what is no text."""
    from openai.types.chat import ChatCompletionContentPartParam

    return TypeAdapter(ChatCompletionContentPartParam)


def error(status: int, message: str, code: str | None = None) -> Failure:
    """A failure in the form of OpenAI's own errors."""
    return Failure(
        status,
        body={"error": {"message": message, "type": "scripted", "param": None, "code": code}},
    )


def problems_of(body: Any) -> list[str]:
    """Why a server with strict structured output would refuse this request."""
    if not isinstance(body, dict) or not isinstance(body.get("model"), str):
        return ["the body must be an object with a model"]
    messages = body.get("messages")
    if not isinstance(messages, list) or not all(
        (is_content(m.get("content")) or m.get("tool_calls")) and m.get("role") for m in messages
    ):
        return ["messages must be a list of messages with role and content"]
    if problems := list(_problems_of_tools(body)):
        return problems
    shape = body.get("response_format") or {}
    named = shape.get("json_schema") or {}
    if shape.get("type") != "json_schema" or not re.fullmatch(
        r"[a-zA-Z0-9_-]{1,64}", str(named.get("name", ""))
    ):
        return ["response_format must be a json_schema with a name"]
    if not isinstance(named.get("schema"), dict):
        return ["response_format.json_schema.schema is missing"]
    found = violations(named["schema"]) if named.get("strict") else []
    return [f"Invalid schema for response_format {named['name']!r}: {problem}" for problem in found]


def _problems_of_tools(body: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with tools that are offered, with calls of them, and with their results."""
    for tool in body.get("tools", ()):
        function = tool["function"]
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", function["name"]):
            yield f"tools: {function['name']!r} is no name of a function"
        if function["parameters"].get("type") != "object":
            yield f"tools: {function['name']}: the parameters are not an object's"
    open_calls: set[str] = set()
    for message in body["messages"]:
        if message["role"] != "tool" and open_calls:
            yield f"there is no result of {sorted(open_calls)}"
        for call in message.get("tool_calls", ()):
            json.loads(call["function"]["arguments"])
            open_calls.add(call["id"])
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                yield f"there was no call {message['tool_call_id']!r}"
            open_calls.discard(message["tool_call_id"])


def wire_completion(answer: Completion, index: int, model: str) -> dict[str, Any]:
    """A chat completion as OpenAI sends it."""
    content = json.dumps(answer.content) if isinstance(answer.content, Mapping) else answer.content
    message = {"role": "assistant", "content": content, "refusal": answer.refusal}
    if answer.tool_calls:
        message["tool_calls"] = list(answer.tool_calls)
    body = {
        "id": answer.id or f"chatcmpl-{index}",
        "object": "chat.completion",
        "created": 0,
        "model": answer.model or model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": answer.finish_reason,
                "logprobs": None,
            }
        ],
    }
    return body if answer.usage is None else body | {"usage": answer.usage}


def _deltas_of_calls(
    calls: Sequence[Mapping[str, Any]], size: int
) -> Iterator[dict[str, list[dict[str, Any]]]]:
    """Calls in small pieces: the first has the name, the others more of the arguments."""
    for index, call in enumerate(calls):
        arguments = call["function"]["arguments"]
        begun = {**call["function"], "arguments": ""}
        yield {"tool_calls": [{**call, "index": index, "function": begun}]}
        for place in range(0, len(arguments), size):
            piece = {"arguments": arguments[place : place + size]}
            yield {"tool_calls": [{"index": index, "function": piece}]}


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True
    request_queue_size = 1024
    owner: OpenAIServer

    def __init__(self, *args: Any) -> None:
        self.open: set[socket.socket] = set()
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open.add(request)
        self.owner.connections += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """End the connections that clients keep alive: their handlers would wait for another request."""
        for connection in tuple(self.open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of the tests, not something to print."""


class Handler(BaseHTTPRequestHandler):
    """Answers one connection of the server."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Server

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        owner = self.server.owner
        if self.path != owner.path:
            return self._fail(error(404, f"no such path: {self.path}"))
        with owner.counted():
            try:
                body = json.loads(raw)
            except ValueError:
                return self._fail(error(400, "the body is not JSON"))
            answer = owner.answer(body, headers)
            if not isinstance(answer, Completion | Failure):
                answer = Completion(answer)
            time.sleep(answer.delay)
        if isinstance(answer, Failure):
            return self._fail(answer)
        whole = wire_completion(answer, len(owner.requests), body["model"])
        return self._stream(whole) if body.get("stream") else self._send(200, whole)

    def _stream(self, whole: Mapping[str, Any], size: int = 7) -> None:
        """The completion in small pieces, as it would be written."""
        self.send_response(200)
        for name, value in {
            "content-type": "text/event-stream",
            "transfer-encoding": "chunked",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        head, choice = {name: whole[name] for name in ("id", "model")}, whole["choices"][0]
        text = choice["message"]["content"] or ""
        deltas = [{"content": text[place : place + size]} for place in range(0, len(text), size)]
        deltas += _deltas_of_calls(choice["message"].get("tool_calls", ()), size)
        if refusal := choice["message"]["refusal"]:
            deltas.append({"refusal": refusal})
        self._send_chunks([{**head, "choices": [{"index": 0, "delta": delta}]} for delta in deltas])
        assert self.server.owner.may_end.wait(30)
        last = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
        usage = {**head, "choices": [], "usage": whole.get("usage")}
        self._send_chunks([{**head, "choices": [last]}, usage, "[DONE]"])
        self.wfile.write(b"0\r\n\r\n")

    def _send_chunks(self, chunks: Sequence[Mapping[str, Any] | str]) -> None:
        for chunk in chunks:
            data = chunk if isinstance(chunk, str) else json.dumps(chunk)
            line = f"data: {data}\n\n".encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
            self.wfile.flush()
            time.sleep(self.server.owner.piece_seconds)

    def _fail(self, failure: Failure) -> None:
        if failure.reset:
            return self._reset()
        if failure.html:
            headers = {"content-type": "text/html; charset=utf-8", **failure.headers}
            return self._send(
                failure.status, failure.body or "<html><body>It works!</body></html>", headers
            )
        body = (
            failure.body
            if failure.body is not None
            else error(failure.status, "scripted failure").body
        )
        return self._send(failure.status, body or "", failure.headers)

    def _send(
        self, status: int, body: Mapping[str, Any] | str, headers: Mapping[str, str] | None = None
    ) -> None:
        raw = (body if isinstance(body, str) else json.dumps(body)).encode()
        given = {name.lower(): value for name, value in (headers or {}).items()}
        self.send_response(status)
        for name, value in {
            "content-type": "application/json",
            "content-length": str(len(raw)),
            **given,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)
        self.wfile.flush()

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.server.open.discard(self.connection)
        socket.close(self.connection.detach())
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Standard error belongs to the program under test."""


OpenAIServer.handler = Handler
