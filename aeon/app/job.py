"""What the runs of one configuration are made of, resolved once from its settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aeon.config.compose.literal import Composition
from aeon.config.load import find_recorded_origin, read_inputs, read_task, require_task
from aeon.config.origin import Origin
from aeon.config.provider import resolve_provider
from aeon.config.settings import Settings
from aeon.domain.errors import ConfigError

if TYPE_CHECKING:
    from openai import OpenAI

    from aeon.domain.request import LLMAdapter
    from aeon.memory.interface import Memory
    from aeon.tools.registry import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnParts:
    """What a program gives in Python in place of what is configured; all of it stays the
    caller's."""

    adapter: LLMAdapter | None = None
    client: OpenAI | None = None
    memory: Memory | None = None
    tools: Sequence[Tool] = ()
    components: Mapping[str, object] = field(default_factory=dict)


NO_PARTS = OwnParts()


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What the runs of one configuration are made of.

    `chosen` are the settings as they were composed, which `run.json` records; `settings` are those
    in force, with a definite provider and a program's `own` parts. `composition` is what they were
    composed of, None for settings made in a program. `origin` is that of the run that is resumed or
    replayed. `task` and `inputs` are the texts of a run that is given no others; without a `task`
    the plan file has it.
    """

    chosen: Settings
    settings: Settings
    composition: Composition | None = None
    origin: Origin | None = None
    task: str | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    own: OwnParts = NO_PARTS


def resolve_job(
    settings: Settings,
    environ: Mapping[str, str],
    composition: Composition | None = None,
    own: OwnParts = NO_PARTS,
    *,
    needs_task: bool = False,
) -> Job:
    """Read the texts and the origin that the settings name, and settle the provider. With
    `needs_task`, settings without a task are refused. Raises ConfigError and TaskTextError."""
    origin = find_recorded_origin(settings)
    task = read_task(settings, origin)
    if needs_task and task is None:
        require_task(settings)
    inputs = read_inputs(settings, origin)
    if own.memory is not None:
        packaged = settings.components.model_copy(update={"memory": None})
        settings = settings.model_copy(update={"components": packaged})
    in_force = resolve_provider(_describe_own(settings, own), environ, origin)
    return Job(
        chosen=_without_adapter(settings, own.adapter),
        settings=in_force,
        composition=composition,
        origin=origin,
        task=task,
        inputs=inputs,
        own=own,
    )


def _describe_own(settings: Settings, own: OwnParts) -> Settings:
    """The settings with the provider and the components that a program's own parts are."""
    provider = settings.provider
    components = settings.components
    if own.adapter is not None and own.client is not None:
        raise ConfigError("adapter= and client= are both given: one of them answers")
    if own.adapter is not None:
        from aeon.llm.custom import describe_given

        provider = describe_given(own.adapter, provider)
    if own.client is not None:
        from aeon.llm.openai.own_client import describe_client

        provider = describe_client(own.client, provider)
    if own.components:
        from aeon.refinement.own_components import describe_components

        components = components.model_copy(update=describe_components(own.components))
    return settings.model_copy(update={"provider": provider, "components": components})


def _without_adapter(settings: Settings, adapter: LLMAdapter | None) -> Settings:
    """The settings as a run records them: where an adapter was given in Python, those of one that
    is still to be given."""
    if adapter is None:
        return settings
    from aeon.llm.custom import describe_given
    from aeon.llm.settings import NO_NAME, CustomProvider

    chosen = settings.provider.model if isinstance(settings.provider, CustomProvider) else NO_NAME
    unnamed = describe_given(adapter, settings.provider).model_copy(
        update={"adapter": None, "model": chosen}
    )
    return settings.model_copy(update={"provider": unnamed})
