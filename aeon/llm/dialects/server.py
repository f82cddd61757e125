"""What is believed of one model at one address, for the life of the process. Thread-safe."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pydantic import Field

from aeon.domain.values import Value
from aeon.llm.dialects.dialect import FORMS, Dialect, Form
from aeon.llm.protocols import Finding

_FORMS_IN_WORDS: dict[Form, str] = {
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
    """One model at one address. `beliefs` is what is believed now.

    `accepted` are the schemas, by their digest, that were answered as they first went out. `doubts` counts for the
    others how many requests in a row have failed in a way that may be an outage, or about the schema.
    """

    def __init__(self, endpoint: str, model: str) -> None:
        self.endpoint, self.model = endpoint, model
        self.accepted: set[str] = set()
        self.doubts: dict[str, int] = {}
        self.beliefs = Beliefs()
        self._lock = threading.RLock()
        self._first: threading.Event | None = None
        self._reported: set[str] = set()

    def dialect(self, digest: str) -> Dialect:
        """The believed dialect for a request with the schema of this digest."""
        form = self.beliefs.form_of.get(digest)
        return self.beliefs.dialect.in_form(form) if form else self.beliefs.dialect

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
                    spared = f"provider.structured_output={form} spares the try"
                    message = f"{refused}: {words} from now on; {spared}"
                    self.believe("structured_output", message, form=form, schema_in_prompt=True)
            elif form == opening.form:
                self.accepted.add(digest)
            self.doubts.pop(digest, None)
            for name in sorted(dialect.without - known.without):
                spared = "; reasoning=none spares the try" if name == "reasoning_effort" else ""
                message = f"takes no {name}: it is left out from now on{spared}"
                self.believe(name, message, without=self.beliefs.dialect.without | {name})
            if dialect.renamed and not known.renamed:
                message = "has the other name for the limit of tokens (provider.max_tokens_parameter)"
                self.believe("max_tokens", message, renamed=True)

    def believe(self, about: str = "", message: str = "", **changes: Any) -> None:
        """Change the dialect by fields of `Dialect`; with a message, that is a finding about a subject."""
        with self._lock:
            found = {about: message, **self.beliefs.findings} if message else self.beliefs.findings
            self._change(dialect=replace(self.beliefs.dialect, **changes), findings=found)

    def learn(self, beliefs: Beliefs) -> None:
        """Believe, beside what is believed here, what another process has found out."""
        with self._lock:
            mine = self.beliefs
            self._change(
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
