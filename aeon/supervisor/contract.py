"""Calls a component by its published interface and checks its result."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any, TypeVar

import pydantic

from aeon.domain.errors import AeonError, ComponentFailed, ValidationError

logger = logging.getLogger(__name__)
T = TypeVar("T")
_HINT = (
    "Correct this component; HYDRA_FULL_ERROR=1 in the environment shows where an exception began."
)


@dataclass(frozen=True, slots=True)
class Contract:
    """One method of a component, and its return type: with `many` a list of such values, with
    `optional` possibly None; an int is at least 0."""

    component: str
    method: str
    returns: type | tuple[type, ...]
    many: bool = False
    optional: bool = False

    def call(self, component: object, *arguments: Any, **more: Any) -> Any:
        """Call the method and return its value. Of `more`, it gets only the arguments that it
        names: the published interface has none of them. Raises ComponentFailed for a value of
        another type, and for every exception that is not Aeon's; pydantic's `ValidationError`
        counts as Aeon's."""
        name = f"{self.component}: {type(component).__name__}.{self.method}"
        try:
            method = getattr(component, self.method)
            value = (fit_method(method) if more else method)(*arguments, **more)
        except AeonError:
            raise
        except pydantic.ValidationError as error:
            raise ValidationError(f"{name} raised ValidationError: {error}") from error
        except (Exception, SystemExit) as error:
            logger.debug("unexpected", exc_info=True)
            message = f"{name} raised {type(error).__name__}: {error}"
            raise ComponentFailed(message, hint=_HINT) from error
        if not self._allows(value):
            message = f"{name} returned {_describe(value)}, not {self._expected}"
            raise ComponentFailed(message, hint=_HINT)
        return value

    def _allows(self, value: Any) -> bool:
        if value is None:
            return self.optional
        if self.many:
            is_list = isinstance(value, list | tuple)
            return is_list and all(isinstance(each, self.returns) for each in value)
        if self.returns is int:
            return isinstance(value, int) and not isinstance(value, bool) and value >= 0
        return isinstance(value, self.returns)

    @property
    def _expected(self) -> str:
        if self.returns is int:
            return "a number of at least 0"
        kinds = self.returns if isinstance(self.returns, tuple) else (self.returns,)
        name = " or ".join(kind.__name__ for kind in kinds)
        if self.many:
            return f"a list of {name}"
        return f"{name} or None" if self.optional else name


def fit_method(method: Callable[..., T]) -> Callable[..., T]:
    """Wrap `method` to drop keyword arguments that it does not accept: the published interface has
    none. A method with `**more` gets all of them."""
    taken = signature(method).parameters
    if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in taken.values()):
        return method
    return lambda *arguments, **more: method(
        *arguments, **{name: more[name] for name in more if name in taken}
    )


def _describe(value: object) -> str:
    if isinstance(value, list | tuple):
        kinds = sorted({type(each).__name__ for each in value})
        return f"a list of {', '.join(kinds)}"
    if isinstance(value, int):
        return repr(value)
    return "None" if value is None else f"a value of type {type(value).__name__}"
