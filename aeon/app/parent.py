"""The run that is resumed: its answers, those of its ancestors, and what has changed since."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from aeon.app.job import Job
from aeon.config import origin as origins
from aeon.config.compose.literal import Composition, RecordedSettings, key_of
from aeon.config.compose.recorded import find_new
from aeon.config.marks import find_code
from aeon.config.origin import Origin, ParentOrigin
from aeon.config.recording import find_held_back, find_left_out
from aeon.config.settings import find_named_file
from aeon.config.trusted_folders import pin_project_of_run
from aeon.domain.errors import ConfigError, StoreFailed
from aeon.domain.values import OwnObject
from aeon.files.reference import search_for_modules
from aeon.interaction.desk import Desk
from aeon.observability.artefacts import BASELINE, RESULT
from aeon.report.runs import end_without_result, read_document
from aeon.store.opening import open_source
from aeon.store.settings import CASSETTE_SUFFIX


@dataclass(frozen=True, slots=True)
class Parent:
    """The run that is resumed: its directory, absolute, and its origin. `ancestors` are the earlier
    runs whose answers can be read, nearest first, with their present paths; `gone` are the others.
    """

    path: Path
    origin: Origin
    ancestors: tuple[ParentOrigin, ...] = ()
    gone: tuple[ParentOrigin, ...] = ()

    @property
    def directories(self) -> tuple[Path, ...]:
        """The directories that hold answers, nearest first."""
        return (self.path, *(Path(run.path) for run in self.ancestors))

    def by_id(self) -> dict[str, Path]:
        """Return the directories that hold answers by run id, nearest first."""
        before = {run.run_id: Path(run.path) for run in self.ancestors}
        return {self.origin.run_id: self.path, **before}

    def count_seconds_before_waiting(self) -> float:
        """Return how many seconds the runs took that ended to wait for a person."""
        results = (read_document(path / RESULT) for path in self.directories)
        waiting = (each for each in results if each.get("termination_reason") == "waiting")
        return sum(float((each.get("timings") or {}).get("total_seconds") or 0) for each in waiting)


_PACKAGED = "the packaged one"


def find_parent(job: Job) -> Parent | None:
    """Return the run that `resume` names, once it is sure to be resumable; None without one. Its
    own tools and store are searched for in its original directory. Raises ConfigError."""
    settings = job.settings
    origin = job.origin
    composition = job.composition or Composition()
    if settings.resume is None or origin is None:
        return None
    named = f"resume={settings.resume}"
    path = settings.resume.expanduser().absolute()
    is_seen = any(key_of(text) == "resume" for text in composition.overrides)
    if job.composition is not None and not is_seen:
        raise ConfigError(
            f"{named} comes from a configuration file or an interpolation, "
            "too late to compose what was recorded",
            hint="Give it as an override, spelled out.",
        )
    _refuse_modes(named, path, origin.store_mode, settings.store.mode)
    _refuse_running(named, path)
    working_directory = Path(origin.working_directory)
    given = composition.overrides
    pin_project_of_run(working_directory, given, [*(origin.overrides or ()), *given])
    # Modules of a stranger's folder are not even looked for where no setting starts code.
    if find_code(settings):
        search_for_modules(working_directory)
    backend = settings.store.own_backend
    ancestors, gone = _find_ancestors(origin, path, backend)
    _require_readable_answers(named, path, backend, ancestors)
    parent = Parent(path, origin, ancestors, gone)
    for directory in parent.directories:
        Desk(directory).require_own_answers(settings.trust, settings.env)
    return parent


def find_direct_parent(parent: Parent | None) -> Parent | None:
    """Return the earlier runs' direct calls for their baselines, as the parent of one more direct
    call; None without any."""
    found = []
    for directory in parent.directories if parent else ():
        with suppress(ConfigError):
            found.append((directory / BASELINE, origins.read(directory / BASELINE)))
    if not found:
        return None
    (path, origin), *others = found
    links = [ParentOrigin(path=str(place), run_id=other.run_id) for place, other in others]
    return Parent(path, origin, tuple(links))


def _find_ancestors(
    origin: Origin, path: Path, backend: OwnObject
) -> tuple[tuple[ParentOrigin, ...], tuple[ParentOrigin, ...]]:
    """Return the earlier runs whose answers can be read, with their present paths, and those that
    are gone."""
    found: list[ParentOrigin] = []
    gone: list[ParentOrigin] = []
    for link in (origin.parent, *origin.ancestors) if origin.parent else ():
        place = _find_run(link, path, origin, backend)
        if place is None:
            gone.append(link)
        else:
            found.append(ParentOrigin(path=str(place), run_id=link.run_id))
    return tuple(found), tuple(gone)


def _require_readable_answers(
    named: str, path: Path, backend: OwnObject, ancestors: tuple[ParentOrigin, ...]
) -> None:
    try:
        open_source(path, backend).close()
    except StoreFailed as error:
        before = "Else, start the run again."
        if ancestors:
            before = f"The run before it can be: resume={ancestors[0].path}"
        message = f"{named}: its answers cannot be read: {error.message}"
        raise ConfigError(message, hint=f"{error.hint} {before}") from None


def has_ended_well(directory: Path) -> bool:
    """Check whether the run in `directory` converged or completed every step (exit status 0)."""
    result = read_document(directory / RESULT)
    return bool(result.get("converged")) or result.get("termination_reason") == "completed"


def _refuse_modes(named: str, path: Path, recorded: str, now: str) -> None:
    said = {
        "off": "this run stored no answers (store.mode=off)",
        "replay": "this run is a replay",
    }.get(recorded)
    if said:
        raise ConfigError(
            f"{named}: {said}", hint="Start it again, or resume the run that was recorded."
        )
    if now in ("off", "replay"):
        raise ConfigError(
            f"{named} store.mode={now}: a resumed run stores "
            "its answers and makes the calls that are not answered yet",
            hint="Leave out store.mode. From its answers alone "
            f"it runs with store.mode=replay store.path={path}",
        )


def _refuse_running(named: str, path: Path) -> None:
    if end_without_result(path) == "running":
        raise ConfigError(
            f"{named}: this run is still running, and its next calls would be paid for twice",
            hint="Wait for its end, or stop it first.",
        )


def _find_run(link: ParentOrigin, child: Path, of_child: Origin, backend: OwnObject) -> Path | None:
    # Runs are often moved together: the way from child to parent then still holds, and failing that
    # the parent stands in a neighbouring folder.
    moved = os.path.relpath(link.path, of_child.directory or link.path)
    near = (path.parent for path in child.parent.parent.glob(f"*/*/{origins.FILE}"))
    for place in chain((Path(link.path), Path(os.path.normpath(child / moved))), near):
        try:
            if origins.read(place).run_id == link.run_id:
                open_source(place, backend).close()  # raises when its answers cannot be read
                return place
        except (ConfigError, StoreFailed, OSError):
            continue
    return None


def list_changes(job: Job, parent: Parent, digests: Mapping[str, str]) -> Iterator[str]:
    """Yield what has changed since the run that is resumed, so that calls may differ and be made
    again; `digests` are those of the present prompts and schemas."""
    origin = parent.origin
    for run in parent.gone:
        yield (
            f"the run {run.run_id}, which {parent.path} resumed, is gone (it was {run.path}): "
            "calls that only it had answers to are made again"
        )
    if job.composition is not None and job.composition.recorded is not None:
        yield from _list_changed_keys(job, parent, job.composition.recorded)
    files = ((key, Path(origin.files[key].path)) for key in origin.find_changed_files())
    changed = [f"{key}={path}" for key, path in files if find_named_file(job.settings, key) == path]
    changed += [
        name
        for name in ("prompts", "schemas")
        if origin.hashes.get(name, digests[name]) != digests[name]
    ]
    yield from _list_changed_components(job, parent)
    for what in changed:
        yield f"{what} changed since {parent.path}: the calls that it changes are made again"


def _list_changed_components(job: Job, parent: Parent) -> Iterator[str]:
    before = parent.origin.components
    now = job.settings.components.describe()
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            yield (
                f"components.{name} is {now.get(name, _PACKAGED)}, and was "
                f"{before.get(name, _PACKAGED)} in {parent.path}: "
                "the calls that it changes are made again"
            )


def _list_changed_keys(job: Job, parent: Parent, recorded: RecordedSettings) -> Iterator[str]:
    """Yield the recorded settings that were not applied, and the settings that only this version
    has."""
    if (
        job.composition is not None
        and job.chosen.provider.kind != recorded.settings["provider"]["kind"]
    ):
        for key in find_left_out(parent.origin, job.composition.overrides):
            yield (
                f"{key} was set for another provider than "
                f"today's: it is not taken over from {parent.path}"
            )
    for key in recorded.unknown:
        yield f"{key}, recorded in {parent.path}, is no setting of this version: it is ignored"
    for key in find_new(job.chosen, recorded.settings, recorded.missing):
        yield f"{key} is a new setting since {parent.path}: its default applies"


def list_held_back(job: Job) -> Iterator[str]:
    """Yield warnings for overrides that were recorded in the replayed cassette but are not
    applied."""
    recording = job.settings.store.path
    if job.settings.store.mode != "replay" or job.origin is None or job.composition is None:
        return
    if not isinstance(recording, Path) or recording.suffix != CASSETTE_SUFFIX:
        return
    for key in find_held_back(job.origin, job.composition):
        yield (
            f"the recording was made with {key}, which is not applied from a cassette: give it "
            "again to use it, if you trust it; without it requests may differ from those recorded"
        )
