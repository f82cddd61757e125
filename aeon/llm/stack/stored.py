"""Reuses paid answers: a run's store, and a process's first profiles of equal tasks."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import fields
from hashlib import sha256

from pydantic import TypeAdapter

from aeon.domain import errors
from aeon.domain.errors import LLMError, ProviderError, StopRequested, StoreFailed
from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse, Message, Parameters
from aeon.domain.values import JsonObject
from aeon.llm.protocols import BatchingAdapter, LearningAdapter
from aeon.llm.settings import ProviderSettings
from aeon.llm.stack.retry import sleep_until_stopped
from aeon.store.chain import when_unusable
from aeon.store.lookup import ReuseScope
from aeon.store.models import FOUND_OUT, CallPath, StoreRequest
from aeon.store.session import Session, read_stored_usage
from aeon.store.settings import StoreSettings

_ERRORS: dict[str, type[LLMError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, LLMError)
}
_RESPONSE_FIELDS = tuple(f.name for f in fields(LLMResponse))
_RESPONSE = TypeAdapter(LLMResponse)


class Stored:
    """Answers from a run's session if it has an answer, and stores new answers of the inner adapter
    there, failures too.

    Requests are completed with the settings `provider`. What the `learners` know of their servers
    is stored with an answer. Raises StoreMiss, StoreFailed, and StopRequested if `stop` returns
    True during `store.pace_seconds`.
    """

    def __init__(
        self,
        inner: LLMAdapter,
        session: Session,
        provider: ProviderSettings | None,
        store: StoreSettings | None = None,
        *,
        stop: Callable[[], bool] = lambda: False,
        learners: Sequence[LearningAdapter] = (),
    ) -> None:
        self._inner = inner
        self._session = session
        self._learners = tuple(learners)
        self._store = store or StoreSettings()
        self._stop = stop
        self._base = provider.parameters if provider else Parameters()
        self._shaping = select_shaping_settings(provider) if provider else {}

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request."""
        fresh: list[LLMResponse | LLMError] = []

        def ask() -> JsonObject:
            try:
                fresh.append(self._inner.complete(request))
            except LLMError as error:
                fresh.append(error)
            beliefs = {
                name: value
                for adapter in self._learners
                for name, value in adapter.beliefs().items()
            }
            return {**_record(fresh[0]), FOUND_OUT: beliefs} if beliefs else _record(fresh[0])

        answer = self._session.answer(self._build_store_request(request), ask, policy=reuse_scope)
        for adapter in self._learners:
            if isinstance(adapter, BatchingAdapter):
                adapter.settle()
        if not fresh:
            return self._make_response(answer, request)
        if isinstance(fresh[0], LLMError):
            raise fresh[0]
        return fresh[0]

    def _build_store_request(self, request: LLMRequest) -> StoreRequest:
        site = request.site
        parameters = request.parameters.over(self._base)
        given = {
            name: getattr(parameters, name) for name in ("temperature", "max_tokens", "effort")
        }
        path = CallPath(
            call=request.call,
            pass_number=site.pass_number,
            phase=site.phase,
            step_id=site.step_id,
            attempt=site.attempt,
        )
        sample = self._store.sample
        # Keys that say nothing are left out: answers stored before they existed are found too.
        body = {
            "model": parameters.model,
            "parameters": {name: value for name, value in given.items() if value is not None},
            **({"provider": self._shaping} if self._shaping else {}),
            "sample": [sample, request.sample] if request.sample else sample,
            "messages": [_describe_message(message) for message in request.messages],
            "strict": request.strict,
            "schema": request.schema,
        }
        return StoreRequest(kind="model", path=path, body=body)

    def _make_response(self, answer: JsonObject, request: LLMRequest) -> LLMResponse:
        try:
            for adapter in self._learners:
                adapter.learn(answer.get(FOUND_OUT) or {})
        except (TypeError, ValueError, AttributeError) as error:
            message = f"an answer in the store cannot be read: {FOUND_OUT}: {error}"
            raise StoreFailed(message) from error
        if self._session.replays and self._store.pace_seconds:
            sleep_until_stopped(self._store.pace_seconds, self._stop)
            if self._stop():
                raise StopRequested(f"stopped while a {request.call} call was replayed")
        return response(answer)


class ProfileMemo:
    """Answers the first profile of a task, and its repair, from `known`, the process's answers by
    the whole request. `sample` separates several answers requested for equal tasks. Failures and
    answers that turned out unusable are not remembered."""

    def __init__(self, inner: LLMAdapter, known: dict[str, LLMResponse], sample: int = 0) -> None:
        self._inner = inner
        self._known = known
        self._sample = sample

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request."""
        if request.site.phase != "PROFILE" or request.site.cycle != 0:
            return self._inner.complete(request)
        messages = [_describe_message(message) for message in request.messages]
        parameters = str(request.parameters)
        samples = (request.sample, self._sample)
        key = json.dumps([request.call, messages, request.schema, parameters, *samples])
        response = self._known.get(key)
        if response is None:
            response = self._known.setdefault(key, self._inner.complete(request))
        when_unusable(lambda: self._known.pop(key, None))
        return response


class Absent:
    """The adapter of a provider in a replay, which calls none: it needs no key and no
    connection."""

    def __init__(self, model: str) -> None:
        self.model = model

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Raise ProviderError."""
        raise ProviderError(
            f"store.mode=replay calls no model, and no store has answered a {request.call} call"
        )


def select_shaping_settings(provider: ProviderSettings) -> JsonObject:
    """Return the provider's other settings that affect its answers. Raises StoreFailed for an
    unreadable scenario."""
    found = {name: getattr(provider, name) for name in provider.shapes_answers}
    if scenario := found.get("scenario"):
        try:
            found["scenario"] = sha256(scenario.read_bytes()).hexdigest()
        except OSError as error:
            message = f"the scenario {scenario} cannot be read: {error.strerror}"
            raise StoreFailed(message) from error
    return {name: value for name, value in found.items() if value not in (None, {})}


def reuse_scope(answer: JsonObject) -> ReuseScope:
    """Return where a stored answer may be used: a complete text anywhere; a failure or an answer
    without text only in a replay."""
    if "error" in answer or answer.get("finish_reason") in ("length", "content_filter"):
        return "replay"
    return "anywhere" if str(answer.get("text", "")).strip() else "replay"


def response(answer: JsonObject) -> LLMResponse:
    """Convert a stored answer to the adapter's response. Raises the LLMError that was stored;
    StoreFailed if it is neither."""
    try:
        if "error" not in answer:
            known = {name: answer[name] for name in _RESPONSE_FIELDS if name in answer}
            return _RESPONSE.validate_python({**known, "usage": read_stored_usage(answer)})
        names = ("status", "retry_after", "model", "usage_reported")
        more = {name: answer[name] for name in names if name in answer}
        usage = read_stored_usage(answer)
        kind = _ERRORS[str(answer["error"])]
        error = kind(answer["message"], hint=answer["hint"], usage=usage, **more)
    except (TypeError, KeyError, ValueError) as failure:
        raise StoreFailed(f"an answer in the store cannot be read: {failure}") from failure
    if answer.get("endpoint"):
        error.endpoint = answer["endpoint"]
    raise error


def _describe_message(message: Message) -> JsonObject:
    """Describe a message for the store: its files by name and digest, never by content."""
    files = [file.describe() for file in message.files]
    described = {"role": message.role, "content": message.content}
    return {**described, "files": files} if files else described


def _record(outcome: LLMResponse | LLMError) -> JsonObject:
    usage = outcome.usage.by_name()
    if isinstance(outcome, LLMResponse):
        return {name: getattr(outcome, name) for name in _RESPONSE_FIELDS} | {"usage": usage}
    # A custom adapter may raise its own error class: a replay can raise its nearest class known
    # here.
    kind = next(kind.__name__ for kind in type(outcome).__mro__ if kind in _ERRORS.values())
    more = ("model", "usage_reported")
    if isinstance(outcome, ProviderError):
        more = ("status", "retry_after")
    return {
        "error": kind,
        "message": outcome.message,
        "hint": outcome.hint,
        "usage": usage,
        "endpoint": outcome.endpoint,
        **{name: getattr(outcome, name) for name in more},
    }
