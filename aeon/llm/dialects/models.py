"""What a model takes, by the rules that a preset has for its provider's models (`provider.models`). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

from aeon.domain.request import Parameters
from aeon.llm.roles import Effort
from aeon.llm.settings import ModelRule

EFFORTS: tuple[str, ...] = get_args(Effort)


@dataclass(frozen=True, slots=True)
class Fitted:
    """Parameters as a model takes them, and in `changed` what a person should know of the difference, by parameter."""

    parameters: Parameters
    changed: tuple[tuple[str, str], ...] = ()


def fit_parameters(rules: Sequence[ModelRule], model: str, parameters: Parameters) -> Fitted:
    """The parameters without what the model is known not to take, the effort moved to the nearest that it takes.

    The first rule that matches the start of the model's name, behind its last slash, holds; without one nothing is
    changed. An effort for a model that takes none is left out silently: reasoning modes set one for every model.
    """
    name = model.rpartition("/")[2].lower()
    rule = next((rule for rule in rules if rule.match.match(name)), None)
    if rule is None:
        return Fitted(parameters)
    changed: list[tuple[str, str]] = []
    effort = _nearest_effort(parameters.effort, rule.efforts)
    if effort is not None and effort != parameters.effort:
        changed.append(("reasoning_effort", f"takes no effort {parameters.effort}: {effort} is sent"))
    temperature = parameters.temperature if _takes_temperature(rule, effort) else None
    if temperature != parameters.temperature:
        reason = " unless its effort is none" if rule.temperature == "without_effort" else ""
        changed.append(("temperature", f"takes no temperature{reason}: it is left out"))
    return Fitted(replace(parameters, effort=effort, temperature=temperature), tuple(changed))


def _takes_temperature(rule: ModelRule, effort: str | None) -> bool:
    return rule.temperature == "taken" or (rule.temperature == "without_effort" and effort in (None, "none"))


def _nearest_effort(effort: str | None, allowed: Sequence[str] | None) -> str | None:
    """The allowed effort that is nearest, of two the higher; None where none is allowed."""
    if effort is None or allowed is None:
        return effort
    wanted = EFFORTS.index(effort) if effort in EFFORTS else 0
    return min(allowed, key=lambda value: (abs(EFFORTS.index(value) - wanted), -EFFORTS.index(value)), default=None)
