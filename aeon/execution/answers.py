"""What was answered in a run, read from its events."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from aeon.domain.events import CallAnswered, Recorded, RepairFinished, ToolCalled
from aeon.domain.history import LLMOutput


class Answers:
    """What model, supervisor and tools answered in a run."""

    def __init__(self) -> None:
        self._recorded: list[Recorded] = []

    def note(self, recorded: Recorded) -> None:
        """Keep an event that is an answer."""
        if isinstance(recorded.event, CallAnswered | RepairFinished | ToolCalled):
            self._recorded.append(recorded)

    @property
    def are_of_model(self) -> bool:
        """Whether the model has answered at all."""
        return any(isinstance(recorded.event, CallAnswered) for recorded in self._recorded)

    def by_kind(self) -> dict[str, tuple[Any, ...]]:
        """The answers by their field of `RunState`, in order of dispatch."""
        found = [each.event for each in sorted(self._recorded, key=attrgetter("sequence", "part"))]
        outputs = (event for event in found if isinstance(event, CallAnswered))
        return {
            "llm_outputs": tuple(
                LLMOutput(
                    call=event.call,
                    cycle=event.site.cycle,
                    step_id=event.site.step_id,
                    text=event.text,
                )
                for event in outputs
            ),
            "supervisor_actions": tuple(
                event.record for event in found if isinstance(event, RepairFinished)
            ),
            "tool_history": tuple(event.result for event in found if isinstance(event, ToolCalled)),
        }
