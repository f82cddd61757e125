"""What configures the roles that calls are made as, and the reasoning modes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from aeon.domain.request import Parameters, ReasoningMode, Role
from aeon.domain.values import OfRow, Value

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]
_LESS_THAN_MEDIUM: tuple[Effort, ...] = ("none", "minimal", "low")


class GenerationSettings(Value):
    """`roles.*` and `reasoning.*`: what overrides the provider's own model and parameters; None
    leaves them alone."""

    model: OfRow[str | None] = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1)
    effort: Effort | None = None

    @property
    def parameters(self) -> Parameters:
        """As generation parameters."""
        return Parameters(self.model, self.temperature, self.max_tokens, self.effort)


class RoleSettings(Value):
    """`roles`: who a call is made as. The judge need not be the worker."""

    planner: GenerationSettings = GenerationSettings.model_construct()
    worker: GenerationSettings = GenerationSettings.model_construct()
    grader: GenerationSettings = GenerationSettings.model_construct()
    repairer: GenerationSettings = GenerationSettings.model_construct()


class ReasoningSettings(Value):
    """`reasoning`: what each reasoning mode sets (FR-030). A role's own setting wins over the
    mode's."""

    shallow: GenerationSettings = GenerationSettings.model_construct()
    balanced: GenerationSettings = GenerationSettings.model_construct()
    deep: GenerationSettings = GenerationSettings.model_construct()


def parameters_for(
    roles: RoleSettings, reasoning: ReasoningSettings, role: Role, mode: ReasoningMode | None
) -> Parameters:
    """What a call of this role in this mode overrides: the role's settings over the mode's. An easy
    task does not make its judging easy: of the mode, the grader's effort is medium at least."""
    of_mode: GenerationSettings = getattr(reasoning, mode) if mode else GenerationSettings()
    if role == "grader" and of_mode.effort in _LESS_THAN_MEDIUM:
        of_mode = of_mode.model_copy(update={"effort": "medium"})
    of_role: GenerationSettings = getattr(roles, role)
    return of_role.parameters.over(of_mode.parameters)
