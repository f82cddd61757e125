"""The run's memory, for its steps to read and to add to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from typing import Annotated, Any

from pydantic import Field, JsonValue
from pydantic_core import to_jsonable_python

from aeon.domain.values import Value
from aeon.memory.interface import STEPS, Memory
from aeon.memory.run_memory import InMemory
from aeon.tools.function import tool
from aeon.tools.registry import Tool


class Remembered(Value):
    """The value of a key; `found` is false, and the value null, when there is none."""

    found: bool
    value: Any


def memory_tools(memory: Memory) -> tuple[Tool, ...]:
    """`memory_read`, `memory_search` and `memory_write` of a memory.

    A person is asked before `memory_write` unless `tools.approval` says otherwise.
    """

    def write_again(arguments: Mapping[str, Any]) -> None:
        # The run has the value even when its memory fails.
        with suppress(Exception):
            memory.write(arguments["key"], arguments["value"])

    pairs = zip(_describe_tools(), _make_functions(memory), strict=True)
    read, search, write = (replace(described, invoke=partial(_call, function)) for described, function in pairs)
    return read, search, replace(write, approval="ask", again=write_again)


def _call(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    return to_jsonable_python(function(**arguments))


@cache
def _describe_tools() -> tuple[Tool, ...]:
    """The tools of no run: their names, descriptions and schemas are the same for every memory of a process."""
    read, search, write = _make_functions(InMemory())
    return (
        tool(examples=[{"key": "step/collect/output"}])(read),
        tool(examples=[{"prefix": "step/"}])(search),
        tool(examples=[{"key": "customer/name", "value": "Ada"}], side_effects=True)(write),
    )


def _make_functions(memory: Memory) -> tuple[Callable[..., Any], ...]:
    def memory_read(key: Annotated[str, Field(description="For example step/ID/output.")]) -> Remembered:
        """Read one value that this run has remembered. The output of a step is under step/ID/output.

        Of an output that was cut, the value is an object with its beginning and how many characters are missing.
        """
        value = memory.read(key)
        return Remembered(found=value is not None, value=value)

    def memory_search(
        prefix: Annotated[str, Field(description="What the keys begin with; empty for all.")],
    ) -> dict[str, Any]:
        """Find all values that this run has remembered under keys that begin with a prefix, by key.

        Of an output that was cut, the value is an object with its beginning and how many characters are missing.
        """
        return memory.search(prefix)

    def memory_write(
        key: Annotated[str, Field(min_length=1, description="For example customer/name; not step/...")],
        value: Annotated[JsonValue, Field(description="Any JSON value.")],
    ) -> Remembered:
        """Keep a value under a key, in place of what is there, for the steps after this one and for later runs that
        share this memory."""
        if key.startswith(STEPS):
            raise ValueError(f"keys that begin with {STEPS} are those of the steps' results")
        memory.write(key, value)
        return Remembered(found=True, value=value)

    return memory_read, memory_search, memory_write
