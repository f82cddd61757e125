"""What a step gave, as a value for the steps after it. Pure."""

from __future__ import annotations

from typing import Any

from aeon.kernel.state import StepResult
from aeon.plan.workflow_references import CutOutput
from aeon.tools.models import ToolResult


def referable(result: StepResult) -> Any:
    """What a reference to a step names: its tool's output, else its text (Sprint 1, FR-056).

    `CutOutput` when the tool's output was cut: what is left of it is for readers, and no value.
    """
    if result.tool_result is None:
        return result.step_output
    tool = ToolResult.model_validate(result.tool_result)
    if not tool.cut:
        return tool.output
    limit = f"max_output_characters of tool '{tool.tool}'" if tool.own_limit else "tools.max_output_characters"
    return CutOutput(characters=tool.kept + tool.cut, kept=tool.kept, limit=limit)
