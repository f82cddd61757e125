"""The MCP server: the lists, calls and resources of a client."""

from __future__ import annotations

from collections.abc import Mapping

from mcp.server import Server, ServerRequestContext
from mcp.server.extension import compose_tool_call_handler
from mcp.types import CallToolRequestParams, ListToolsResult, PaginatedRequestParams, Tool

from aeon import __version__
from aeon.service.jobs import Jobs
from aeon.service.mcp.calls import ToolCalls
from aeon.service.mcp.resources import RunResources
from aeon.service.mcp.tasks import TasksExtension
from aeon.service.mcp.tools import ServedTool

_INSTRUCTIONS = (
    "Each tool hands work to Aeon, which plans it, carries it out in steps and checks the result. "
    "The result has the answer; structuredContent.resources has the URIs of the answer, of a page "
    "on how it came about, and of its history."
)


def build_server(jobs: Jobs, tools: Mapping[str, ServedTool]) -> Server:
    """Return the server of these jobs; each tool starts one, with the configuration of the tool's
    name."""
    listed = [
        Tool(
            name=tool.name,
            title=tool.title,
            description=tool.description,
            input_schema=dict(tool.input_schema),
        )
        for tool in tools.values()
    ]

    async def list_tools(
        _ctx: ServerRequestContext, _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(tools=listed)

    calls = ToolCalls(jobs, tools)
    resources = RunResources(jobs)
    tasks = TasksExtension(jobs, calls)
    server = Server(
        "aeon",
        version=__version__,
        title="Aeon",
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_list_resources=resources.list_resources,
        on_list_resource_templates=resources.list_templates,
        on_read_resource=resources.read,
    )
    call_tool = compose_tool_call_handler([tasks], calls.call)
    server.add_request_handler("tools/call", CallToolRequestParams, call_tool)
    server.extensions[tasks.identifier] = tasks.settings()
    for method in tasks.methods():
        server.add_request_handler(method.method, method.params_type, method.handler)
    return server
