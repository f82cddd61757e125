"""An MCP server that does whatever a test needs: answers well, badly, late or not at all. Run as a program.

Its tools are listed three to a page. Over stdio, or with `--http PORT` on 127.0.0.1.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.types import (
    INVALID_PARAMS,
    AudioContent,
    BlobResourceContents,
    CallToolRequestParams,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ListToolsResult,
    PaginatedRequestParams,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)

PAGE = 3
PIXELS = base64.b64encode(b"12345").decode()
DEEP = 240
ANYTHING: dict[str, Any] = {"type": "object"}
SUM: dict[str, Any] = {
    "type": "object",
    "properties": {"sum": {"type": "number"}},
    "required": ["sum"],
}
TEXT_FOR_ALL = (
    ImageContent(data=PIXELS, mime_type="image/png"),
    AudioContent(data=PIXELS, mime_type="audio/wav"),
    ResourceLink(name="a", uri="file:///a.txt", mime_type="text/plain", size=7),
    EmbeddedResource(
        resource=TextResourceContents(uri="memo://1", mime_type="text/plain", text="remember")
    ),
    EmbeddedResource(resource=BlobResourceContents(uri="memo://2", blob=PIXELS)),
)


def said(*texts: str, **more: Any) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text) for text in texts], **more)


naps_under_way = 0


async def die(given: dict[str, Any]) -> CallToolResult:
    """Ends the server, once as many naps are under way as are asked for."""
    while naps_under_way < given.get("naps", 0):
        await asyncio.sleep(0.01)
    print("these are my last words", file=sys.stderr, flush=True)
    os._exit(3)


def refuse(_: dict[str, Any]) -> CallToolResult:
    raise MCPError(INVALID_PARAMS, "refused by protocol error")


def add(given: dict[str, Any]) -> CallToolResult:
    return said("in words", structured_content={"sum": given["a"] + given["b"]})


def picture(_: dict[str, Any]) -> CallToolResult:
    return CallToolResult(content=[TextContent(text="look:"), *TEXT_FOR_ALL])


def freeze(_: dict[str, Any]) -> CallToolResult:
    """Blocks the whole server, as synchronous code in an asynchronous server does."""
    time.sleep(600)
    return said("late")


def flood(_: dict[str, Any]) -> CallToolResult:
    return said("x" * 9_000_000)


def nest(_: dict[str, Any]) -> CallToolResult:
    return said("deep", structured_content={"a": nested(DEEP)})


def nested(depth: int) -> Any:
    """A value within objects."""
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


async def hang(_: dict[str, Any]) -> CallToolResult:
    await asyncio.sleep(600)
    return said("late")


async def nap(given: dict[str, Any]) -> CallToolResult:
    global naps_under_way
    naps_under_way += 1
    await asyncio.sleep(given["seconds"])
    naps_under_way -= 1
    return said("rested")


BEHAVIOUR: dict[str, Callable[[dict[str, Any]], Any]] = {
    "add": add,
    "two_texts": lambda _: said("one", "two"),
    "picture": picture,
    "nothing": lambda _: CallToolResult(content=[]),
    "fail": lambda _: said("failed by flag", is_error=True),
    "fail_silently": lambda _: CallToolResult(content=[], is_error=True),
    "refuse": refuse,
    "lie": lambda _: said("x", structured_content={"sum": "not a number"}),
    "die": die,
    "hang": hang,
    "freeze": freeze,
    "flood": flood,
    "nest": nest,
    "nap": nap,
    "pid": lambda _: said(str(os.getpid())),
    "variable": lambda given: said(os.environ.get(given["name"], "(not set)")),
    "big": lambda given: said("x" * given["size"]),
    "né/ odd": lambda _: said("odd"),
}
LISTED = [
    *(
        Tool(name=name, description=f"Does {name}.", input_schema=ANYTHING)
        for name in BEHAVIOUR
        if name not in ("add", "lie", "pid")
    ),
    Tool(name="add", input_schema=ANYTHING, output_schema=SUM),
    Tool(name="lie", input_schema=ANYTHING, output_schema=SUM),
    Tool(
        name="pid",
        title="Process",
        input_schema=ANYTHING,
        annotations=ToolAnnotations(read_only_hint=True),
    ),
    Tool(
        name="vanished", description="Is listed, and there is no such tool.", input_schema=ANYTHING
    ),
    Tool(
        name="malformed",
        input_schema={"type": "object", "properties": {"a": {"type": "no such type"}}},
    ),
]


async def list_tools(
    _: ServerRequestContext[Any], params: PaginatedRequestParams | None
) -> ListToolsResult:
    first = int(params.cursor) if params and params.cursor else 0
    last = first + PAGE
    return ListToolsResult(
        tools=LISTED[first:last], next_cursor=str(last) if last < len(LISTED) else None
    )


async def circle(
    _: ServerRequestContext[Any], params: PaginatedRequestParams | None
) -> ListToolsResult:
    """Pages without an end, the same one each time."""
    return ListToolsResult(tools=LISTED[:PAGE], next_cursor="again")


async def list_deep(
    _: ServerRequestContext[Any], params: PaginatedRequestParams | None
) -> ListToolsResult:
    """One tool, whose schema no reader of JSON reads."""
    schema = {"type": "object", "default": nested(DEEP)}
    return ListToolsResult(tools=[Tool(name="deep", input_schema=schema)])


async def call_tool(_: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
    behave = BEHAVIOUR.get(params.name)
    if behave is None:
        raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name}")
    result = behave(params.arguments or {})
    return await result if asyncio.iscoroutine(result) else result


async def serve_stdio(server: Server[Any]) -> None:
    async with stdio_server() as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())


def serve_http(server: Server[Any], port: int, token: str) -> None:
    import uvicorn

    inner = server.streamable_http_app()

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers", ()))
        if (
            scope["type"] == "http"
            and token
            and headers.get(b"authorization") != f"Bearer {token}".encode()
        ):
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b""})
        else:
            await inner(scope, receive, send)

    uvicorn.run(guarded, host="127.0.0.1", port=port, log_level="error")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", type=int, default=0)
    parser.add_argument("--token", default="")
    parser.add_argument("--circle", action="store_true", help="list the same page for ever")
    parser.add_argument("--deep", action="store_true", help="list a tool of a deep schema")
    parser.add_argument(
        "--chatter", action="store_true", help="write on standard output and standard error first"
    )
    parser.add_argument(
        "--stubborn", action="store_true", help="ignore SIGTERM and the end of standard input"
    )
    parser.add_argument("--child", action="store_true", help="have a child process")
    asked = parser.parse_args()
    if asked.chatter:
        print("Welcome to the server!", flush=True)
        print("x" * 100_000, file=sys.stderr, flush=True)
    if asked.child:
        subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(600)"], stdin=subprocess.DEVNULL
        )
    if asked.stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    listing = circle if asked.circle else list_deep if asked.deep else list_tools
    server: Server[Any] = Server("misbehaving", on_list_tools=listing, on_call_tool=call_tool)
    if asked.http:
        serve_http(server, asked.http, asked.token)
    else:
        asyncio.run(serve_stdio(server))
    if asked.stubborn:
        time.sleep(600)


if __name__ == "__main__":
    main()
