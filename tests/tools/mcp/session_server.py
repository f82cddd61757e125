"""A streamable HTTP endpoint with sessions, as servers of the older protocol have them; it can forget them."""

from __future__ import annotations

import gzip
import json
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

TOOL = {"name": "count", "description": "Counts its calls.", "inputSchema": {"type": "object"}}


class SessionServer:
    """Answers at `url` while the block lasts; `calls` counts the calls of its tool that were carried out, `sent` the
    bytes of its answers. `padding` makes the output of the tool longer, `compresses` packs what is sent."""

    def __init__(self, *, unknown: int = 404) -> None:
        self.calls, self.failing = 0, False
        self.padding = 0
        self.compresses = False
        self.sent = 0
        self.sessions: set[str] = set()
        self.refused = 0
        self._unknown = unknown
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                said = json.loads(self.rfile.read(int(self.headers["content-length"])))
                self._reply(*outer.answer(said, self.headers.get("mcp-session-id")))

            def do_GET(self) -> None:
                self._reply(405, None, {})

            do_DELETE = do_GET  # noqa: N815

            def _reply(self, status: int, body: Any, headers: dict[str, str]) -> None:
                data = b"" if body is None else json.dumps(body).encode()
                if outer.compresses:
                    data = gzip.compress(data)
                    headers = {**headers, "content-encoding": "gzip"}
                self.send_response(status)
                for name, value in {**headers, "content-type": "application/json"}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                with suppress(ConnectionError):
                    for begin in range(0, len(data), 65_536):
                        outer.sent += self.wfile.write(data[begin : begin + 65_536])

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/mcp"

    def __enter__(self) -> SessionServer:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, said: dict[str, Any], session: str | None) -> tuple[int, Any, dict[str, str]]:
        """Status, body and headers for one message."""
        with self._lock:
            if said["method"] == "initialize":
                new = uuid4().hex
                self.sessions.add(new)
                return 200, _result(said, _initialized(said)), {"mcp-session-id": new}
            if session is not None and session not in self.sessions:
                self.refused += 1
                return self._unknown, _error(said, -32000, "Session not found"), {}
            if "id" not in said:
                return 202, None, {}
            if said["method"] == "tools/list":
                return 200, _result(said, {"tools": [TOOL]}), {}
            if said["method"] == "tools/call":
                self.calls += 1
                if self.failing:
                    return 200, _error(said, -32603, "it broke"), {}
                return (
                    200,
                    _result(
                        said,
                        {
                            "content": [
                                {"type": "text", "text": str(self.calls) + "x" * self.padding}
                            ]
                        },
                    ),
                    {},
                )
            return 200, _error(said, -32601, "Method not found"), {}


def _initialized(said: dict[str, Any]) -> dict[str, Any]:
    version = said["params"]["protocolVersion"]
    return {
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "s", "version": "1"},
    }


def _result(said: dict[str, Any], result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": said.get("id"), "result": result}


def _error(said: dict[str, Any], code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": said.get("id"), "error": {"code": code, "message": message}}
