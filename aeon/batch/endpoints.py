"""Endpoints shared by several configurations of one process, the caps on their total usage, and the
wait for endpoints that are down."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

from aeon.app.process import process_stack
from aeon.domain.errors import LimitReached, StopRequested
from aeon.domain.request import LLMAdapter
from aeon.llm.prices import AnyEndpoint, name_endpoints
from aeon.llm.settings import EndpointSettings, ProviderSettings, SimulatedProvider
from aeon.llm.stack.build import Endpoints
from aeon.llm.stack.endpoint_state import EndpointState
from aeon.llm.stack.limiter import POLL_SECONDS
from aeon.llm.stack.limits import LimitSettings, Meter
from aeon.llm.stack.patience import Patience

# A server and its limits: settings that agree in these share a state.
_FIELDS_OF_SERVERS = {
    "base_url",
    "base_url_env",
    "api_key_env",
    "max_concurrency",
    "requests_per_minute",
    "tokens_per_minute",
    "breaker",
    "retry",
}


class SharedEndpoints:
    """Opens the endpoints of providers: equal ones share an adapter, and those of one server share
    a state, whatever their models, so that together they respect its limits. `meter` adds up their
    usage, `patience` applies to all, or None where each provider has its own."""

    def __init__(self, meter: Meter | None = None, patience: Patience | None = None) -> None:
        self.meter = meter or Meter()
        self._patience = patience
        self._opened: dict[str, Endpoints] = {}
        self._states: dict[str, EndpointState | None] = {}
        self._lock = threading.Lock()

    def open(
        self, provider: ProviderSettings, environ: Mapping[str, str], own: LLMAdapter | None = None
    ) -> Endpoints:
        """Return the endpoints of a definite provider, as `process_stack` builds them; closing the
        returned ones has no effect."""
        if isinstance(provider, SimulatedProvider):  # each job restarts its scenario
            made = process_stack(provider, environ, own)
            made.meter = self.meter
            return made
        with self._lock:
            key = provider.model_dump_json()
            if key not in self._opened:
                self._opened[key] = process_stack(provider, environ, own)
            named = [settings for _, settings in name_endpoints(provider)]
            states = [
                self._states.setdefault(
                    _server_of(settings, has_next=endpoint.has_next), endpoint.state
                )
                for settings, endpoint in zip(named, self._opened[key], strict=True)
            ]
        lent = _BorrowedEndpoints(
            [
                replace(one, state=state)
                for one, state in zip(self._opened[key], states, strict=True)
            ]
        )
        lent.meter = self.meter
        lent.patience = self._patience or self._opened[key].patience
        return lent

    def find_down(self) -> EndpointState | None:
        """Return an endpoint that is down when all are; None where one can be called."""
        with self._lock:
            states = [state for state in self._states.values() if state is not None]
        return states[-1] if states and all(state.is_cooling for state in states) else None

    def wait_until_up(self, stop: Callable[[], bool]) -> None:
        """Wait while no endpoint can be called, or until `stop` returns True."""
        while not stop() and (state := self.find_down()) is not None:
            state.wait_until_up(POLL_SECONDS, stop)

    def close(self) -> None:
        """Close all opened endpoints."""
        for endpoints in self._opened.values():
            endpoints.close()


class _BorrowedEndpoints(Endpoints):
    def close(self) -> None:
        """Do nothing: others still use them."""


def _server_of(settings: AnyEndpoint, *, has_next: bool) -> str:
    fields = _FIELDS_OF_SERVERS if isinstance(settings, EndpointSettings) else None
    return f"{settings.kind} {has_next} {settings.model_dump_json(include=fields)}"


class CappedMeter(Meter):
    """A meter that holds all its users together to `caps`, those of `group`: when one is reached,
    `stop` gets its description, and no further call is made."""

    def __init__(
        self, caps: LimitSettings, stop: Callable[[str], None], group: str = "sweep"
    ) -> None:
        super().__init__()
        self._caps = caps
        self._stop = stop
        self._group = group

    def start(self, limits: LimitSettings) -> None:  # noqa: ARG002
        """Count one more call under way. Raises StopRequested if the caps allow none."""
        try:
            super().start(self._caps)
        except LimitReached as end:
            reached = self._describe(end)
            self._stop(reached)
            raise StopRequested(reached) from None

    def _describe(self, end: LimitReached) -> str:
        return end.message.replace("limits.", f"{self._group}.")
