"""What an adapter may offer beside `complete` (`close()`, `model`, `synthetic`, findings), and know
of its attempt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse


@runtime_checkable
class Closable(Protocol):
    """What holds something open."""

    def close(self) -> None:
        """Close it; calls under way fail."""


def close(held: object) -> None:
    """Close an adapter, or anything, that holds something open."""
    if isinstance(held, Closable):
        held.close()


@runtime_checkable
class NamedAdapter(Protocol):
    """An adapter that says which model it asks."""

    model: str


@runtime_checkable
class SyntheticAdapter(Protocol):
    """An adapter that says whether its answers are made up."""

    synthetic: bool


@dataclass(frozen=True, slots=True, order=True)
class ServerFinding:
    """Something found out about a model at an endpoint that a person should know: about which
    ability, and in words."""

    endpoint: str
    model: str
    about: str
    message: str

    def __str__(self) -> str:
        return f"{self.endpoint}, model {self.model}: {self.message}"


@runtime_checkable
class LearningAdapter(Protocol):
    """An adapter that finds out, while it is used, what its server can do."""

    def findings(self) -> tuple[ServerFinding, ...]:
        """What a person should know of the server, sorted."""

    def new_findings(self) -> tuple[ServerFinding, ...]:
        """Those findings that no adapter of this process has returned here before."""

    def beliefs(self) -> dict[str, Any]:
        """What is believed of the server where it is not what was configured, as JSON values; empty
        if nothing is."""

    def learn(self, beliefs: Mapping[str, Any]) -> None:
        """Believe what another process has found out of this server. Raises ValueError for what
        cannot be read."""


@runtime_checkable
class BatchingAdapter(Protocol):
    """An adapter that puts the requests of many runs together."""

    def of_run(self, stop: Callable[[], bool]) -> LLMAdapter:
        """The adapter of one run, until `stop` says that it is over."""

    def settle(self) -> None:
        """The answers that were given in this thread are stored."""


@runtime_checkable
class ApiFinder(Protocol):
    """An adapter that finds out which interfaces its server has."""

    def find_apis(self) -> dict[str, bool | None]:
        """Whether the server has each interface, by its name in `provider.api`; None where it does
        not say. No model is asked."""


SECONDS_BEFORE: ContextVar[float] = ContextVar("seconds_before", default=0.0)
"""The seconds that earlier attempts of the call that is being made have taken."""

CALL_HEADERS: ContextVar[Mapping[str, str]] = ContextVar("call_headers", default={})  # noqa: B039 - never changed
"""Headers, plain ASCII, that go with the requests of the call that is being made, as the trace that
it belongs to."""


@dataclass(frozen=True, slots=True)
class RunOfCall:
    """The run that a call belongs to: its id, and whether it is over, or asked to stop."""

    run_id: str | None = None
    stop: Callable[[], bool] = lambda: False


RUN: ContextVar[RunOfCall] = ContextVar("run_of_call", default=RunOfCall())  # noqa: B039 - frozen
"""The run of the call that is being made; an empty one outside a run."""


class OfRun:
    """An adapter that says of each call which run it belongs to."""

    def __init__(
        self,
        inner: LLMAdapter,
        run_id: str | None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._inner = inner
        self._run = RunOfCall(run_id, stop)

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request."""
        before = RUN.set(self._run)
        try:
            return self._inner.complete(request)
        finally:
            RUN.reset(before)
