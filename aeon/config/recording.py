"""The run that overrides resume or replay: its origin, and its settings that apply again.

A cassette may be anybody's, and replaying it must only replay it: each field of the settings
declares whether it may come from a recording (`aeon.domain.values.FromOthers`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from aeon.config import origin as origins
from aeon.config.compose.compose import compose, parse
from aeon.config.compose.literal import CONFIG_NAME, Composition, RecordedSettings, key_of, quote
from aeon.config.compose.recorded import check_known, leaves, record
from aeon.config.marks import mark_at, take_from_others
from aeon.config.origin import Origin
from aeon.config.own_runs import is_own, read_trust, require_own
from aeon.config.trusted_folders import require_trust_of_owner
from aeon.domain.errors import ConfigError, StoreFailed
from aeon.domain.values import JsonMapping, JsonObject
from aeon.store.settings import CASSETTE_SUFFIX

_FOLDERS = ("prompts", "schemas")


def composition(today: Composition) -> Composition:
    """Return today's composition with the settings of the run that it resumes or replays, if any:
    by `resume=DIR` or `store.mode=replay store.path=PATH` among its overrides. Raises ConfigError.
    """
    named = [text for text in today.overrides if key_of(text) == "resume"]
    rest = [text for text in today.overrides if key_of(text) != "resume"]
    directory = directory_of(named[-1]) if named else None
    if directory is not None:
        today = today.with_overrides((*rest, f"resume={quote(str(directory))}"))
        resumed = read_trusted(directory, "resume", *read_trust(rest))
        return _with_recorded(resumed, today, f"resume={directory}")
    # `resume=null` stays, since a configuration file may set another value.
    today = today.with_overrides((*rest, *(["resume=null"] if named else [])))
    return _with_replayed(today)


def _with_replayed(today: Composition) -> Composition:
    """Return today's composition with the settings of the run that it replays, if any."""
    path = _find_recording(today.overrides)
    if path is None:
        return today
    origin = read_recorded_origin(path, *read_trust(today.overrides))
    if origin is None:
        return today
    if path.suffix == CASSETTE_SUFFIX:
        origin = origin.model_copy(
            update={"missing": (), "config_dir": None, "config_name": today.config_name}
        )
    if today.replayed is not None:
        # Who answered is no matter of today.
        of_provider = {key: value for key, value in origin.settings.items() if key == "provider"}
        origin = origin.model_copy(update={"settings": {**today.replayed, **of_provider}})
    return _with_recorded(origin, today, f"store.path={path}")


def _with_recorded(origin: Origin, today: Composition, named: str) -> Composition:
    """Return today's composition with the settings of a recorded run; messages name the run by
    `named`."""
    from aeon.config.settings import Settings  # slow to load

    settings, unknown = check_known(origin.settings, Settings, named)
    folder = today.config_dir or (Path(origin.config_dir) if origin.config_dir else None)
    _require_trusted_folders(origin, today)
    # Its files are needed for options chosen today; their former values are recorded.
    is_there = folder is not None and (folder.is_dir() or today.config_dir is not None)
    if today.config_name == CONFIG_NAME and is_there:
        today = replace(today, config_dir=folder, config_name=origin.config_name)
    recorded = RecordedSettings(
        named=named,
        settings=settings,
        missing=origin.missing,
        unknown=unknown,
        provider=(origin.provider.kind, origin.settings.get("provider", {}).get("name")),
    )
    overrides = (*_list_composed_again(origin), *today.overrides)
    return replace(today, overrides=overrides, recorded=recorded)


def _list_composed_again(origin: Origin) -> tuple[str, ...]:
    """Return the overrides that read unrecorded values from the environment."""
    reading = (text for text in origin.overrides or () if "${oc.env:" in text)
    return tuple(text for text in reading if key_of(text) in origin.missing)


def _require_trusted_folders(origin: Origin, today: Composition) -> None:
    """Raise ConfigError when a folder that a project gave to the run is not trusted with its
    present content."""
    given = set(map(key_of, today.overrides))
    folders = [
        (origin.settings.get(group) or {}).get("dir")
        for group in _FOLDERS
        if not given & {group, f"{group}.dir"}
    ]
    if today.config_dir is None:
        folders.append(origin.config_dir)
    for folder in filter(None, folders):
        require_trust_of_owner(Path(origin.working_directory, folder))


def _find_recording(overrides: Sequence[str]) -> Path | None:
    """Return the path in `store.path`, with `store.mode=replay` or `store=replay`. Raises
    ConfigError for several values."""
    given = {key_of(text): text for text in overrides}
    mode = given.get("store.mode", given.get("store", ""))
    path = given.get("store.path")
    if path is None or "replay" not in mode:
        return None
    problem = "a multirun replays one recording, not several"
    value = _one_value(path, problem).replace("\\$", "$")
    return Path(value) if _one_value(mode, problem) == "replay" and value else None


def directory_of(override: str) -> Path | None:
    """Return the directory that `resume=...` names, absolute; a path may contain text that Hydra
    would misread. Raises ConfigError for none and for several."""
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
    """Return the origin of the run recorded in a cassette, a run's directory, or the store in one,
    if it has one. For a cassette, `settings` are those that apply, and `missing` names the others.
    Raises ConfigError when it cannot be read, and for somebody else's directory unless `trust`
    allows it."""
    path = path.expanduser()
    if path.suffix == CASSETTE_SUFFIX and path.is_file():
        return _origin_of_cassette(path, path.stat().st_mtime_ns)
    directory = path if path.is_dir() else path.parent
    if not (directory / origins.FILE).is_file():
        return None
    return read_trusted(directory, "store.path", trust, env)


def read_trusted(directory: Path, key: str, trust: bool | str, env: str) -> Origin:
    """Read the origin of the run in a directory that `key` names, and check that the person made it
    or trusts it, according to `trust` and the environment `env`. Raises ConfigError, and
    UntrustedRun where they do not."""
    # Read once: the settings that apply are those of the bytes that were checked.
    data = origins.read_bytes(directory, key)
    named = f"{key}={directory}"
    origin = origins.parse(data, f"{named}: {origins.FILE}")
    document = json.loads(data)
    require_own(
        named,
        hashlib.sha256(data).hexdigest(),
        own=is_own(document, origin.seal),
        trust=trust,
        env=env,
        shown="\n".join(f"  {_printable(line)}" for line in _list_effects(origin)),
    )
    return origin


def list_changed(settings: JsonMapping) -> Iterator[str]:
    """Yield the recorded settings that differ from the packaged ones, each on a printable line."""
    for key, value in find_changed(settings):
        yield _printable(f"{key}={value if isinstance(value, str) else json.dumps(value)}")


def _list_effects(origin: Origin) -> Iterator[str]:
    """Yield the settings that a run would apply by resuming a recorded one."""
    yield from list_changed(origin.settings)
    yield from _list_composed_again(origin)
    if origin.config_dir:
        yield f"--config-dir {origin.config_dir}"
    if origin.provider.base_url:
        yield f"the address {origin.provider.base_url} for the key in {origin.provider.api_key_env}"
    yield f"modules of your own are looked for in {origin.working_directory}"


def _printable(text: str) -> str:
    return "".join(ch if ch.isprintable() else ascii(ch)[1:-1] for ch in text)


def find_changed(recorded: JsonMapping) -> Iterator[tuple[str, Any]]:
    """Yield the recorded settings that differ from the packaged ones, with their keys."""
    usual = dict(leaves(read_usual()))
    for key, value in leaves(recorded):
        if key not in usual or usual[key] != value:
            yield ".".join(key), value


@cache
def read_usual() -> JsonMapping:
    """Return the packaged settings, as a run without overrides records them."""
    from aeon.config.settings import Settings  # slow to load

    values = OmegaConf.to_container(compose(Composition()).values, resolve=True)
    return record(Settings.model_validate(values))[0]


@lru_cache(maxsize=8)
def _origin_of_cassette(path: Path, _changed: int) -> Origin | None:
    # Several steps of a start need it; the time of its last change is part of the cache's key.
    from aeon.store import cassette

    try:
        values = cassette.read(path).origin
    except StoreFailed as error:
        raise ConfigError(f"store.path: {error.message}", hint=error.hint) from None
    if not values:
        return None
    origin = parse_of_cassette(values, f"store.path={path}: its origin")
    taken, held = take_from_others(origin.settings, read_usual())
    # No file of this machine is read and no address called because a cassette names it.
    apart = {
        "provider": origin.provider.model_copy(update={"base_url": None}),
        "settings": taken,
        "missing": tuple(dict.fromkeys((*origin.missing, *held))),
        "files": {},
    }
    return origin.model_copy(update=apart)


def parse_of_cassette(values: JsonMapping, where: str) -> Origin:
    """Parse the origin in a cassette; one in the previous format has no settings, and `missing`
    names the overridden ones. Raises ConfigError with the place `where`."""
    if values.get("format") != origins.EARLIER:
        return origins.parse(values, where)
    keys = dict.fromkeys(key_of(str(text)) for text in values.get("overrides") or ())
    today: JsonObject = {
        "format": origins.FORMAT,
        "overrides": None,
        "settings": {},
        "missing": tuple(key for key in keys if mark_at(key).rule != "unneeded"),
    }
    kept = {name: value for name, value in values.items() if name != "paths"}
    return origins.parse({**kept, **today}, where)


def find_held_back(origin: Origin, today: Composition) -> tuple[str, ...]:
    """Return the keys of settings recorded in a cassette of this origin that are not applied from
    it and that today's overrides do not set."""
    given = tuple(f"{key_of(text)}." for text in today.overrides)
    return tuple(key for key in origin.missing if not f"{key}.".startswith(given))


def find_left_out(origin: Origin, overrides: Iterable[str]) -> tuple[str, ...]:
    """Return the keys of the run's provider that were not applied, since another provider was
    chosen."""
    given = set(map(key_of, overrides))
    words = dict.fromkeys(map(key_of, origin.overrides or ()))
    return tuple(key for key in words if key.startswith("provider.") and key not in given)
