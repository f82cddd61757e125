"""What is known of one model at one address, for the life of the process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

from pydantic import Field

from aeon.domain.values import Value
from aeon.llm.dialects.cache_marks import MarkedPrefixes
from aeon.llm.dialects.dialect import CACHE_MARKS, FORMS, Dialect, Form
from aeon.llm.dialects.functions import FUNCTIONS
from aeon.llm.protocols import ServerFinding

_FORMS_IN_WORDS = {
    "json_object": "json_object and the schema in the prompt",
    "prompt": "the schema in the prompt",
}
_OTHER_NAME = "has the other name for the limit of tokens (provider.max_tokens_parameter)"
_SPARED = {
    "reasoning_effort": "; reasoning=none spares the try",
    CACHE_MARKS: "; provider.prompt_cache=off spares the try",
    FUNCTIONS: " and calls are asked for in the answer; provider.function_calling=never spares the "
    "try",
}
_DOUBTS = 2
"""So many failures in a row that may be outages, and the schema is tried in the prompt alone."""


class Beliefs(Value):
    """What another process need not find out again: the dialect, the form of single schemas by
    their digest, and what a person should know, by subject."""

    dialect: Dialect = Dialect()
    form_of: dict[str, Form] = Field(default_factory=dict)
    findings: dict[str, str] = Field(default_factory=dict)


class Server:
    """One model at one address; thread-safe.

    `accepted` are the schemas, by their digest, that were answered as they first went out;
    `prefixes` what was marked for its cache, `marked_roles` the roles of messages that were answered
    with marks, `calls_functions` whether an answer has called a function.
    """

    def __init__(self, endpoint: str, model: str) -> None:
        self.endpoint = endpoint
        self.model = model
        self.accepted: set[str] = set()
        self.beliefs = Beliefs()
        self.prefixes = MarkedPrefixes()
        self.marked_roles = frozenset[str]()
        self._doubts: dict[str, int] = {}
        self._lock = threading.RLock()
        self._first = threading.Lock()
        self._first_is_done = threading.Event()
        self._reported: set[str] = set()
        self._limit_name_tried = False
        self.calls_functions = False
        self._answers_without_calls = 0

    def dialect(self, digest: str) -> Dialect:
        """The believed dialect for a request with the schema of this digest."""
        form = self.beliefs.form_of.get(digest)
        return self.beliefs.dialect.in_form(form) if form else self.beliefs.dialect

    @contextmanager
    def first_goes_ahead(self) -> Iterator[None]:
        """Serialise the first request, so that concurrent ones reuse what it learns."""
        if not self._first_is_done.is_set() and not self._first.acquire(blocking=False):
            self._first_is_done.wait()
        try:
            yield
        finally:
            self._first_is_done.set()

    def doubts_form(self, digest: str) -> bool:
        """Whether requests with the schema of this digest have failed so often that its form may be
        the cause."""
        return self._doubts.get(digest, 0) >= _DOUBTS

    def note_failure(self, digest: str, *, may_be_form: bool) -> None:
        """Count, for a schema that was never answered, the failures in a row that may come of its
        form."""
        if digest in self.accepted:
            return
        is_counted = may_be_form and not self.doubts_form(digest)
        self._doubts[digest] = self._doubts.get(digest, 0) + 1 if is_counted else 0

    def note_answer(
        self, digest: str, opening: Dialect, answered: Dialect, *, finds_form: bool
    ) -> None:
        """Believe the refusals before an answer: it was given in another dialect than the opening
        one."""
        if answered is opening and digest in self.accepted:
            return
        with self._lock:
            self._doubts.pop(digest, None)
            if answered.form == opening.form:
                self.accepted.add(digest)
            elif finds_form:
                self._believe_form(digest, answered.form)
            self._believe_left_out(answered.without)
            if answered.renamed and not self.beliefs.dialect.renamed:
                self.believe("max_tokens", _OTHER_NAME, renamed=True)

    def _believe_form(self, digest: str, form: Form) -> None:
        known = self.dialect(digest).form
        if FORMS.index(form) <= FORMS.index(known):
            return
        refused = f"does not take {known}"
        words = _FORMS_IN_WORDS[form]
        # A server that takes other schemas in that form refuses something in this one.
        if self.accepted or known != "json_schema":
            self._change(form_of={**self.beliefs.form_of, digest: form})
            self.believe("some_schemas", f"{refused} for some schemas: {words} for those")
        else:
            spared = f"provider.structured_output={form} spares the try"
            message = f"{refused}: {words} from now on; {spared}"
            self.believe("structured_output", message, form=form, schema_in_prompt=True)

    def _believe_left_out(self, names: frozenset[str]) -> None:
        for name in sorted(names - self.beliefs.dialect.without):
            spared = _SPARED.get(name, "")
            message = f"takes no {name}: it is left out from now on{spared}"
            self.believe(name, message, without=self.beliefs.dialect.without | {name})

    def believe(self, about: str = "", message: str = "", **changes: Any) -> None:
        """Change the dialect by fields of `Dialect`; with a message, that is a finding about a
        subject."""
        with self._lock:
            found = {about: message, **self.beliefs.findings} if message else self.beliefs.findings
            self._change(dialect=replace(self.beliefs.dialect, **changes), findings=found)

    def may_try_other_limit_name(self) -> bool:
        """Whether the limit's other name was not tried yet for an answer that was cut off; True
        only once."""
        with self._lock:
            is_first = not self._limit_name_tried
            self._limit_name_tried = True
            return is_first

    @property
    def doubts_functions(self) -> bool:
        """Whether an answer without calls may come of how the server takes functions."""
        return not self.calls_functions and self._answers_without_calls < _DOUBTS

    def note_no_calls(self) -> None:
        """Count an answer that called nothing, however it was asked for."""
        with self._lock:
            self._answers_without_calls += 1

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

    def findings(self, *, only_new: bool = False) -> tuple[ServerFinding, ...]:
        """What a person should know, sorted; with `only_new`, only what no such call has returned
        yet."""
        with self._lock:
            known = self._reported if only_new else frozenset[str]()
            found = {
                about: text for about, text in self.beliefs.findings.items() if about not in known
            }
            if only_new:
                self._reported.update(found)
        return tuple(
            ServerFinding(self.endpoint, self.model, about, found[about]) for about in sorted(found)
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
