"""Finds out which requests a server accepts, using the requests that have to be made anyway.

A request goes out in the dialect that is believed. What the server refuses is sent in another way: without a parameter
that it names; in the next form, where it names the format; and where it names nothing, in two more ways at most. A
refusal is believed when another way works; where none does, the first error is raised and nothing is believed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace

from aeon.domain.errors import AnswerError, ConnectionFailed, LLMError
from aeon.domain.request import LLMResponse
from aeon.llm.dialects.dialect import FORMS, SCHEMA_BESIDE, Dialect, Wire
from aeon.llm.dialects.refusal import Refusal
from aeon.llm.dialects.server import DOUBTS, Server


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one attempt: a response, or a failure, with the server's refusal if it refused."""

    response: LLMResponse | None = None
    failure: LLMError | None = None
    refusal: Refusal | None = None

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


def negotiate(wire: Wire, server: Server, attempt: Callable[[Dialect], Outcome]) -> tuple[Outcome, Dialect]:
    """Make a request in the dialects that may work, the believed one first; most often one attempt.

    Returns the outcome and its dialect: the answer, or the most telling failure. With a form that is configured, only
    parameters are found out.
    """
    for name, message in wire.fitted.changed:
        if name not in server.beliefs.findings:
            server.believe(name, message)
    finds_form = wire.settings.structured_output == "auto"
    with server.first_goes_ahead() if finds_form else nullcontext():
        return _Negotiation(wire, server, finds_form).run(attempt)


class _Negotiation:
    """One request on its way through the dialects. `first` is the first failure that no parameter was named in."""

    def __init__(self, wire: Wire, server: Server, finds_form: bool) -> None:
        self._wire, self._server, self._finds_form = wire, server, finds_form
        self._first: Outcome | None = None
        self._suspected: frozenset[str] = frozenset()

    def run(self, attempt: Callable[[Dialect], Outcome]) -> tuple[Outcome, Dialect]:
        wire, server = self._wire, self._server
        opening, doubts = server.dialect(wire.digest), server.doubts.get(wire.digest, 0)
        if wire.settings.structured_output != "auto":
            opening = opening.in_form(wire.settings.structured_output)
        is_doubted = self._finds_form and doubts >= DOUBTS
        guess = opening.in_form("prompt") if is_doubted and opening.form != "prompt" else None
        following: Dialect | None = guess or opening
        while following is not None:
            dialect = following
            last = attempt(dialect)
            if last.is_accepted:
                proved = dialect
                if dialect.form != opening.form:
                    # Another form has helped: it is not proved that what was left out on suspicion is refused.
                    proved = replace(dialect, without=dialect.without - self._suspected)
                server.accept(wire.digest, opening, proved, finds_form=self._finds_form)
                return last, dialect
            following = self._other_dialect(dialect, last)
            if following is None and dialect == guess and self._first is last:
                following, guess = opening, None
        if wire.digest not in server.accepted:
            server.doubts[wire.digest] = doubts + 1 if last.is_in_doubt and doubts < DOUBTS else 0
        refused = last.refusal is not None and last.refusal.is_about_request and not last.refusal.is_doubtful
        return (self._first or last if refused else last), dialect

    def _other_dialect(self, dialect: Dialect, last: Outcome) -> Dialect | None:
        """The next dialect to try; None where nothing is left."""
        refusal, parameters = last.refusal, self._wire.parameters(dialect)
        if refusal is None or not refusal.is_about_request:
            return None
        name = refusal.find_refused(parameters)
        if name is None and dialect.sends_schema_beside and not refusal.is_doubtful:
            name = SCHEMA_BESIDE
        if name is not None:
            self._first = None
            if name == self._wire.token_parameter(dialect) and not dialect.renamed:
                return replace(dialect, renamed=True)
            return replace(dialect, without=dialect.without | {name})
        if refusal.is_doubtful:
            return None
        self._first = self._first or last
        if not refusal.is_about_format:
            if self._wire.digest in self._server.accepted:
                return None
            if suspects := refusal.find_suspects(parameters):
                self._suspected = suspects
                return replace(dialect, without=dialect.without | suspects)
        forms = FORMS[FORMS.index(dialect.form) + 1 :]
        if not forms or not self._finds_form or (refusal.named and not refusal.is_about_format):
            return None
        return dialect.in_form(forms[-1] if self._suspected and not refusal.is_about_format else forms[0])
