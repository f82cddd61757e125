"""Objects that you bring: named in the configuration as `package.module:object`, or by the name
under which an installed package registers them (an entry point)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from aeon.domain.errors import AeonError, ConfigError
from aeon.files.pinned import UNTRUSTED_HINT
from aeon.files.stdout import redirect_prints_to_stderr
from aeon.files.trusted_modules import UntrustedModule, search_trusted_modules

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def load_object(key: str, reference: str, kind: str, group: str = "") -> Any:
    """Import the object `reference`: `package.module:object`, with the working directory searched
    last, or a name that an installed package registers under `group`. `key` and the required `kind`
    are for messages. Raises ConfigError for another form, and for an object that is missing or
    cannot be imported."""
    named = f"{key}={reference}"
    module, _, path = reference.partition(":")
    if group and module and not path and ":" not in reference:
        return _load_registered(named, reference, kind, group)
    if not module or not path:
        raise ConfigError(f"{named}: write package.module:{kind}")
    # A console script does not search the folder it is started in, where your own modules are.
    if "" not in sys.path:
        search_for_modules(Path.cwd())
    return _import_attribute(named, module, path)


def call_factory(
    named: str,
    factory: object,
    *arguments: Any,
    options: Mapping[str, Any] | None = None,
    hint: str = "",
    passes: tuple[type[AeonError], ...] = (),
) -> Any:
    """Call a custom factory with the arguments and options and return its result. `named` is its
    key and reference. Raises ConfigError for every failure in it, except errors in `passes`."""
    if not callable(factory):
        raise ConfigError(
            f"{named}: it is of type {type(factory).__name__}, which cannot be called", hint=hint
        )
    try:
        with redirect_prints_to_stderr():
            return factory(*arguments, **(options or {}))
    except passes:
        raise
    except (Exception, SystemExit) as error:  # a foreign factory may fail in any way
        problem = f"{named}: cannot be made: {type(error).__name__}: {error}"
        raise ConfigError(problem, hint=hint) from error


@cache
def find_registered(group: str) -> Mapping[str, tuple[EntryPoint, ...]]:
    """Return what installed packages register under a group, by name. The folder in which the
    program was started registers nothing: it may belong to a stranger."""
    from importlib.metadata import distributions  # takes time, and few programs use it

    here = Path.cwd().resolve()
    installed = [place for place in sys.path if place and Path(place).resolve() != here]
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for distribution in distributions(path=installed):
        for entry in distribution.entry_points.select(group=group):
            known = found.get(entry.name, ())
            found[entry.name] = known if entry in known else (*known, entry)
    return dict(sorted(found.items()))


def load_entry(named: str, entries: tuple[EntryPoint, ...]) -> Any:
    """Import an object that an installed package registers. Raises ConfigError if it cannot be
    imported, and if several packages register different objects under one name."""
    if len({entry.value for entry in entries}) > 1:
        several = ", ".join(f"{_package_of(entry)} ({entry.value})" for entry in entries)
        raise ConfigError(f"{named}: several packages register this name: {several}")
    entry = entries[0]
    return _import_attribute(f"{named}, of {_package_of(entry)}", entry.module, entry.attr)


def search_for_modules(folder: Path) -> None:
    """Append a folder to `sys.path`, unless only some of its files are trusted. Nothing else
    changes `sys.path`."""
    if not search_trusted_modules(folder) and str(folder) not in sys.path:
        sys.path.append(str(folder))


def _load_registered(named: str, name: str, kind: str, group: str) -> Any:
    registered = find_registered(group)
    if name in registered:
        return load_entry(named, registered[name])
    there = f"There is {', '.join(registered)}." if registered else "No installed package does."
    raise ConfigError(
        f"{named}: write package.module:{kind}, or a name that a package registers under {group}",
        hint=there,
    )


def _package_of(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else "an unnamed package"


def _import_attribute(named: str, module: str, path: str) -> Any:
    loaded = _import_module(named, module)
    if not path:
        return loaded
    try:
        return attrgetter(path)(loaded)
    except AttributeError as error:
        near = get_close_matches(path, vars(loaded), n=1)
        raise ConfigError(
            f"{named}: cannot be imported: AttributeError: {error}",
            hint=f"Did you mean {module}:{near[0]}?" if near else "",
        ) from error


def _import_module(named: str, module: str) -> ModuleType:
    try:
        with redirect_prints_to_stderr():
            return importlib.import_module(module)
    # Importing runs the module, in which anything may happen.
    except (Exception, SystemExit) as error:
        if isinstance(error, UntrustedModule):
            raise ConfigError(f"{named}: {error}", hint=UNTRUSTED_HINT) from error
        # The module itself is missing, or a package that it is in; not one that it imports.
        missing = f"{error.name}." if isinstance(error, ModuleNotFoundError) else None
        is_missing = missing is not None and f"{module}.".startswith(missing)
        where = f"It is looked for among the installed packages and in {Path.cwd()}."
        raise ConfigError(
            f"{named}: cannot be imported: {type(error).__name__}: {error}",
            hint=where if is_missing else "",
        ) from error
