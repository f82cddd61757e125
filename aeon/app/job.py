"""The parts of a configuration's runs, resolved once from its settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from aeon.config.compose.literal import Composition
from aeon.config.load import find_recorded_origin, read_inputs, read_task, require_task
from aeon.config.origin import Origin
from aeon.config.provider import resolve_provider
from aeon.config.settings import Settings
from aeon.domain.errors import ConfigError
from aeon.domain.request import InputFile, select_files, show_inputs
from aeon.files.text import require_unicode
from aeon.llm.prices import AnyEndpoint, name_endpoints
from aeon.llm.settings import LocalProvider, SimulatedProvider

if TYPE_CHECKING:
    from openai import OpenAI

    from aeon.domain.request import LLMAdapter
    from aeon.memory.interface import Memory
    from aeon.tools.registry import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnParts:
    """Objects that a program passes in Python to replace configured ones; the caller closes
    them."""

    adapter: LLMAdapter | None = None
    client: OpenAI | None = None
    memory: Memory | None = None
    tools: Sequence[Tool] = ()
    components: Mapping[str, object] = field(default_factory=dict)


NO_PARTS = OwnParts()
GivenInput = str | bytes | Path
"""An input as a program gives it: a text, or a file by its bytes or its path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The parts of a configuration's runs.

    `chosen` are the settings as they were composed, which `run.json` records; `settings` are those
    in force, with a definite provider and the program's `own` parts. `composition` records how they
    were composed, None for settings made in a program. `origin` is that of the run that is resumed
    or replayed. `task`, `inputs` and `files`, the inputs that are files for the model, are the
    defaults of a run; without a `task` the plan file has it.
    """

    chosen: Settings
    settings: Settings
    composition: Composition | None = None
    origin: Origin | None = None
    task: str | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, InputFile] = field(default_factory=dict)
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
        inputs=show_inputs(inputs),
        files=select_files(inputs),
        own=own,
    )


def read_given(inputs: Mapping[str, GivenInput], settings: Settings) -> dict[str, str | InputFile]:
    """Read inputs that a program passes: texts unchanged; a path or bytes as `input_files` would be
    read. Raises TaskTextError and ConfigError."""
    return {name: _read_one(name, given, settings) for name, given in inputs.items()}


def _read_one(name: str, given: GivenInput, settings: Settings) -> str | InputFile:
    if isinstance(given, str) or not isinstance(given, Path | bytes):
        return require_unicode(given, f"inputs.{name}")
    from aeon.files.inputs.reading import ReadingLimits, make_input, read_input

    limits = ReadingLimits(settings.input_max_bytes, settings.input_max_characters)
    as_text = name in settings.input_as
    if isinstance(given, Path):
        return read_input(name, given, limits, as_text=as_text)
    return make_input(name, given, f"inputs.{name}", limits, as_text=as_text)


def require_accepted(files: Mapping[str, InputFile], settings: Settings) -> None:
    """Raise ConfigError for a file whose form an endpoint of the provider does not accept."""
    if settings.store.mode == "replay":
        return
    for name, file in files.items():
        for named, endpoint in name_endpoints(settings.provider):
            if file.form not in endpoint.accepts:
                raise ConfigError(
                    f"input_files.{name}: {_refuse_form(named, endpoint, file)}",
                    hint=_hint_at_form(endpoint, file),
                )


def _refuse_form(named: str, endpoint: AnyEndpoint, file: InputFile) -> str:
    if isinstance(endpoint, SimulatedProvider):
        return f"provider=simulated calls no model: it reads no {file.noun}"
    if isinstance(endpoint, LocalProvider):
        return f"provider=local reads text alone: it takes no {file.noun}"
    return f"provider {named} is not known to take {file.noun} files (provider.accepts)"


def _hint_at_form(endpoint: AnyEndpoint, file: InputFile) -> str:
    as_text = f"input_as.{file.name}=text gives the model its text. " if file.form == "pdf" else ""
    if isinstance(endpoint, LocalProvider):
        return as_text or "Use a provider whose models take it, such as provider=openai."
    forms = ",".join((*endpoint.accepts, file.form))
    if isinstance(endpoint, SimulatedProvider):
        tried = f"provider=simulated 'provider.accepts=[{forms}]'"
        return f"{as_text}To try everything else with the file unread: {tried}"
    return f"{as_text}If all models that are asked take them: 'provider.accepts=[{forms}]'"


def _describe_own(settings: Settings, own: OwnParts) -> Settings:
    """Return the settings with the provider and the components described by the program's own
    parts."""
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
    """Return the settings as a run records them: an adapter passed in Python is left out, since it
    has to be passed again."""
    if adapter is None:
        return settings
    from aeon.llm.custom import describe_given
    from aeon.llm.settings import NO_NAME, CustomProvider

    chosen = settings.provider.model if isinstance(settings.provider, CustomProvider) else NO_NAME
    unnamed = describe_given(adapter, settings.provider).model_copy(
        update={"adapter": None, "model": chosen}
    )
    return settings.model_copy(update={"provider": unnamed})
