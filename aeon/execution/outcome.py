"""The outcome of executing a step: the step, its result, remarks for the user, and the value for
later steps."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from aeon.domain.checks import ToolResult
from aeon.domain.errors import AeonError, LLMError
from aeon.domain.history import AdvisoryKind, StepResult
from aeon.domain.plan import PlanStep
from aeon.domain.values import JsonMapping
from aeon.execution.quotes import join_quotes
from aeon.llm.exchange import InvalidAnswer
from aeon.memory.interface import Memory
from aeon.plan.transitions import fail_step, finish_step
from aeon.plan.views import step_key
from aeon.plan.workflow.references import CutOutput
from aeon.schema.validators import FieldError

Remarks = tuple[tuple[AdvisoryKind, str], ...]
_AGAIN = (
    "was being called when the earlier run was cut off: it may have been carried out then, "
    "and has been called again"
)


@dataclass(frozen=True, slots=True)
class Worked:
    """A step after its work, its result, and remarks for the user as (kind, text). `error` is the
    error of the model call that failed the step."""

    step: PlanStep
    result: StepResult
    remarks: Remarks = ()
    error: LLMError | None = None


def make_memory_value(result: StepResult) -> Any:
    """Return what memory stores of a step's output: the text, or, if it was cut, its beginning and
    the number of missing characters."""
    tool = _tool_result(result)
    if tool is None or not tool.cut or result.step_output is None:
        return result.step_output
    return {
        "incomplete": f"only the beginning was kept, by {_limit(tool)}",
        "characters": tool.kept + tool.cut,
        "characters_cut": tool.cut,
        "beginning": tool.text[: tool.kept],
    }


def read_output(result: StepResult) -> Any:
    """Return the value of references to a step: its tool's output, the parsed JSON of a step with a
    schema, else its text (Sprint 1, FR-056). A tool's output that was cut cannot be parsed any
    more: `CutOutput`."""
    tool = _tool_result(result)
    if tool is None:
        text = result.step_output
        return json.loads(text) if result.is_json and text else text
    if not tool.cut:
        return tool.output
    return CutOutput(characters=tool.kept + tool.cut, kept=tool.kept, limit=_limit(tool))


def _tool_result(result: StepResult) -> ToolResult | None:
    return ToolResult.model_validate(result.tool_result) if result.tool_result else None


def _limit(tool: ToolResult) -> str:
    if tool.own_limit:
        return f"max_output_characters of tool '{tool.tool}'"
    return "tools.max_output_characters"


def step_result(
    step_id: str,
    answer: JsonMapping,
    as_json: bool,
    quotable: Mapping[str, str] = MappingProxyType({}),
) -> StepResult:
    """Return the result of the worker's answer to a step or the whole task; with `as_json`, the
    output is JSON text. `quotable` are the outputs that it may quote. Raises InvalidAnswer for a
    wrong quote."""
    output = answer["answer"] if "answer" in answer else answer["step_output"]
    quotes = answer.get("quotes")
    if quotes and as_json:
        raise InvalidAnswer([FieldError("/quotes", "JSON quotes nothing: give all of it")])
    if as_json:
        output = json.dumps(output, ensure_ascii=False, indent=2)
    elif quotes or quotable:
        output = join_quotes(output, quotes or (), quotable)
    return StepResult(
        step_id=step_id,
        step_output=output,
        is_json=as_json,
        clarity_state=answer.get("clarity_state"),
        clarity_reason=answer.get("clarity_reason"),
        handoff=answer.get("handoff_to_next"),
    )


def complete_with(step: PlanStep, text: str, tool: ToolResult | None = None) -> Worked:
    """Complete a step with an output, and its tool's result if there is one."""
    given = tool.model_dump(mode="json") if tool else None
    result = StepResult(step_id=step.step_id, step_output=text, tool_result=given)
    return Worked(finish_step(step, result), result)


def fail_with(
    step: PlanStep, message: str, *, tool: ToolResult | None = None, error: AeonError | None = None
) -> Worked:
    """Fail a step. The run continues, and later steps see the error, unless the provider is down
    (FR-054)."""
    given = tool.model_dump(mode="json") if tool else None
    result = StepResult(step_id=step.step_id, error=message, tool_result=given)
    failure = error if isinstance(error, LLMError) else None
    return Worked(fail_step(step, message), result, error=failure)


def remark_repeated(step: PlanStep, result: ToolResult) -> Remarks:
    """Return a remark for a tool that an earlier run was calling when it was cut off."""
    if not result.repeated:
        return ()
    return (("repeated_tool", f"Step {step.step_id}: tool '{result.tool}' {_AGAIN}"),)


def find_outage(error: AeonError | None) -> LLMError | None:
    """Return the error if it means that the next call would fail too."""
    return error if isinstance(error, LLMError) and error.ends_run else None


def find_common_error(errors: Sequence[LLMError | None]) -> LLMError | None:
    """Return the last error if all steps failed with the same kind; otherwise None."""
    kinds = {(type(error), getattr(error, "status", None)) for error in errors}
    return errors[-1] if len(kinds) == 1 else None


def remember_steps(memory: Memory, results: Iterable[StepResult]) -> None:
    """Store the outputs and hand-offs of steps in memory."""
    for result in results:
        memory.write(step_key(result.step_id, "output"), make_memory_value(result))
        memory.write(step_key(result.step_id, "handoff"), result.handoff)
