"""Where a run comes from: what `run.json` says of it, the run whose answers it uses again, and what that saved."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aeon.app.ancestors import Ancestors, find_ancestors
from aeon.app.wiring import Process
from aeon.config.origin import Composition, FileOrigin, Origin, ParentOrigin, ProviderOrigin, digest_of
from aeon.config.recompose import check_visible, held_back, left_out, recordable
from aeon.config.recorded import key_of
from aeon.config.settings import Settings, configuration_hash, recorded_origin
from aeon.domain.errors import ConfigError, StoreFailed
from aeon.domain.plan import Plan
from aeon.domain.request import Usage
from aeon.domain.result import ParentRun, Saved, versions
from aeon.llm.prices import price_book
from aeon.llm.settings import CustomProvider
from aeon.store.opening import open_source, shared_store, store_in
from aeon.store.session import Session

_NOTHING_TO_RESUME = "Without them there is nothing to resume: start the run again."
_DECIDE_WHAT_IS_ASKED = (
    "plan_file",
    "convergence.criteria_file",
    "memory.entries_file",
    "answer.schema",
    "provider.scenario",
)


@dataclass(frozen=True, slots=True)
class Work:
    """What a run is to do. `plan` is a person's; `task_in_plan` says that the task stood in it."""

    task: str
    inputs: Mapping[str, str]
    context: dict[str, Any] | None = None
    plan: Plan | None = None
    task_in_plan: bool = False


@dataclass(frozen=True, slots=True)
class Parent:
    """The run that is resumed: its directory, absolute, where it comes from, and the runs that it stands on itself."""

    path: Path
    origin: Origin
    ancestors: Ancestors = field(default_factory=Ancestors)

    @property
    def directories(self) -> tuple[Path, ...]:
        """Where answers are, nearest first."""
        return (self.path, *(Path(run.path) for run in self.ancestors.found))


def parent_of(settings: Settings, composition: Composition | None = None) -> Parent | None:
    """The run that `resume` names, once it is sure that it can be resumed; None without one.

    Raises ConfigError, also when `composition` was made without what `resume` or a replay names.
    """
    if composition is not None:
        check_visible(settings.resume, settings.store.path if settings.store.mode == "replay" else None, composition)
    origin = recorded_origin(settings)
    if settings.resume is None or origin is None:
        return None
    named = f"resume={settings.resume}"
    path = settings.resume.expanduser().absolute()
    _refuse_modes(named, path, origin.store_mode, settings.store.mode)
    ancestors = find_ancestors(path, origin, settings.store.backend)
    try:
        open_source(path, settings.store.backend).close()
    except StoreFailed as error:
        hint = _without_store(error, ancestors)
        raise ConfigError(f"{named}: its answers cannot be had: {error.message}", hint=hint) from None
    return Parent(path, origin, ancestors)


def import_own_modules_from(parent: Parent | None, settings: Settings) -> None:
    """Let one's own tools and adapter be imported from where the run that is resumed imported them: its working
    directory."""
    named = settings.tools.functions or isinstance(settings.provider, CustomProvider)
    if parent is not None and named and parent.origin.working_directory not in sys.path:
        sys.path.append(parent.origin.working_directory)


def _refuse_modes(named: str, path: Path, recorded: str, now: str) -> None:
    if recorded == "off":
        raise ConfigError(
            f"{named}: this run kept no answers (store.mode=off)", hint="Start it again; store.mode=record keeps them."
        )
    if recorded == "replay":
        raise ConfigError(
            f"{named}: this run is a replay, in which nothing was called",
            hint="Replay the recording again (store.mode=replay store.path=...), or resume the run that was recorded.",
        )
    if now == "off":
        raise ConfigError(f"{named} store.mode=off: a resumed run keeps its answers", hint="Leave store.mode away.")
    if now == "replay":
        raise ConfigError(
            f"{named} store.mode=replay: a resumed run calls what is not answered yet, a replay never calls",
            hint=f"To run it from its answers alone: store.mode=replay store.path={path}",
        )


def _without_store(error: StoreFailed, ancestors: Ancestors) -> str:
    nearest = ancestors.found[0].path if ancestors.found else None
    instead = f"The run that it resumed can be: resume={nearest}" if nearest else _NOTHING_TO_RESUME
    return f"{error.hint} {instead}".strip()


def advised(error: ConfigError, parent: Parent | None, settings: Settings, environ: Mapping[str, str]) -> ConfigError:
    """The error; where a run is resumed and its provider's key is missing, with what can be had without one."""
    key = getattr(settings.provider, "api_key_env", None)
    if parent is None or not key or key not in error.message or environ.get(key):
        return error
    without = f"What its answers alone come to needs no key: store.mode=replay store.path={parent.path}"
    return ConfigError(error.message, hint=f"{error.hint} {without}".strip())


def warnings(parent: Parent | None, shared: Process, composition: Composition | None = None) -> Iterator[str]:
    """What has changed since the run that is resumed, so that calls may differ from it and be made again."""
    if parent is None:
        return
    for run in parent.ancestors.gone:
        yield (
            f"the run {run.run_id}, which {parent.path} goes on with, is gone (it was {run.path}): "
            "what only it had been answered is asked again"
        )
    for key in left_out(parent.origin, composition) if composition else ():
        yield f"{key} was said of another provider than today's: it is not taken over from {parent.path}"
    for key in parent.origin.changed_files():
        before = parent.origin.files[key]
        if _file(shared.settings, key) == Path(before.path):
            yield f"{key}={before.path} has changed since {parent.path}: what it changes is asked again"
    for name, digest in (("prompts", shared.prompts_digest), ("schemas", shared.schemas_digest)):
        if parent.origin.hashes.get(name, digest) != digest:
            yield f"the {name} have changed since {parent.path}: what they change is asked again"


def held_back_warnings(settings: Settings, composition: Composition | None) -> Iterator[str]:
    """What the cassette that is replayed was recorded with, and is not taken from it; for settings that were not
    composed nothing is."""
    if settings.store.mode != "replay" or settings.store.path is None or composition is None:
        return
    for key in held_back(settings.store.path, composition):
        yield (
            f"the recording was made with {key}, which is not taken from a cassette: "
            "give it again to use it, if you trust it; without it requests may differ from those recorded"
        )


def origin_of(
    run_id: str,
    shared: Process,
    work: Work,
    composition: Composition | None,
    parent: Parent | None,
    started: str,
    directory: Path,
) -> Origin:
    """What `run.json` in `directory` says of a run that is about to begin."""
    settings = shared.settings
    overrides = _overrides(composition, settings) if composition else None
    provider = settings.provider
    files = {key: path for key in _DECIDE_WHAT_IS_ASKED if (path := _file(settings, key)) is not None}
    return Origin(
        run_id=run_id,
        directory=str(directory.absolute()),
        parent=ParentOrigin(path=str(parent.path), run_id=parent.origin.run_id) if parent else None,
        ancestors=(*parent.ancestors.found, *parent.ancestors.gone) if parent else (),
        overrides=overrides,
        config_dir=str(composition.config_dir) if composition and composition.config_dir else None,
        config_name=composition.config_name if composition else Composition().config_name,
        task=work.task,
        task_in_plan=work.task_in_plan,
        inputs=dict(work.inputs),
        context=work.context,
        provider=ProviderOrigin(
            kind=provider.kind,
            model=provider.model,
            base_url=getattr(provider, "base_url", None),
            api_key_env=getattr(provider, "api_key_env", None),
            adapter=getattr(provider, "adapter", None),
        ),
        synthetic=shared.synthetic,
        store_mode=settings.store.mode,
        working_directory=str(Path.cwd()),
        paths=_relative_paths(settings),
        files={
            key: FileOrigin(path=str(path), sha256=digest) for key, path in files.items() if (digest := digest_of(path))
        },
        hashes={
            "prompts": shared.prompts_digest,
            "schemas": shared.schemas_digest,
            "configuration": configuration_hash(settings),
        },
        versions=versions(),
        started=started,
    )


def _answering_path(settings: Settings) -> Path:
    """The recording of a replay, or the store that runs share."""
    path = settings.store.path
    return path.expanduser() if path is not None else shared_store(settings.store)


def report(
    settings: Settings, parent: Parent | None, session: Session, of_multirun: Path | None = None
) -> ParentRun | None:
    """What a run was answered from and what that saved; None for a run that could be answered from nowhere."""
    if parent is not None:
        path, run_id = parent.path, parent.origin.run_id
    elif settings.store.mode in ("cache", "replay"):
        path, run_id = _answering_path(settings).absolute(), None
    elif of_multirun is not None and settings.store.mode == "record" and settings.store.share_in_multirun:
        path, run_id = store_in(of_multirun, settings.store.backend), None
    else:
        return None
    saved = session.saved
    usage = sum(saved.usage.values(), Usage())
    prices = price_book(settings.provider)
    costs = [prices.cost(of_model, answered=model) for model, of_model in sorted(saved.usage.items())]
    return ParentRun(
        path=str(path),
        run_id=run_id,
        saved=Saved(
            model_calls=saved.model_calls,
            tool_calls=saved.tool_calls,
            person_answers=saved.person_answers,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            total_tokens=usage.total_tokens,
            cost=None if not costs or None in costs else sum(cost for cost in costs if cost is not None),
        ),
        differing=session.differing,
    )


def _overrides(composition: Composition, settings: Settings) -> tuple[str, ...]:
    """The overrides to record; a task or inputs that a configuration file gives are recorded apart, as texts."""
    given = {key_of(text).partition(".")[0] for text in composition.overrides}
    texts = [f"{name}=null" for name in ("task", "task_file") if getattr(settings, name) and name not in given]
    materials = [f"~{name}" for name in ("inputs", "input_files") if getattr(settings, name) and name not in given]
    return (*recordable(composition.overrides), *texts, *materials)


def _relative_paths(settings: Settings) -> dict[str, str]:
    """The relative paths among the settings, absolute, by key; what a run is given is recorded apart."""
    paths = dict(_paths(settings.model_dump(by_alias=True)))
    return {key: str(path.absolute()) for key, path in paths.items() if recordable([key]) and not path.is_absolute()}


def _paths(value: Any, prefix: str = "") -> Iterator[tuple[str, Path]]:
    """Every path among the settings, by its dotted key."""
    for name, item in value.items():
        if isinstance(item, Path):
            yield f"{prefix}{name}", item
        elif isinstance(item, dict):
            yield from _paths(item, f"{prefix}{name}.")


def _file(settings: Settings, key: str) -> Path | None:
    """The file that a key of the settings names, absolute."""
    value: Any = settings
    for name in ("answer.schema_file" if key == "answer.schema" else key).split("."):
        value = getattr(value, name, None)
    return value.expanduser().absolute() if isinstance(value, Path) else None
