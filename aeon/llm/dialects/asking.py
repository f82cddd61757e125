"""Makes one request to a server whose abilities are not known yet: each informative refusal changes
how it is written."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace

from aeon.domain.errors import AnswerError, ConnectionFailed, LLMError
from aeon.domain.request import LLMResponse, Usage
from aeon.llm.dialects.dialect import Dialect, Wire
from aeon.llm.dialects.downgrade import (
    RefusedTrial,
    Trial,
    find_guessed_downgrade,
    find_named_downgrade,
)
from aeon.llm.dialects.refusal import Refusal
from aeon.llm.dialects.server import Server


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """The result of one attempt in a dialect: a response, or a failure, with the server's refusal
    if it refused."""

    dialect: Dialect
    response: LLMResponse | None = None
    failure: LLMError | None = None
    refusal: Refusal | None = None

    @property
    def usage(self) -> Usage:
        """The usage of the attempt."""
        ended = self.response or self.failure
        return Usage() if ended is None else ended.usage

    def add_usage_of(self, other: AttemptResult) -> AttemptResult:
        """Return the result with the usage of another attempt at the same request added."""
        usage = self.usage + other.usage
        ends = (self.response, self.failure, other.response, other.failure)
        is_reported = all(end.usage_reported for end in ends if end is not None)
        if self.response is not None:
            response = replace(self.response, usage=usage, usage_reported=is_reported)
            return replace(self, response=response)
        if self.failure is not None:
            self.failure.usage = usage
            self.failure.usage_reported = is_reported
        return self

    @property
    def is_answer(self) -> bool:
        """Whether the server accepted the request, even if its answer is unusable."""
        if self.response is not None:
            return True
        return self.refusal is None and isinstance(self.failure, AnswerError)

    @property
    def is_refused(self) -> bool:
        """Whether the server refused the form of the request, and an outage cannot be the cause."""
        refusal = self.refusal
        return refusal is not None and refusal.is_about_request and not refusal.is_doubtful

    @property
    def may_be_form(self) -> bool:
        """Whether the cause may be an outage, or a server that crashes on the form of the
        schema."""
        if self.refusal is not None:
            return self.refusal.is_doubtful and self.refusal.is_about_request
        failure = self.failure
        return isinstance(failure, ConnectionFailed) and failure.sent and not failure.timed_out


Attempt = Callable[[Dialect], AttemptResult]


@dataclass(frozen=True, slots=True)
class _Asked:
    """The last trial of a request and its outcome. `reported` is the outcome that explains the
    cause best."""

    trial: Trial
    outcome: AttemptResult
    reported: AttemptResult


def ask(wire: Wire, server: Server, attempt: Attempt) -> AttemptResult:
    """Make a request in the dialect known to work, and change the dialect after each refusal;
    usually one attempt.

    Returns the answer, or the failure that explains the cause best. A refusal is remembered for the
    server only if another dialect works. If a form is configured, only parameters are tried out.
    """
    for name, message in wire.changed.items():
        if name not in server.beliefs.findings:
            server.believe(name, message)
    # A batch sends its requests together: holding them for a first one would cost a round of hours.
    goes_ahead = wire.finds_form and not wire.settings.batch
    with server.first_goes_ahead() if goes_ahead else nullcontext():
        opening = _opening(wire, server)
        asked = _ask_from_openings(opening, wire, server, attempt)
        if asked.outcome.is_answer:
            proved = asked.trial.conclude(opening)
            server.marked_roles |= wire.marked_roles
            server.note_answer(wire.digest, opening, proved, finds_form=wire.finds_form)
        else:
            server.note_failure(wire.digest, may_be_form=asked.outcome.may_be_form)
    return asked.reported


def _opening(wire: Wire, server: Server) -> Dialect:
    known = server.dialect(wire.digest)
    form = wire.settings.structured_output
    return known if form == "auto" else known.in_form(form)


def _ask_from_openings(opening: Dialect, wire: Wire, server: Server, attempt: Attempt) -> _Asked:
    if wire.finds_form and opening.form != "prompt" and server.doubts_form(wire.digest):
        asked = _ask_from(opening.in_form("prompt"), wire, server, attempt)
        if not asked.outcome.is_refused:
            return asked
    return _ask_from(opening, wire, server, attempt)


def _ask_from(opening: Dialect, wire: Wire, server: Server, attempt: Attempt) -> _Asked:
    trial = Trial(opening)
    first: AttemptResult | None = None
    while True:
        outcome = attempt(trial.dialect)
        if outcome.refusal is None:
            return _Asked(trial, outcome, outcome)
        refused = RefusedTrial(
            trial,
            outcome.refusal,
            wire,
            was_accepted=wire.digest in server.accepted,
            takes_marks=bool(server.marked_roles) and wire.marked_roles <= server.marked_roles,
        )
        downgrade = find_named_downgrade(refused)
        if downgrade is not None:
            # The refusals so far named a cause: the next one is about something else.
            first = None
        else:
            first = first or outcome
            downgrade = find_guessed_downgrade(refused)
        if downgrade is None:
            return _Asked(trial, outcome, first if first and outcome.is_refused else outcome)
        trial = downgrade
