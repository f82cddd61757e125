"""Asking the next endpoint when one cannot answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from aeon.domain.errors import LLMError
from aeon.domain.events import Emit, FallbackUsed, ignore
from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse
from aeon.llm.stack.endpoint_state import EndpointState
from aeon.llm.stack.retry import in_other_words, with_usage_of


@dataclass(frozen=True, slots=True)
class Choice:
    """An endpoint that may be asked: its name, what answers under it, and its state, if it has one."""

    name: str
    adapter: LLMAdapter
    state: EndpointState | None = None


class Fallback:
    """Asks endpoints in order until one answers; those that are cooling down last.

    The next is asked after an error that says that the endpoint is of no use (`falls_back`), for its own model,
    whatever model the call names. The first time that one stands in for another is reported as `FallbackUsed`.
    """

    def __init__(self, choices: Sequence[Choice], *, emit: Emit = ignore) -> None:
        self._choices, self._emit = tuple(choices), emit
        self._reported: set[tuple[str, str]] = set()

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request. Raises the last endpoint's error, which quotes the errors of those before it."""
        failed: list[LLMError] = []
        for choice in self._in_order():
            asked = request
            if choice is not self._choices[0]:
                asked = replace(request, parameters=replace(request.parameters, model=None))
            try:
                response = choice.adapter.complete(asked)
            except LLMError as error:
                error.endpoint = choice.name
                failed.append(error)
                if not error.falls_back:
                    break
                continue
            if choice is not self._choices[0]:
                self._report(request, failed, choice.name)
            return with_usage_of(failed, replace(response, endpoint=choice.name))
        if len(failed) == 1:
            raise failed[0]
        before = "; ".join(f"{error.endpoint}: {type(error).__name__}: {error.message}" for error in failed[:-1])
        last = failed[-1]
        raise in_other_words(failed, f"{last.endpoint}: {last.message} (asked before it: {before})") from last

    def _in_order(self) -> Iterator[Choice]:
        """The endpoints as they are asked: those that are cooling down last, and the last one even if it is busy."""
        cooling = []
        for choice in self._choices:
            if choice.state is not None and choice.state.is_cooling:
                cooling.append(choice)
            else:
                yield choice
        if cooling and cooling[-1].state is not None:
            cooling[-1].state.end_busy_cooldown()
        yield from cooling

    def _report(self, request: LLMRequest, failed: Sequence[LLMError], name: str) -> None:
        first = self._choices[0]
        before = failed[-1].endpoint if failed else first.name
        if (before, name) in self._reported:
            return
        self._reported.add((before, name))
        error = failed[-1] if failed else first.state.refusal() if first.state else LLMError("not asked")
        told = f"{type(error).__name__}: {error.message}"
        event = FallbackUsed(site=request.site, call=request.call, failed=before, endpoint=name, error=told)
        self._emit(event, request.site)
