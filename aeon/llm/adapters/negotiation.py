"""Finding out how a server can be spoken to, with the requests that have to be made anyway.

A request goes out in the best dialect known. What the server refuses is said in another way: without a parameter that
it names, or, if it names nothing, without those that nothing depends on (the effort, the temperature), or with the
schema told as json_object, or only in the prompt. A refusal is believed when the other way works; where none does, the
first error is the one that is told, so that a dead key or an outage is not taken for a dialect; but where the first was
of the format, and what stopped the next form was not, the last one is.

A failure that may as well be an outage (500 without a word of the format) is told, and nothing is tried. Only where it
comes again, to a request that is alone with a server that has accepted none yet, that one explores: it tries another
form, and when that is answered makes the first request once more. Only if it still fails, the other form is believed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

from aeon.errors import AnswerError, LLMError
from aeon.llm.adapters.capabilities import Capabilities
from aeon.llm.adapters.dialect import SCHEMA_BESIDE, Dialect, Form, Wire
from aeon.llm.adapters.model_table import other
from aeon.llm.adapters.refusal import Refusal
from aeon.llm.interface import LLMResponse
from aeon.llm.settings import StructuredOutput

SCOUT_SECONDS = 600.0
SCOUTS = 2


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


Attempt = Callable[[Dialect], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class Agreed:
    """The outcome that counts, and the dialect that it came of."""

    outcome: Outcome
    dialect: Dialect


async def negotiate(wire: Wire, known: Capabilities, wanted: StructuredOutput, attempt: Attempt) -> Agreed:
    """Make a request in the dialects that may work, the best known one first; most often one attempt.

    With `wanted` other than `auto` the form is that, and only parameters are found out.
    """
    for name, message in wire.fit.changed:
        known.changed(name, message)
    if wanted != "auto":
        return await _Negotiation(wire, known, wanted, attempt).agreed()
    async with _scouting(known) as is_scout, _counted(known):
        return await _Negotiation(wire, known, None, attempt, is_scout=is_scout).agreed()


@asynccontextmanager
async def _scouting(known: Capabilities) -> AsyncIterator[bool]:
    """The first request to an endpoint goes ahead of others that start with it; whether it is it.

    They wait as long as it takes, so that they need not all meet a refusal, and are all set free by its answer. Where
    it fails in a way that may be a refusal, one more goes ahead, and explores; after that nobody waits.
    """
    waited = 0
    while known.scout is not None and not known.settled and waited < SCOUTS:
        await _told(known, known.scout)
        waited += 1
        if not known.failed:
            break
    if known.settled or known.scout is not None or (waited and not known.failed):
        yield False
        return
    known.scout = asyncio.Event()
    try:
        yield True
    finally:
        known.scout.set()
        known.scout, known.exploring = None, False


async def _told(known: Capabilities, scout: asyncio.Event) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(scout.wait(), SCOUT_SECONDS)
    if known.exploring:
        await scout.wait()


@asynccontextmanager
async def _counted(known: Capabilities) -> AsyncIterator[None]:
    known.under_way += 1
    try:
        yield
    finally:
        known.under_way -= 1


class _Negotiation:
    """One request on its way through the dialects."""

    def __init__(
        self, wire: Wire, known: Capabilities, form: Form | None, attempt: Attempt, *, is_scout: bool = False
    ) -> None:
        self._wire, self._known, self._form, self._attempt = wire, known, form, attempt
        self._digest = wire.digest
        self._start = self._said_in(known.opening(self._digest, wire.request.strict))
        self._tried: list[Dialect] = []
        self._refusals: list[Refusal] = []
        self._first: Agreed | None = None
        self._allowed = self._trying = False
        self._judged: Refusal | None = None
        self._suspected: frozenset[str] = frozenset()
        self._is_scout, self._failed_before = is_scout, known.failed

    async def agreed(self) -> Agreed:
        dialect: Dialect | None = self._start
        try:
            while dialect is not None:
                last = Agreed(await self._attempt(dialect), dialect)
                refusal = last.outcome.refusal
                if last.outcome.accepted:
                    return await self._answered(last)
                if refusal is None or not refusal.of_the_request:
                    return self._worth_telling(last)
                self._tried.append(dialect)
                self._refusals.append(refusal)
                self._first = self._first or last
                dialect = self._next(dialect, refusal)
            if self._allowed:
                self._known.tried_in_vain()
            return self._first or last
        finally:
            if self._trying:
                self._known.trying(None)

    async def _answered(self, last: Agreed) -> Agreed:
        """The answer, and what it proves."""
        doubted = False
        if self._known.exploring and self._is_scout and last.outcome.response is not None:
            once_more = await self._once_more(last.dialect)
            doubted = once_more.refusal is not None and once_more.refusal.of_the_request
            last = replace(last, outcome=_both_paid(last.outcome, once_more))
        self._known.accepted(self._digest, self._start, last.dialect, self._refusals, doubted=doubted)
        return last

    async def _once_more(self, worked: Dialect) -> Outcome:
        """The first form again, right after another has worked: an outage that is over shows now."""
        first = replace(worked, form=self._start.form, schema_in_prompt=self._start.schema_in_prompt)
        outcome = await self._attempt(first)
        if outcome.accepted:
            self._known.accepted(self._digest, self._start, first, ())
        return outcome

    def _worth_telling(self, last: Agreed) -> Agreed:
        """The first failure, unless only the last one may pass, or the first was of the format alone."""
        first = self._first
        if first is None or first.outcome.failure is None or last.outcome.failure is None:
            return last
        if first.outcome.refusal is not None and first.outcome.refusal.of_the_format:
            return last
        return last if last.outcome.failure.retryable and not first.outcome.failure.retryable else first

    def _current(self) -> Dialect:
        """The best dialect by what is known now."""
        return self._said_in(self._known.dialect(self._digest, self._wire.request.strict))

    def _said_in(self, dialect: Dialect) -> Dialect:
        """In the form that is wanted, where one is."""
        if self._form is None:
            return dialect
        return replace(dialect, form=self._form, schema_in_prompt=self._form != "json_schema")

    def _next(self, dialect: Dialect, refusal: Refusal) -> Dialect | None:
        """What to say instead; None where nothing is left to try."""
        for other_way in (self._as_found_meanwhile(), self._other_parameters(dialect, refusal)):
            if other_way is not None and other_way not in self._tried:
                # What now fails is another matter, and its error the one to tell, but for an outage's.
                if not refusal.doubtful:
                    self._first = None
                self._refusals.pop()
                return other_way
        return self._without_suspects(dialect, refusal) or self._other_form(dialect, refusal)

    def _as_found_meanwhile(self) -> Dialect | None:
        now = self._current()
        if now == self._start or self._allowed:
            return None
        self._start = now
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

    def _without_suspects(self, dialect: Dialect, refusal: Refusal) -> Dialect | None:
        """The same without a parameter that may be what is refused: each alone, the effort first, then all."""
        whole = self._whole(dialect)
        suspects = refusal.suspects(self._wire.parameters(whole))
        trials = [{name} for name in suspects] + ([set(suspects)] if suspects else [])
        left = (replace(whole, without=whole.without | names) for names in trials)
        trial = next((dialect for dialect in left if dialect not in self._tried), None)
        if trial is None or not self._may_try(refusal):
            return None
        self._suspected |= set(suspects)
        return trial

    def _whole(self, dialect: Dialect) -> Dialect:
        """With what was left out on trial."""
        return replace(dialect, without=dialect.without - self._suspected)

    def _may_try(self, refusal: Refusal) -> bool:
        """Whether anything may be tried that the server did not ask for; one refusal is judged once."""
        if not self._allowed and refusal is not self._judged:
            self._judged = refusal
            self._allowed = self._known.may_try(self._digest, refusal, again=self._comes_again)
        return self._allowed

    def _other_form(self, dialect: Dialect, refusal: Refusal) -> Dialect | None:
        of_something_else = refusal.param and not refusal.of_the_format
        if self._form is not None or of_something_else or not self._may_try(refusal):
            return None
        if self._trying and all(seen.doubtful for seen in self._refusals):
            return None
        form = self._known.next_form(dialect.form, refusal)
        if form is None:
            return None
        self._trying = True
        if all(seen.doubtful for seen in self._refusals):
            self._known.exploring = True
        elif not self._known.exploring:
            self._known.trying(form)
        return replace(self._whole(dialect), form=form, schema_in_prompt=True)

    @property
    def _comes_again(self) -> bool:
        """Whether a failure is the second in a row, with nothing else under way that may have caused it."""
        return self._is_scout and self._failed_before and self._known.under_way == 1


def _both_paid(answer: Outcome, other: Outcome) -> Outcome:
    """An answer whose usage holds that of another attempt too."""
    paid = other.response or other.failure
    if answer.response is None or paid is None:
        return answer
    return replace(answer, response=replace(answer.response, usage=answer.response.usage + paid.usage))
