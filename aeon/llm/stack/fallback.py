"""Asking the next endpoint when one cannot answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from aeon.domain.errors import LLMError
from aeon.domain.events import Emit, FallbackUsed, ignore
from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse
from aeon.llm.prices import PriceList
from aeon.llm.settings import RetrySettings
from aeon.llm.stack.endpoint_state import EndpointState
from aeon.llm.stack.retry import in_other_words, with_usage_of


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One server or model, for the life of the process; without a `state` nothing is held back. `has_next` says that
    another endpoint is asked when this one cannot answer."""

    name: str
    adapter: LLMAdapter
    retry: RetrySettings = field(default_factory=RetrySettings)
    prices: PriceList = field(default_factory=PriceList)
    state: EndpointState | None = None
    has_next: bool = False


class Fallback:
    """Asks endpoints in order until one answers; those that are cooling down last.

    The next is asked after an error that says that the endpoint is of no use (`falls_back`), for its own model,
    whatever model the call names. The first time that one stands in for another is reported as `FallbackUsed`.
    """

    def __init__(self, endpoints: Sequence[Endpoint], *, emit: Emit = ignore) -> None:
        self._endpoints, self._emit = tuple(endpoints), emit
        self._reported: set[tuple[str, str]] = set()

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request. Raises the last endpoint's error, which quotes the errors of those before it."""
        failed: list[LLMError] = []
        for endpoint in self._in_order():
            asked = request
            if endpoint is not self._endpoints[0]:
                asked = replace(request, parameters=replace(request.parameters, model=None))
            try:
                response = endpoint.adapter.complete(asked)
            except LLMError as error:
                error.endpoint = endpoint.name
                failed.append(error)
                if not error.falls_back:
                    break
                continue
            if endpoint is not self._endpoints[0]:
                self._report(request, failed, endpoint.name)
            return with_usage_of(failed, replace(response, endpoint=endpoint.name))
        if len(failed) == 1:
            raise failed[0]
        before = "; ".join(f"{error.endpoint}: {type(error).__name__}: {error.message}" for error in failed[:-1])
        last = failed[-1]
        raise in_other_words(failed, f"{last.endpoint}: {last.message} (asked before it: {before})") from last

    def _in_order(self) -> Iterator[Endpoint]:
        """The endpoints as they are asked: those that are cooling down last, and the last one even if it is busy."""
        cooling = []
        for endpoint in self._endpoints:
            if endpoint.state is not None and endpoint.state.is_cooling:
                cooling.append(endpoint)
            else:
                yield endpoint
        if cooling and cooling[-1].state is not None:
            cooling[-1].state.end_busy_cooldown()
        yield from cooling

    def _report(self, request: LLMRequest, failed: Sequence[LLMError], name: str) -> None:
        first = self._endpoints[0]
        before = failed[-1].endpoint if failed else first.name
        if (before, name) in self._reported:
            return
        self._reported.add((before, name))
        error = failed[-1] if failed else first.state.refusal() if first.state else LLMError("not asked")
        told = f"{type(error).__name__}: {error.message}"
        event = FallbackUsed(site=request.site, call=request.call, failed=before, endpoint=name, error=told)
        self._emit(event, request.site)
