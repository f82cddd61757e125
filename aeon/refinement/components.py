"""A validator as refinement and the kernel call it.

Aeon's own methods take keyword arguments beyond the published interface. A method that a person wrote, or overrode, is
called with the published arguments alone. Adapted once, when the components are put together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from aeon.domain.report import SemanticValidationReport
from aeon.validation.semantic import SemanticValidator

T = TypeVar("T")


Validate = Callable[..., SemanticValidationReport]
"""A validator's `validate`, its arguments by position; `delta=` is the refinement under review."""


def adapt_method(method: Callable[..., T], own: Callable[..., T]) -> Callable[..., T]:
    """`method` when it is `own`, the one of Aeon's class; else `method` without the keyword arguments."""
    if getattr(method, "__func__", None) is own:
        return method
    return lambda *arguments, **_: method(*arguments)


def validate_method(validator: SemanticValidator) -> Validate:
    """A validator's `validate`."""
    return adapt_method(validator.validate, SemanticValidator.validate)
