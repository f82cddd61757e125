"""Equal tasks of one process are profiled once, so that they get the same depth and budget."""

from __future__ import annotations

import json
import threading

from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse


class ProfileMemo:
    """The answers to the first profiles of tasks, by all that was asked, for the life of the process; thread-safe.

    The answer passes through a run's store like any other, so that a run can be replayed alone.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: dict[str, LLMResponse] = {}

    def around(self, inner: LLMAdapter, sample: int = 0) -> LLMAdapter:
        """An adapter that asks `inner` what the memo does not have; `sample` tells apart answers wanted anew."""
        return _Remembering(self, inner, sample)

    def answer(self, request: LLMRequest, inner: LLMAdapter, sample: int) -> LLMResponse:
        """The kept answer, or that of `inner`, which is kept. Raises what `inner` raises, and keeps nothing then."""
        key = _key(request, sample)
        with self._lock:
            known = self._answers.get(key)
        if known is not None:
            return known
        answer = inner.complete(request)
        with self._lock:
            return self._answers.setdefault(key, answer)


class _Remembering:
    def __init__(self, memo: ProfileMemo, inner: LLMAdapter, sample: int) -> None:
        self._memo, self._inner, self._sample = memo, inner, sample

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request."""
        if is_first_profile(request):
            return self._memo.answer(request, self._inner, self._sample)
        return self._inner.complete(request)


def is_first_profile(request: LLMRequest) -> bool:
    """Whether a request belongs to phase A, the one call that no TTL pays for, or repairs its answer."""
    return request.site.phase == "PROFILE" and request.site.cycle == 0


def _key(request: LLMRequest, sample: int) -> str:
    asked = [[message.role, message.content] for message in request.messages]
    return json.dumps([request.call, asked, request.schema, str(request.parameters), request.sample, sample])
