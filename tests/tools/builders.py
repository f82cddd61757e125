from collections.abc import Callable, Mapping
from typing import Any

from aeon.tools.registry import Tool

ANYTHING: dict[str, Any] = {}
NO_ARGUMENTS = {"type": "object", "properties": {}, "additionalProperties": False}


def a_tool(
    invoke: Callable[[Mapping[str, Any]], Any] = lambda _: "done",
    *,
    name: str = "probe",
    inputs: Mapping[str, Any] = ANYTHING,
    outputs: Mapping[str, Any] = ANYTHING,
    **more: Any,
) -> Tool:
    return Tool(name, "Does what it is told.", inputs, outputs, invoke, **more)
