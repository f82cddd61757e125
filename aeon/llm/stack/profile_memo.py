"""Equal tasks of one process are profiled once, so that they get the same depth and budget."""

from __future__ import annotations

import json

from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse


class ProfileMemo:
    """Answers the first profile of a task from `known`, the answers of the process by all that was asked.

    The answer passes through a run's store like any other, so that a run can be replayed alone. `sample` tells apart
    several answers that are wanted to equal tasks. A failure is not remembered.
    """

    def __init__(self, inner: LLMAdapter, known: dict[str, LLMResponse], sample: int = 0) -> None:
        self._inner, self._known, self._sample = inner, known, sample

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request."""
        # Phase A, the one call that no TTL pays for, or the repair of its answer.
        if request.site.phase != "PROFILE" or request.site.cycle != 0:
            return self._inner.complete(request)
        messages = [[message.role, message.content] for message in request.messages]
        asked = [request.call, messages, request.schema, str(request.parameters), request.sample, self._sample]
        key = json.dumps(asked)
        if key not in self._known:
            self._known.setdefault(key, self._inner.complete(request))
        return self._known[key]
