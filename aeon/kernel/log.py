"""What a run's model, supervisor and tools have said so far: the part of its state that events tell of (FR-011)."""

from __future__ import annotations

from typing import Any

from aeon.domain.events import CallAnswered, Event, Recorded, RepairFinished, ToolCalled
from aeon.domain.history import LLMOutput


class RunLog:
    """A subscriber; what it has heard may be asked for at any time, from any thread, in order of dispatch."""

    def __init__(self) -> None:
        self._heard: list[Recorded] = []

    def __call__(self, recorded: Recorded) -> None:
        """Keep an answer of the model, a repair or a call of a tool."""
        if isinstance(recorded.event, CallAnswered | RepairFinished | ToolCalled):
            self._heard.append(recorded)

    @property
    def has_answers(self) -> bool:
        """Whether anything that was asked has answered, a model or a tool."""
        return any(_has_answered(recorded.event) for recorded in tuple(self._heard))

    def clear(self) -> None:
        """Forget everything: another run begins."""
        self._heard.clear()

    def fields(self) -> dict[str, Any]:
        """What it has heard, as fields of a RunState."""
        heard = [r.event for r in sorted(self._heard, key=lambda r: (r.sequence, r.part))]
        return {
            "llm_outputs": tuple(_output(event) for event in heard if isinstance(event, CallAnswered)),
            "supervisor_actions": tuple(event.record for event in heard if isinstance(event, RepairFinished)),
            "tool_history": tuple(event.result for event in heard if isinstance(event, ToolCalled)),
        }


def _has_answered(event: Event) -> bool:
    return isinstance(event, CallAnswered) or (isinstance(event, ToolCalled) and event.result.error is None)


def _output(event: CallAnswered) -> LLMOutput:
    return LLMOutput(call=event.call, cycle=event.site.cycle, step_id=event.site.step_id, text=event.text)
