"""What is believed of one model at one address, for the life of the process, and how its requests find it out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from typing import Any

from pydantic import Field

from aeon.domain.errors import AnswerError, ConnectionFailed, LLMError
from aeon.domain.request import LLMResponse
from aeon.domain.values import Value
from aeon.llm.dialects.dialect import FORMS, SCHEMA_BESIDE, Dialect, Form, Wire
from aeon.llm.dialects.refusal import Refusal
from aeon.llm.protocols import Finding

_FORMS_IN_WORDS = {
    "json_object": "json_object and the schema in the prompt",
    "prompt": "the schema in the prompt",
}
_DOUBTS = 2
"""So many failures in a row that may be outages, and the schema is tried in the prompt alone."""


class Beliefs(Value):
    """What another process need not find out again: the dialect, the form of single schemas by their digest, and what
    a person should know, by subject."""

    dialect: Dialect = Dialect()
    form_of: dict[str, Form] = Field(default_factory=dict)
    findings: dict[str, str] = Field(default_factory=dict)


class Server:
    """One model at one address; thread-safe.

    `accepted` are the schemas, by their digest, that were answered as they first went out. `doubts` counts for the
    others how many requests in a row have failed in a way that may be an outage, or about the schema.
    """

    def __init__(self, endpoint: str, model: str) -> None:
        self.endpoint, self.model = endpoint, model
        self.accepted: set[str] = set()
        self.doubts: dict[str, int] = {}
        self.beliefs = Beliefs()
        self._lock = threading.RLock()
        self._first, self._first_is_done = threading.Lock(), threading.Event()
        self._reported: set[str] = set()
        self._limit_name_tried = False

    def dialect(self, digest: str) -> Dialect:
        """The believed dialect for a request with the schema of this digest."""
        form = self.beliefs.form_of.get(digest)
        return self.beliefs.dialect.in_form(form) if form else self.beliefs.dialect

    @contextmanager
    def first_goes_ahead(self) -> Iterator[None]:
        """The first request goes ahead of those that start beside it: they need not all meet a refusal."""
        if not self._first_is_done.is_set() and not self._first.acquire(blocking=False):
            self._first_is_done.wait()
        try:
            yield
        finally:
            self._first_is_done.set()

    def accept(self, digest: str, opening: Dialect, dialect: Dialect, *, finds_form: bool) -> None:
        """A request was answered in a dialect, after refusals where that is not its opening."""
        if dialect is opening and digest in self.accepted:
            return
        with self._lock:
            known, form = self.dialect(digest), dialect.form
            if finds_form and FORMS.index(form) > FORMS.index(known.form):
                refused, words = f"does not take {known.form}", _FORMS_IN_WORDS[form]
                if self.accepted or known.form != "json_schema":
                    self._change(form_of={**self.beliefs.form_of, digest: form})
                    self.believe("some_schemas", f"{refused} for some schemas: {words} for those")
                else:
                    message = f"{refused}: {words} from now on; provider.structured_output={form} spares the try"
                    self.believe("structured_output", message, form=form, schema_in_prompt=True)
            elif form == opening.form:
                self.accepted.add(digest)
            self.doubts.pop(digest, None)
            for name in sorted(dialect.without - known.without):
                spared = "; reasoning=none spares the try" if name == "reasoning_effort" else ""
                message = f"takes no {name}: it is left out from now on{spared}"
                self.believe(name, message, without=self.beliefs.dialect.without | {name})
            if dialect.renamed and not known.renamed:
                message = (
                    "has the other name for the limit of tokens (provider.max_tokens_parameter)"
                )
                self.believe("max_tokens", message, renamed=True)

    def believe(self, about: str = "", message: str = "", **changes: Any) -> None:
        """Change the dialect by fields of `Dialect`; with a message, that is a finding about a subject."""
        with self._lock:
            found = {about: message, **self.beliefs.findings} if message else self.beliefs.findings
            self._change(dialect=replace(self.beliefs.dialect, **changes), findings=found)

    def may_try_other_limit_name(self) -> bool:
        """Whether the limit's other name was not tried yet for an answer that was cut off; True only once."""
        with self._lock:
            is_first = not self._limit_name_tried
            self._limit_name_tried = True
            return is_first

    def rename_limit(self, message: str) -> None:
        """Send the limit of tokens by its other name from now on."""
        with self._lock:
            self.believe("max_tokens", message, renamed=not self.beliefs.dialect.renamed)

    def learn(self, other: Beliefs) -> None:
        """Believe, beside what is believed here, what another process has found out."""
        values = {field.name: getattr(other.dialect, field.name) for field in fields(Dialect)}
        learned = {
            name: value for name, value in values.items() if value != getattr(Dialect(), name)
        }
        with self._lock:
            mine = self.beliefs
            self._change(
                dialect=replace(mine.dialect, **learned),
                form_of={**other.form_of, **mine.form_of},
                findings={**other.findings, **mine.findings},
            )

    def findings(self, *, only_new: bool = False) -> tuple[Finding, ...]:
        """What a person should know, sorted; or of that what was not returned as new before."""
        with self._lock:
            known = self._reported if only_new else frozenset[str]()
            found = {
                about: text for about, text in self.beliefs.findings.items() if about not in known
            }
            if only_new:
                self._reported.update(found)
        return tuple(
            Finding(self.endpoint, self.model, about, found[about]) for about in sorted(found)
        )

    def _change(self, **changes: Any) -> None:
        self.beliefs = self.beliefs.model_copy(update=changes)


_servers: dict[tuple[str, str, str], Server] = {}


def server_at(endpoint: str, address: str, model: str) -> Server:
    """What the process believes of a model at an address, under the endpoint's name."""
    key = (endpoint, address, model)
    return _servers.get(key) or _servers.setdefault(key, Server(endpoint, model))


def servers_at(endpoint: str, address: str) -> tuple[Server, ...]:
    """Every model of an address that was asked, by its name."""
    return tuple(_servers[key] for key in sorted(_servers) if key[:2] == (endpoint, address))


def forget_servers() -> None:
    """Find everything out again."""
    _servers.clear()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one attempt: a response, or a failure, with the server's refusal if it refused."""

    response: LLMResponse | None = None
    failure: LLMError | None = None
    refusal: Refusal | None = None


def negotiate(
    wire: Wire, server: Server, attempt: Callable[[Dialect], Outcome]
) -> tuple[Outcome, Dialect]:
    """Make a request in the dialects that may work, the believed one first; most often one attempt.

    Returns the answer, or the most telling failure, and its dialect. What is refused is said in another way: without a
    parameter that is named; in the next form; where nothing is named, in two more ways at most. A refusal is believed
    when another way works. With a form that is configured, only parameters are found out.
    """
    for name, message in wire.changed.items():
        if name not in server.beliefs.findings:
            server.believe(name, message)
    finds_form = wire.settings.structured_output == "auto"
    with server.first_goes_ahead() if finds_form and not wire.settings.batch else nullcontext():
        return _Negotiation(wire, server, finds_form).run(attempt)


class _Negotiation:
    """One request on its way through the dialects. `first` is the first failure that no parameter was named in."""

    def __init__(self, wire: Wire, server: Server, finds_form: bool) -> None:
        self._wire, self._server, self._finds_form = wire, server, finds_form
        self._first: Outcome | None = None
        self._suspected: frozenset[str] = frozenset()

    def run(self, attempt: Callable[[Dialect], Outcome]) -> tuple[Outcome, Dialect]:
        server, digest, form = (
            self._server,
            self._wire.digest,
            self._wire.settings.structured_output,
        )
        opening, doubts = server.dialect(digest), server.doubts.get(digest, 0)
        opening = opening if form == "auto" else opening.in_form(form)
        is_doubted = self._finds_form and doubts >= _DOUBTS and opening.form != "prompt"
        guess = opening.in_form("prompt") if is_doubted else None
        following: Dialect | None = guess or opening
        while following is not None:
            dialect = following
            last = attempt(dialect)
            if last.response or (last.refusal is None and isinstance(last.failure, AnswerError)):
                # Where another form has helped, it is not proved that what was left out on suspicion is refused.
                unproved = self._suspected if dialect.form != opening.form else frozenset()
                proved = (
                    replace(dialect, without=dialect.without - unproved) if unproved else dialect
                )
                server.accept(digest, opening, proved, finds_form=self._finds_form)
                return last, dialect
            following = self._other_dialect(dialect, last)
            if following is None and dialect is guess and self._first is last:
                following = opening
        failure, refusal = last.failure, last.refusal
        is_in_doubt = (
            isinstance(failure, ConnectionFailed) and failure.sent and not failure.timed_out
        )
        is_refused = False
        if refusal is not None:
            is_in_doubt = refusal.is_doubtful and refusal.is_about_request
            is_refused = refusal.is_about_request and not refusal.is_doubtful
        if digest not in server.accepted:
            server.doubts[digest] = doubts + 1 if is_in_doubt and doubts < _DOUBTS else 0
        return (self._first or last if is_refused else last), dialect

    def _other_dialect(self, dialect: Dialect, last: Outcome) -> Dialect | None:
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
        return dialect.in_form(
            forms[-1] if self._suspected and not refusal.is_about_format else forms[0]
        )
