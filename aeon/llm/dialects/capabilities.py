"""What endpoints have turned out to be able to do, by address and model, for the life of the process.

Nothing here depends on a run: what one run has found out holds for the next. Safe to use from many threads.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from aeon.llm.dialects.dialect import Dialect, Form
from aeon.llm.dialects.known import Known
from aeon.llm.protocols import Finding

Doubt = Literal["", "failed", "failed_twice", "answered_without", "failed_again"]
"""How far it is proved that a failure that may be an outage is of the schema: see `Capabilities`."""
GUESSES: tuple[Doubt, ...] = ("failed_twice", "failed_again")
"""When a request goes out with its schema in the prompt alone, to see whether that helps."""
_AFTER_A_FAILURE: dict[Doubt, Doubt] = {"": "failed", "failed": "failed_twice", "answered_without": "failed_again"}


@dataclass(frozen=True, slots=True)
class Opening:
    """How a request is said first, and what was in doubt then."""

    dialect: Dialect
    doubt: Doubt = ""


@dataclass
class Capabilities:
    """What one model at one address can do, as far as it is known.

    A refusal counts only once the same request has been answered in another dialect. A failure that may be an outage
    (a 500 that says nothing, a connection that breaks off) is tried again by `Retry` as any other; when it comes twice
    running, the next request goes out with its schema in the prompt alone. When that is answered, the one after it has
    json_schema again; only if it fails as before, and the schema in the prompt helps again, that form is believed.

    `scout` is there while the first request to an endpoint is under way, and belongs to the loop.
    """

    endpoint: str
    model: str
    scout: asyncio.Event | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _form: Form = "json_schema"
    _settled: bool = False
    _form_of: dict[str, Form] = field(default_factory=dict)
    _accepted: set[str] = field(default_factory=set)
    _unenforced: set[bool] = field(default_factory=set)
    _without: frozenset[str] = frozenset()
    _renamed: bool = False
    _schema_beside: bool = False
    _limit_tried: bool = False
    _stream: bool = False
    _doubts: dict[str, Doubt] = field(default_factory=dict)
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
            form = self._form_of.get(digest, self._form)
            in_prompt = form != "json_schema" or strict in self._unenforced
            return Dialect(form, in_prompt, self._without, self._renamed, self._schema_beside, self._stream)

    def opening(self, digest: str, strict: bool) -> Opening:
        """How a new request is said first: as `dialect` says, or without its schema after a failure in doubt."""
        known = self.dialect(digest, strict)
        with self._lock:
            doubt = self._doubts.get(self._scope(digest), "")
        if doubt in GUESSES:
            return Opening(replace(known, form="prompt", schema_in_prompt=True), doubt)
        return Opening(known, doubt)

    def may_try(self, digest: str) -> bool:
        """Whether a refusal that names nothing may be of how a request is said: not where its schema was accepted."""
        with self._lock:
            return digest not in self._accepted

    def doubt(self, digest: str, opening: Opening) -> None:
        """A request failed in a way that may be an outage, or of its schema."""
        with self._lock:
            scope = self._scope(digest)
            if digest in self._accepted or opening.doubt != self._doubts.get(scope, ""):
                return
            self._doubts[scope] = _AFTER_A_FAILURE.get(opening.doubt, "")

    def accepted(self, digest: str, opening: Opening, dialect: Dialect) -> None:
        """A request was answered in `dialect`, after refusals where that is not the one it started with."""
        with self._lock:
            self._accept_form(digest, opening, dialect)
            for name in sorted(dialect.without - self._without):
                self._find(name, f"takes no {name}: it is left out from now on" + _SPARED.get(name, ""))
            if dialect.renamed and not self._renamed:
                self._find("max_tokens", "has the other name for the limit of tokens (provider.max_tokens_parameter)")
            self._without |= dialect.without
            self._renamed = self._renamed or dialect.renamed

    def _scope(self, digest: str) -> str:
        """What a doubt is about: every schema, until one has been accepted."""
        return digest if self._settled else ""

    def _accept_form(self, digest: str, opening: Opening, dialect: Dialect) -> None:
        if dialect.form == self._form_of.get(digest, self._form):
            self._doubts.pop(self._scope(digest), None)
            self._accepted.add(digest)
            self._settled = True
        elif opening.doubt in GUESSES:
            self._answered_without(digest, dialect, opening.doubt)
        elif dialect.form != opening.dialect.form:
            self._believe(digest, opening.dialect.form, dialect.form)

    def _answered_without(self, digest: str, dialect: Dialect, doubt: Doubt) -> None:
        scope = self._scope(digest)
        if self._doubts.get(scope) != doubt:
            return
        if doubt == "failed_again":
            del self._doubts[scope]
            self._believe(digest, "json_schema", dialect.form)
            return
        self._doubts[scope] = "answered_without"
        self._find(
            "fails",
            "failed at a request by json_schema, and answered it with the schema in the prompt: "
            "provider.structured_output=prompt if that comes again",
        )

    def _believe(self, digest: str, refused: Form, form: Form) -> None:
        if self._settled:
            self._form_of[digest] = form
            self._find("some_schemas", f"does not take {refused} for some schemas: {_WAYS[form]} for those")
            return
        self._form, self._settled = form, True
        spared = f"provider.structured_output={form} spares the try"
        self._find("structured_output", f"does not take {refused}: {_WAYS[form]} from now on; {spared}")

    def not_enforced(self, strict: bool, *, ranges_alone: bool = False) -> None:
        """An answer to a request with json_schema was not of its schema; one that need not be strict proves less.

        `ranges_alone`: its form was right, and values were out of their ranges.
        """
        held = "holds to its form, not to its ranges" if ranges_alone else "does not hold to it"
        with self._lock:
            self._unenforced |= {True, False} if strict else {False}
            self._find("json_schema", f"takes json_schema and {held}: the schema goes into the prompt too")

    def object_not_enforced(self) -> None:
        """An answer to json_object was not of the schema in the prompt: some servers hold to one beside json_object."""
        with self._lock:
            self._schema_beside = True

    def limit_ignored(self) -> None:
        """An answer was longer than `max_completion_tokens`: the limit goes by its other name."""
        with self._lock:
            self._renamed = True
            self._find("max_tokens", "ignores max_completion_tokens: the limit is sent as max_tokens from now on")

    def may_rename_limit(self) -> bool:
        """Whether the other name of the limit of tokens was not tried yet for an answer that was cut off; says so
        once."""
        with self._lock:
            first, self._limit_tried = not self._limit_tried, True
            return first

    def limit_renamed(self, name: str) -> None:
        """An answer that was cut off was longer with the limit by its other name than by `name`."""
        with self._lock:
            self._renamed = not self._renamed
            self._find("max_tokens", f"cuts answers off below {name}: the limit is sent by its other name from now on")

    def stream(self) -> None:
        """Answers are to be streamed."""
        with self._lock:
            self._stream = True

    def cut_off(self, seconds: float) -> None:
        """A request was cut off after so many seconds of silence."""
        with self._lock:
            self._stream = True
            self._find("stream", f"was cut off after {seconds:.0f} s: answers are streamed from now on")

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
                form=self._form if self._form != "json_schema" else None,
                form_of=dict(self._form_of),
                unenforced=tuple(sorted(self._unenforced)),
                without=tuple(sorted(self._without)),
                renamed=self._renamed,
                schema_beside=self._schema_beside,
                stream=self._stream,
                findings={about: finding.message for about, finding in self._findings.items()},
            )

    def learn(self, known: Known) -> None:
        """Know, beside what is known here, what another process has found out."""
        with self._lock:
            if known.form is not None and not self._settled:
                self._form = known.form
            self._settled = self._settled or known.form is not None
            self._form_of.update(known.form_of)
            self._unenforced |= set(known.unenforced)
            self._without |= set(known.without)
            self._renamed = self._renamed or known.renamed
            self._schema_beside = self._schema_beside or known.schema_beside
            self._stream = self._stream or known.stream
            for about, message in known.findings.items():
                self._find(about, message)

    def findings(self) -> tuple[Finding, ...]:
        """What a person should know, sorted."""
        with self._lock:
            return tuple(sorted(self._findings.values()))

    def unreported(self) -> Iterator[Finding]:
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
