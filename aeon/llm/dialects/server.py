"""What is believed of one model at one address, for the life of the process. Thread-safe.

A belief is a `Dialect` that differs from what every server is first asked in, and holds for all runs of the process.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pydantic import Field

from aeon.domain.values import Value
from aeon.llm.dialects.dialect import Dialect, Form
from aeon.llm.protocols import Finding

_NEXT_STRIKE = {0: 1, 1: 2, 3: 4}
_FORMS_IN_WORDS: dict[Form, str] = {
    "json_schema": "json_schema",
    "json_object": "json_object and the schema in the prompt",
    "prompt": "the schema in the prompt",
}


@dataclass(frozen=True, slots=True)
class Opening:
    """How a request goes out first, and how many strikes there were against its schema by then."""

    dialect: Dialect
    strikes: int = 0

    @property
    def is_guess(self) -> bool:
        """Whether it goes out with its schema in the prompt alone, to see whether that helps."""
        return self.strikes in (2, 4)


class Beliefs(Value):
    """What another process need not find out again: the dialect, the form of single schemas by their digest, and what
    a person should know, by subject."""

    dialect: Dialect = Dialect()
    form_of: dict[str, Form] = Field(default_factory=dict)
    findings: dict[str, str] = Field(default_factory=dict)


class Server:
    """One model at one address.

    A failure that may be an outage, while its schema has never been accepted, is a strike against json_schema. After
    two in a row the next request has its schema in the prompt alone; if that is answered, the one after it tries
    json_schema again, and where that fails too the prompt is believed in.
    """

    def __init__(self, endpoint: str, model: str) -> None:
        self.endpoint, self.model = endpoint, model
        self._lock = threading.Lock()
        self._beliefs = Beliefs()
        self._settled = False
        self._accepted: set[str] = set()
        self._strikes: dict[str, int] = {}
        self._reported: set[str] = set()
        self._first: threading.Event | None = None
        self._has_tried_other_limit = False

    @property
    def beliefs(self) -> Beliefs:
        """What is believed now."""
        return self._beliefs

    def dialect(self, digest: str) -> Dialect:
        """The believed dialect for a request with the schema of this digest."""
        believed = self._beliefs
        form = believed.form_of.get(digest)
        return believed.dialect.in_form(form) if form else believed.dialect

    def opening(self, digest: str) -> Opening:
        """The dialect in which a new request goes out first."""
        opening = Opening(self.dialect(digest), self._strikes.get(self._scope(digest), 0))
        return replace(opening, dialect=opening.dialect.in_form("prompt")) if opening.is_guess else opening

    @contextmanager
    def first_goes_ahead(self) -> Iterator[None]:
        """The first request goes ahead of those that start beside it: they need not all meet a refusal."""
        with self._lock:
            first = None if self._settled else self._first
            goes_ahead = first is None and not self._settled
            if goes_ahead:
                self._first = threading.Event()
        if first is not None:
            first.wait()
        try:
            yield
        finally:
            if goes_ahead and self._first is not None:
                self._first.set()
                self._first = None

    def has_accepted(self, digest: str) -> bool:
        """Whether a request with that schema was answered."""
        return digest in self._accepted

    def strike(self, digest: str, opening: Opening) -> None:
        """A request failed in a way that may be an outage, or about its schema. Requests side by side count once."""
        with self._lock:
            scope = self._scope(digest)
            if digest not in self._accepted and opening.strikes == self._strikes.get(scope, 0):
                self._strikes[scope] = _NEXT_STRIKE.get(opening.strikes, 0)

    def accept(self, digest: str, opening: Opening, dialect: Dialect) -> None:
        """A request was answered in a dialect, after refusals where that is not the one it started with."""
        with self._lock:
            self._accept_form(digest, opening, dialect.form)
            known = self._beliefs.dialect
            for name in sorted(dialect.without - known.without):
                spared = "; reasoning=none spares the try" if name == "reasoning_effort" else ""
                self._find(name, f"takes no {name}: it is left out from now on{spared}")
            if dialect.renamed and not known.renamed:
                self._find("max_tokens", "has the other name for the limit of tokens (provider.max_tokens_parameter)")
            self._change(without=known.without | dialect.without, renamed=known.renamed or dialect.renamed)

    def believe(self, about: str = "", message: str = "", **changes: Any) -> None:
        """Change the dialect by fields of `Dialect`; with a message, that is a finding about a subject."""
        with self._lock:
            self._change(**changes)
            if message:
                self._find(about, message)

    def may_try_other_limit(self) -> bool:
        """Whether the limit's other name was not tried yet for an answer that was cut off; true once."""
        with self._lock:
            first, self._has_tried_other_limit = not self._has_tried_other_limit, True
            return first

    def learn(self, beliefs: Beliefs) -> None:
        """Believe, beside what is believed here, what another process has found out."""
        with self._lock:
            mine = self._beliefs
            self._settled = self._settled or beliefs.dialect.form != "json_schema"
            self._beliefs = Beliefs(
                dialect=mine.dialect.merged(beliefs.dialect),
                form_of={**beliefs.form_of, **mine.form_of},
                findings={**beliefs.findings, **mine.findings},
            )

    def findings(self) -> tuple[Finding, ...]:
        """What a person should know, sorted."""
        found = self._beliefs.findings
        return tuple(sorted(Finding(self.endpoint, self.model, about, found[about]) for about in found))

    def new_findings(self) -> tuple[Finding, ...]:
        """The findings that were not returned here before."""
        with self._lock:
            new = tuple(finding for finding in self.findings() if finding.about not in self._reported)
            self._reported |= {finding.about for finding in new}
        return new

    def _scope(self, digest: str) -> str:
        """What a strike is against: every schema, until one has been accepted."""
        return digest if self._settled else ""

    def _accept_form(self, digest: str, opening: Opening, form: Form) -> None:
        scope = self._scope(digest)
        if form == self.dialect(digest).form:
            self._strikes.pop(scope, None)
            self._accepted.add(digest)
            self._settled = True
        elif opening.is_guess:
            if self._strikes.get(scope) == opening.strikes:
                self._accept_guess(digest, opening, form)
        elif form != opening.dialect.form:
            self._believe_form(digest, opening.dialect.form, form)

    def _accept_guess(self, digest: str, opening: Opening, form: Form) -> None:
        if opening.strikes == 4:
            del self._strikes[self._scope(digest)]
            self._believe_form(digest, "json_schema", form)
            return
        self._strikes[self._scope(digest)] = 3
        self._find(
            "fails",
            "failed at a request by json_schema, and answered it with the schema in the prompt: "
            "provider.structured_output=prompt if that comes again",
        )

    def _believe_form(self, digest: str, refused: Form, form: Form) -> None:
        words = _FORMS_IN_WORDS[form]
        if self._settled:
            self._beliefs = self._beliefs.model_copy(update={"form_of": {**self._beliefs.form_of, digest: form}})
            self._find("some_schemas", f"does not take {refused} for some schemas: {words} for those")
            return
        self._settled = True
        self._change(form=form, schema_in_prompt=True)
        spared = f"provider.structured_output={form} spares the try"
        self._find("structured_output", f"does not take {refused}: {words} from now on; {spared}")

    def _change(self, **changes: Any) -> None:
        self._beliefs = self._beliefs.model_copy(update={"dialect": replace(self._beliefs.dialect, **changes)})

    def _find(self, about: str, message: str) -> None:
        findings = {about: message, **self._beliefs.findings}
        self._beliefs = self._beliefs.model_copy(update={"findings": findings})


_lock = threading.Lock()
_servers: dict[tuple[str, str, str], Server] = {}


def server_at(endpoint: str, address: str, model: str) -> Server:
    """What the process believes of a model at an address, under the endpoint's name."""
    key = (endpoint, address, model)
    with _lock:
        if key not in _servers:
            _servers[key] = Server(endpoint, model)
        return _servers[key]


def servers_at(endpoint: str, address: str) -> tuple[Server, ...]:
    """Every model of an address that was asked, by its name."""
    with _lock:
        return tuple(_servers[key] for key in sorted(_servers) if key[:2] == (endpoint, address))


def forget_servers() -> None:
    """Find everything out again."""
    global _lock, _servers
    _lock, _servers = threading.Lock(), {}


if hasattr(os, "register_at_fork"):
    # A forked child may have a lock that is held for ever.
    os.register_at_fork(after_in_child=forget_servers)
