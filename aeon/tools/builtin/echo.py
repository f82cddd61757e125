"""The tool that gives back what it is given."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from aeon.tools.function import tool
from aeon.tools.registry import Tool
from aeon.tools.settings import BuiltinSettings


def from_settings(settings: BuiltinSettings) -> tuple[Tool, ...]:  # noqa: ARG001
    """`echo`, which needs no settings."""
    return (echo_tool(),)


def echo_tool() -> Tool:
    """`echo`: to try out how tools are called."""

    @tool(pure=True, examples=[{"text": "hello"}])
    def echo(text: Annotated[str, Field(description="The text to give back.")]) -> str:
        """Give back the text unchanged."""
        return text

    return echo
