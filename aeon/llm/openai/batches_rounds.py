"""Collects the requests of many runs into rounds; each goes out as a batch, and is waited for in its own thread."""

from __future__ import annotations

import copy
import json
import logging
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from http.client import HTTPMessage
from itertools import islice
from typing import IO
from weakref import WeakSet

from tenacity import Retrying, RetryCallState, retry_if_exception, stop_after_attempt, stop_when_event_set
from tenacity.nap import sleep_using_event

from aeon.domain.errors import LLMError, ProviderError, ServerFailed, StopRequested, StoreFailed
from aeon.llm.openai.batches_api import ENDPOINT, Batch, BatchAPI, Result
from aeon.llm.openai.batches_journal import Journal
from aeon.llm.openai.endpoint import Endpoint
from aeon.llm.openai.transport import Response

MAX_REQUESTS, MAX_BYTES = 50_000, 190_000_000
LOOK_SECONDS = 3.0
_POLL_SECONDS = 0.25
_CHUNK = 500
_log = logging.getLogger("aeon.batches")


@dataclass(eq=False)
class Member:
    """A run that takes part: `stop` says that it is over or asked to stop, `waits` how many requests it waits for."""

    stop: Callable[[], bool]
    waits: int = 0


@dataclass(eq=False)
class Ask:
    """A request that is waited for; `answer` will be its id and the response, `tell` is given what is waited for."""

    body: bytes
    member: Member
    tell: Callable[[str], None]
    answer: Future[tuple[str, Response]] = field(default_factory=Future)

    def __post_init__(self) -> None:
        self.digest, self.model = sha256(self.body).hexdigest(), str(json.loads(self.body).get("model"))
        self.size = len(self.body) + 200  # with what stands around it in a file

    def give(self, result: Result) -> None:
        """End the wait with a response."""
        self.answer.set_result((result.id, Response(result.status, HTTPMessage(), result.body)))


@dataclass(eq=False)
class Round:
    """Requests that go out as one batch; `asks` are those that are waited for, by id, `is_doubtful` that a batch may
    have been made of them."""

    id: str
    size: int = 0
    begun: float = field(default_factory=time.time)
    file: str | None = None
    batch: str | None = None
    is_doubtful: bool = False
    is_adopted: bool = False
    asks: dict[str, Ask] = field(default_factory=dict)


class Rounds:
    """The rounds at one server; thread-safe. A round goes out `batch_wait_seconds` after its last request, after a
    tenth of it where every run waits, and when it is full."""

    def __init__(self, endpoint: Endpoint, journal: Journal) -> None:
        self._endpoint, self._settings, self._journal = endpoint, endpoint.settings, journal
        self._api = BatchAPI(endpoint)
        self.members: WeakSet[Member] = WeakSet()
        self._lock, self._closing = threading.RLock(), threading.Event()
        self._arrived: list[Ask] = []
        self._first_at = self._last_at = self._hold_until = 0.0
        self._under_way: dict[str, Round] = {}
        self._threads: list[threading.Thread] = []
        self._most = MAX_REQUESTS
        self._again = Retrying(
            retry=retry_if_exception(lambda error: isinstance(error, LLMError) and error.retryable),
            wait=_seconds_before_next,
            stop=stop_after_attempt(8) | stop_when_event_set(self._closing),
            sleep=sleep_using_event(self._closing),
            reraise=True,
        )

    def ask(self, ask: Ask) -> tuple[str, Response]:
        """The id of a request and the response, however long that takes. Raises an LLMError, StopRequested when its run
        is to stop, and StoreFailed."""
        with self._lock:
            self._enter(ask)
            ask.member.waits += 1
        try:
            while True:
                try:
                    return ask.answer.result(_POLL_SECONDS)
                except TimeoutError:
                    self._look(ask)
        finally:
            with self._lock:
                ask.member.waits -= 1

    def settle(self, ids: Sequence[str]) -> None:
        """Forget requests whose answers are stored elsewhere."""
        with self._lock:
            self._journal.forget(ids)

    def close(self) -> None:
        """Wait for nothing any more; what was sent goes on at the provider."""
        self._closing.set()
        for thread in self._threads:
            thread.join()
        self._api.close()
        self._journal.close()

    def _enter(self, ask: Ask) -> None:
        sent = self._journal.claim(ask.digest)
        if sent is None:
            self._queue([ask])
        elif sent.status is not None:
            ask.give(Result(sent.id, sent.status, sent.body or b""))
        else:
            one = self._under_way.get(sent.round)
            if one is None:
                one = Round(sent.round, sent.size, sent.begun, sent.file, sent.batch, is_doubtful=True, is_adopted=True)
                self._start(one)
            one.asks[sent.id] = ask

    def _queue(self, asks: Iterable[Ask]) -> None:
        self._last_at = time.monotonic()
        self._first_at = self._first_at if self._arrived else self._last_at
        self._arrived += asks

    def _look(self, ask: Ask) -> None:
        """What each who waits does now and then: begin a round if it is time, and leave when the run is to stop."""
        is_over = self._closing.is_set() or ask.member.stop()
        with self._lock:
            if ask.answer.done():
                return
            if is_over:
                self._leave(ask)
            if self._is_time():
                self._begin_round()

    def _is_time(self) -> bool:
        now = time.monotonic()
        if not self._arrived or now < self._hold_until or (self._most < MAX_REQUESTS and self._under_way):
            return False
        if len(self._arrived) >= self._most or sum(ask.size for ask in self._arrived) >= MAX_BYTES:
            return True
        wait, quiet = self._settings.batch_wait_seconds, now - self._last_at
        if quiet >= wait or now - self._first_at >= 12 * wait:
            return True
        return quiet >= wait / 10 and all(member.waits or member.stop() for member in tuple(self.members))

    def _begin_round(self) -> None:
        """Begin a round of requests that arrived, all for one model, as providers want it."""
        one, rest, size = Round(f"aeon-{uuid.uuid4().hex}"), list[Ask](), 0
        for ask in self._arrived:
            fits = ask.model == self._arrived[0].model and len(one.asks) < self._most
            if fits and (not one.asks or size + ask.size <= MAX_BYTES):
                one.asks[f"{one.id}-{len(one.asks) + 1}"] = ask
                size += ask.size
            else:
                rest.append(ask)
        self._journal.begin(one.id, [(name, ask.digest) for name, ask in one.asks.items()])
        self._arrived, one.size = rest, len(one.asks)
        self._start(one)

    def _start(self, one: Round) -> None:
        self._under_way[one.id] = one
        thread = threading.Thread(target=self._carry_out, args=(one,), daemon=True, name="aeon-batch")
        self._threads = [thread, *(other for other in self._threads if other.is_alive())]
        thread.start()

    def _leave(self, ask: Ask) -> None:
        """End a wait. Raises StopRequested."""
        self._arrived = [other for other in self._arrived if other is not ask]
        for one in tuple(self._under_way.values()):
            for name in [name for name, other in one.asks.items() if other is ask]:
                del one.asks[name]
                with suppress(StoreFailed):
                    self._journal.release([name])
                if not one.asks and one.batch:
                    del self._under_way[one.id]
                    if cancels := self._settings.batch_cancel:
                        with suppress(LLMError):
                            self._api.cancel(one.batch)
                    how = "is cancelled" if cancels else "goes on at the provider"
                    _log.warning("%s (%d requests) %s; going on takes its results.", one.batch, one.size, how)
        raise StopRequested("stopped while a batch was waited for")

    def _carry_out(self, one: Round) -> None:
        """The life of a round, up to the end of every wait."""
        try:
            batch = self._again(self._api.get, one.batch) if one.batch else self._submit(one)
            polls = 0
            while batch and not batch.is_over:
                self._tell(one, f"{batch.id}: {batch.status}, {batch.done} of {one.size} answered")
                polls += 1
                if self._closing.wait(min(self._settings.batch_poll_seconds, 1.5**polls)) or not one.asks:
                    return
                batch = self._again(self._api.get, batch.id)
            if batch:
                self._take(one, batch)
        except Exception as error:  # nobody may wait for ever
            self._give_up(one, error)

    def _submit(self, one: Round) -> Batch | None:
        """Its batch: made, or found; None where it is sent again in another round, with those who still want it."""
        if one.is_adopted:
            batch = self._find(one)
            if batch is None and not self._closing.wait(LOOK_SECONDS):  # a list may be behind by a moment
                batch = self._find(one)
            if batch is None:
                self._send_again(one, [*one.asks.values()])
                return None
        else:
            with tempfile.TemporaryFile() as lines:
                for name, ask in tuple(one.asks.items()):
                    head = json.dumps({"custom_id": name, "method": "POST", "url": ENDPOINT})[:-1].encode()
                    lines.write(head + b', "body": ' + ask.body + b"}\n")
                one.file = self._again(self._upload, one, lines)
            self._note(one)
            batch = self._again(self._make, one)
        one.batch = batch.id
        self._note(one)
        return batch

    def _upload(self, one: Round, lines: IO[bytes]) -> str:
        lines.seek(0)
        return self._api.upload(f"{one.id}.jsonl", lines)

    def _make(self, one: Round) -> Batch:
        """Make a batch, unless an attempt that seemed to fail has made it."""
        if one.is_doubtful and (found := self._api.find(one.id, one.file, one.begun)):
            return found
        try:
            return self._api.create(one.file or "", one.id)
        except ProviderError as error:
            one.is_doubtful = error.status is None or error.status >= 500
            raise

    def _find(self, one: Round) -> Batch | None:
        found: Batch | None = self._again(self._api.find, one.id, one.file, one.begun)
        return found

    def _note(self, one: Round) -> None:
        with self._lock:
            self._journal.note(one.id, one.file, one.batch)

    def _send_again(self, one: Round, asks: Sequence[Ask]) -> None:
        """Put requests that were not carried out into the next round."""
        with self._lock:
            self._under_way.pop(one.id, None)
            self._journal.end(one.id)
            self._queue(asks)

    def _take(self, one: Round, batch: Batch) -> None:
        """The results of a batch that is over; what it has not answered has failed."""
        self._again(self._read, one, batch)
        if batch.status == "failed":
            self._take_refusal(one, batch)
            return
        with self._lock:
            self._under_way.pop(one.id, None)
            self._journal.end(one.id)
            self._tell(one, f"{batch.id}: {batch.status}, {one.size - len(one.asks)} of {one.size} answered")
            for ask in one.asks.values():
                ask.answer.set_exception(ServerFailed(f"{batch.id} has ended ({batch.status}) without an answer"))

    def _read(self, one: Round, batch: Batch) -> None:
        try:
            if batch.status == "completed" and not batch.files:
                raise ServerFailed("it names no file of results")
            for file in batch.files:
                results = self._api.results(file)
                while rows := tuple(islice(results, _CHUNK)):
                    with self._lock:
                        self._journal.answer(rows)
                        for row in rows:
                            if ask := one.asks.pop(row.id, None):
                                ask.give(row)
        except LLMError as error:  # whatever it is, what was paid for may be there a little later
            raise ServerFailed(f"the results of {batch.id} cannot be read: {error.message}", hint=error.hint) from error

    def _take_refusal(self, one: Round, batch: Batch) -> None:
        """A batch that was refused as a whole. Too many tokens at once: smaller ones, one after the other. Else the
        lines at fault are answered with it, and the others sent again."""
        whole = next(iter(batch.errors), {"message": f"{batch.id} failed"})
        faults = {f"{one.id}-{error['line']}": error for error in batch.errors if error.get("line")}
        with self._lock:
            if whole.get("code") == "token_limit_exceeded" and one.size > 1:
                self._most = max(1, one.size // 2)
                self._hold_until = time.monotonic() + self._settings.batch_poll_seconds
            else:
                for name in [name for name in one.asks if not faults or name in faults]:
                    body = json.dumps({"error": faults.get(name, whole)}).encode()
                    one.asks.pop(name).give(Result(name, 400, body))
            self._send_again(one, [*one.asks.values()])

    def _give_up(self, one: Round, error: Exception) -> None:
        """End the waits of a round; what may have been sent stays known, for whoever asks again."""
        with self._lock:
            asks, one.asks = one.asks, {}
            self._under_way.pop(one.id, None)
            for ask in asks.values():
                ask.answer.set_exception(copy.copy(error))
            is_gone = one.batch and isinstance(error, ProviderError) and error.status == 404
            with suppress(StoreFailed):
                if is_gone or not (one.batch or one.is_doubtful):
                    self._journal.end(one.id)
                else:
                    self._journal.release([*asks])

    def _tell(self, one: Round, text: str) -> None:
        text = self._endpoint.clean(text)
        _log.info(text)
        for ask in tuple(one.asks.values()):
            ask.tell(text)


def _seconds_before_next(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    return getattr(error, "retry_after", None) or min(60.0, 2.0**state.attempt_number)
