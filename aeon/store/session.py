"""A run's use of the store: an answered request is not repeated, and a new answer is stored before
it is used."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime

from pydantic import TypeAdapter
from pydantic import ValidationError as PydanticError

from aeon.domain.errors import StoreFailed, StoreMiss, UnstoredAnswer
from aeon.domain.plan import FollowUpQuestion, PlanStep
from aeon.domain.request import Usage, current_site
from aeon.domain.values import JsonMapping, JsonObject
from aeon.store.chain import when_unusable
from aeon.store.interface import AnswerSource, AnswerStore
from aeon.store.lookup import ByKey, InOrder, Lookup, ReusePolicy, Shared, describe_miss
from aeon.store.models import CallPath, Entry, StoreRequest
from aeon.store.notes import RequestNotes, take_notes

Answer = JsonObject
Ask = Callable[[FollowUpQuestion], str | None]
DoStep = Callable[[PlanStep], str | None]
"""Has a person do a step and returns its output; None if nobody did it."""
Keep = Callable[[Entry, StoreFailed | None], None]
_log = logging.getLogger("aeon")
_USAGE = TypeAdapter(Usage)
_STOPPED = (
    "the run stops, because further answers would have to be paid for again "
    "(store.on_error=go_on continues)"
)


def read_stored_usage(answer: Answer) -> Usage:
    """Return the usage in a stored answer. Raises StoreFailed for counts that are not whole
    numbers."""
    try:
        return _USAGE.validate_python(answer.get("usage") or {})
    except PydanticError as error:
        raise StoreFailed(
            f"an answer in the store cannot be read: usage: {error.errors()[0]['msg']}"
        ) from None


class Session:
    """Looks up and stores the answers of one run; thread-safe.

    Answers go to the run's `own` store; model answers that may be used anywhere also go to a
    `shared` one. If its own store cannot be written, the run ends, unless it `goes_on`: then, and
    if the shared one cannot be written, the first failure is passed to `warn`. With a `recording`,
    no new request is made. `keep` gets each answer before it is used, again if it turns out
    unusable, and, instead of `warn`, the reason why `own` could not store it; it may raise to end
    the run.
    """

    def __init__(
        self,
        lookups: Sequence[Lookup] = (),
        *,
        own: AnswerStore | None = None,
        shared: AnswerStore | None = None,
        recording: AnswerSource | None = None,
        keep: Keep | None = None,
        warn: Callable[[str], None] = _log.warning,
        goes_on: bool = False,
    ) -> None:
        self._goes_on = goes_on
        self._lookups = tuple(lookups)
        self._own = own
        self._shared = shared
        self._recording = recording
        self._keep = keep
        self._warn = warn
        self.replays = recording is not None
        self._failed: list[AnswerStore] = []
        self._lock = threading.Lock()
        self._requests: Counter[str] = Counter()
        self.saved: Counter[str] = Counter()
        """The number of requests answered by a store, by kind; and the usage of the models among
        them, by name."""
        self.saved_usage: dict[str, Usage] = {}
        self.unusable_steps: set[str] = set()
        """The steps with a model answer that was unusable despite repairs."""
        self.unusable_calls: set[str] = set()
        """The names of the calls whose answer was unusable despite repairs."""

    @property
    def differing(self) -> int:
        """The number of requests in a replay by order that differ from the recorded ones
        (`store.match=order`)."""
        return sum(lookup.differing for lookup in self._lookups if isinstance(lookup, InOrder))

    def answer(
        self,
        request: StoreRequest,
        ask: Callable[[], Answer],
        *,
        policy: ReusePolicy = lambda _: "anywhere",
    ) -> Answer:
        """Return the stored answer to a request, or the new answer of `ask`, which is stored first.
        Equal requests from one place are numbered here; `policy` says where an answer may be
        reused. Raises StoreMiss in a replay, StoreFailed if a parent or recording cannot be read,
        and what `ask` raises."""
        when_unusable(lambda: self._note_unusable(request.path))
        if not (self._lookups or self._own or self._shared):
            with take_notes(None):
                return ask()
        request = self._number(request)
        with ExitStack() as alone:
            for lookup in self._lookups:
                if isinstance(lookup, Shared) and request.kind == "model":
                    alone.enter_context(lookup.alone(request))
                if found := lookup.find(request, policy):
                    entry = Entry(request=request, answer=found.answer, time=found.time)
                    self._store(entry, policy, lookup)
                    self._count(request.kind, found.answer)
                    return found.answer
            if self._recording is not None:
                raise describe_miss(request, self._recording)
            return self._ask(request, ask, policy)

    def _ask(self, request: StoreRequest, ask: Callable[[], Answer], policy: ReusePolicy) -> Answer:
        """Return a new answer, stored."""
        # A tool may make several requests, which notes on its one call could not tell apart.
        notes = RequestNotes(self, request) if request.kind == "model" else None
        with take_notes(notes):
            answer = ask()
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._store(Entry(request=request, answer=answer, time=time), policy)
        if notes is not None:
            notes.clear()
        return answer

    def begin(self, request: StoreRequest, note: JsonObject | None = None) -> None:
        """Mark, with a note, that the action of a request is about to happen, so that a later run
        knows if this one is cut off."""
        self._mark(request, note or {}, usable=True)

    def take_back(self, request: StoreRequest, note: JsonObject) -> None:
        """Withdraw the mark that a request was begun, and its note."""
        self._mark(request, note, usable=False)

    def find_begun(self, request: StoreRequest) -> JsonObject | None:
        """Return the newest note on a request that the resumed run had begun; None if it had not,
        or the note was withdrawn."""
        entries = (
            lookup.find_whole(request) for lookup in self._lookups if isinstance(lookup, ByKey)
        )
        newest = next((entry for entry in entries if entry is not None), None)
        return newest.answer if newest is not None and newest.usable else None

    def _mark(self, request: StoreRequest, note: JsonObject, *, usable: bool) -> None:
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        entry = Entry(request=request, answer=note, time=time, usable=usable)
        self._write(entry, lambda _: "here")

    def close(self) -> None:
        """Close the stores opened for this session; later answers are not stored."""
        for source in (self._own, self._shared, self._recording):
            if source is not None:
                source.close()

    def _note_unusable(self, path: CallPath) -> None:
        self.unusable_calls.add(path.call)
        if path.step_id:
            self.unusable_steps.add(path.step_id)

    def _number(self, request: StoreRequest) -> StoreRequest:
        with self._lock:
            occurrence = self._requests[request.key]
            self._requests[request.key] += 1
        if not occurrence:
            return request
        path = request.path.model_copy(update={"occurrence": occurrence})
        return StoreRequest(kind=request.kind, path=path, body=request.body)

    def _count(self, kind: str, answer: Answer) -> None:
        with self._lock:
            if kind == "model":
                model = str(answer.get("model") or "")
                self.saved_usage[model] = self.saved_usage.get(model, Usage()) + read_stored_usage(
                    answer
                )
            self.saved[kind] += 1

    def _store(self, entry: Entry, policy: ReusePolicy, found_by: Lookup | None = None) -> None:
        self._write(entry, policy, found_by)
        when_unusable(lambda: self._write(entry.model_copy(update={"usable": False}), policy))

    def _write(self, entry: Entry, policy: ReusePolicy, found_by: Lookup | None = None) -> None:
        failure = self._put(self._own, entry)
        if failure is not None and self._keep is None:
            if not self._goes_on:
                message = f"{failure.message}: {_STOPPED}"
                raise UnstoredAnswer(message, hint=failure.hint) from failure
            self._warn_once(self._own, failure)
        anywhere = entry.request.kind == "model" and policy(entry.answer) == "anywhere"
        if anywhere and not isinstance(found_by, Shared):
            not_shared = self._put(self._shared, entry)
            if not_shared is not None:
                self._warn_once(self._shared, not_shared)
        if self._keep is not None:
            self._keep(entry, failure)

    def _put(self, store: AnswerStore | None, entry: Entry) -> StoreFailed | None:
        try:
            if store is not None:
                store.put(entry)
        except StoreFailed as error:
            return error
        return None

    def _warn_once(self, store: AnswerStore | None, error: StoreFailed) -> None:
        if store is not None and store not in self._failed:
            self._failed.append(store)
            self._warn(f"{error.message}; answers may have to be paid for again; the run continues")


class _NotStored(Exception):
    """There is no answer to store."""


def store_memory(read: Callable[[], JsonMapping] | None, session: Session) -> JsonObject:
    """Read the content of memory at the start of a run and store it in its session, or return the
    stored content. Without `read`, memory starts empty and nothing is stored. Raises StoreFailed.
    """

    def ask() -> Answer:
        if read is None:
            raise _NotStored
        return {"entries": dict(read())}

    request = StoreRequest(
        kind="memory", path=CallPath(pass_number=0, phase="PLAN", call="memory"), body={}
    )
    try:
        return dict(session.answer(request, ask)["entries"])
    except (_NotStored, StoreMiss):
        return dict(read()) if read else {}


def store_answers_of(ask: Ask, session: Session, stop: Callable[[], bool] = lambda: False) -> Ask:
    """Wrap `ask` so that its answers are stored in a run's session and returned from there. None is
    stored too, unless `stop` says that the run should stop while the question is open. Raises
    StoreMiss and StoreFailed."""

    def ask_once(question: FollowUpQuestion) -> str | None:
        # A run asks no question twice: the question alone identifies the request.
        path = CallPath(pass_number=0, phase="REFINE", call="question")
        body = question.model_dump(mode="json", exclude={"answer"})
        request = StoreRequest(kind="person", path=path, body=body)
        return _ask_once(session, request, lambda: ask(question), stop)

    return ask_once


def store_steps_of(
    do_step: DoStep, session: Session, stop: Callable[[], bool] = lambda: False
) -> DoStep:
    """Wrap `do_step` so that its outputs are stored in a run's session and returned from there,
    like `store_answers_of`."""

    def do_once(step: PlanStep) -> str | None:
        site = current_site()
        path = CallPath(
            pass_number=site.pass_number, phase=site.phase, call="step", step_id=step.step_id
        )
        body = {"description": step.description, "context": step.incoming_context}
        request = StoreRequest(kind="person", path=path, body=body)
        return _ask_once(session, request, lambda: do_step(step), stop)

    return do_once


def _ask_once(
    session: Session,
    request: StoreRequest,
    ask: Callable[[], str | None],
    stop: Callable[[], bool],
) -> str | None:
    def ask_person() -> Answer:
        answer = ask()
        if answer is None and stop():
            raise _NotStored
        return {"answer": answer}

    with suppress(_NotStored):
        answer = session.answer(request, ask_person)["answer"]
        return None if answer is None else str(answer)
    return None
