"""The store as a wrapper around a model: what was answered before is not paid for again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic import ValidationError as PydanticError

from aeon.domain import errors
from aeon.domain.errors import AnswerError, LLMError, ProviderError, StopRequested, StoreFailed
from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse, Parameters
from aeon.llm.protocols import LearningAdapter
from aeon.store.lookup import ReuseScope
from aeon.store.models import FOUND_OUT, Asked, CallPath
from aeon.store.session import Session, stored_usage
from aeon.store.settings import StoreSettings

STOP_POLL_SECONDS = 0.05
_ERRORS: dict[str, type[LLMError]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, LLMError)
}
_SHAPING = ("seed", "extra_body", "options", "repo_id", "filename", "revision", "schema_in_prompt")
_RESPONSE = frozenset(f.name for f in fields(LLMResponse))
_ANSWER = TypeAdapter(LLMResponse)


class Stored:
    """Answers from a run's session what it has, and keeps there what the inner adapter answers.

    `provider` are the settings that requests are resolved over: what shapes an answer is part of what was asked.
    Answers that are none (cut off, refused, filtered, empty) were paid for and are kept too; failures of the provider,
    for a replay alone. What the `learners` believe of their servers by then is kept with an answer: a resumed run knows
    it without asking. `sample` tells apart several answers to equal requests. A replayed answer takes `pace_seconds`,
    unless `stop` says that the run is asked to stop. Raises what the inner adapter raises, StoreMiss, StoreFailed, and
    StopRequested during a pace.
    """

    def __init__(
        self,
        inner: LLMAdapter,
        session: Session,
        provider: Any,
        *,
        sample: int = 0,
        pace_seconds: float = 0.0,
        stop: Callable[[], bool] = lambda: False,
        learners: Sequence[LearningAdapter] = (),
    ) -> None:
        self._inner, self._session, self._learners = inner, session, tuple(learners)
        self._base, self._shaping = parameters(provider), shaping(provider)
        self._sample, self._pace, self._stop = sample, pace_seconds, stop

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request."""
        raised: list[LLMError] = []
        asked: list[LLMRequest] = []

        def ask() -> dict[str, Any]:
            asked.append(request)
            try:
                answer = asdict(self._inner.complete(request))
            except LLMError as error:
                raised.append(error)
                answer = _of_error(error)
            beliefs = {name: value for adapter in self._learners for name, value in adapter.beliefs().items()}
            return {**answer, FOUND_OUT: beliefs} if beliefs else answer

        answer = self._session.answer(self._asked(request), ask, policy=reuse_scope)
        if raised:
            raise raised[0]
        if not asked:
            self._restore(answer)
        if self._session.replays:
            self._wait(request)
        return response(answer)

    def _asked(self, request: LLMRequest) -> Asked:
        site = request.site
        path = CallPath(
            pass_number=site.pass_number,
            phase=site.phase,
            call=request.call,
            step_id=site.step_id,
            attempt=site.attempt,
        )
        resolved = asdict(request.parameters.over(self._base))
        return Asked(
            kind="model",
            path=path,
            request={
                "model": resolved.pop("model"),
                "parameters": {name: value for name, value in resolved.items() if value is not None},
                **({"provider": self._shaping} if self._shaping else {}),
                "sample": request.sample or self._sample,
                "messages": [{"role": message.role, "content": message.content} for message in request.messages],
                "strict": request.strict,
                "schema": dict(request.schema),
            },
        )

    def _restore(self, answer: dict[str, Any]) -> None:
        try:
            for adapter in self._learners:
                adapter.learn(answer.get(FOUND_OUT) or {})
        except (TypeError, ValueError, AttributeError) as error:
            raise StoreFailed(f"an answer in the store cannot be read: {FOUND_OUT}: {error}") from error

    def _wait(self, request: LLMRequest) -> None:
        """In the caller's own thread, so that parallel answers take their time side by side."""
        end = time.monotonic() + self._pace
        while (left := end - time.monotonic()) > 0:
            if self._stop():
                raise StopRequested(f"stopped while a {request.call} call was replayed")
            time.sleep(min(left, STOP_POLL_SECONDS))


def stored(
    inner: LLMAdapter,
    session: Session,
    store: StoreSettings,
    provider: Any,
    stop: Callable[[], bool],
    learners: Sequence[LearningAdapter] = (),
) -> LLMAdapter:
    """The wrapper that the settings of the store ask for. Raises StoreFailed."""
    return Stored(
        inner, session, provider, sample=store.sample, pace_seconds=store.pace_seconds, stop=stop, learners=learners
    )


class Absent:
    """In the place of a provider's adapter where none may be called: a replay needs no key and no connection."""

    def __init__(self, model: str) -> None:
        self.model = model

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Raises ProviderError."""
        raise ProviderError(
            f"store.mode=replay calls no model, and a {request.call} call was not answered from a store"
        )


def parameters(provider: Any) -> Parameters:
    """The generation parameters that a provider's settings give to calls that name none."""
    own = getattr(provider, "parameters", None)
    return own if isinstance(own, Parameters) else Parameters(model=getattr(provider, "model", None))


def shaping(provider: Any) -> dict[str, Any]:
    """What else of a provider's settings decides what it answers: a seed, a scenario's content, additions to the
    request's body. Addresses, keys, retries and limits do not.

    Raises StoreFailed for a scenario that cannot be read.
    """
    found = {name: getattr(provider, name, None) for name in _SHAPING}
    scenario: Path | None = getattr(provider, "scenario", None)
    if scenario is not None:
        try:
            found["scenario"] = sha256(scenario.read_bytes()).hexdigest()
        except OSError as error:
            raise StoreFailed(f"the scenario {scenario} cannot be read: {error.strerror}") from error
    return {name: value for name, value in found.items() if value not in (None, {})}


def reuse_scope(answer: dict[str, Any]) -> ReuseScope:
    """Where an answer may be used again: one with text, neither cut off nor filtered, for every equal request.

    An unusable answer only in its own run; a failure of the provider only in a replay.
    """
    if "error" in answer:
        return "here" if issubclass(_ERRORS.get(str(answer["error"]), LLMError), AnswerError) else "replay"
    whole = answer.get("finish_reason", "stop") not in ("length", "content_filter")
    return "anywhere" if whole and str(answer.get("text", "")).strip() else "here"


def response(answer: dict[str, Any]) -> LLMResponse:
    """A kept answer as the adapter gave it. Raises the LLMError that was kept; StoreFailed for what is neither."""
    try:
        if "error" in answer:
            raise _error(answer)
        known = {name: value for name, value in answer.items() if name in _RESPONSE}
        return _ANSWER.validate_python({**known, "usage": stored_usage(answer)})
    except (TypeError, KeyError, PydanticError) as error:
        raise StoreFailed(f"an answer in the store cannot be read: {error}") from error


def _of_error(error: LLMError) -> dict[str, Any]:
    # An adapter of one's own may raise a kind of its own: what it is in the tree is what a replay can raise again.
    kind = next(kind.__name__ for kind in type(error).__mro__ if kind in _ERRORS.values())
    kept = {
        "error": kind,
        "message": error.message,
        "hint": error.hint,
        "usage": asdict(error.usage),
        "endpoint": error.endpoint,
    }
    if isinstance(error, ProviderError):
        return {**kept, "status": error.status, "retry_after": error.retry_after}
    return {**kept, "model": getattr(error, "model", ""), "usage_reported": getattr(error, "usage_reported", True)}


def _error(answer: dict[str, Any]) -> LLMError:
    made = _ERRORS[str(answer["error"])]
    more = {name: answer[name] for name in ("status", "retry_after", "model", "usage_reported") if name in answer}
    error = made(answer["message"], hint=answer["hint"], usage=stored_usage(answer), **more)
    if endpoint := answer.get("endpoint"):
        error.endpoint = endpoint
    return error
