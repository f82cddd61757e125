"""Which stores a run uses: the kinds of stores, where each store is, and which of them a mode opens."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from aeon.domain.errors import AeonError, ConfigError, StoreFailed
from aeon.files.reference import load_object
from aeon.store.interface import AnswerSource, AnswerStore, OpenStore
from aeon.store.lookup import ByKey, InOrder, Lookup, Shared
from aeon.store.session import Keep, Session
from aeon.store.settings import CASSETTE_SUFFIX, SQLITE, StoreSettings

BACKENDS = {SQLITE: "aeon.store.sqlite_store:SqliteStore"}
"""The kinds of stores by their names in `store.backend`, each an `OpenStore`."""
_RUN_FILE = "run.json"  # what makes a directory a run's (`aeon.config.origin`)
_log = logging.getLogger("aeon")


def open_store(path: Path, *, backend: str = SQLITE, read_only: bool = False) -> AnswerStore:
    """Open a store of the kind that `store.backend` names. Raises StoreFailed, ConfigError for an unknown kind and one
    that is no store."""
    opener = cast(OpenStore, load_object("store.backend", BACKENDS.get(backend, backend), "object"))
    try:
        store = opener(path, read_only=read_only)
        if isinstance(store, AnswerStore):
            return store
        raise TypeError(f"made a {type(store).__name__}, which lacks a method of a store")
    except AeonError:
        raise
    except (Exception, SystemExit) as error:  # a store of any make may fail in any way
        raise ConfigError(
            f"store.backend={backend}: cannot be opened: {type(error).__name__}: {error}"
        ) from error


def store_in(directory: Path, backend: str = SQLITE) -> Path:
    """The path of the store in a run's directory, or of the one that the jobs of a multirun share."""
    return directory / ("store.sqlite" if backend == SQLITE else "store")


def shared_store(settings: StoreSettings) -> Path:
    """The path of the store that runs share with `store.mode=cache`: in the working directory unless given."""
    return _named_store(
        settings.path or store_in(Path(".aeon"), settings.backend), settings.backend
    )


def _named_store(path: Path, backend: str) -> Path:
    path = path.expanduser()
    return store_in(path, backend) if path.is_dir() else path


def open_source(path: Path, backend: str = SQLITE) -> AnswerSource:
    """The answers in a run's directory, a store, or a cassette (`*.aeon`), to be read. Raises StoreFailed."""
    path = path.expanduser()
    if path.suffix == CASSETTE_SUFFIX and path.is_file():
        from aeon.store.cassette import CassetteSource, read

        return CassetteSource(read(path))
    return open_store(_named_store(path, backend), backend=backend, read_only=True)


def create_store(directory: Path, settings: StoreSettings) -> None:
    """Make the store of a run that is a file in its directory, so that it appears with it. Raises StoreFailed."""
    if settings.mode in ("record", "cache") and settings.backend == SQLITE:
        from aeon.store.sqlite_store import create_file

        create_file(store_in(directory))


def check_store(settings: StoreSettings) -> None:
    """Raise ConfigError for what cannot be replayed or shared; a shared store that is missing is made."""
    try:
        if settings.mode == "replay":
            _open_recording(settings).close()
        if settings.mode == "cache":
            path = shared_store(settings)
            if (
                path == store_in(path.parent, settings.backend)
                and (path.parent / _RUN_FILE).is_file()
            ):
                go_on = f"Go on with it (resume={path.parent}), replay it, or share a copy of its store."
                raise StoreFailed(
                    f"{path.parent} is a recorded run, not a store for others", hint=go_on
                )
            open_store(path, backend=settings.backend).close()
    except StoreFailed as error:
        raise ConfigError(f"store.path: {error.message}", hint=error.hint) from error


def check_own_store(settings: StoreSettings) -> None:
    """Raise ConfigError when a run that has a directory would record elsewhere, where a resume does not look."""
    if settings.mode == "record" and settings.path is not None:
        raise ConfigError(
            f"store.mode=record store.path={settings.path}: a run records its answers in its own directory",
            hint=f"Leave store.path away. store=cache store.path={settings.path} shares answers with other runs.",
        )


def _open_recording(settings: StoreSettings) -> AnswerSource:
    if settings.path is None:
        hint = "Give store.path=... with a run's directory, a store or a cassette."
        raise StoreFailed("store.mode=replay does not say what is to be replayed", hint=hint)
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
    """The session of a run whose artefacts go to `directory`, if they go anywhere. `parents` answer first, and the
    caller closes them; of those whose run `ended_well` what came to nothing stays so, unless it is to be asked again.
    The jobs of the folder `of_multirun` share a store. Raises StoreFailed."""
    as_it_was = ended_well if settings.retry_unusable == "needed" else ()
    lookups: list[Lookup] = [ByKey(parent, whole=parent in as_it_was) for parent in parents]
    if settings.mode == "off":
        return Session(lookups)
    if settings.mode == "replay":
        source = _open_recording(settings)
        lookups.append(InOrder(source) if settings.match == "order" else ByKey(source, whole=True))
        return Session(lookups, recording=source)
    own_path = _own_path(settings, directory)
    shared, by_shared = _open_shared(settings, of_multirun, warn)
    own = open_store(own_path, backend=settings.backend) if own_path else None
    return Session(
        [*lookups, *by_shared],
        own=own,
        shared=shared,
        keep=keep,
        warn=warn,
        goes_on=settings.on_error == "go_on",
    )


def _own_path(settings: StoreSettings, directory: Path | None) -> Path | None:
    if directory is not None:
        return store_in(directory, settings.backend)
    if settings.mode == "record" and settings.path is not None:
        return _named_store(settings.path, settings.backend)
    return None


def _open_shared(
    settings: StoreSettings, of_multirun: Path | None, warn: Callable[[str], None]
) -> tuple[AnswerStore | None, list[Lookup]]:
    """The store that this run shares with others, if there is one, and how answers are found in it."""
    path = None
    if settings.mode == "cache":
        path = shared_store(settings)
    elif of_multirun is not None and settings.share_in_multirun:
        path = store_in(of_multirun, settings.backend)
    if path is None:
        return None, []
    try:
        shared = open_store(path, backend=settings.backend)
    except StoreFailed as error:
        if settings.mode == "cache":
            raise
        warn(f"{error.message}; this job's answers are not shared with the other jobs")
        return None, []
    # A job is what it would be on its own: of another job's answers it takes those of the same place.
    name = str(path.absolute())
    return shared, [Shared(shared, warn, same_place=settings.mode == "record", name=name)]
