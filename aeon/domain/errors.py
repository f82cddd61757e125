"""Every error that Aeon raises, one tree."""

from __future__ import annotations

from typing import Any, Literal

from aeon.domain.request import Usage


class AeonError(Exception):
    """Base of all. `hint` is a sentence a person can act on; `usage` is what was spent;
    `retryable`: it may pass; `ends_run`: whatever is called next will fail by it, too."""

    retryable = False
    ends_run = False

    def __init__(
        self, message: str, *, hint: str = "", usage: Usage | None = None, **details: Any
    ) -> None:
        """`details` are values for attributes that the class names."""
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.usage = usage or Usage()
        vars(self).update(details)
        if hint:
            self.add_note(hint)  # a traceback shows it below the message


class ConfigError(AeonError):
    """What the person gave cannot be used: exit 2, before any model call."""


class TaskTextError(ConfigError):
    """The task text is empty or not valid Unicode."""


class PromptError(ConfigError):
    """A prompt template is missing or broken; the message names its file and line."""


class SchemaFileError(ConfigError):
    """A schema file cannot be used; the message names its line or JSON pointer."""


class LLMError(AeonError):
    """A model call failed. `falls_back`: another endpoint may answer. `endpoint` is the one that
    failed, `model` that which answered, if known. `usage_reported` is False where `usage` is an
    estimate, or empty."""

    falls_back = False
    endpoint = ""
    model = ""
    usage_reported = True


class ProviderError(LLMError):
    """The provider did not answer, and will not answer another call. `retry_after`, and `seconds`
    that Aeon waited, are in seconds."""

    ends_run = True
    falls_back = True
    status: int | None = None
    retry_after: float | None = None
    seconds = 0.0


class ConnectionFailed(ProviderError):
    """The server could not be reached, hung up, or was too slow; `sent`: the request may have
    reached it."""

    retryable = True
    sent = False
    timed_out = False


class ServerFailed(ProviderError):
    """The server failed (408, 409, 5xx), or there was no choice in its answer."""

    retryable = True


class BatchesUnreachable(ProviderError):
    """The provider's batch interface failed through all attempts of some minutes; what was sent
    stays known."""


class RateLimited(ProviderError):
    """Too many requests (429)."""

    retryable = True
    status = 429


class QuotaExhausted(ProviderError):
    """The account has no credit left (402, or 429 with a code that says so): waiting does not
    help."""


class AuthenticationFailed(ProviderError):
    """The key was not accepted (401, 403, or another status with words that say so)."""


class RequestRefused(ProviderError):
    """The server refused the request itself; `falls_back` is set where the model or its context is
    the reason."""

    ends_run = False
    falls_back = False


class CircuitOpen(ProviderError):
    """The endpoint is cooling down after failures or 429s and is not asked; `retry_after` says for
    how long."""


class NotAnAPI(ProviderError):
    """The server answered something that is no chat completion."""


class AnswerError(LLMError):
    """The provider answered and there is no answer in it; never repaired."""


class Truncated(AnswerError):
    """The answer was cut off at the limit of tokens."""


class ContextFull(Truncated):
    """The answer was cut off because the model's context has no more room."""


class Refused(AnswerError):
    """The model declined to answer."""


class Filtered(AnswerError):
    """The provider's content filter withheld the answer."""


class EmptyAnswer(AnswerError):
    """The answer held no text."""

    retryable = True


class Oversized(AnswerError):
    """The answer is longer than what is read."""


class NotSimulated(AnswerError):
    """The simulated provider does not invent tool arguments: the tool would be called with them."""


class ValidationError(AeonError):
    """An answer did not match its schema after every repair attempt. `errors` says where and why.
    `is_answered`: it did, and says no."""

    errors: tuple[str, ...] = ()
    is_answered = False


class PlanError(AeonError):
    """A plan cannot be made or a refinement cannot be applied."""


class StoreMiss(AeonError):
    """A replay's store has no answer to a request of a `call`; the message shows the difference,
    and `differs` names the parts of the request that are not as recorded. It ends the run."""

    call = ""
    differs: tuple[str, ...] = ()


class StoreFailed(AeonError):
    """The store of paid answers cannot be opened, read or written."""


class LimitReached(AeonError):
    """A cap was reached. `limit` is its name in `limits.*`, and the run's termination reason."""

    limit = ""


class StopRequested(AeonError):
    """The run was asked to stop (Ctrl-C). `reason` is the run's termination reason."""

    reason: Literal["interrupted", "waiting"] = "interrupted"


class PersonAwaited(StopRequested):
    """The run cannot go on before a person has answered (`interaction=defer`)."""

    reason = "waiting"


class ArtefactError(AeonError):
    """A result could not be written. `result` is that RunResult, where there is one, so that it is
    not lost."""

    result: Any = None


class Unexpected(AeonError):
    """A defect: of Aeon, or of a person's own component."""


class ComponentFailed(Unexpected):
    """A component of a person's own raised an exception, or returned what its interface does not
    allow; the message names the component and its method. It ends the run, which keeps what it
    has."""


def list_causes(error: BaseException | None) -> list[BaseException]:
    """An error and all that led to it, nearest first. An error that is raised again may lead back
    to itself."""
    found: list[BaseException] = []
    open_errors = [error]
    while open_errors:
        each = open_errors.pop(0)
        if each is not None and not any(each is known for known in found):
            found.append(each)
            open_errors += (each.__cause__, each.__context__)
    return found


def go_on_without(error: AeonError) -> None:
    """Raise an error that every other call would meet, too: there is no going on without this one's
    answer."""
    if error.ends_run:
        raise error
