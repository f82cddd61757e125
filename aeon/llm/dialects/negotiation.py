"""Finding out how a server can be spoken to, with the requests that have to be made anyway.

A request goes out in the best dialect known. What the server refuses is said in another way: without a parameter that
it names; in the next form, where it names the format; and where it names nothing, in two more ways at most. A refusal
is believed when the other way works; where none does, the first error is the one that is raised, so that a dead key or
an outage is not taken for a dialect; but where the first was of the format, and what stopped the next form was not, the
last one is. A failure that may as well be an outage is raised at once, and kept in mind (`Capabilities`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from aeon.domain.errors import AnswerError, ConnectionFailed, LLMError, Truncated
from aeon.domain.request import LLMResponse
from aeon.llm.dialects.capabilities import GUESSES, Capabilities, Opening
from aeon.llm.dialects.dialect import SCHEMA_BESIDE, Dialect, Form, Wire
from aeon.llm.dialects.model_table import other
from aeon.llm.dialects.refusal import Refusal
from aeon.llm.settings import StructuredOutput

NEXT_FORM: dict[Form, Form] = {"json_schema": "json_object", "json_object": "prompt"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one attempt: a response, or a failure with its cause and what the server said, if it refused."""

    response: LLMResponse | None = None
    failure: LLMError | None = None
    refusal: Refusal | None = None
    cause: BaseException | None = None

    @property
    def accepted(self) -> bool:
        """Whether the server took the request, whatever its answer is worth."""
        return self.response is not None or (self.refusal is None and isinstance(self.failure, AnswerError))

    @property
    def in_doubt(self) -> bool:
        """Whether it may be an outage as well as the server's way of not taking a schema."""
        if self.refusal is not None:
            return self.refusal.doubtful and self.refusal.of_the_request
        return isinstance(self.failure, ConnectionFailed) and self.failure.sent and not self.failure.timed_out


Attempt = Callable[[Dialect], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class Agreed:
    """The outcome that counts, and the dialect that it came of."""

    outcome: Outcome
    dialect: Dialect

    def is_limit_ignored(self, wire: Wire) -> bool:
        """Whether the answer, whole or cut off, is longer than max_completion_tokens would have it."""
        limit, answer = wire.limit(self.dialect), self.outcome.response or self.outcome.failure
        if limit is None or limit.name == "max_tokens" or not isinstance(answer, LLMResponse | Truncated):
            return False
        return limit.is_ignored(answer.usage)


async def negotiate(wire: Wire, known: Capabilities, wanted: StructuredOutput, attempt: Attempt) -> Agreed:
    """Make a request in the dialects that may work, the best known one first; most often one attempt.

    With `wanted` other than `auto` the form is that, and only parameters are found out.
    """
    for name, message in wire.fit.changed:
        known.changed(name, message)
    if wanted != "auto":
        return await _Negotiation(wire, known, wanted, attempt).agreed()
    async with _after_the_first(known):
        return await _Negotiation(wire, known, None, attempt).agreed()


@asynccontextmanager
async def _after_the_first(known: Capabilities) -> AsyncIterator[None]:
    """The first request to an endpoint goes ahead of those that start with it: they need not all meet a refusal."""
    if known.settled:
        yield
    elif known.scout is not None:
        await known.scout.wait()
        yield
    else:
        scout = known.scout = asyncio.Event()
        try:
            yield
        finally:
            scout.set()
            known.scout = None


@dataclass(frozen=True, slots=True)
class _Trial:
    """A way of saying a request that may help: without these parameters, in this form if there is one."""

    without: frozenset[str] = frozenset()
    form: Form | None = None


async def with_other_limit(agreed: Agreed, wire: Wire, known: Capabilities, attempt: Attempt) -> Agreed:
    """An answer that was cut off clearly below the limit that was sent, once more with that by its other name: a server
    may not know it by the first. Tried once for a model; what helps is remembered."""
    cut, limit = agreed.outcome.failure, wire.limit(agreed.dialect)
    if not isinstance(cut, Truncated) or limit is None or not limit.is_above(cut.usage):
        return agreed
    if cut.context_full or not known.may_rename_limit():
        return agreed
    dialect = replace(agreed.dialect, renamed=not agreed.dialect.renamed)
    again = await attempt(dialect)
    answer = again.response or again.failure
    if not isinstance(answer, LLMResponse | Truncated):
        return agreed
    if answer.usage.output_tokens > cut.usage.output_tokens:
        known.limit_renamed(limit.name)
    if again.response is not None:
        return Agreed(replace(again, response=replace(again.response, usage=cut.usage + answer.usage)), dialect)
    if again.failure is not None:
        again.failure.usage = cut.usage + answer.usage
    return Agreed(again, dialect)


class _Negotiation:
    """One request on its way through the dialects."""

    def __init__(self, wire: Wire, known: Capabilities, form: Form | None, attempt: Attempt) -> None:
        self._wire, self._known, self._form, self._attempt = wire, known, form, attempt
        self._digest = wire.digest
        self._best = self._said_in(known.dialect(self._digest, wire.request.strict))
        opening = known.opening(self._digest, wire.request.strict)
        self._opening = replace(opening, dialect=self._said_in(opening.dialect))
        self._tried: list[Dialect] = []
        self._first: Agreed | None = None
        self._trials: list[_Trial] | None = None
        self._suspected: frozenset[str] = frozenset()

    async def agreed(self) -> Agreed:
        """The outcome in the dialect that works, or the failure that says most."""
        dialect: Dialect | None = self._opening.dialect
        while dialect is not None:
            last = Agreed(await self._attempt(dialect), dialect)
            if last.outcome.accepted:
                self._accept(dialect)
                return last
            self._tried.append(dialect)
            dialect = self._next(last)
        return self._worth_raising(last)

    def _accept(self, dialect: Dialect) -> None:
        """What an answer proves: where another form helped, nothing of what was left out on suspicion."""
        if dialect.form != self._opening.dialect.form:
            dialect = self._whole(dialect)
        self._known.accepted(self._digest, self._opening, dialect)

    def _worth_raising(self, last: Agreed) -> Agreed:
        """The first failure, unless only the last one may pass, or the first was of the format alone."""
        first, refusal = self._first, last.outcome.refusal
        if first is None or first.outcome.failure is None or last.outcome.failure is None:
            return last
        if refusal is not None and refusal.of_the_request and not refusal.doubtful:
            return first
        if first.outcome.refusal is not None and first.outcome.refusal.of_the_format:
            return last
        return last if last.outcome.failure.retryable and not first.outcome.failure.retryable else first

    def _said_in(self, dialect: Dialect) -> Dialect:
        """In the form that is wanted, where one is."""
        if self._form is None:
            return dialect
        return replace(dialect, form=self._form, schema_in_prompt=self._form != "json_schema")

    def _next(self, last: Agreed) -> Dialect | None:
        """What to say instead; None where nothing is left to try."""
        refusal, dialect = last.outcome.refusal, last.dialect
        if refusal is not None and refusal.of_the_request:
            for other_way in (self._as_found_meanwhile(), self._other_parameters(dialect, refusal)):
                if other_way is not None and other_way not in self._tried:
                    # What now fails is another matter, and its error the one to raise.
                    self._first = None
                    return other_way
            if not refusal.doubtful and self._opening.doubt in GUESSES and dialect.form == self._opening.dialect.form:
                self._known.doubt(self._digest, self._opening)
                self._opening = Opening(self._best)
                return self._best
            if not refusal.doubtful:
                self._first = self._first or last
                return self._other_form(dialect, refusal) or self._next_trial(dialect, refusal)
        if last.outcome.in_doubt and self._form is None and dialect.form == self._opening.dialect.form:
            self._known.doubt(self._digest, self._opening)
        return None

    def _as_found_meanwhile(self) -> Dialect | None:
        """The best dialect by now, where another request has found it out."""
        now = self._said_in(self._known.dialect(self._digest, self._wire.request.strict))
        if now == self._best or self._trials is not None:
            return None
        self._best, self._opening = now, Opening(now)
        return now

    def _other_parameters(self, dialect: Dialect, refusal: Refusal) -> Dialect | None:
        name = refusal.not_taken(self._wire.parameters(dialect))
        if name is None and dialect.beside and not refusal.doubtful:
            name = SCHEMA_BESIDE
        if name is None:
            return None
        if name in (self._wire.tokens, other(self._wire.tokens)) and not dialect.renamed:
            return replace(dialect, renamed=True)
        return replace(dialect, without=dialect.without | {name})

    def _other_form(self, dialect: Dialect, refusal: Refusal) -> Dialect | None:
        """The next form, where the server says that this one is what it does not take."""
        form = NEXT_FORM.get(dialect.form)
        if self._form is not None or form is None or not refusal.of_the_format:
            return None
        return replace(self._whole(dialect), form=form, schema_in_prompt=True)

    def _next_trial(self, dialect: Dialect, refusal: Refusal) -> Dialect | None:
        """The next of the ways to try where the server names nothing."""
        if self._trials is None:
            self._trials = self._trials_of(dialect, refusal)
        if not self._trials:
            return None
        trial = self._trials.pop(0)
        self._suspected |= trial.without
        dialect = replace(dialect, without=dialect.without | trial.without)
        return dialect if trial.form is None else replace(dialect, form=trial.form, schema_in_prompt=True)

    def _trials_of(self, dialect: Dialect, refusal: Refusal) -> list[_Trial]:
        """At most two: without the parameters that nothing depends on, or by json_object; and in the prompt alone."""
        if refusal.of_the_format or not self._known.may_try(self._digest):
            return []
        suspects = frozenset(refusal.suspects(self._wire.parameters(dialect)))
        forms: list[Form] = []
        if self._form is None and not refusal.param and dialect.form != "prompt":
            forms = ["prompt"] if suspects or dialect.form == "json_object" else ["json_object", "prompt"]
        return [_Trial(suspects)] * bool(suspects) + [_Trial(suspects, form) for form in forms]

    def _whole(self, dialect: Dialect) -> Dialect:
        """With what was left out on suspicion."""
        return replace(dialect, without=dialect.without - self._suspected)
