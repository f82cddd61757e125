"""Opens the stores that a run uses: their kinds, their places, and which of them a mode needs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from aeon.domain.errors import ConfigError, StoreFailed
from aeon.domain.values import OwnObject
from aeon.files.reference import call_factory, load_object
from aeon.store.interface import AnswerSource, AnswerStore
from aeon.store.lookup import ByKey, InOrder, Lookup, Shared
from aeon.store.models import KINDS
from aeon.store.session import Keep, Session
from aeon.store.settings import CASSETTE_SUFFIX, SQLITE, StoreSettings

GROUP = "aeon.stores"
"""The entry points by which a package registers kinds of stores."""
Place: TypeAlias = Path | str
"""The place of a store; text is a URL."""
_RUN_FILE = "run.json"  # marks a directory as a run's (`aeon.config.origin`)
_KINDS_KEPT = KINDS - {"check"}  # a check whose code has changed is run again in any resumed run
_log = logging.getLogger("aeon")


def open_store(
    place: Place, *, backend: OwnObject = SQLITE, read_only: bool = False
) -> AnswerStore:
    """Open a store of the kind that `store.backend` names. Raises StoreFailed; raises ConfigError
    for an unknown kind, or one that is no store."""
    if is_packaged(backend):
        from aeon.store.sqlite_store import SqliteStore

        return SqliteStore(_require_file(place), read_only=read_only)
    named = f"store.backend={backend.factory}"
    store = call_factory(
        named,
        load_object("store.backend", backend.factory, "object", GROUP),
        str(place),
        options={**backend.options, "read_only": read_only},
        hint="It is called with the place of the store, read_only=..., and its options.",
        passes=(StoreFailed,),
    )
    if isinstance(store, AnswerStore):
        return store
    raise ConfigError(
        f"{named}: it returned a {type(store).__name__}, which lacks a method of a store"
    )


def is_packaged(backend: OwnObject) -> bool:
    """Whether a kind of store comes with Aeon, so that opening one runs no foreign code."""
    return backend.factory == SQLITE.factory


def describe_place(place: Place) -> str:
    """Return a place for display: an absolute path, or a URL."""
    return place if isinstance(place, str) else str(place.expanduser().absolute())


def store_in(directory: Path, backend: OwnObject = SQLITE) -> Path:
    """Return the path of the store in a run's directory, or of the one shared by the jobs of a
    multirun."""
    return directory / ("store.sqlite" if is_packaged(backend) else "store")


def locate_shared_store(settings: StoreSettings) -> Place:
    """Return the place of the store shared by runs with `store.mode=cache`; by default in the
    working directory."""
    default = store_in(Path(".aeon"), settings.backend)
    return _locate_store(settings.path or default, settings.backend)


def _locate_store(place: Place, backend: OwnObject) -> Place:
    if isinstance(place, str):
        return place
    path = place.expanduser()
    return store_in(path.absolute(), backend) if path.is_dir() else path


def _require_file(place: Place) -> Path:
    if isinstance(place, Path):
        return place
    raise StoreFailed(
        f"{place} is an address, and store.backend=sqlite opens files",
        hint="Name the kind of store that is there: store.backend=package.module:Class.",
    )


def open_source(place: Place, backend: OwnObject = SQLITE) -> AnswerSource:
    """Open the answers in a run's directory, a store or a cassette (`*.aeon`) for reading. Raises
    StoreFailed."""
    if isinstance(place, Path) and place.suffix == CASSETTE_SUFFIX and place.expanduser().is_file():
        from aeon.store.cassette import CassetteSource, read

        return CassetteSource(read(place.expanduser()))
    return open_store(_locate_store(place, backend), backend=backend, read_only=True)


def create_store(directory: Path, settings: StoreSettings) -> None:
    """Create a run's store, if it is a file in the run's directory, so that both appear together.
    Raises StoreFailed."""
    if settings.mode in ("record", "cache") and is_packaged(settings.own_backend):
        from aeon.store.sqlite_store import create_file

        create_file(store_in(directory))


def check_store(settings: StoreSettings) -> None:
    """Raise ConfigError for a store that cannot be replayed or shared; a missing shared store is
    created."""
    try:
        if settings.mode == "replay":
            _open_recording(settings).close()
        if settings.mode == "cache":
            place = locate_shared_store(settings)
            _refuse_recorded_run(place, settings.backend)
            open_store(place, backend=settings.backend).close()
    except StoreFailed as error:
        raise ConfigError(f"store.path: {error.message}", hint=error.hint) from error


def _refuse_recorded_run(place: Place, backend: OwnObject) -> None:
    if isinstance(place, str) or place != store_in(place.parent, backend):
        return
    if (place.parent / _RUN_FILE).is_file():
        raise StoreFailed(
            f"{place.parent} is a recorded run, not a store for others",
            hint=f"Resume it (resume={place.parent}), replay it, or share a copy of its store.",
        )


def check_own_store(settings: StoreSettings) -> None:
    """Raise ConfigError if a run with a directory would record elsewhere, where a resume does not
    look."""
    if settings.mode == "record" and settings.path is not None:
        raise ConfigError(
            f"store.mode=record store.path={settings.path}: a run records its answers in "
            "its own directory",
            hint=f"Leave out store.path. store=cache store.path={settings.path} shares "
            "answers with other runs.",
        )


def _open_recording(settings: StoreSettings) -> AnswerSource:
    if settings.path is None:
        hint = "Give store.path=... with a run's directory, a store or a cassette."
        raise StoreFailed("store.mode=replay does not say what to replay", hint=hint)
    return open_source(settings.path, settings.backend)


def open_session(
    settings: StoreSettings,
    *,
    directory: Path | None,
    parents: Sequence[AnswerSource] = (),
    ended_well: Sequence[AnswerSource] = (),
    of_multirun: Path | None = None,
    keep: Keep | None = None,
    warn: Callable[[str], None] = _log.warning,
) -> Session:
    """Open the session of a run whose artefacts go to `directory`, if any.

    `parents` answer first; the caller closes them. Unusable answers of parents in `ended_well` stay
    unless they are to be requested again, but for outcomes of checks. The jobs in the folder
    `of_multirun` share a store. Raises StoreFailed.
    """
    as_it_was = ended_well if settings.retry_unusable == "needed" else ()
    lookups: list[Lookup] = [
        ByKey(parent, whole=_KINDS_KEPT if parent in as_it_was else ()) for parent in parents
    ]
    if settings.mode == "off":
        return Session(lookups)
    if settings.mode == "replay":
        source = _open_recording(settings)
        lookups.append(InOrder(source) if settings.match == "order" else ByKey(source, whole=KINDS))
        return Session(lookups, recording=source)
    shared, by_shared = _open_shared(settings, of_multirun, warn)
    own = _open_own(settings, directory)
    return Session(
        [*lookups, *by_shared],
        own=own,
        shared=shared,
        keep=keep,
        warn=warn,
        goes_on=settings.on_error == "go_on",
    )


def _open_own(settings: StoreSettings, directory: Path | None) -> AnswerStore | None:
    if directory is not None:
        own = settings.own_backend
        return open_store(store_in(directory, own), backend=own)
    if settings.mode == "record" and settings.path is not None:
        return open_store(_locate_store(settings.path, settings.backend), backend=settings.backend)
    return None


def _open_shared(
    settings: StoreSettings, of_multirun: Path | None, warn: Callable[[str], None]
) -> tuple[AnswerStore | None, list[Lookup]]:
    """Return the store that this run shares with others, if any, and the lookups in it."""
    place: Place
    if settings.mode == "cache":
        place = locate_shared_store(settings)
        backend = settings.backend
    elif of_multirun is not None and settings.share_in_multirun:
        place = store_in(of_multirun, settings.own_backend)
        backend = settings.own_backend
    else:
        return None, []
    try:
        shared = open_store(place, backend=backend)
    except StoreFailed as error:
        if settings.mode == "cache":
            raise
        warn(f"{error.message}; this job's answers are not shared with the other jobs")
        return None, []
    # A job must equal a run on its own: it uses other jobs' answers only from the same place.
    same_place = settings.mode == "record"
    name = describe_place(place)
    return shared, [Shared(shared, warn, same_place=same_place, name=name)]
