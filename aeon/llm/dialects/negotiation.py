"""Finds out which requests a server accepts, using the requests that have to be made anyway.

A request goes out in the dialect that is believed. What the server refuses is sent in another way: without a parameter
that it names; in the next form, where it names the format; and where it names nothing, in two more ways at most. A
refusal is believed when another way works; where none does, the first error is raised and nothing is believed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace

from aeon.domain.errors import AnswerError, ConnectionFailed, LLMError, Truncated
from aeon.domain.request import LLMResponse
from aeon.llm.dialects.dialect import FORMS, SCHEMA_BESIDE, Dialect, Form, Wire, other_name
from aeon.llm.dialects.refusal import Refusal
from aeon.llm.dialects.server import Opening, Server


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one attempt: a response, or a failure with its cause and the server's refusal, if it refused."""

    response: LLMResponse | None = None
    failure: LLMError | None = None
    refusal: Refusal | None = None
    cause: BaseException | None = None

    @property
    def is_accepted(self) -> bool:
        """Whether the server took the request, whatever its answer is worth."""
        return self.response is not None or (self.refusal is None and isinstance(self.failure, AnswerError))

    @property
    def is_in_doubt(self) -> bool:
        """Whether it may be an outage as well as the server's way of not taking a schema."""
        if self.refusal is not None:
            return self.refusal.is_doubtful and self.refusal.is_about_request
        return isinstance(self.failure, ConnectionFailed) and self.failure.sent and not self.failure.timed_out


Attempt = Callable[[Dialect], Outcome]


@dataclass(frozen=True, slots=True)
class Agreed:
    """The outcome of a negotiation, and the dialect of the request that had it."""

    outcome: Outcome
    dialect: Dialect

    def is_limit_ignored(self, wire: Wire) -> bool:
        """Whether the answer, whole or cut off, is longer than max_completion_tokens allows."""
        limit, answer = wire.limit(self.dialect), self.outcome.response or self.outcome.failure
        if limit is None or limit.name == "max_tokens" or not isinstance(answer, LLMResponse | Truncated):
            return False
        return limit.is_ignored(answer.usage)


def negotiate(wire: Wire, server: Server, attempt: Attempt) -> Agreed:
    """Make a request in the dialects that may work, the believed one first; most often one attempt."""
    for name, message in wire.fitted.changed:
        server.believe(name, message)
    is_open = wire.settings.structured_output == "auto"
    with server.first_goes_ahead() if is_open else nullcontext():
        return _Negotiation(wire, server, attempt).run()


def retry_with_other_limit(agreed: Agreed, wire: Wire, server: Server, attempt: Attempt) -> Agreed:
    """Ask again for an answer that was cut off clearly below the limit that was sent, with that by its other name: a
    server may not know it by the first. Tried once for a model."""
    cut, limit = agreed.outcome.failure, wire.limit(agreed.dialect)
    if not isinstance(cut, Truncated) or limit is None or not limit.is_above(cut.usage):
        return agreed
    if cut.context_full or not server.may_try_other_limit():
        return agreed
    dialect = replace(agreed.dialect, renamed=not agreed.dialect.renamed)
    again = attempt(dialect)
    answer = again.response or again.failure
    if not isinstance(answer, LLMResponse | Truncated):
        return agreed
    if answer.usage.output_tokens > cut.usage.output_tokens:
        message = f"cuts answers off below {limit.name}: the limit is sent by its other name from now on"
        server.believe("max_tokens", message, renamed=dialect.renamed)
    usage = cut.usage + answer.usage
    if again.response is not None:
        return Agreed(replace(again, response=replace(again.response, usage=usage)), dialect)
    if again.failure is not None:
        again.failure.usage = usage
    return Agreed(again, dialect)


class _Negotiation:
    """One request on its way through the dialects. With a form that is configured, only parameters are found out."""

    def __init__(self, wire: Wire, server: Server, attempt: Attempt) -> None:
        self._wire, self._server, self._attempt = wire, server, attempt
        wanted = wire.settings.structured_output
        self._form: Form | None = None if wanted == "auto" else wanted
        self._believed = self._in_wanted_form(server.dialect(wire.digest))
        opening = server.opening(wire.digest)
        self._opening = replace(opening, dialect=self._in_wanted_form(opening.dialect))
        self._first: Agreed | None = None
        self._trials: Iterator[Dialect] | None = None
        self._suspected: frozenset[str] = frozenset()

    def run(self) -> Agreed:
        """The outcome in the dialect that works, or the most telling failure."""
        dialect: Dialect | None = self._opening.dialect
        tried: list[Dialect] = []
        while dialect is not None and dialect not in tried:
            last = Agreed(self._attempt(dialect), dialect)
            if last.outcome.is_accepted:
                # Where another form has helped, it is not proved that what was left out on suspicion is refused.
                proved = dialect if dialect.form == self._opening.dialect.form else self._with_suspects(dialect)
                self._server.accept(self._wire.digest, self._opening, proved)
                return last
            tried.append(dialect)
            dialect = self._next(last)
        return self._most_telling(last)

    def _in_wanted_form(self, dialect: Dialect) -> Dialect:
        return dialect if self._form is None else dialect.in_form(self._form)

    def _with_suspects(self, dialect: Dialect) -> Dialect:
        return replace(dialect, without=dialect.without - self._suspected)

    def _most_telling(self, last: Agreed) -> Agreed:
        """The first failure, unless only the last one may pass, or the first was about the format alone."""
        first, refusal = self._first, last.outcome.refusal
        if first is None or first.outcome.failure is None or last.outcome.failure is None:
            return last
        if refusal is not None and refusal.is_about_request and not refusal.is_doubtful:
            return first
        if first.outcome.refusal is not None and first.outcome.refusal.is_about_format:
            return last
        return last if last.outcome.failure.retryable and not first.outcome.failure.retryable else first

    def _next(self, last: Agreed) -> Dialect | None:
        """The next dialect to try; None where nothing is left."""
        refusal, dialect = last.outcome.refusal, last.dialect
        if refusal is not None and refusal.is_about_request:
            named = self._without_named(dialect, refusal)
            if named is not None:
                # What fails now is another matter, and its error the one to raise.
                self._first = None
                return named
            if not refusal.is_doubtful:
                return self._after_refusal(last, refusal)
        if last.outcome.is_in_doubt and self._form is None and dialect.form == self._opening.dialect.form:
            self._server.strike(self._wire.digest, self._opening)
        return None

    def _after_refusal(self, last: Agreed, refusal: Refusal) -> Dialect | None:
        dialect = last.dialect
        if self._opening.is_guess and dialect.form == self._opening.dialect.form:
            self._server.strike(self._wire.digest, self._opening)
            self._opening = Opening(self._believed)
            return self._believed
        self._first = self._first or last
        if refusal.is_about_format:
            following = FORMS[FORMS.index(dialect.form) + 1 :]
            return self._with_suspects(dialect).in_form(following[0]) if following and self._form is None else None
        if self._trials is None:
            self._trials = self._trials_for(dialect, refusal)
        return next(self._trials, None)

    def _without_named(self, dialect: Dialect, refusal: Refusal) -> Dialect | None:
        """Without the parameter that the refusal names; the limit of tokens by its other name first."""
        name = refusal.find_refused(self._wire.parameters(dialect))
        if name is None and dialect.sends_schema_beside and not refusal.is_doubtful:
            name = SCHEMA_BESIDE
        if name is None:
            return None
        limit = self._wire.token_parameter(dialect)
        if name in (limit, other_name(limit)) and not dialect.renamed:
            return replace(dialect, renamed=True)
        return replace(dialect, without=dialect.without | {name})

    def _trials_for(self, dialect: Dialect, refusal: Refusal) -> Iterator[Dialect]:
        """Where the server names nothing, at most two: without the parameters that nothing depends on, or by
        json_object; and in the prompt alone. None once the server has accepted that schema."""
        if self._server.has_accepted(self._wire.digest):
            return
        self._suspected = frozenset(refusal.suspects(self._wire.parameters(dialect)))
        without = replace(dialect, without=dialect.without | self._suspected)
        if self._suspected:
            yield without
        if self._form is not None or refusal.param:
            return
        forms = FORMS[FORMS.index(dialect.form) + 1 :]
        for form in forms[-1:] if self._suspected else forms:
            yield without.in_form(form)
