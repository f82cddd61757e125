"""Events as JSON: what of each event stands in its line, and the model that line follows."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Literal, get_type_hints

from pydantic import create_model

from aeon.domain import events
from aeon.domain.events import CallAnswered, CycleStarted, Event, Recorded, Refined
from aeon.domain.plan import PlanStep
from aeon.domain.refinement import RefinementAction, RefinementRecord, StepChange
from aeon.domain.values import Value

LEFT_OUT: dict[type[Event], frozenset[str]] = {
    CycleStarted: frozenset({"plan"}),
    CallAnswered: frozenset({"request", "text"}),
    Refined: frozenset({"plan"}),
}


def event_types() -> tuple[type[Event], ...]:
    """Every kind of event there is, in the order `aeon.domain.events` defines them."""
    named = (value for value in vars(events).values() if isinstance(value, type))
    return tuple(kind for kind in named if issubclass(kind, Event) and kind is not Event)


def event_name(kind: type[Event]) -> str:
    """The name of an event in a line: `PassStarted` is `pass_started`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


_models: dict[type[Event], type[Value]] = {}


def line_model(kind: type[Event]) -> type[Value]:
    """The model of an event's line: its number and time, its name, and its fields but those that `LEFT_OUT` names."""
    if kind not in _models:
        _models[kind] = _line_model(kind)
    return _models[kind]


def _line_model(kind: type[Event]) -> type[Value]:
    hints = get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind) if field.name not in LEFT_OUT.get(kind, ())]
    fields: dict[str, Any] = {
        "sequence": (int, ...),
        "part": (int, ...),
        "time": (str, ...),
        "event": (Literal[event_name(kind)], ...),
        **{name: (hints[name], ...) for name in names},
    }
    if kind is CallAnswered:
        fields["characters"] = (int, ...)
    return create_model(kind.__name__, __base__=Value, __doc__=kind.__doc__, **fields)


def event_line(recorded: Recorded) -> dict[str, Any]:
    """An event as the JSON object of its line.

    Long texts stand where they are made and nowhere else: a step's `incoming_context`, which repeats the outputs of
    other steps, is null here, so that the lines of a run grow with the run and not with its square.
    """
    event = recorded.event
    model = line_model(type(event))
    values = {name: _shortened(getattr(event, name)) for name in model.model_fields if hasattr(event, name)}
    values |= {"sequence": recorded.sequence, "part": recorded.part, "time": recorded.time}
    values["event"] = event_name(type(event))
    if isinstance(event, CallAnswered):
        values["characters"] = len(event.text)
    return model.model_construct(**values).model_dump(mode="json", warnings="none")


def _shortened(value: Any) -> Any:
    if isinstance(value, PlanStep):
        return _without_context(value)
    return _short_refinement(value) if isinstance(value, RefinementRecord) else value


def _short_refinement(record: RefinementRecord) -> RefinementRecord:
    supervisor = record.supervisor
    if supervisor is not None:
        supervisor = supervisor.model_copy(update={"repairs": tuple(map(_short_action, supervisor.repairs))})
    refused = (refusal.model_copy(update={"action": _short_action(refusal.action)}) for refusal in record.refused)
    short: dict[str, Any] = {
        "accepted": tuple(map(_short_action, record.accepted)),
        "refused": tuple(refused),
        "changes": tuple(map(_short_change, record.changes)),
        "supervisor": supervisor,
    }
    return record.model_copy(update=short)


def _short_action(action: RefinementAction) -> RefinementAction:
    return action.model_copy(update={"new_step": _without_context(action.new_step)})


def _short_change(change: StepChange) -> StepChange:
    steps = {"before": _without_context(change.before), "after": _without_context(change.after)}
    return change.model_copy(update=steps)


def _without_context(step: PlanStep | None) -> PlanStep | None:
    return step if step is None else step.model_copy(update={"incoming_context": None})
