"""Settings of the sinks of a run's events."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, JsonValue, model_validator

from aeon.domain.values import StartsCode, Value


class SinkSettings(Value):
    """A sink that you bring: `sink` is `package.module:object`, called with `options` as keyword
    arguments.

    Without options it is written `NAME: package.module:object`.
    """

    sink: str
    options: dict[str, JsonValue] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _from_reference(cls, given: object) -> Any:
        return {"sink": given} if isinstance(given, str) else given


PlanStateForm = Literal["auto", "full", "delta"]


class ObservabilitySettings(Value):
    """`observability`: where a run's events go, besides its result.

    `events` is `events.jsonl`, the events as they happened; `cycles` is `cycles.jsonl`, every LLM
    cycle with its plan, raw answer and repairs; `plan_state` says whether each of its lines has the
    complete plan; `report` is `report.html`, the page of the run; `otel` sends traces and metrics
    as the `OTEL_*` variables configure; `sinks` are your own, by name. No result depends on
    `plan_state`, `report`, `otel` and `sinks`, so they are in no artefact and no hash.
    """

    events: bool = True
    cycles: bool = True
    plan_state: PlanStateForm = Field(default="auto", exclude=True)
    report: bool = Field(default=True, exclude=True)
    otel: bool = Field(default=False, exclude=True)
    sinks: StartsCode[dict[str, SinkSettings]] = Field(default_factory=dict, exclude=True)
