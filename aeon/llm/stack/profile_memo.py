"""Equal tasks of one process are profiled once, so that they get the same depth and budget."""

from __future__ import annotations

import json
import threading

from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse

Answers = dict[str, LLMResponse]


class ProfileMemo:
    """The answers to the first profiles of tasks, by all that was asked, for the life of the process; thread-safe.

    The answer passes through a run's store like any other, so that a run can be replayed alone.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: Answers = {}

    def wrap(self, inner: LLMAdapter, sample: int = 0) -> LLMAdapter:
        """An adapter that asks `inner` for what the memo does not have; `sample` tells apart answers to equal tasks."""
        return _Remembering(inner, sample, self._answers, self._lock)


class _Remembering:
    def __init__(self, inner: LLMAdapter, sample: int, answers: Answers, lock: threading.Lock) -> None:
        self._inner, self._sample, self._answers, self._lock = inner, sample, answers, lock

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request. Raises what `inner` raises, and remembers nothing then."""
        if not is_first_profile(request):
            return self._inner.complete(request)
        key = _key(request, self._sample)
        with self._lock:
            known = self._answers.get(key)
        if known is not None:
            return known
        answer = self._inner.complete(request)
        with self._lock:
            return self._answers.setdefault(key, answer)


def is_first_profile(request: LLMRequest) -> bool:
    """Whether a request belongs to phase A, the one call that no TTL pays for, or repairs its answer."""
    return request.site.phase == "PROFILE" and request.site.cycle == 0


def _key(request: LLMRequest, sample: int) -> str:
    messages = [[message.role, message.content] for message in request.messages]
    return json.dumps([request.call, messages, request.schema, str(request.parameters), request.sample, sample])
