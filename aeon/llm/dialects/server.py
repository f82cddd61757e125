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
    "reasoning_effort": "; reasoning=none skips the trial",
    CACHE_MARKS: "; provider.prompt_cache=off skips the trial",
    FUNCTIONS: " and calls are requested in the answer; provider.function_calling=never skips the "
    "trial",
}
_DOUBTS = 2
"""After this many possible outages in a row, the schema is tried in the prompt alone."""


class Beliefs(Value):
    """What another process can reuse: the dialect, the form of single schemas by digest, and
    messages for the user, by subject."""

    dialect: Dialect = Dialect()
    form_of: dict[str, Form] = Field(default_factory=dict)
    findings: dict[str, str] = Field(default_factory=dict)


class Server:
    """One model at one address; thread-safe.

    `accepted` are the digests of schemas that were answered in the form sent first; `prefixes` the
    prompt prefixes marked for its cache; `marked_roles` the roles of messages answered with marks;
    `calls_functions` whether an answer has called a function.
    """

    def __init__(self, endpoint: str, model: str) -> None:
        self.endpoint = endpoint
        self.model = model
        self.accepted: set[str] = set()
        self.beliefs = Beliefs()
        self.prefixes = MarkedPrefixes()
        self.marked_roles = frozenset[str]()
        self._doubts: dict[str, int] = {}
        # Reentrant, because methods that hold it call `believe`.
        self._lock = threading.RLock()
        self._first = threading.Lock()
        self._first_is_done = threading.Event()
        self._reported: set[str] = set()
        self._limit_name_tried = False
        self.calls_functions = False
        self._answers_without_calls = 0

    def dialect(self, digest: str) -> Dialect:
        """Return the believed dialect for requests with the schema of this digest."""
        form = self.beliefs.form_of.get(digest)
        return self.beliefs.dialect.in_form(form) if form else self.beliefs.dialect

    @contextmanager
    def first_goes_ahead(self) -> Iterator[None]:
        """Serialise the first request, so that concurrent ones reuse what it learns."""
        # The lock is never released: it only tells the first request from the others.
        if not self._first_is_done.is_set() and not self._first.acquire(blocking=False):
            self._first_is_done.wait()
        try:
            yield
        finally:
            self._first_is_done.set()

    def doubts_form(self, digest: str) -> bool:
        """Whether requests with this schema have failed often enough that its form may be the
        cause."""
        return self._doubts.get(digest, 0) >= _DOUBTS

    def note_failure(self, digest: str, *, may_be_form: bool) -> None:
        """Count consecutive failures that the form may have caused, for a schema that was never
        answered."""
        if digest in self.accepted:
            return
        is_counted = may_be_form and not self.doubts_form(digest)
        self._doubts[digest] = self._doubts.get(digest, 0) + 1 if is_counted else 0

    def note_answer(
        self, digest: str, opening: Dialect, answered: Dialect, *, finds_form: bool
    ) -> None:
        """Remember what the refusals before an answer proved, if `answered` differs from the
        `opening` dialect."""
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
        # A server that accepts other schemas in that form refuses something in this schema.
        if self.accepted or known != "json_schema":
            self._change(form_of={**self.beliefs.form_of, digest: form})
            self.believe("some_schemas", f"{refused} for some schemas: {words} for those")
        else:
            spared = f"provider.structured_output={form} skips the trial"
            message = f"{refused}: {words} from now on; {spared}"
            self.believe("structured_output", message, form=form, schema_in_prompt=True)

    def _believe_left_out(self, names: frozenset[str]) -> None:
        for name in sorted(names - self.beliefs.dialect.without):
            spared = _SPARED.get(name, "")
            message = f"takes no {name}: it is left out from now on{spared}"
            self.believe(name, message, without=self.beliefs.dialect.without | {name})

    def believe(self, about: str = "", message: str = "", **changes: Any) -> None:
        """Change the dialect by fields of `Dialect`. A `message` is stored as a finding about the
        subject `about`."""
        with self._lock:
            found = {about: message, **self.beliefs.findings} if message else self.beliefs.findings
            self._change(dialect=replace(self.beliefs.dialect, **changes), findings=found)

    def may_try_other_limit_name(self) -> bool:
        """Whether a truncated answer may be retried with the token limit's other name; True only
        once."""
        with self._lock:
            is_first = not self._limit_name_tried
            self._limit_name_tried = True
            return is_first

    @property
    def doubts_functions(self) -> bool:
        """Whether the way the server handles functions may explain an answer without calls."""
        return not self.calls_functions and self._answers_without_calls < _DOUBTS

    def note_no_calls(self) -> None:
        """Count an answer that called nothing in either form."""
        with self._lock:
            self._answers_without_calls += 1

    def rename_limit(self, message: str) -> None:
        """Use the other name of the token limit from now on."""
        with self._lock:
            self.believe("max_tokens", message, renamed=not self.beliefs.dialect.renamed)

    def learn(self, other: Beliefs) -> None:
        """Add another process's findings to the present beliefs."""
        values = {field.name: getattr(other.dialect, field.name) for field in fields(Dialect)}
        # A field as it was at first shows nothing: the other process may not have tried it.
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
        """Return the messages for the user, sorted; with `only_new`, only those that no such call
        has returned yet."""
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
    """Return what the process knows of a model at an address, under the endpoint's name."""
    key = (endpoint, address, model)
    # `setdefault` is atomic: threads that come at the same time get the same one.
    return _servers.get(key) or _servers.setdefault(key, Server(endpoint, model))


def servers_at(endpoint: str, address: str) -> tuple[Server, ...]:
    """Return every model that was called at an address, sorted by name."""
    return tuple(_servers[key] for key in sorted(_servers) if key[:2] == (endpoint, address))


def forget_servers() -> None:
    """Forget everything that was found out."""
    _servers.clear()
