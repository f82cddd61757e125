"""What endpoints have turned out to be able to do, by address and model, for the life of the process.

Nothing here depends on a run: what one run has found out holds for the next. Safe to use from many threads.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from pydantic import Field

from aeon.llm.adapters.dialect import Dialect, Form
from aeon.llm.adapters.refusal import Refusal
from aeon.values import Value

MOST_SKIPPED = 64
DOUBTED_ANSWERS = 64


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Something found out about an endpoint that a person should know: about which of its abilities, and in words."""

    endpoint: str
    model: str
    about: str
    message: str

    def __str__(self) -> str:
        return f"{self.endpoint}, model {self.model}: {self.message}"


class Known(Value):
    """What decides how a model at an address is spoken to, and what a person should know of it: to be kept.

    Schemas by their digests, `findings` by what they are about.
    """

    settled: bool = False
    form: Form | None = None
    doubted: Form | None = None
    form_of: dict[str, Form] = Field(default_factory=dict)
    accepted: tuple[str, ...] = ()
    unenforced: tuple[bool, ...] = ()
    without: tuple[str, ...] = ()
    renamed: bool = False
    schema_beside: bool = False
    findings: dict[str, str] = Field(default_factory=dict)


@dataclass
class Capabilities:
    """What one model at one address can do, as far as it is known.

    A refusal counts only once the same request has been answered in another dialect. One that may as well be an outage
    must have come again before that, and once more after it; even then the refused form is asked for again after 64
    answers, and after ever more. `scout` is there while the first request to an endpoint is under way, `exploring`
    while that one tries another form after such a failure, `under_way` counts requests; all three belong to the loop.
    """

    endpoint: str
    model: str
    scout: asyncio.Event | None = None
    exploring: bool = False
    under_way: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _form: Form = "json_schema"
    _settled: bool = False
    _trying: Form | None = None
    _form_of: dict[str, Form] = field(default_factory=dict)
    _accepted: set[str] = field(default_factory=set)
    _unenforced: set[bool] = field(default_factory=set)
    _without: frozenset[str] = frozenset()
    _renamed: bool = False
    _schema_beside: bool = False
    _failed: bool = False
    _doubted: Form | None = None
    _doubted_answers: int = 0
    _most_doubted: int = 0
    _in_vain: int = 0
    _skip: int = 0
    _findings: dict[str, Finding] = field(default_factory=dict)
    _told: set[str] = field(default_factory=set)

    @property
    def settled(self) -> bool:
        """Whether a request has been accepted."""
        with self._lock:
            return self._settled

    def dialect(self, digest: str, strict: bool) -> Dialect:
        """How a request with the schema of this digest is said, by what is known now."""
        with self._lock:
            form = self._form_of.get(digest) or (None if self._settled else self._trying) or self._form
            in_prompt = form != "json_schema" or strict in self._unenforced
            return Dialect(form, in_prompt, self._without, self._renamed, self._schema_beside)

    @property
    def failed(self) -> bool:
        """Whether a failure that may be a refusal was told, and no request has been accepted yet."""
        with self._lock:
            return self._failed

    def opening(self, digest: str, strict: bool) -> Dialect:
        """How a new request is said first: as `dialect` says, or in a form that was given up in doubt, now and then."""
        known = self.dialect(digest, strict)
        with self._lock:
            if self._doubted is None or self._doubted_answers < self._most_doubted:
                return known
            self._doubted_answers, self._most_doubted = 0, self._most_doubted * 4
            return replace(known, form=self._doubted, schema_in_prompt=strict in self._unenforced)

    def may_try(self, digest: str, refusal: Refusal, *, again: bool) -> bool:
        """Whether a refusal is worth a try of another form.

        Always one that names the format. One that may be an outage only where no request has been accepted and if it
        came `again`, in a quiet moment. Any other not where the same schema was accepted before. After tries in vain
        only the 5th, 21st, ... of them: a dead server must not be asked everything twice.
        """
        with self._lock:
            if refusal.of_the_format:
                return True
            if refusal.doubtful:
                self._failed = not self._settled
                if self._settled or not again:
                    return False
            if digest in self._accepted:
                return False
            self._skip, allowed = max(0, self._skip - 1), self._skip == 0
            return allowed

    def next_form(self, form: Form, refusal: Refusal) -> Form | None:
        """The form to try after `form`; where it may be an outage there is one try, each time of another form."""
        with self._lock:
            if refusal.doubtful and form == "json_schema" and self._in_vain % 2:
                return "prompt"
        following: dict[Form, Form] = {"json_schema": "json_object", "json_object": "prompt"}
        return following.get(form)

    def trying(self, form: Form | None) -> None:
        """Have others use the form that is being tried, until it is known whether it helps."""
        with self._lock:
            self._trying = form

    def tried_in_vain(self) -> None:
        """No form helped."""
        with self._lock:
            self._in_vain += 1
            self._skip = min(MOST_SKIPPED, 4**self._in_vain - 1)

    def accepted(
        self, digest: str, start: Dialect, dialect: Dialect, refusals: Sequence[Refusal], *, doubted: bool = False
    ) -> None:
        """A request was answered in `dialect`, after `refusals` of the one it started with and others.

        `doubted`: the refusals may be an outage, though they were there before and after that answer.
        """
        with self._lock:
            self._accept_form(digest, start, dialect, refusals, doubted)
            for name in sorted(dialect.without - self._without):
                self._find(name, f"takes no {name}: it is left out from now on" + _SPARED.get(name, ""))
            if dialect.renamed and not self._renamed:
                self._find("max_tokens", "has the other name for the limit of tokens (provider.max_tokens_parameter)")
            self._without |= dialect.without
            self._renamed = self._renamed or dialect.renamed

    def _accept_form(
        self, digest: str, start: Dialect, dialect: Dialect, refusals: Sequence[Refusal], doubted: bool
    ) -> None:
        if dialect.form == self._doubted:
            self._form, self._doubted = self._doubted, None
            self._findings.pop("structured_output", None)
        if dialect.form == self._form_of.get(digest, self._form):
            self._accepted.add(digest)
            self._settled, self._failed = True, False
            self._doubted_answers += 1
            return
        decisive = [refusal for refusal in refusals if refusal.of_the_request]
        if dialect.form == start.form or not decisive:
            return
        if all(refusal.doubtful for refusal in decisive):
            if not doubted or self._settled:
                return
            self._doubted, self._most_doubted = self._form, DOUBTED_ANSWERS
        self._believe(digest, start, dialect)

    def _believe(self, digest: str, start: Dialect, dialect: Dialect) -> None:
        self._accepted.add(digest)
        if self._settled:
            self._form_of[digest] = dialect.form
            self._find("some_schemas", f"does not take {start.form} for some schemas: {_WAYS[dialect.form]} for those")
            return
        self._form, self._settled = dialect.form, True
        spared = f"provider.structured_output={dialect.form} spares the try"
        said = f"does not take {start.form}: {_WAYS[dialect.form]} from now on; {spared}"
        self._find("structured_output", said)

    def not_enforced(self, strict: bool) -> None:
        """An answer to a request with json_schema was not of its schema; one that need not be strict proves less."""
        with self._lock:
            self._unenforced |= {True, False} if strict else {False}
            self._find("json_schema", "takes json_schema and does not hold to it: the schema goes into the prompt too")

    def object_not_enforced(self) -> None:
        """An answer to json_object was not of the schema in the prompt: some servers hold to one beside json_object."""
        with self._lock:
            self._schema_beside = True

    def limit_ignored(self) -> None:
        """An answer was longer than `max_completion_tokens`: the limit goes by its other name."""
        with self._lock:
            self._renamed = True
            self._find("max_tokens", "ignores max_completion_tokens: the limit is sent as max_tokens from now on")

    def changed(self, name: str, message: str) -> None:
        """A parameter of a request was changed for what the table of models says."""
        with self._lock:
            self._find(name, message)

    def _find(self, about: str, message: str) -> None:
        self._findings.setdefault(about, Finding(self.endpoint, self.model, about, message))

    def known(self) -> Known:
        """All that another process need not find out again."""
        with self._lock:
            return Known(
                settled=self._settled,
                form=self._form if self._settled else None,
                doubted=self._doubted,
                form_of=dict(self._form_of),
                accepted=tuple(sorted(self._accepted)),
                unenforced=tuple(sorted(self._unenforced)),
                without=tuple(sorted(self._without)),
                renamed=self._renamed,
                schema_beside=self._schema_beside,
                findings={about: finding.message for about, finding in self._findings.items()},
            )

    def learn(self, known: Known) -> None:
        """Know, beside what is known here, what another process has found out."""
        with self._lock:
            if known.form is not None and not self._settled:
                self._form, self._doubted = known.form, known.doubted
                self._most_doubted = DOUBTED_ANSWERS
            self._settled = self._settled or known.settled
            self._form_of.update(known.form_of)
            self._accepted |= set(known.accepted)
            self._unenforced |= set(known.unenforced)
            self._without |= set(known.without)
            self._renamed = self._renamed or known.renamed
            self._schema_beside = self._schema_beside or known.schema_beside
            for about, message in known.findings.items():
                self._find(about, message)

    def findings(self) -> tuple[Finding, ...]:
        """What a person should know, sorted."""
        with self._lock:
            return tuple(sorted(self._findings.values()))

    def untold(self) -> Iterator[Finding]:
        """The findings that were not given out here before."""
        with self._lock:
            new = sorted(finding for about, finding in self._findings.items() if about not in self._told)
            self._told |= self._findings.keys()
        yield from new


_SPARED = {"reasoning_effort": "; reasoning=none spares the try"}
_WAYS: dict[Form, str] = {
    "json_schema": "json_schema",
    "json_object": "json_object and the schema in the prompt",
    "prompt": "the schema in the prompt",
}

_lock = threading.Lock()
_known: dict[tuple[str, str, str], Capabilities] = {}


def capabilities(endpoint: str, address: str, model: str) -> Capabilities:
    """What is known of a model at an address, under the endpoint's name; shared by the whole process."""
    with _lock:
        return _known.setdefault((endpoint, address, model), Capabilities(endpoint, model))


def of_address(endpoint: str, address: str) -> tuple[Capabilities, ...]:
    """What is known of every model at an address, by the model's name."""
    with _lock:
        found = [key for key in _known if key[:2] == (endpoint, address)]
        return tuple(_known[key] for key in sorted(found))


def forget() -> None:
    """Find everything out again."""
    global _known, _lock
    _known, _lock = {}, threading.Lock()


if hasattr(os, "register_at_fork"):
    # A forked child has another event loop, and perhaps a lock that is held for ever.
    os.register_at_fork(after_in_child=forget)
