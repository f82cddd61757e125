"""Collects the answers given in a run from its events."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, NamedTuple

from aeon.domain.checks import ToolResult
from aeon.domain.events import CallAnswered, Event, Recorded, RepairFinished, ToolCalled
from aeon.domain.history import LLMOutput
from aeon.domain.refinement import RepairRecord


class _Answer(NamedTuple):
    sequence: int
    part: int
    value: LLMOutput | RepairRecord | ToolResult


class AnswerCollector:
    """Collects the answers of model, supervisor and tools in a run, without their requests: prompts
    grow with the run."""

    def __init__(self) -> None:
        self._answers: list[_Answer] = []
        self.are_of_model = False
        """Whether the model has answered at all."""

    def note(self, recorded: Recorded) -> None:
        """Store the answer in an event, if it has one."""
        value = _read(recorded.event)
        if value is not None:
            self.are_of_model = self.are_of_model or isinstance(value, LLMOutput)
            self._answers.append(_Answer(recorded.sequence, recorded.part, value))

    def by_kind(self) -> dict[str, tuple[Any, ...]]:
        """Return the answers by their field of `RunState`, in order of dispatch."""
        ordered = sorted(self._answers, key=attrgetter("sequence", "part"))
        values = [answer.value for answer in ordered]
        return {
            "llm_outputs": tuple(value for value in values if isinstance(value, LLMOutput)),
            "supervisor_actions": tuple(v for v in values if isinstance(v, RepairRecord)),
            "tool_history": tuple(value for value in values if isinstance(value, ToolResult)),
        }


def _read(event: Event) -> LLMOutput | RepairRecord | ToolResult | None:
    if isinstance(event, CallAnswered):
        site = event.site
        return LLMOutput(call=event.call, cycle=site.cycle, step_id=site.step_id, text=event.text)
    if isinstance(event, RepairFinished):
        return event.record
    return event.result if isinstance(event, ToolCalled) else None
