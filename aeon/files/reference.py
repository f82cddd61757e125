"""Objects of a person's own: named in the configuration as `package.module:object`, or by the name
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
    """Import what `reference` names: `package.module:object`, the working directory being searched
    last, or a name that an installed package registers under `group`. `key` and the `kind` that is
    wanted are for the message. Raises ConfigError for another form, and for what is not there or
    cannot be imported."""
    named = f"{key}={reference}"
    module, _, path = reference.partition(":")
    if group and module and not path and ":" not in reference:
        return _load_registered(named, reference, kind, group)
    if not module or not path:
        raise ConfigError(f"{named}: write package.module:{kind}")
    # A console script does not see the folder it is started in, and that is where a person's own
    # modules are.
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
    """What a person's own factory makes of the arguments and options. `named` is its key and
    reference. Raises ConfigError for whatever goes wrong in it, but for errors of `passes`."""
    if not callable(factory):
        raise ConfigError(
            f"{named}: it is of type {type(factory).__name__}, which cannot be called", hint=hint
        )
    try:
        with redirect_prints_to_stderr():
            return factory(*arguments, **(options or {}))
    except passes:
        raise
    except (Exception, SystemExit) as error:  # a factory of any make may fail in any way
        problem = f"{named}: cannot be made: {type(error).__name__}: {error}"
        raise ConfigError(problem, hint=hint) from error


@cache
def find_registered(group: str) -> Mapping[str, tuple[EntryPoint, ...]]:
    """What installed packages register under a group, by name. A folder in which the program was
    started registers nothing: it may be a stranger's."""
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
    """Import what an installed package registers. Raises ConfigError when it cannot be imported,
    and where several packages register different things under one name."""
    if len({entry.value for entry in entries}) > 1:
        several = ", ".join(f"{_package_of(entry)} ({entry.value})" for entry in entries)
        raise ConfigError(f"{named}: several packages register this name: {several}")
    entry = entries[0]
    return _import_attribute(f"{named}, of {_package_of(entry)}", entry.module, entry.attr)


def search_for_modules(folder: Path) -> None:
    """Put a folder last in `sys.path`, unless just some of its files are trusted. Nothing else
    changes that list."""
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
    except (
        Exception,
        SystemExit,
    ) as error:  # importing runs the module, in which anything may happen
        if isinstance(error, UntrustedModule):
            raise ConfigError(f"{named}: {error}", hint=UNTRUSTED_HINT) from error
        is_missing = isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(
            f"{error.name}."
        )
        where = f"It is looked for among the installed packages and in {Path.cwd()}."
        raise ConfigError(
            f"{named}: cannot be imported: {type(error).__name__}: {error}",
            hint=where if is_missing else "",
        ) from error
