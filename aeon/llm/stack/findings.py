"""What has been found out about a provider's endpoints, as sentences for a person."""

from __future__ import annotations

from collections.abc import Iterator

from aeon.domain.request import LLMAdapter
from aeon.llm.protocols import LearningAdapter
from aeon.llm.stack.build import Endpoints


def all_findings(adapter: LLMAdapter) -> tuple[str, ...]:
    """Everything known by now, sorted: what a server does not take or does not hold to, and what is done instead.

    It is known for the life of the process, whichever run found it out.
    """
    return tuple(sorted({str(finding) for learner in _learners(adapter) for finding in learner.findings()}))


def new_findings(adapter: LLMAdapter) -> tuple[str, ...]:
    """Those that were not returned here before, so that each is reported once."""
    return tuple(sorted({str(finding) for learner in _learners(adapter) for finding in learner.new_findings()}))


def _learners(adapter: LLMAdapter) -> Iterator[LearningAdapter]:
    adapters = [endpoint.adapter for endpoint in adapter] if isinstance(adapter, Endpoints) else [adapter]
    yield from (found for found in adapters if isinstance(found, LearningAdapter))
