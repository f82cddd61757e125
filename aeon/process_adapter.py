"""Settings -> what answers the calls of a process: a provider's endpoints, an adapter of one's own, or a recording."""

from __future__ import annotations

from collections.abc import Mapping

from aeon.config import Settings, recorded_origin, resolve_provider
from aeon.errors import ConfigError
from aeon.llm import stack
from aeon.llm.adapters.custom import describe_given
from aeon.llm.interface import LLMAdapter
from aeon.llm.settings import CustomProvider, SimulatedProvider


def settle_provider(settings: Settings, environ: Mapping[str, str], own: LLMAdapter | None = None) -> Settings:
    """The settings with a definite provider; `own` is an adapter that is asked instead. Raises ConfigError."""
    if own is not None:
        settings = settings.model_copy(update={"provider": describe_given(own, settings.provider)})
    return resolve_provider(settings, environ)


def build_adapter(settings: Settings, environ: Mapping[str, str], own: LLMAdapter | None = None) -> stack.Endpoints:
    """What is asked; `own` stays the caller's. A replay calls no model: it needs no key, and loads no adapter.

    Raises ConfigError for an adapter that cannot be had, or that calls no model where `env=prod` asks for one.
    """
    if settings.store.mode == "replay":
        return stack.absent_stack(settings.provider)
    made = stack.process_stack(settings.provider, environ, own)
    if settings.env == "prod" and is_synthetic(settings, made):
        made.close()
        raise ConfigError(
            f"provider={settings.provider.kind}: env=prod calls a real model, and this adapter says that it calls none",
            hint="Use env=dev for trying things out.",
        )
    return made


def is_synthetic(settings: Settings, adapter: stack.Endpoints) -> bool:
    """Whether no model is called; of an adapter of one's own that a replay does not load, the recording says it."""
    if settings.store.mode == "replay" and isinstance(settings.provider, CustomProvider):
        recorded = recorded_origin(settings)
        return recorded is not None and recorded.synthetic
    return isinstance(settings.provider, SimulatedProvider) or adapter.synthetic
