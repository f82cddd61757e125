"""What a step gave, as a value for the steps after it. Pure."""

from __future__ import annotations

from typing import Any

from aeon.domain.history import StepResult
from aeon.domain.tool_result import ToolResult
from aeon.plan.workflow.references import CutOutput


def referable(result: StepResult) -> Any:
    """What a reference to a step names: its tool's output, else its text (Sprint 1, FR-056).

    `CutOutput` when the tool's output was cut: what is left of it is for readers, and no value.
    """
    if result.tool_result is None:
        return result.step_output
    tool = ToolResult.model_validate(result.tool_result)
    if not tool.cut:
        return tool.output
    return CutOutput(characters=tool.kept + tool.cut, kept=tool.kept, limit=_limit(tool))


def remembered(result: StepResult) -> Any:
    """What memory keeps of a step's output: the text; of one that was cut its beginning, and how much is missing."""
    tool = ToolResult.model_validate(result.tool_result) if result.tool_result else None
    if tool is None or not tool.cut or result.step_output is None:
        return result.step_output
    return {
        "incomplete": f"only the beginning was kept, by {_limit(tool)}",
        "characters": tool.kept + tool.cut,
        "characters_cut": tool.cut,
        "beginning": tool.text[: tool.kept],
    }


def _limit(tool: ToolResult) -> str:
    return f"max_output_characters of tool '{tool.tool}'" if tool.own_limit else "tools.max_output_characters"
