"""Composing a run again: the overrides it was given, then today's.

A cassette may be anybody's, and replaying it must only replay it: each field of the settings says itself whether it may
come from a recording (`aeon.domain.values.FromOthers`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from aeon.config import origin as origins
from aeon.config.compose.compose import parse
from aeon.config.compose.literal import Composition, key_of, quote
from aeon.config.compose.reference import groups
from aeon.config.marks import mark_at
from aeon.config.origin import Origin
from aeon.config.own_runs import read_trust
from aeon.config.trusted_folders import require_trust_of_owner
from aeon.domain.errors import ConfigError, StoreFailed
from aeon.domain.values import flatten
from aeon.files.resources import resource_root
from aeon.store.settings import CASSETTE_SUFFIX

_RECORDED_APART = frozenset(
    {"task", "task_file", "inputs", "input_files", "resume", "sweep", "batch", "trust"}
)
_NAME = re.compile(r"\w[\w-]*", re.ASCII)  # of a file, without a folder
_FOLDERS = ("prompts.dir", "schemas.dir")
_ABOVE_THE_GROUPS = ("task=null", "task_file=null", "~inputs", "~input_files")


def composition(today: Composition) -> Composition:
    """What is composed: today's overrides, after those of the run that is resumed or replayed, if one is: by
    `resume=DIR` or `store.mode=replay store.path=PATH` among them. Raises ConfigError."""
    named = [text for text in today.overrides if key_of(text) == "resume"]
    rest = [text for text in today.overrides if key_of(text) != "resume"]
    if named and (directory := directory_of(named[-1])):
        given = today.with_overrides((*rest, f"resume={quote(str(directory))}"))
        resumed = origins.read_trusted(directory, "resume", *read_trust(rest))
        return recompose(resumed, given, f"resume={directory}")
    # `resume=null` stays, since a configuration file may set another value.
    today = today.with_overrides((*rest, *(["resume=null"] if named else [])))
    path = _find_recording(today.overrides)
    origin = read_recorded_origin(path, *read_trust(rest)) if path else None
    if path is None or origin is None or origin.overrides is None:
        return today
    if path.suffix == CASSETTE_SUFFIX:
        of_today = today.config_dir is not None and _NAME.fullmatch(origin.config_name)
        name = origin.config_name if of_today else Composition().config_name
        taken, _ = select_overrides(origin.overrides, today.config_dir)
        origin = origin.model_copy(
            update={"overrides": taken, "config_dir": None, "config_name": name}
        )
    return recompose(origin, today, f"store.path={path}")


def _find_recording(overrides: Sequence[str]) -> Path | None:
    """What `store.path` names, with `store.mode=replay` or `store=replay`. Raises ConfigError for several values."""
    given = {key_of(text): text for text in overrides}
    mode, path = given.get("store.mode", given.get("store", "")), given.get("store.path")
    if path is None or "replay" not in mode:
        return None
    problem = "a multirun replays one recording, not several"
    value = _one_value(path, problem).replace("\\$", "$")
    return Path(value) if _one_value(mode, problem) == "replay" and value else None


def directory_of(override: str) -> Path | None:
    """The directory that `resume=...` names, absolute; a path may hold what Hydra would read as something else. Raises
    ConfigError for none and for several."""
    text = override.partition("=")[2]
    if not text.strip():
        raise ConfigError(
            f"{key_of(override)}= is empty", hint="Name a directory, as in resume=outputs/..."
        )
    if not Path(text).expanduser().is_dir():
        text = _one_value(override, "a multirun resumes one run, not several")
    return Path(text).expanduser().absolute() if text and text != "null" else None


def _one_value(override: str, problem: str) -> str:
    try:
        parsed = parse(override)
    except ConfigError:
        return override.partition("=")[2]
    if parsed.is_sweep_override():
        raise ConfigError(
            f"{override}: {problem}", hint="Sweep another key: convergence.completeness=0.8,0.9"
        )
    return "" if parsed.value() is None else str(parsed.value())


def read_recorded_origin(path: Path, trust: bool | str = False, env: str = "") -> Origin | None:
    """The origin of the run that was recorded in a cassette, a run's directory, or the store in one, if it has one.
    Raises ConfigError when it cannot be read, and for a directory of somebody else's unless `trust` says so."""
    path = path.expanduser()
    if path.suffix == CASSETTE_SUFFIX and path.is_file():
        return _origin_of_cassette(path, path.stat().st_mtime_ns)
    directory = path if path.is_dir() else path.parent
    if not (directory / origins.FILE).is_file():
        return None
    return origins.read_trusted(directory, "store.path", trust, env)


@lru_cache(maxsize=8)
def _origin_of_cassette(path: Path, _changed: int) -> Origin | None:
    from aeon.store import cassette

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


def find_held_back(recording: Path, today: Composition) -> tuple[str, ...]:
    """The overrides of a cassette, by their keys, and its `--config-dir`, that are not taken from it and that whoever
    replays it has not given. Empty for a recording of another kind."""
    origin = read_recorded_origin(recording) if recording.suffix == CASSETTE_SUFFIX else None
    if origin is None:
        return ()
    taken, held = select_overrides(origin.overrides or (), today.config_dir)
    given = tuple(f"{key_of(text)}." for text in today.overrides if text not in taken)
    folder = ["--config-dir"] if origin.config_dir and today.config_dir is None else []
    return (*folder, *(key for key in held if not f"{key}.".startswith(given)))


def recompose(origin: Origin, today: Composition, named: str) -> Composition:
    """The recorded composition with today's after it, so that today's wins; `named` says whose origin it is.

    Relative paths are those of the folder that the run was started in. Raises ConfigError when the settings were made
    in a program, or the folder of configuration is gone."""
    if origin.overrides is None:
        hint = "Make them again, with `resume` set in them."
        raise ConfigError(f"{named}: its settings were made in a program", hint=hint)
    _require_trusted_folders(origin, today)
    folder = today.config_dir or (Path(origin.config_dir) if origin.config_dir else None)
    if folder is not None and today.config_dir is None and not folder.is_dir():
        raise ConfigError(
            f"{named}: its configuration came from {folder}, which is not there any more",
            hint="Put it back, or give one of the same content with --config-dir DIR.",
        )
    name = (
        origin.config_name if today.config_name == Composition().config_name else today.config_name
    )
    replaced = {
        key_of(text)
        for text in today.overrides
        if text.startswith(("~", "+")) or "." not in key_of(text)
    }
    recorded = [
        text
        for text in origin.overrides
        if not _is_of_hydra(text) and key_of(text) not in {*replaced, "trust"}
    ]
    paths = origin.paths if Path(origin.working_directory) != Path.cwd() else {}
    if _chooses_another_provider(origin, today):
        recorded = [text for text in recorded if not key_of(text).startswith("provider.")]
        paths = {key: path for key, path in paths.items() if not key.startswith("provider.")}
    given, set_today = (
        set(map(key_of, recorded)),
        tuple(f"{key_of(text)}." for text in today.overrides),
    )
    kept = [key for key in paths if key in given or not f"{key}.".startswith(set_today)]
    overrides = (*recorded, *(f"{key}={quote(paths[key])}" for key in kept), *today.overrides)
    return Composition(overrides=overrides, config_dir=folder, config_name=name)


def _require_trusted_folders(origin: Origin, today: Composition) -> None:
    """Raise ConfigError when a folder that the run was given by a project is not trusted as it is today."""
    named = {key_of(text): text for text in origin.overrides or ()}
    given = set(map(key_of, today.overrides))
    folders = [_one_value(named[key], "") for key in _FOLDERS if key in named and key not in given]
    if today.config_dir is None:
        folders.append(origin.config_dir or "")
    for folder in filter(None, folders):
        require_trust_of_owner(Path(origin.working_directory, folder))


def _chooses_another_provider(origin: Origin, today: Composition) -> bool:
    """Whether today's overrides may choose another provider: what was set for the recorded one, its address above all,
    is not for that one and its key."""
    others = {*groups(), "output", "plan_file"} - {"provider", "env", "experiment"}
    before, now = (
        {
            text
            for text in select_recordable(texts)
            if "." not in key_of(text) and key_of(text) not in others
        }
        for texts in (origin.overrides or (), today.overrides)
    )
    same = before or {"provider=auto", f"provider={origin.provider.kind}"}
    return bool(now - same - {"experiment=none"})


def find_left_out(origin: Origin, composed: Composition) -> tuple[str, ...]:
    """The keys of the recorded provider that were not taken over, since another was chosen."""
    given = set(map(key_of, composed.overrides))
    recorded = dict.fromkeys(map(key_of, origin.overrides or ()))
    return tuple(key for key in recorded if key.startswith("provider.") and key not in given)


def select_recordable(overrides: Iterable[str]) -> tuple[str, ...]:
    """The overrides that a run is composed from again: neither those recorded apart, such as the task, nor those that
    say where and how jobs run."""
    ours = (text for text in overrides if not _is_of_hydra(text))
    return tuple(text for text in ours if key_of(text).partition(".")[0] not in _RECORDED_APART)


def _is_of_hydra(override: str) -> bool:
    key = key_of(override)
    return re.split("[./]", key)[0] == "hydra" and key != "hydra.searchpath"


def with_own_adapter(composed: Composition, kept: Collection[str]) -> Composition:
    """The composition of settings whose provider a program replaces by an adapter of its own, so that a resumed run
    asks for one again; `kept` are the keys of the provider that hold for it."""
    parts = [(text, key_of(text).split(".")) for text in composed.overrides]
    others = [
        text for text, (group, *key) in parts if group != "provider" or (key and key[0] in kept)
    ]
    return composed.with_overrides((*others, "provider=custom"))


def make_portable(
    overrides: Iterable[str], holds_secret: Callable[[str], bool]
) -> tuple[list[str], list[str]]:
    """The overrides that go into a cassette: none with a secret or the address of a server; and the keys of those left
    out that a replay would miss."""
    portable = {text: not holds_secret(text) and "base_url" not in text for text in overrides}
    missed = [
        key_of(text)
        for text, kept in portable.items()
        if not kept and _verdict(text, None) != "unneeded"
    ]
    return [text for text, kept in portable.items() if kept], [
        key for key in missed if not holds_secret(key)
    ]


def select_overrides(
    overrides: Iterable[str], folder: Path | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The overrides of a cassette that are taken, and the keys of those that are held back; `folder` is the
    configuration of the person who replays, None without one."""
    verdicts = {text: _verdict(text, folder) for text in overrides}
    held = dict.fromkeys(
        key_of(text) or text for text, verdict in verdicts.items() if verdict == "held"
    )
    return tuple(text for text, verdict in verdicts.items() if verdict == "taken"), tuple(held)


def _verdict(text: str, folder: Path | None) -> str:
    key = key_of(text)
    if text in _ABOVE_THE_GROUPS:
        return "taken"
    if re.split("[./]", key)[0] == "hydra":
        return "held" if key == "hydra.searchpath" else "unneeded"
    try:
        override = parse(text)
    except ConfigError:
        return "held"
    if override.package is not None or override.is_sweep_override() or "${" in text:
        return "held"
    value = None if override.is_delete() else override.value()
    if "." in key or isinstance(value, dict) or override.is_delete():
        verdicts = {mark_at(leaf).rule for leaf, _ in flatten(value, key)}
        return verdicts.pop() if len(verdicts) == 1 else "held"
    names = {str(name) for name in (value if isinstance(value, list) else [value])}
    mark = mark_at(key)
    if mark.options is not None and not (mark.options and names <= mark.options):
        return mark.rule
    # An option that comes neither with Aeon nor with the person's own folder is held back.
    places = [resource_root() / "conf" / key, *([folder / key] if folder else [])]
    known = all(
        _NAME.fullmatch(name) and any((place / f"{name}.yaml").is_file() for place in places)
        for name in names
    )
    return "taken" if known else "held"
