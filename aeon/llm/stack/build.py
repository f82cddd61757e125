"""Assembles the wrappers around a provider's adapter, here and nowhere else. Outermost first:

- Spend: the run's caps on what it requests; a stored answer counts too
- Stored: a stored answer for a request that was paid before
- ProfileMemo: the first profile of an equal task, requested in this process before
- Spend, without caps: real money and tokens; answers of the two above never get here
- Patient: waits for endpoints that are down or busy, and sends the call again
- Fallback: over endpoints, those that are cooling down last; each of them has:
- Retry: its backoff occupies no slot of the limiter inside it
- Gate: as the endpoint's state allows: not cooling down, concurrent requests, requests and tokens
  per minute
- vendor: the only place that knows an SDK

An `EndpointAdapter` and its state live as long as the process, the wrappers as long as a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from aeon.domain.events import Emit, ignore
from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse
from aeon.llm.prices import PriceBook, PriceList, name_endpoints, price_list
from aeon.llm.protocols import (
    BatchingAdapter,
    LearningAdapter,
    OfRun,
    close,
    find_model,
    is_synthetic,
)
from aeon.llm.settings import ProviderSettings, RetrySettings
from aeon.llm.stack.endpoint_state import Gate
from aeon.llm.stack.limits import LimitSettings, Meter, Spend
from aeon.llm.stack.patience import Patience, Patient
from aeon.llm.stack.retry import EndpointAdapter as EndpointAdapter
from aeon.llm.stack.retry import Fallback, Retry
from aeon.llm.stack.stored import Absent, ProfileMemo, Stored
from aeon.store.session import Session
from aeon.store.settings import StoreSettings


class Endpoints:
    """A provider and its fallbacks, in the order of use. Used as an adapter, it is the first one.
    `meter` totals the real spending of all runs, `profiles` has the answers to first profiles of
    tasks, `patience` says how long calls wait for endpoints that are down."""

    def __init__(self, endpoints: Sequence[EndpointAdapter]) -> None:
        self._endpoints = tuple(endpoints)
        self.meter = Meter()
        self.patience = Patience()
        self.profiles: dict[str, LLMResponse] = {}

    def __iter__(self) -> Iterator[EndpointAdapter]:
        return iter(self._endpoints)

    @property
    def learners(self) -> list[LearningAdapter]:
        """The adapters that find out what their servers can do."""
        return [
            endpoint.adapter for endpoint in self if isinstance(endpoint.adapter, LearningAdapter)
        ]

    @property
    def model(self) -> str:
        """The model of calls that do not name their own."""
        return self._endpoints[0].prices.model

    @property
    def synthetic(self) -> bool:
        """Whether the first adapter's answers are generated without a model."""
        return is_synthetic(self._endpoints[0].adapter)

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request, at the first endpoint, once."""
        return self._endpoints[0].adapter.complete(request)

    def close(self) -> None:
        """Close all adapters."""
        for endpoint in self:
            close(endpoint.adapter)


def absent_stack(settings: ProviderSettings) -> Endpoints:
    """Return the provider's endpoints for a replay, which calls none of them: it needs their prices
    but no key."""
    named = name_endpoints(settings)
    return Endpoints(
        [EndpointAdapter(name, Absent(of.model), of.retry, price_list(of)) for name, of in named]
    )


def run_stack(
    adapter: LLMAdapter,
    *,
    limits: LimitSettings,
    retry: RetrySettings | None = None,
    emit: Emit = ignore,
    stop: Callable[[], bool] = lambda: False,
    session: Session | None = None,
    store: StoreSettings | None = None,
    provider: ProviderSettings | None = None,
    run_id: str | None = None,
) -> Spend:
    """Wrap a process's endpoints, or any adapter with the settings `provider`, for one run.

    `retry` defaults to the endpoints' own. `session` is the run's use of the store, configured by
    `store`. `run_id` is the key under which a provider caches the run's prompts.
    """
    endpoints = endpoints_of(adapter, provider)
    prices = PriceBook({endpoint.name: endpoint.prices for endpoint in endpoints})
    asked = []
    for endpoint in endpoints:
        state = endpoint.state
        inner = Gate(endpoint.adapter, state, stop=stop) if state else endpoint.adapter
        inner = inner.of_run(stop) if isinstance(inner, BatchingAdapter) else inner
        inner = Retry(
            inner,
            retry or endpoint.retry,
            emit=emit,
            stop=stop,
            has_next=endpoint.has_next,
            state=state,
            call_seconds=endpoint.seconds_of_call,
        )
        asked.append(replace(endpoint, adapter=inner))
    fallback = Fallback(asked, emit=emit)
    patient = Patient(fallback, asked, endpoints.patience, emit=emit, stop=stop)
    inner = Spend(OfRun(patient, run_id, stop), LimitSettings(), prices, endpoints.meter)
    inner = ProfileMemo(inner, endpoints.profiles, store.sample if store else 0)
    # Outside of the memo, so that a profile that is remembered gets into each run's store too.
    if session is not None:
        inner = Stored(inner, session, provider, store, stop=stop, learners=endpoints.learners)
    return Spend(inner, limits, prices)


def endpoints_of(adapter: LLMAdapter, provider: ProviderSettings | None = None) -> Endpoints:
    """Return the endpoints of an adapter; one that is not `Endpoints` becomes the only one, retried
    and priced like `provider`."""
    if isinstance(adapter, Endpoints):
        return adapter
    model = find_model(adapter)
    if provider is None:
        prices = PriceList(model=model or "")
        return Endpoints([EndpointAdapter("", adapter, prices=prices)])
    prices = PriceList(provider.prices, model=provider.model if model is None else model)
    return Endpoints([EndpointAdapter("", adapter, provider.retry, prices)])


def findings(adapter: LLMAdapter, *, only_new: bool = False) -> tuple[str, ...]:
    """Return what servers refuse or fail to follow, sorted; with `only_new`, only what was not
    returned that way before."""
    return tuple(
        sorted(
            {
                str(finding)
                for learner in endpoints_of(adapter).learners
                for finding in learner.findings(only_new=only_new)
            }
        )
    )
