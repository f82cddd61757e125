"""Every error Aeon raises, one tree.

AeonError
├── ConfigError                 what the person gave cannot be used: exit 2, before any model call
│   ├── TaskTextError           the task text is empty or not valid Unicode
│   ├── PromptError             a template is missing, broken, or names a variable that its call does not have
│   └── SchemaFileError         a schema file is missing, is not a schema, or does not fit its call
├── LLMError                    a model call failed
│   ├── ProviderError           the provider did not answer
│   │   ├── ConnectionFailed      retryable: not reachable, connection reset; not for TLS, nor when it timed out
│   │   ├── ServerFailed          retryable: 408, 409, 5xx, no choice in an answer; may carry `retry_after`
│   │   ├── RateLimited           retryable: 429; may carry `retry_after`
│   │   ├── QuotaExhausted        402, and 429 when the account's credit is used up: waiting does not help
│   │   ├── AuthenticationFailed  401, 403, and a refused key in any other status
│   │   ├── CircuitOpen           not tried: this endpoint is cooling down
│   │   ├── RequestRefused        any other 4xx
│   │   └── NotAnAPI              the server answered something that is no chat completion
│   └── AnswerError             the provider answered, and there is no answer in it; never repaired
│       ├── Truncated             cut off at the limit of tokens, or because the context is full
│       ├── Refused               the model declined
│       ├── Filtered              the provider's content filter
│       ├── EmptyAnswer           no text at all
│       └── NotSimulated          the simulated provider makes no arguments of a tool up
├── ValidationError             an answer did not match its schema, and two repairs did not help
├── PlanError                   a plan cannot be made, or a refinement cannot be applied
├── StoreMiss                   `store.mode=replay`: the store has no answer to a request
├── StoreFailed                 the store of paid answers cannot be opened, read or written
├── LimitReached                a cap of `limits.*` was reached
├── StopRequested               the run was asked to stop (Ctrl-C)
├── ArtefactError               a result could not be written
└── Unexpected                  a defect of Aeon, or of a component of one's own

Each says whether trying again can help (`retryable`), what a person can do (`hint`), and which tokens were already
paid for (`usage`); an `LLMError` also whether another endpoint may answer (`falls_back`).
"""

from __future__ import annotations

from typing import Any

from aeon.domain.request import Usage


class AeonError(Exception):
    """Base of all. `hint` is a sentence a person can act on; `usage` is what had been spent when it was raised."""

    retryable = False

    def __init__(self, message: str, *, hint: str = "", usage: Usage | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.usage = usage or Usage()
        if hint:
            self.add_note(hint)  # a traceback shows it below the message


class ConfigError(AeonError):
    """Configuration or usage that cannot be used."""


class TaskTextError(ConfigError):
    """The task text is empty or not valid Unicode."""


class PromptError(ConfigError):
    """A prompt template is missing or broken; the message names its file and line."""


class SchemaFileError(ConfigError):
    """A schema file is missing, is no JSON Schema, or does not fit its call; named with its line or JSON pointer."""


class LLMError(AeonError):
    """A model call failed.

    `falls_back` says that another endpoint may answer the same request; `endpoint` is the one that failed, if it is
    known. `usage_reported` is False when what was sent may have been paid for and the server did not say what it cost:
    then `usage` holds an estimate, or no tokens at all.
    """

    falls_back = False
    endpoint = ""
    usage_reported = True


class ProviderError(LLMError):
    """The provider did not answer.

    `status` is the HTTP status, None when there was none; `retry_after` the seconds to wait, None if it did not say;
    `seconds` how long it was waited for.
    `ends_run` says that other calls would fail the same way, so that a run need not try them.
    """

    ends_run = True
    falls_back = True
    seconds = 0.0

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        hint: str = "",
        usage: Usage | None = None,
    ) -> None:
        super().__init__(message, hint=hint, usage=usage)
        self.status = status
        self.retry_after = retry_after


class ConnectionFailed(ProviderError):
    """The server could not be reached, hung up, or was too slow.

    `sent` says that the request may have reached it, `timed_out` that it was waited for as long as is allowed.
    """

    retryable = True
    sent = False
    timed_out = False


class ServerFailed(ProviderError):
    """The server failed (408, 409, 5xx)."""

    retryable = True


class RateLimited(ProviderError):
    """Too many requests (429)."""

    retryable = True

    def __init__(
        self,
        message: str,
        *,
        status: int | None = 429,
        retry_after: float | None = None,
        hint: str = "",
        usage: Usage | None = None,
    ) -> None:
        super().__init__(message, status=status, retry_after=retry_after, hint=hint, usage=usage)


class QuotaExhausted(ProviderError):
    """The account has no credit left (402, or 429 with a code that says so); trying again does not help."""


class AuthenticationFailed(ProviderError):
    """The key was not accepted (401, 403, or another status with words that say so)."""


class RequestRefused(ProviderError):
    """The server refused the request itself (another 4xx).

    Where it lacks the model, or the model the room for the prompt, `falls_back` is set on the error.
    """

    ends_run = False
    falls_back = False


class CircuitOpen(ProviderError):
    """The endpoint is cooling down after failures or 429s and is not asked; `retry_after` says for how long."""


class NotAnAPI(ProviderError):
    """The server answered something that is no chat completion."""


class AnswerError(LLMError):
    """The provider answered and there is no answer in it. Never sent to repair. `model` is who answered, if known."""

    def __init__(
        self, message: str, *, hint: str = "", usage: Usage | None = None, model: str = "", usage_reported: bool = True
    ) -> None:
        super().__init__(message, hint=hint, usage=usage)
        self.model = model
        self.usage_reported = usage_reported


class Truncated(AnswerError):
    """The answer was cut off at the token limit, or because the context is full (`context_full`)."""

    context_full = False


class Refused(AnswerError):
    """The model declined to answer."""


class Filtered(AnswerError):
    """The provider's content filter withheld the answer."""


class EmptyAnswer(AnswerError):
    """The answer held no text."""


class NotSimulated(AnswerError):
    """The simulated provider makes no arguments of a tool up: the tool would be called with them."""


class ValidationError(AeonError):
    """An answer did not match its schema after every repair attempt. `errors` says where and why."""

    def __init__(
        self, message: str, *, errors: tuple[str, ...] = (), hint: str = "", usage: Usage | None = None
    ) -> None:
        super().__init__(message, hint=hint, usage=usage)
        self.errors = errors


class PlanError(AeonError):
    """A plan cannot be made or a refinement cannot be applied."""


class StoreMiss(AeonError):
    """The store that a run is replayed from has no answer to a request; the message shows where the two part.

    Never taken for a failing model: it ends the run.
    """


class StoreFailed(AeonError):
    """The store of paid answers cannot be opened, read or written."""


class LimitReached(AeonError):
    """A cap was reached. `limit` is its name in `limits.*`, and the run's termination reason."""

    def __init__(self, limit: str, message: str, *, hint: str = "", usage: Usage | None = None) -> None:
        super().__init__(message, hint=hint, usage=usage)
        self.limit = limit


class StopRequested(AeonError):
    """The run was asked to stop."""


class ArtefactError(AeonError):
    """A result could not be written. `result` is that RunResult, where there is one: what was paid for is not lost."""

    def __init__(self, message: str, *, hint: str = "", result: Any = None) -> None:
        super().__init__(message, hint=hint)
        self.result = result


class Unexpected(AeonError):
    """A defect: of Aeon, or of a component of one's own."""

    def __init__(self, message: str) -> None:
        super().__init__(message, hint="This is a defect; HYDRA_FULL_ERROR=1 in the environment shows where.")
