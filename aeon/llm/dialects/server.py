"""What is believed of one model at one address, for the life of the process. Thread-safe."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pydantic import Field

from aeon.domain.values import Value
from aeon.llm.dialects.dialect import FORMS, Dialect, Form
from aeon.llm.protocols import Finding

_FORMS_IN_WORDS: dict[Form, str] = {
    "json_schema": "json_schema",
    "json_object": "json_object and the schema in the prompt",
    "prompt": "the schema in the prompt",
}
DOUBTS = 2
"""So many failures in a row that may be outages, and the schema is tried in the prompt alone."""


class Beliefs(Value):
    """What another process need not find out again: the dialect, the form of single schemas by their digest, and what
    a person should know, by subject."""

    dialect: Dialect = Dialect()
    form_of: dict[str, Form] = Field(default_factory=dict)
    findings: dict[str, str] = Field(default_factory=dict)


class Server:
    """One model at one address. `beliefs` is what is believed now."""

    def __init__(self, endpoint: str, model: str) -> None:
        self.endpoint, self.model = endpoint, model
        self.beliefs = Beliefs()
        self._lock = threading.Lock()
        self._first: threading.Event | None = None
        self._accepted: set[str] = set()
        self._doubts: Counter[str] = Counter()
        self._reported: set[str] = set()

    def dialect(self, digest: str) -> Dialect:
        """The believed dialect for a request with the schema of this digest."""
        form = self.beliefs.form_of.get(digest)
        return self.beliefs.dialect.in_form(form) if form else self.beliefs.dialect

    def doubts(self, digest: str) -> int:
        """How many requests with that schema have failed in a row in a way that may be an outage, or about it."""
        return self._doubts[digest]

    @contextmanager
    def first_goes_ahead(self) -> Iterator[None]:
        """The first request goes ahead of those that start beside it: they need not all meet a refusal."""
        with self._lock:
            first, is_first = self._first, self._first is None
            self._first = first = first or threading.Event()
        if not is_first:
            first.wait()
        try:
            yield
        finally:
            first.set()

    def has_accepted(self, digest: str) -> bool:
        """Whether a request with that schema was answered as it first went out."""
        return digest in self._accepted

    def doubt(self, digest: str, doubts: int) -> None:
        """So many requests with that schema have failed in a row by now; never more than `DOUBTS`."""
        with self._lock:
            if digest not in self._accepted:
                self._doubts[digest] = doubts if doubts <= DOUBTS else 0

    def accept(self, digest: str, opening: Dialect, dialect: Dialect, *, finds_form: bool) -> None:
        """A request was answered in a dialect, after refusals where that is not its opening."""
        if dialect is opening and digest in self._accepted:
            return
        with self._lock:
            believed = self.dialect(digest)
            if finds_form and FORMS.index(dialect.form) > FORMS.index(believed.form):
                self._believe_form(digest, believed.form, dialect.form)
            elif dialect.form == opening.form:
                self._accepted.add(digest)
            self._doubts.pop(digest, None)
            known = self.beliefs.dialect
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

    def learn(self, beliefs: Beliefs) -> None:
        """Believe, beside what is believed here, what another process has found out."""
        with self._lock:
            mine = self.beliefs
            self.beliefs = Beliefs(
                dialect=mine.dialect.merged(beliefs.dialect),
                form_of={**beliefs.form_of, **mine.form_of},
                findings={**beliefs.findings, **mine.findings},
            )

    def findings(self) -> tuple[Finding, ...]:
        """What a person should know, sorted."""
        found = self.beliefs.findings
        return tuple(sorted(Finding(self.endpoint, self.model, about, found[about]) for about in found))

    def new_findings(self) -> tuple[Finding, ...]:
        """The findings that were not returned here before."""
        with self._lock:
            new = tuple(finding for finding in self.findings() if finding.about not in self._reported)
            self._reported |= {finding.about for finding in new}
        return new

    def _believe_form(self, digest: str, refused: Form, form: Form) -> None:
        words = _FORMS_IN_WORDS[form]
        if self._accepted or refused != "json_schema":
            self._change_beliefs(form_of={**self.beliefs.form_of, digest: form})
            self._find("some_schemas", f"does not take {refused} for some schemas: {words} for those")
        else:
            self._change(form=form, schema_in_prompt=True)
            spared = f"provider.structured_output={form} spares the try"
            self._find("structured_output", f"does not take {refused}: {words} from now on; {spared}")

    def _change(self, **changes: Any) -> None:
        if changes:
            self._change_beliefs(dialect=replace(self.beliefs.dialect, **changes))

    def _find(self, about: str, message: str) -> None:
        self._change_beliefs(findings={about: message, **self.beliefs.findings})

    def _change_beliefs(self, **changes: Any) -> None:
        self.beliefs = self.beliefs.model_copy(update=changes)


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
    with _lock:
        _servers.clear()
