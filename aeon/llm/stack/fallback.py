"""Asking the next endpoint when one cannot answer."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from aeon.domain.errors import LLMError
from aeon.domain.events import Emit, FallbackUsed, ignore
from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse
from aeon.llm.stack.endpoint_state import EndpointState
from aeon.llm.stack.retry import all_reported, total_usage, with_usage_of


@dataclass(frozen=True, slots=True)
class Choice:
    """An endpoint that may be asked: its name, what answers under it, and its state, if it has one."""

    name: str
    adapter: LLMAdapter
    state: EndpointState | None = None


class Fallback:
    """Asks endpoints in order until one answers.

    The next is asked after an error that says that the endpoint is of no use (`falls_back`), never after an answer
    that is no answer, nor for a request that would be refused anywhere. It is asked for its own model, whatever model
    the call names: that name is the first endpoint's. The first time that an endpoint stands in for another is
    reported as `FallbackUsed`. One that is cooling down is asked last.
    """

    def __init__(self, choices: Sequence[Choice], *, emit: Emit = ignore) -> None:
        self._choices = tuple(choices)
        self._emit = emit
        self._lock = threading.Lock()
        self._reported: set[tuple[str, str]] = set()

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request. Raises the last endpoint's error, which quotes the errors of those before it."""
        failed: list[LLMError] = []
        for choice in self._in_order():
            is_first = choice is self._choices[0]
            try:
                response = choice.adapter.complete(request if is_first else _without_model(request))
            except LLMError as error:
                error.endpoint = choice.name
                failed.append(error)
                if not error.falls_back:
                    break
                continue
            if not is_first:
                self._report(request, failed[-1] if failed else _refusal(self._choices[0]), choice.name)
            return with_usage_of(failed, replace(response, endpoint=choice.name))
        if len(failed) == 1:
            raise failed[0]
        raise _with_history(failed) from failed[-1]

    def _in_order(self) -> Iterator[Choice]:
        """The endpoints as they are asked: those that are cooling down last, and the last one even if it is busy."""
        cooling = []
        for choice in self._choices:
            if choice.state is None or choice.state.admits():
                yield choice
            else:
                cooling.append(choice)
        if cooling and cooling[-1].state is not None:
            cooling[-1].state.end_busy_cooldown()
        yield from cooling

    def _report(self, request: LLMRequest, error: LLMError, name: str) -> None:
        with self._lock:
            if (error.endpoint, name) in self._reported:
                return
            self._reported.add((error.endpoint, name))
        event = FallbackUsed(
            site=request.site,
            call=request.call,
            failed=error.endpoint,
            endpoint=name,
            error=f"{type(error).__name__}: {error.message}",
        )
        self._emit(event, request.site)


def _refusal(choice: Choice) -> LLMError:
    """The error that says why an endpoint was not asked."""
    error = choice.state.refusal() if choice.state is not None else LLMError("not asked")
    error.endpoint = choice.name
    return error


def _without_model(request: LLMRequest) -> LLMRequest:
    return replace(request, parameters=replace(request.parameters, model=None))


def _with_history(failed: Sequence[LLMError]) -> LLMError:
    """A copy of the last error that quotes the errors before it; the adapter's own error stays as it was."""
    last = copy.copy(failed[-1])
    before = "; ".join(f"{error.endpoint}: {type(error).__name__}: {error.message}" for error in failed[:-1])
    last.message = f"{last.endpoint}: {last.message} (asked before it: {before})"
    last.args = (last.message,)
    last.usage, last.usage_reported = total_usage(failed), all_reported(failed)
    return last
