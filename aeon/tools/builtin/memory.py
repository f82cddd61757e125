"""The run's memory, for its steps to read and add to."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from pydantic import Field, JsonValue

from aeon.domain.values import JsonMapping, JsonObject, Value
from aeon.memory.interface import STEPS, Memory
from aeon.tools.function import tool
from aeon.tools.registry import Tool


class Remembered(Value):
    """The value of a key; `found` is false, and the value null, when there is none."""

    found: bool
    value: Any


def memory_tools(memory: Memory) -> tuple[Tool, ...]:
    """Return `memory_read`, `memory_search` and `memory_write` for a memory; a person is asked to
    approve `memory_write`."""

    @tool(examples=[{"key": "step/collect/output"}])
    def memory_read(
        key: Annotated[str, Field(description="For example step/ID/output.")],
    ) -> Remembered:
        """Read one value that this run has remembered. The output of a step is under
        step/ID/output.

        Of an output that was cut, the value is an object with its beginning and how many characters
        are missing.
        """
        value = memory.read(key)
        return Remembered(found=value is not None, value=value)

    @tool(examples=[{"prefix": "step/"}])
    def memory_search(
        prefix: Annotated[str, Field(description="What the keys begin with; empty for all.")],
    ) -> JsonObject:
        """Find all values that this run has remembered under keys that begin with a prefix, by key.

        Of an output that was cut, the value is an object with its beginning and how many characters
        are missing.
        """
        return memory.search(prefix)

    @tool(examples=[{"key": "customer/name", "value": "Ada"}], side_effects=True)
    def memory_write(
        key: Annotated[
            str, Field(min_length=1, description="For example customer/name; not step/...")
        ],
        value: Annotated[JsonValue, Field(description="Any JSON value.")],
    ) -> Remembered:
        """Keep a value under a key, in place of what is there, for the steps after this one and for
        later runs that share this memory."""
        if key.startswith(STEPS):
            raise ValueError(f"keys that begin with {STEPS} are those of the steps' results")
        memory.write(key, value)
        return Remembered(found=True, value=value)

    return (
        memory_read,
        memory_search,
        replace(memory_write, approval="ask", again=partial(_write_again, memory)),
    )


def _write_again(memory: Memory, arguments: JsonMapping) -> None:
    with suppress(Exception):  # the run has the value even if its memory fails
        memory.write(arguments["key"], arguments["value"])
