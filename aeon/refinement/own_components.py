"""Components that you bring: named by `components.NAME` or given in Python, and checked against the
published interfaces."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from aeon.domain.errors import ConfigError
from aeon.domain.values import JsonMapping, OwnObject
from aeon.files.reference import call_factory, load_object
from aeon.memory.interface import Memory
from aeon.refinement.components import Depth, Engine, Planner, Validator
from aeon.supervisor.own import Repairs

GROUP = "aeon.components"
"""The entry points by which a package registers components."""
GIVEN = " (given in Python)"
INTERFACES: Mapping[str, type] = {
    "planner": Planner,
    "validator": Validator,
    "convergence": Engine,
    "adaptive_depth": Depth,
    "supervisor": Repairs,
    "memory": Memory,
}
"""The interface of each component, by its name in `components`."""


class GivenComponents(TypedDict, total=False):
    """Components that a program may pass: each either a component shared by all runs, or a factory
    that creates one for each run."""

    planner: Planner | Callable[..., Planner] | None
    validator: Validator | Callable[..., Validator] | None
    convergence: Engine | Callable[..., Engine] | None
    adaptive_depth: Depth | Callable[..., Depth] | None
    supervisor: Repairs | Callable[..., Repairs] | None


_PAGE = "`aeon docs components` has examples."


@dataclass(frozen=True, slots=True)
class OwnComponent:
    """A custom component. `factory` creates one for each run; `instance` is shared by all runs."""

    named: str
    interface: type
    factory: Callable[..., object] | None = None
    options: JsonMapping = field(default_factory=dict)
    instance: object = None

    def make(self, offered: Mapping[str, object]) -> Any:
        """Return the component of one run; its factory gets those offered objects that its
        parameters name, and its options. Raises ConfigError for a component that cannot be created
        or lacks a method of its interface."""
        if self.factory is None:
            return self.instance
        taken = _parameters_of(self.factory)
        arguments = {name: offered[name] for name in offered if name in taken}
        made = call_factory(
            self.named,
            self.factory,
            options={**arguments, **self.options},
            hint=f"It is given what it names of {', '.join(offered)}, and its options. {_PAGE}",
        )
        check_interface(self.named, made, self.interface)
        return made


@dataclass(frozen=True, slots=True)
class OwnComponents:
    """The custom components, by their names in `components`."""

    by_name: Mapping[str, OwnComponent] = field(default_factory=dict)

    def make(self, name: str, offered: Mapping[str, object]) -> Any:
        """Return the component of one run; None for the packaged one."""
        own = self.by_name.get(name)
        return own.make(offered) if own else None


def describe_components(given: Mapping[str, object]) -> dict[str, OwnObject]:
    """Return the components given in Python in the form of a configuration."""
    return {name: OwnObject(factory=_name_of(value)) for name, value in given.items()}


def load_components(
    configured: Mapping[str, OwnObject], given: Mapping[str, object]
) -> OwnComponents:
    """Import the configured components, except those `given` in Python instead: a component, or a
    class or function that creates one for each run. Raises ConfigError for one that cannot be
    imported or called, or lacks a method."""
    imported = {
        name: _load_configured(name, own) for name, own in configured.items() if name not in given
    }
    taken = {name: _take_given(name, value) for name, value in given.items()}
    return OwnComponents({**imported, **taken})


def _load_configured(name: str, own: OwnObject) -> OwnComponent:
    key = f"components.{name}"
    named = f"{key}={own.factory}"
    if own.factory.endswith(GIVEN):
        raise ConfigError(
            f"{named}: a program passed it to the run being resumed",
            hint=f'Pass it again: Aeon.from_config(["resume=DIR"], {name}=...); '
            f"or choose another: {key}=package.module:Factory, {key}=null for the packaged one.",
        )
    factory = load_object(key, own.factory, "Factory", GROUP)
    if not callable(factory):
        kind = type(factory).__name__
        raise ConfigError(f"{named}: it is of type {kind}, which cannot be called", hint=_PAGE)
    return OwnComponent(named, INTERFACES[name], factory=factory, options=own.options)


def _take_given(name: str, given: object) -> OwnComponent:
    if name not in GivenComponents.__annotations__:
        raise TypeError(f"Aeon got an unexpected keyword argument {name!r}")
    named = f"{name}={_name_of(given)}"
    interface = INTERFACES[name]
    if inspect.isclass(given) or inspect.isroutine(given):
        return OwnComponent(named, interface, factory=given)
    check_interface(named, given, interface)
    return OwnComponent(named, interface, instance=given)


def check_interface(named: str, component: object, interface: type) -> None:
    """Raise ConfigError for a component that lacks a method of the published interface, or whose
    method does not accept its arguments."""
    for name, published in vars(interface).items():
        if name.startswith("_") or not inspect.isfunction(published):
            continue
        takes = [each for each in inspect.signature(published).parameters if each != "self"]
        call = f"{name}({', '.join(takes)})"
        method = getattr(component, name, None)
        if not callable(method):
            kind = type(component).__name__
            raise ConfigError(f"{named}: {kind} has no method {call}", hint=_PAGE)
        if inspect.iscoroutinefunction(method):
            problem = f"{name} is a coroutine function, and is called from threads"
            raise ConfigError(f"{named}: {problem}", hint=_PAGE)
        try:
            inspect.signature(method).bind(*takes)
        except TypeError as error:
            raise ConfigError(f"{named}: it is called as {call}: {error}", hint=_PAGE) from None


def _parameters_of(factory: Callable[..., object]) -> frozenset[str]:
    try:
        return frozenset(inspect.signature(factory).parameters)
    except ValueError:  # some C classes have no signature
        return frozenset()


def _name_of(given: object) -> str:
    kind = given if inspect.isclass(given) or inspect.isroutine(given) else type(given)
    name = f"{kind.__module__}:{kind.__qualname__}"
    is_importable = kind is given and "<" not in name
    return name if is_importable else f"{name}{GIVEN}"
