"""What an adapter may offer besides `complete` (`close()`, `model`, `synthetic`, findings), and
what it can know about its attempt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse
from aeon.domain.values import JsonMapping, JsonObject


@runtime_checkable
class Closable(Protocol):
    """An object that holds something open."""

    def close(self) -> None:
        """Close it; calls under way fail."""


def close(held: object) -> None:
    """Close `held` if it holds something open."""
    if isinstance(held, Closable):
        held.close()


def find_model(adapter: LLMAdapter) -> str | None:
    """Return the model that an adapter calls, if it has an attribute `model` that names one."""
    model = getattr(adapter, "model", None)
    return model if isinstance(model, str) else None


def is_synthetic(adapter: LLMAdapter) -> bool:
    """Whether an adapter says, by an attribute `synthetic`, that it calls no model."""
    return bool(getattr(adapter, "synthetic", False))


@dataclass(frozen=True, slots=True, order=True)
class ServerFinding:
    """A message to the user about a model's abilities at an endpoint: the subject and the text."""

    endpoint: str
    model: str
    about: str
    message: str

    def __str__(self) -> str:
        return f"{self.endpoint}, model {self.model}: {self.message}"


@runtime_checkable
class LearningAdapter(Protocol):
    """An adapter that finds out in use what its server can do."""

    def findings(self, *, only_new: bool = False) -> tuple[ServerFinding, ...]:
        """Return the messages for the user about the server, sorted; with `only_new`, those that no
        adapter of this process has returned that way before."""

    def beliefs(self) -> JsonObject:
        """Return what is known of the server beyond its configuration, as JSON values; empty if
        nothing is."""

    def learn(self, beliefs: JsonMapping) -> None:
        """Adopt what another process found out about this server. Raises ValueError if it cannot be
        read."""


@runtime_checkable
class BatchingAdapter(Protocol):
    """An adapter that combines the requests of many runs."""

    def of_run(self, stop: Callable[[], bool]) -> LLMAdapter:
        """Return the adapter of one run, until `stop` returns True."""

    def settle(self) -> None:
        """Note that the answers given in this thread are stored."""


@runtime_checkable
class ApiFinder(Protocol):
    """An adapter that finds out which interfaces its server has."""

    def find_apis(self) -> dict[str, bool | None]:
        """Return whether the server has each interface, by its name in `provider.api`; None if it
        does not say. Calls no model."""


SECONDS_BEFORE: ContextVar[float] = ContextVar("seconds_before", default=0.0)
"""Seconds that earlier attempts of the current call have taken."""

CALL_HEADERS: ContextVar[Mapping[str, str]] = ContextVar("call_headers", default={})  # noqa: B039 - never changed
"""Headers (plain ASCII) to send with the current call's requests, such as its trace."""


@dataclass(frozen=True, slots=True)
class RunOfCall:
    """The run that a call belongs to: its id, and `stop`, True when it is over or asked to stop."""

    run_id: str | None = None
    stop: Callable[[], bool] = lambda: False


RUN: ContextVar[RunOfCall] = ContextVar("run_of_call", default=RunOfCall())  # noqa: B039 - frozen
"""The run of the current call; an empty one outside a run."""


class OfRun:
    """An adapter that sets, for each call, the run it belongs to."""

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
