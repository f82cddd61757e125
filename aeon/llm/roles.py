"""Settings of the roles that make calls, and of the reasoning modes."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal, get_args

from pydantic import Field

from aeon.domain.request import Parameters, ReasoningMode, Role
from aeon.domain.values import OfRow, Value

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]
Temperature = Annotated[float, Field(ge=0, le=2)]
Count = Annotated[int, Field(ge=1)]
_LESS_THAN_MEDIUM: tuple[Effort, ...] = ("none", "minimal", "low")


class GenerationSettings(Value):
    """`roles.*` and `reasoning.*`: overrides of the provider's model and parameters; None keeps the
    provider's."""

    model: OfRow[str | None] = None
    temperature: Temperature | None = None
    max_tokens: Count | None = None
    effort: Effort | None = None

    @property
    def parameters(self) -> Parameters:
        """The settings as generation parameters."""
        return Parameters(self.model, self.temperature, self.max_tokens, self.effort)


class RoleSettings(Value):
    """`roles`: the settings of each role that makes calls. Set `grader.model` to use a different
    model as the judge."""

    # Constructed, not validated: defaults are right, and every start would wait for it.
    planner: GenerationSettings = GenerationSettings.model_construct()
    worker: GenerationSettings = GenerationSettings.model_construct()
    grader: GenerationSettings = GenerationSettings.model_construct()
    repairer: GenerationSettings = GenerationSettings.model_construct()


class ReasoningSettings(Value):
    """`reasoning`: the settings of each reasoning mode (FR-030). A role's own settings override the
    mode's."""

    shallow: GenerationSettings = GenerationSettings.model_construct()
    balanced: GenerationSettings = GenerationSettings.model_construct()
    deep: GenerationSettings = GenerationSettings.model_construct()


def apply_mode(
    roles: RoleSettings, reasoning: ReasoningSettings, mode: ReasoningMode | None
) -> RoleSettings:
    """Return the settings of the roles in a reasoning mode, for calls that have none of their own."""
    given = {role: parameters_for(roles, reasoning, role, mode) for role in get_args(Role)}
    return RoleSettings.model_validate({role: asdict(one) for role, one in given.items()})


def parameters_for(
    roles: RoleSettings, reasoning: ReasoningSettings, role: Role, mode: ReasoningMode | None
) -> Parameters:
    """Return the overrides of a call: its role's settings over its reasoning mode's. For the
    grader, the mode's effort is at least medium, because an easy task is not easy to judge."""
    of_mode: GenerationSettings = getattr(reasoning, mode) if mode else GenerationSettings()
    if role == "grader" and of_mode.effort in _LESS_THAN_MEDIUM:
        of_mode = of_mode.model_copy(update={"effort": "medium"})
    of_role: GenerationSettings = getattr(roles, role)
    return of_role.parameters.over(of_mode.parameters)
