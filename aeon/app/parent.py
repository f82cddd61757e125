"""The run that is resumed: its answers, those of the runs that it stands on itself, and what has changed since.

A resumed run that was killed early has hardly an answer of its own; what was paid for is in the runs before it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from aeon.app.process import Process
from aeon.config import origin as origins
from aeon.config.load import find_recorded_origin
from aeon.config.origin import Composition, Origin, ParentOrigin
from aeon.config.recompose import check_visible, find_held_back, find_left_out
from aeon.config.settings import Settings, named_file
from aeon.domain.errors import ConfigError, StoreFailed
from aeon.files.reference import search_for_modules
from aeon.llm.settings import CustomProvider, EndpointSettings
from aeon.store.opening import open_source


@dataclass(frozen=True, slots=True)
class Parent:
    """The run that is resumed: its directory, absolute, and its origin.

    `ancestors` are the earlier runs, nearest first, whose answers can be read, where they are now; `gone` are the
    others.
    """

    path: Path
    origin: Origin
    ancestors: tuple[ParentOrigin, ...] = ()
    gone: tuple[ParentOrigin, ...] = ()

    @property
    def directories(self) -> tuple[Path, ...]:
        """Where answers are, nearest first."""
        return (self.path, *(Path(run.path) for run in self.ancestors))


def find_parent(settings: Settings, composition: Composition | None = None) -> Parent | None:
    """The run that `resume` names, once it is sure that it can be resumed; None without one.

    One's own tools and adapter are then found in the folder where that run found them. Raises ConfigError, also when
    `composition` was made without what `resume` or a replay names.
    """
    if composition is not None:
        check_visible(settings.resume, settings.store.path if settings.store.mode == "replay" else None, composition)
    origin = find_recorded_origin(settings)
    if settings.resume is None or origin is None:
        return None
    named = f"resume={settings.resume}"
    path = settings.resume.expanduser().absolute()
    _refuse_modes(named, path, origin.store_mode, settings.store.mode)
    backend = settings.store.backend
    parent = _with_ancestors(path, origin, backend)
    try:
        open_source(path, backend).close()
    except StoreFailed as error:
        instead = "Without them there is nothing to resume: start the run again."
        if parent.ancestors:
            instead = f"The run that it resumed can be: resume={parent.ancestors[0].path}"
        hint = f"{error.hint} {instead}".strip()
        raise ConfigError(f"{named}: its answers cannot be read: {error.message}", hint=hint) from None
    if settings.tools.functions or isinstance(settings.provider, CustomProvider):
        search_for_modules(Path(origin.working_directory))
    return parent


def _refuse_modes(named: str, path: Path, recorded: str, now: str) -> None:
    if recorded == "off":
        raise ConfigError(
            f"{named}: this run stored no answers (store.mode=off)",
            hint="Start it again; store.mode=record stores them.",
        )
    if recorded == "replay":
        raise ConfigError(
            f"{named}: this run is a replay, in which nothing was called",
            hint="Replay the recording again (store.mode=replay store.path=...), or resume the run that was recorded.",
        )
    if now == "off":
        raise ConfigError(f"{named} store.mode=off: a resumed run stores its answers", hint="Leave store.mode away.")
    if now == "replay":
        raise ConfigError(
            f"{named} store.mode=replay: a resumed run calls what is not answered yet, a replay never calls",
            hint=f"To run it from its answers alone: store.mode=replay store.path={path}",
        )


def advise_without_key(
    error: ConfigError, parent: Parent | None, settings: Settings, environ: Mapping[str, str]
) -> ConfigError:
    """The error; where a run is resumed and its provider's key is missing, with what can be done without one."""
    provider = settings.provider
    if parent is None or not isinstance(provider, EndpointSettings):
        return error
    if provider.api_key_env not in error.message or environ.get(provider.api_key_env):
        return error
    without = f"What its answers alone come to needs no key: store.mode=replay store.path={parent.path}"
    return ConfigError(error.message, hint=f"{error.hint} {without}".strip())


def change_warnings(parent: Parent | None, shared: Process, composition: Composition | None = None) -> Iterator[str]:
    """What has changed since the run that is resumed, so that calls may differ from it and be made again."""
    if parent is None:
        return
    for run in parent.gone:
        yield (
            f"the run {run.run_id}, which {parent.path} goes on with, is gone (it was {run.path}): "
            "what only it had been answered is asked again"
        )
    for key in find_left_out(parent.origin, composition) if composition else ():
        yield f"{key} was said of another provider than today's: it is not taken over from {parent.path}"
    for key in parent.origin.changed_files():
        before = parent.origin.files[key]
        if named_file(shared.settings, key) == Path(before.path):
            yield f"{key}={before.path} has changed since {parent.path}: what it changes is asked again"
    for name, digest in (("prompts", shared.prompts_digest), ("schemas", shared.schemas_digest)):
        if parent.origin.hashes.get(name, digest) != digest:
            yield f"the {name} have changed since {parent.path}: what they change is asked again"


def cassette_warnings(settings: Settings, composition: Composition | None) -> Iterator[str]:
    """What the cassette that is replayed was recorded with, and is not taken from it; nothing for settings that were
    not composed."""
    if settings.store.mode != "replay" or settings.store.path is None or composition is None:
        return
    for key in find_held_back(settings.store.path, composition):
        yield (
            f"the recording was made with {key}, which is not taken from a cassette: "
            "give it again to use it, if you trust it; without it requests may differ from those recorded"
        )


def _with_ancestors(directory: Path, origin: Origin, backend: str) -> Parent:
    """The run in `directory`, absolute, with the runs that it stands on, found where they are now.

    `backend` is the kind of their stores.
    """
    found: list[ParentOrigin] = []
    gone: list[ParentOrigin] = []
    waiting = [(directory, origin, link) for link in _links(origin)]
    seen = {origin.run_id}
    while waiting:
        child, of_child, link = waiting.pop(0)
        if link.run_id in seen:
            continue
        seen.add(link.run_id)
        path = next((path for path in _places(link, child, of_child) if _holds(path, link.run_id, backend)), None)
        if path is None:
            gone.append(link)
            continue
        found.append(ParentOrigin(path=str(path), run_id=link.run_id))
        there = origins.read(path)
        waiting += [(path, there, further) for further in _links(there)]
    return Parent(directory, origin, tuple(found), tuple(gone))


def _links(origin: Origin) -> tuple[ParentOrigin, ...]:
    return (origin.parent, *origin.ancestors) if origin.parent else ()


def _places(link: ParentOrigin, child: Path, of_child: Origin) -> Iterator[Path]:
    """Where a run may be: where it was, where it has moved to with its child, or close by under another name."""
    yield Path(link.path)
    if of_child.directory is not None:
        yield Path(os.path.normpath(child / os.path.relpath(link.path, of_child.directory)))
    for folder in dict.fromkeys((child.parent, Path(link.path).parent)):
        for pattern in (f"*/{origins.FILE}", f"../*/*/{origins.FILE}"):
            yield from (Path(os.path.normpath(path.parent)) for path in sorted(folder.glob(pattern)))


def _holds(path: Path, run_id: str, backend: str) -> bool:
    """Whether a directory is that of a run and its answers can be read."""
    try:
        values = json.loads((path / origins.FILE).read_bytes())
        if not isinstance(values, dict) or values.get("run_id") != run_id:
            return False
        origins.parse(values, str(path))
        open_source(path, backend).close()
    except (OSError, ValueError, RecursionError, ConfigError, StoreFailed):
        return False
    return True
