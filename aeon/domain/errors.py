"""Every error that Aeon raises, one tree."""

from __future__ import annotations

from typing import Any, Literal

from aeon.domain.request import Usage


class AeonError(Exception):
    """Base of all errors. `hint` is a sentence to act on; `usage` is what was spent; `retryable`:
    it may pass; `ends_run`: every later call would fail with it too."""

    retryable = False
    ends_run = False

    def __init__(
        self, message: str, *, hint: str = "", usage: Usage | None = None, **details: Any
    ) -> None:
        """Set `details` as attributes that the class declares."""
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.usage = usage or Usage()
        vars(self).update(details)
        if hint:
            self.add_note(hint)  # tracebacks show it below the message


class ConfigError(AeonError):
    """The user's input cannot be used: exit status 2, before any model call."""


class TaskTextError(ConfigError):
    """The task text is empty or not valid Unicode."""


class PromptError(ConfigError):
    """A prompt template is missing or broken; the message names its file and line."""


class SchemaFileError(ConfigError):
    """A schema file cannot be used; the message names its line or JSON pointer."""


class LLMError(AeonError):
    """A model call failed. `falls_back`: another endpoint may answer. `endpoint` is the one that
    failed, `model` the one that answered, if known. `usage_reported` is False if `usage` is an
    estimate or empty."""

    falls_back = False
    endpoint = ""
    model = ""
    usage_reported = True


class ProviderError(LLMError):
    """The provider did not answer and will not answer another call. `retry_after` and `seconds`,
    the time that Aeon waited, are in seconds."""

    ends_run = True
    falls_back = True
    status: int | None = None
    retry_after: float | None = None
    seconds = 0.0


class ConnectionFailed(ProviderError):
    """The server could not be reached, hung up, or was too slow. `sent`: the request may have
    reached it."""

    retryable = True
    sent = False
    timed_out = False


class ServerFailed(ProviderError):
    """The server failed (408, 409, 5xx), or its answer had no choice."""

    retryable = True


class BatchesUnreachable(ProviderError):
    """The provider's batch interface failed in all attempts over some minutes; requests already
    sent stay recorded."""


class RateLimited(ProviderError):
    """Too many requests (429)."""

    retryable = True
    status = 429


class QuotaExhausted(ProviderError):
    """The account has no credit left (402, or 429 with a code for it): waiting does not help."""


class AuthenticationFailed(ProviderError):
    """The key was not accepted (401, 403, or another status with a message about it)."""


class RequestRefused(ProviderError):
    """The server refused the request itself; `falls_back` is set if the model or its context is the
    reason."""

    ends_run = False
    falls_back = False


class CircuitOpen(ProviderError):
    """The endpoint is cooling down after failures or 429s and is not called; `retry_after` says for
    how long."""


class NotAnAPI(ProviderError):
    """The server's response is no chat completion."""


class AnswerError(LLMError):
    """The provider responded without an answer; never repaired."""


class Truncated(AnswerError):
    """The answer was cut off at the token limit."""


class ContextFull(Truncated):
    """The answer was cut off because the model's context is full."""


class Refused(AnswerError):
    """The model declined to answer."""


class Filtered(AnswerError):
    """The provider's content filter withheld the answer."""


class EmptyAnswer(AnswerError):
    """The answer contained no text."""

    retryable = True


class Oversized(AnswerError):
    """The answer is longer than the limit for reading."""


class NotSimulated(AnswerError):
    """The simulated provider does not invent tool arguments: the tool would be called with them."""


class ValidationError(AeonError):
    """An answer did not match its schema after every repair attempt. `errors` gives places and
    reasons. `is_answered`: it matched, but its value is negative."""

    errors: tuple[str, ...] = ()
    is_answered = False


class PlanError(AeonError):
    """A plan cannot be made or a refinement cannot be applied."""


class StoreMiss(AeonError):
    """A replay's store has no answer to a request of a `call`; the message shows the difference,
    and `differs` names the parts of the request that differ from the recording. Ends the run."""

    call = ""
    differs: tuple[str, ...] = ()


class StoreFailed(AeonError):
    """The store of paid answers cannot be opened, read or written."""


class UnstoredAnswer(StoreFailed):
    """A paid answer cannot be stored. Ends the run, and the jobs beside it."""


class LimitReached(AeonError):
    """A cap was reached. `limit` is its name in `limits.*`, and the run's termination reason."""

    limit = ""


class StopRequested(AeonError):
    """The run was asked to stop (Ctrl-C). `reason` is the run's termination reason."""

    reason: Literal["interrupted", "waiting"] = "interrupted"


class PersonAwaited(StopRequested):
    """The run cannot continue until a person has answered (`interaction=defer`)."""

    reason = "waiting"


class ArtefactError(AeonError):
    """A result could not be written. `result` is that RunResult, if there is one, so that it is not
    lost."""

    result: Any = None


class Unexpected(AeonError):
    """A defect: of Aeon, or of a custom component."""


class ComponentFailed(Unexpected):
    """A custom component raised an exception, or returned what its interface does not allow; the
    message names the component and its method. Ends the run, which keeps its results so far."""


def list_causes(error: BaseException | None) -> list[BaseException]:
    """Return an error and its causes, nearest first. Handles an error that leads back to itself."""
    found: list[BaseException] = []
    open_errors = [error]
    while open_errors:
        each = open_errors.pop(0)
        if each is not None and not any(each is known for known in found):
            found.append(each)
            open_errors += (each.__cause__, each.__context__)
    return found


def go_on_without(error: AeonError) -> None:
    """Raise an error that every other call would meet too; otherwise return, so that the caller
    continues without this answer."""
    if error.ends_run:
        raise error
