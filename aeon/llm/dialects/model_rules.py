"""Applies a preset's rules about models: fits parameters to one before a request is sent. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args
from urllib.parse import urlsplit

from aeon.domain.request import Parameters
from aeon.llm.prices import OPENAI
from aeon.llm.roles import Effort
from aeon.llm.settings import CacheMarks, EndpointSettings, ModelRule

_EFFORTS: tuple[str, ...] = get_args(Effort)


def find_rule(rules: Sequence[ModelRule], model: str) -> ModelRule | None:
    """Return the first rule for a model; None if there is none."""
    name = model.rpartition("/")[2].lower()
    return next((rule for rule in rules if rule.match.match(name)), None)


def fit_parameters(rule: ModelRule | None, given: Parameters) -> tuple[Parameters, dict[str, str]]:
    """Fit parameters to the rule for a model. Returns them and the messages for the user, by
    parameter.

    An effort for a model that accepts none is left out silently: reasoning modes set one for every
    model.
    """
    if rule is None:
        return given, {}
    changed: dict[str, str] = {}
    effort = _fit_effort(given.effort, rule)
    if effort not in (None, given.effort):
        changed["reasoning_effort"] = f"takes no effort {given.effort}: {effort} is sent"
    temperature = given.temperature
    if temperature is not None and not _takes_temperature(rule, effort):
        temperature = None
        reason = " unless its effort is none" if rule.temperature == "without_effort" else ""
        changed["temperature"] = f"takes no temperature{reason}: it is left out"
    return replace(given, effort=effort, temperature=temperature), changed


def find_cache_marks(settings: EndpointSettings, rule: ModelRule | None) -> CacheMarks | None:
    """Return how requests for a model mark prompts for the cache; None if they do not.

    With `prompt_cache` auto, the preset's rule for the model decides. The rules of `openai`
    describe OpenAI's own models and do not apply at another address.
    """
    if settings.prompt_cache == "off":
        return None
    if settings.prompt_cache != "auto":
        return settings.prompt_cache
    if rule is None or (settings.name == "openai" and not _is_openai(settings.base_url)):
        return None
    return rule.prompt_cache


def _is_openai(address: str | None) -> bool:
    """Whether an address belongs to OpenAI or one of its regions."""
    host = urlsplit(address or OPENAI).hostname or ""
    return f".{host}".endswith(".api.openai.com")


def may_reason(rule: ModelRule | None) -> bool:
    """Whether a model may reason, which is true unless a rule says that it accepts no effort."""
    return rule is None or rule.efforts != ()


def _fit_effort(effort: str | None, rule: ModelRule) -> str | None:
    """Return the nearest effort that the model accepts, the higher of two; None if it accepts
    none."""
    if effort is None or rule.efforts is None:
        return effort
    asked = _EFFORTS.index(effort) if effort in _EFFORTS else 0

    def distance(allowed: str) -> tuple[int, int]:
        rank = _EFFORTS.index(allowed)
        return abs(rank - asked), -rank

    return min(rule.efforts, key=distance, default=None)


def _takes_temperature(rule: ModelRule, effort: str | None) -> bool:
    if rule.temperature == "without_effort":
        return effort in (None, "none")
    return rule.temperature == "taken"
