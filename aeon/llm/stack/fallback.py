"""Asking the next endpoint when one cannot answer."""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

from aeon.domain.errors import LLMError, RateLimited
from aeon.domain.events import Emit, FallbackUsed, ignore
from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse
from aeon.llm.stack.cooldown import Rest
from aeon.llm.stack.retry import all_reported, paid


class Fallback:
    """Asks endpoints in order until one answers; each is a name and what answers under it.

    The next is asked after an error that says that the endpoint is of no use (`falls_back`), never after an answer
    that is no answer, nor for a request that would be refused anywhere. It is asked for its own model, whatever model
    the call names: that name is the first endpoint's. An endpoint that is first used in place of another is told as
    `FallbackUsed`. One that rests (`rests`, by name) is asked last.
    """

    def __init__(
        self,
        endpoints: Sequence[tuple[str, LLMAdapter]],
        *,
        emit: Emit = ignore,
        rests: Mapping[str, Rest] | None = None,
    ) -> None:
        self._endpoints = tuple(endpoints)
        self._rests = dict(rests or {})
        self._emit = emit
        self._lock = threading.Lock()
        self._told: set[tuple[str, str]] = set()

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request. Raises the last endpoint's error, which names what those before it said."""
        failed: list[LLMError] = []
        order = self._in_order()
        for place, index in enumerate(order):
            name, adapter = self._endpoints[index]
            is_last = place == len(order) - 1
            try:
                response = self._asked(name, adapter, _own_model(request) if index else request, is_last=is_last)
            except LLMError as error:
                error.endpoint = name
                failed.append(error)
                if error.falls_back and not is_last:
                    continue
                if len(failed) == 1:
                    raise
                raise _with_history(failed) from error
            if index:
                self._tell(request, failed[-1] if failed else self._resting(order[-1]), name)
            reported = response.usage_reported and all_reported(failed)
            return replace(response, endpoint=name, usage=paid(failed) + response.usage, usage_reported=reported)
        raise AssertionError("there is always an endpoint")

    def _in_order(self) -> list[int]:
        """Which endpoints are asked one after the other: those that rest are the last."""
        awake = [rest is None or rest.admits() for rest in (self._rests.get(name) for name, _ in self._endpoints)]
        return sorted(range(len(self._endpoints)), key=lambda index: not awake[index])

    def _asked(self, name: str, adapter: LLMAdapter, request: LLMRequest, *, is_last: bool) -> LLMResponse:
        """What an endpoint answers, and what that says about its rest."""
        rest = self._rests.get(name)
        if rest is not None and is_last:
            rest.end()  # nobody else can answer
        try:
            response = adapter.complete(request)
        except RateLimited as error:
            if rest is not None and not is_last:
                rest.begin(error)
            raise
        if rest is not None:
            rest.end()
        return response

    def _resting(self, index: int) -> LLMError:
        """Why an endpoint was passed over."""
        name = self._endpoints[index][0]
        error = self._rests[name].refusal()
        error.endpoint = name
        return error

    def _tell(self, request: LLMRequest, error: LLMError, name: str) -> None:
        with self._lock:
            if (error.endpoint, name) in self._told:
                return
            self._told.add((error.endpoint, name))
        event = FallbackUsed(
            site=request.site,
            call=request.call,
            failed=error.endpoint,
            endpoint=name,
            error=f"{type(error).__name__}: {error.message}",
        )
        self._emit(event, request.site)


def _own_model(request: LLMRequest) -> LLMRequest:
    """The request without the model that it names."""
    return replace(request, parameters=replace(request.parameters, model=None))


def _with_history(failed: Sequence[LLMError]) -> LLMError:
    """The last error, which says what those before it were; a copy, as it may belong to its endpoint."""
    last = copy.copy(failed[-1])
    before = "; ".join(f"{error.endpoint}: {type(error).__name__}: {error.message}" for error in failed[:-1])
    last.message = f"{last.endpoint}: {last.message} (asked before it: {before})"
    last.args = (last.message,)
    last.usage, last.usage_reported = paid(failed), all_reported(failed)
    return last
