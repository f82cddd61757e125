"""What has been found out about a provider's endpoints, as sentences for a person."""

from __future__ import annotations

from collections.abc import Iterator

from aeon.domain.request import LLMAdapter
from aeon.llm.stack.build import Endpoints


def findings(adapter: LLMAdapter) -> tuple[str, ...]:
    """Everything known by now, sorted: what a server does not take or does not hold to, and what is done instead.

    It is known for the life of the process, whichever run found it out.
    """
    return tuple(sorted({str(finding) for inner in _adapters(adapter) for finding in _asked(inner, "findings")}))


def untold(adapter: LLMAdapter) -> tuple[str, ...]:
    """Those that were not given out here before, so that each is said once."""
    return tuple(sorted({str(finding) for inner in _adapters(adapter) for finding in _asked(inner, "untold_findings")}))


def _adapters(adapter: LLMAdapter) -> Iterator[LLMAdapter]:
    if isinstance(adapter, Endpoints):
        yield from (endpoint.adapter for endpoint in adapter)
    else:
        yield adapter


def _asked(adapter: LLMAdapter, name: str) -> tuple[object, ...]:
    """What an adapter says; one that finds nothing out has no such method."""
    method = getattr(adapter, name, None)
    return tuple(method()) if method is not None else ()
