"""Results of servers' tools against output schemas that the servers wrote."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from mcp.types import CallToolResult, Tool

from aeon.tools.mcp.results import bounded_check


def checked(schema: dict[str, Any] | None, content: Any, name: str = "t") -> None:
    tool = Tool(name="t", input_schema={"type": "object"}, output_schema=schema)
    given = {} if content is None else {"structured_content": content}
    asyncio.run(bounded_check([tool])(name, CallToolResult(content=[], **given)))


@pytest.mark.parametrize("pattern", ["^(a+)+$", r"^(a|a)*\1$"])
def test_a_pattern_of_a_server_is_matched_in_bounded_time(pattern: str) -> None:
    started = time.monotonic()
    with pytest.raises(RuntimeError, match="Invalid structured content"):
        checked({"type": "object", "properties": {"p": {"pattern": pattern}}}, {"p": "a" * 40 + "b"})
    assert time.monotonic() - started < 1


def test_what_is_as_its_schema_says_or_has_none_passes_and_what_is_missing_does_not() -> None:
    checked({"type": "object", "required": ["p"]}, {"p": 1})
    checked(None, None)
    checked({"type": "object"}, None, name="never listed")
    with pytest.raises(RuntimeError, match="did not return structured content"):
        checked({"type": "object"}, None)
