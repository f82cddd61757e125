"""What a component of one's own accepts beyond the published interface."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def accepted_arguments(method: Callable[..., Any], **arguments: Any) -> dict[str, Any]:
    """Those of the arguments that a method accepts; one with the published signature alone accepts none of them."""
    parameters = inspect.signature(method).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return arguments
    names = {parameter.name for parameter in parameters}
    return {name: value for name, value in arguments.items() if name in names}
