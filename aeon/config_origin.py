"""Composing a run again: the overrides it was given, then today's.

`composition` is what is really composed of what a person gives; `recomposed` is the one rule by which an `Origin`, from
a run's directory or from the head of a cassette, comes before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from aeon import origin as origins
from aeon.config_compose import is_sweep, single_value
from aeon.config_literal import quoted
from aeon.config_recorded import sorted_out
from aeon.errors import ConfigError, StoreFailed
from aeon.origin import Composition, Origin
from aeon.store import cassette

_GIVEN_APART = frozenset({"task", "task_file", "inputs", "input_files", "resume", "sweep"})
_SEARCH_PATH = "hydra.searchpath"


def composition(today: Composition) -> Composition:
    """What is composed: today's overrides, after those of the run that is resumed or replayed, if one is.

    `resume=DIR` among them names it, or `store.mode=replay store.path=PATH`. Raises ConfigError when DIR is no run's
    directory, several are named, or PATH is a cassette that cannot be read.
    """
    named = [text for text in today.overrides if key_of(text) == "resume"]
    directory = _directory(named[-1]) if named else None
    rest = tuple(text for text in today.overrides if key_of(text) != "resume")
    if directory is None:
        return _of_replay(today.model_copy(update={"overrides": rest}))
    given = today.model_copy(update={"overrides": (*rest, f"resume={quoted(str(directory))}")})
    return recomposed(origins.read(directory), given, f"resume={directory}")


def replayed(path: Path) -> Origin | None:
    """Where the run comes from that was recorded in a cassette, a run's directory, or the store in one.

    None when the recording does not say. Raises ConfigError when what says it cannot be read.
    """
    path = path.expanduser()
    if path.suffix == cassette.SUFFIX and path.is_file():
        found = path.stat()
        return _of_cassette(path, found.st_mtime_ns, found.st_size)
    directory = path if path.is_dir() else path.parent
    return origins.read(directory, "store.path") if (directory / origins.FILE).is_file() else None


@lru_cache(maxsize=8)
def _of_cassette(path: Path, _changed: int, _size: int) -> Origin | None:
    try:
        values = cassette.read(path).origin
    except StoreFailed as error:
        raise ConfigError(f"store.path: {error.message}", hint=error.hint) from None
    if not values:
        return None
    origin = origins.parse(values, f"store.path={path}: its origin")
    # Whoever made it, no file of this machine is read and no address called because a cassette names it.
    provider = origin.provider.model_copy(update={"base_url": None})
    return origin.model_copy(update={"provider": provider, "paths": {}, "files": {}})


def _of_replay(today: Composition) -> Composition:
    path = _recording(today.overrides)
    origin = replayed(path) if path is not None else None
    if path is None or origin is None or origin.overrides is None:
        return today
    if path.suffix == cassette.SUFFIX:
        folder = _folder(today)
        name = origin.config_name if today.config_dir else Composition().config_name
        taken, _ = sorted_out(origin.overrides, folder)
        origin = origin.model_copy(update={"overrides": taken, "config_dir": None, "config_name": name})
    return recomposed(origin, today, f"store.path={path}")


def held_back(recording: Path, composed: Composition | None) -> tuple[str, ...]:
    """What the head of a cassette names that only the person who replays it may say, and has not said: the keys of
    overrides, and `--config-dir`. Empty for a recording of another kind. Raises ConfigError."""
    origin = replayed(recording) if recording.suffix == cassette.SUFFIX else None
    if origin is None:
        return ()
    today = composed or Composition()
    taken, held = sorted_out(origin.overrides or (), _folder(today))
    said = [f"{key_of(text)}." for text in today.overrides if text not in taken]
    folder = ["--config-dir"] if origin.config_dir and today.config_dir is None else []
    return (*folder, *(key for key in held if not any(f"{key}.".startswith(given) for given in said)))


def _folder(today: Composition) -> Path | None:
    return today.config_dir.expanduser() if today.config_dir else None


def _recording(overrides: Sequence[str]) -> Path | None:
    """What `store.path` names, if `store.mode=replay` or `store=replay` is said and both are single values."""
    said = {key_of(text): text for text in overrides}
    mode, path = said.get("store.mode", said.get("store", "")), said.get("store.path")
    if path is None or mode.partition("=")[2] != "replay" or is_sweep(path):
        return None
    return Path(single_value(path, path.partition("=")[2]))


def recomposed(origin: Origin, today: Composition, named: str) -> Composition:
    """The recorded composition with today's after it, so that today's wins; `named` says whose origin it is.

    Task and inputs are not in it: `aeon.config.read_task` and `read_inputs` take them from the origin. Relative paths
    are those of the folder that the run was started in. Raises ConfigError when the settings were made in a program, or
    the folder of configuration is gone.
    """
    if origin.overrides is None:
        raise ConfigError(
            f"{named}: its settings were made in a program (Aeon(settings)), not composed from overrides",
            hint="Make the same settings again, with `resume` set in them.",
        )
    folder = today.config_dir or (Path(origin.config_dir) if origin.config_dir else None)
    if folder is not None and today.config_dir is None and not folder.is_dir():
        raise ConfigError(
            f"{named}: its configuration came from {folder}, which is not there any more",
            hint="Put it back, or give one of the same content with --config-dir DIR (in Python config_dir=DIR).",
        )
    recorded = origin.overrides if Path(origin.working_directory) == Path.cwd() else _anchored(origin)
    recorded = [text for text in recorded if not _is_of_hydra(key_of(text))]
    replaced = {key_of(text) for text in today.overrides if text.startswith(("~", "+")) or "." not in key_of(text)}
    return Composition(
        overrides=(*(text for text in recorded if key_of(text) not in replaced), *today.overrides),
        config_dir=folder,
        config_name=origin.config_name if today.config_name == Composition().config_name else today.config_name,
    )


def recordable(overrides: Iterable[str]) -> tuple[str, ...]:
    """The overrides that a run is composed from again.

    Task, inputs and the parent are recorded apart; Hydra's own say where and how jobs run, as `sweep` does, but for its
    search path.
    """
    return tuple(text for text in overrides if not _is_apart(key_of(text)))


def key_of(override: str) -> str:
    """The key or group of an override, without what adds or deletes it."""
    return override.lstrip("+~").partition("=")[0]


def _is_apart(key: str) -> bool:
    return _is_of_hydra(key) or key.partition(".")[0] in _GIVEN_APART


def _is_of_hydra(key: str) -> bool:
    return key == "hydra" or (key.startswith(("hydra.", "hydra/", "hydra@")) and key != _SEARCH_PATH)


def _anchored(origin: Origin) -> Sequence[str]:
    """The recorded overrides with their relative paths made absolute."""
    return [
        f"{text.partition('=')[0]}={quoted(origin.paths[key_of(text)])}" if key_of(text) in origin.paths else text
        for text in origin.overrides or ()
    ]


def _directory(override: str) -> Path | None:
    """The directory that `resume=...` names, absolute; a path may hold what Hydra would read as something else."""
    text = override.partition("=")[2]
    if not Path(text).expanduser().is_dir():
        if is_sweep(override):
            raise ConfigError(
                f"{override}: a multirun resumes one run, not several",
                hint="Sweep another key: python -m aeon -m resume=DIR convergence.completeness=0.8,0.9",
            )
        text = single_value(override, text)
    return Path(text).expanduser().absolute() if text and text != "null" else None
