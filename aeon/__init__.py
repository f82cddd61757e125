"""Aeon: a declarative-config workflow runner for LLM reasoning."""

from __future__ import annotations

# Nothing is imported here: `python -m` looks in the working directory first, until `__main__` has
# taken it away.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aeon.app.aeon import Aeon
    from aeon.app.inspect.solver import inspect_solver
    from aeon.domain.errors import (
        AeonError,
        ArtefactError,
        ConfigError,
        LimitReached,
        LLMError,
        PlanError,
        ProviderError,
        ValidationError,
    )
    from aeon.domain.result import RunResult
    from aeon.observability.artefacts import load, read_history
    from aeon.report.record import Call, Record, load_record
    from aeon.tools.function import tool
    from aeon.tools.registry import Tool

__version__ = "0.1.0"

__all__ = [
    "Aeon",
    "AeonError",
    "ArtefactError",
    "Call",
    "ConfigError",
    "LLMError",
    "LimitReached",
    "PlanError",
    "ProviderError",
    "Record",
    "RunResult",
    "Tool",
    "ValidationError",
    "inspect_solver",
    "load",
    "load_record",
    "read_history",
    "tool",
]

_HOMES = {
    "Aeon": "aeon.app.aeon",
    "Call": "aeon.report.record",
    "Record": "aeon.report.record",
    "RunResult": "aeon.domain.result",
    "Tool": "aeon.tools.registry",
    "inspect_solver": "aeon.app.inspect.solver",
    "load": "aeon.observability.artefacts",
    "load_record": "aeon.report.record",
    "read_history": "aeon.observability.artefacts",
    "tool": "aeon.tools.function",
}


def __getattr__(name: str) -> Any:
    """Public names, imported when first used: `import aeon` alone stays fast."""
    if name not in __all__:
        raise AttributeError(f"module 'aeon' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES.get(name, "aeon.domain.errors")), name)
