"""What a run can be answered from: a run's directory, a store, or a cassette."""

from __future__ import annotations

from pathlib import Path

from aeon.domain.errors import ConfigError, StoreFailed
from aeon.store.interface import AnswerSource
from aeon.store.settings import StoreSettings
from aeon.store.sqlite.store import SqliteStore

STORE_NAME = "store.sqlite"
SHARED_STORE = Path(".aeon") / STORE_NAME
"""The store of `store.mode=cache` when no `store.path` is given, in the working directory."""
ORIGIN_NAME = "run.json"
"""The file that makes a directory a run's (`aeon.config.origin`)."""
CASSETTE_SUFFIX = ".aeon"


def open_source(path: Path) -> AnswerSource:
    """The answers in a run's directory, in a store, or in a cassette (`*.aeon`); nothing is written there.

    Raises StoreFailed when there are none, or they cannot be read.
    """
    path = path.expanduser()
    if path.is_dir():
        if not (path / STORE_NAME).is_file():
            raise StoreFailed(
                f"{path}: the directory holds no {STORE_NAME}",
                hint="Name the directory of a run that was recorded (store.mode=record, the default).",
            )
        return SqliteStore(path / STORE_NAME, read_only=True)
    if not path.exists():
        raise StoreFailed(
            f"{path}: there is no such file or directory", hint="Give the path of a run, a store or a cassette."
        )
    if path.suffix == CASSETTE_SUFFIX:
        from aeon.store.cassette.source import open_cassette

        return open_cassette(path)
    return SqliteStore(path, read_only=True)


def store_path(path: Path) -> Path:
    """The store that a path of a person's names: the file itself, or the one in a run's directory."""
    path = path.expanduser()
    return path / STORE_NAME if path.is_dir() else path


def check_store(settings: StoreSettings) -> None:
    """ConfigError for what cannot be replayed, and for a shared store that cannot be used; it is made if need be."""
    if settings.mode == "replay" and settings.path is None:
        raise ConfigError(
            "store.mode=replay: store.path does not say what is to be replayed",
            hint="Give store.path=... with a run's directory, a store or a cassette.",
        )
    try:
        if settings.mode == "replay" and settings.path is not None:
            open_source(settings.path).close()
        if settings.mode == "cache":
            shared = store_path(settings.path or SHARED_STORE)
            _refuse_recorded_run(shared)
            SqliteStore(shared).close()
    except StoreFailed as error:
        raise ConfigError(f"store.path: {error.message}", hint=error.hint) from error


def check_own_store(settings: StoreSettings) -> None:
    """ConfigError when a run that has a directory is to record its answers elsewhere, where a resume does not look."""
    if settings.mode == "record" and settings.path is not None:
        raise ConfigError(
            f"store.mode=record store.path={settings.path}: a run records its answers in its own directory",
            hint="Leave store.path away (or store.path=null). `aeon cassette export DIR FILE.aeon` makes one file of a "
            f"run, to replay; store=cache store.path={settings.path} shares answers with other runs.",
        )


def _refuse_recorded_run(shared: Path) -> None:
    if shared.name == STORE_NAME and (shared.parent / ORIGIN_NAME).is_file():
        raise ConfigError(
            f"store.path: {shared.parent} is a recorded run, into which store.mode=cache would mix answers of others",
            hint=f"Go on with it (resume={shared.parent}), replay it (store=replay), or share a copy of its store.",
        )
