"""The life of a round: requests that go out as one batch, are waited for, and get their answers by
their ids."""

from __future__ import annotations

import copy
import json
import logging
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import IO, Any, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception
from tenacity.nap import sleep_using_event
from tenacity.stop import stop_after_attempt, stop_after_delay, stop_when_event_set

from aeon.domain.errors import BatchesUnreachable, LLMError, ServerFailed, StoreFailed
from aeon.llm.openai.batches.api import ENDPOINT, BatchAPI, RequestBatch, Result
from aeon.llm.openai.batches.journal import BatchJournal
from aeon.llm.openai.endpoint import Endpoint, Response
from aeon.llm.watching import WAITS

MAX_REQUESTS = 50_000
LOOK_SECONDS = 3.0
_LONGEST_JOIN_SECONDS = 5.0
_CHUNK = 500  # results that are stored under one lock
_FACTOR = 1.0  # of the seconds between tries; tests make it small
_DAY_SECONDS = 86400
log = logging.getLogger(WAITS)
T = TypeVar("T")


@dataclass(eq=False)
class RoundMember:
    """A run that takes part: `stop` says that it is over or asked to stop, `asks` are its requests
    that wait."""

    stop: Callable[[], bool]
    asks: set[Ask] = field(default_factory=set)

    def is_waiting(self) -> bool:
        """Whether one of its requests has no answer. A run that was answered may send another
        request at once, so a round of all runs waits for that one too."""
        return any(not ask.answer.done() for ask in self.asks)


@dataclass(eq=False)
class Ask:
    """A request that is waited for. `identity` is what it has in common with the same request of an
    earlier process; without one its `body` is. `answer` becomes its id and the response; `tell` is
    called with the state of the wait."""

    body: bytes
    member: RoundMember
    tell: Callable[[str], None]
    identity: bytes | None = None
    answer: Future[tuple[str, Response]] = field(default_factory=Future)

    def __post_init__(self) -> None:
        self.digest = sha256(self.identity or self.body).hexdigest()
        self.model = str(json.loads(self.body).get("model"))
        self.size = len(self.body) + 200  # with what stands around it in a file

    def give(self, result: Result) -> None:
        """End the wait with a response."""
        self.answer.set_result((result.id, Response(result.status, {}, result.body)))


@dataclass(eq=False)
class Round:
    """Of `size` requests, `asks` are still waited for, by id; of one that `is_adopted` another
    process has made the batch, if it has one, and of one that `is_doubtful` an attempt that seemed
    to fail may have."""

    id: str
    size: int = 0
    begun: float = field(default_factory=time.time)
    file: str | None = None
    batch: str | None = None
    is_doubtful: bool = False
    is_adopted: bool = False
    last_text: str = ""
    asks: dict[str, Ask] = field(default_factory=dict)


class Carrier:
    """Carries rounds out, each in a thread of its own, until it is closed. `most` requests may go
    into one batch, none before `hold_until`."""

    def __init__(
        self, endpoint: Endpoint, journal: BatchJournal, queue: Callable[[Collection[Ask]], None]
    ) -> None:
        self.lock = threading.RLock()
        self.closing = threading.Event()
        self.under_way: dict[str, Round] = {}
        self.most = MAX_REQUESTS
        self.hold_until = 0.0
        self.journal = journal
        self.api = BatchAPI(endpoint)
        self._endpoint = endpoint
        self._poll_seconds = endpoint.settings.batch_poll_seconds
        self._queue = queue
        self._threads: list[threading.Thread] = []
        self._again = Retrying(
            retry=retry_if_exception(lambda error: isinstance(error, LLMError) and error.retryable),
            wait=_seconds_before_next,
            stop=stop_after_attempt(8) | stop_when_event_set(self.closing),
            sleep=sleep_using_event(self.closing),
            before_sleep=self._tell_failure,
            reraise=True,
        )
        # What is under way is paid for: a network may be away for hours.
        self._patiently = self._again.copy(
            stop=stop_after_delay(_DAY_SECONDS) | stop_when_event_set(self.closing)
        )

    def start(self, one: Round) -> None:
        """Carry a round out."""
        self.under_way[one.id] = one
        thread = threading.Thread(
            target=self._carry_out, args=(one,), daemon=True, name="aeon-batch"
        )
        self._threads = [thread, *(other for other in self._threads if other.is_alive())]
        thread.start()

    def close(self) -> None:
        """Wait for nothing any more; what was sent goes on at the provider."""
        self.closing.set()
        for thread in self._threads:
            thread.join(_LONGEST_JOIN_SECONDS)
        # A thread may be in the middle of a long upload, and still use them.
        if not any(thread.is_alive() for thread in self._threads):
            self.api.close()
            self.journal.close()

    def _carry_out(self, one: Round) -> None:
        polls = 0
        try:
            batch = self._patiently(self._get, one) if one.batch else self._submit(one)
            while batch and not batch.is_over:
                self._tell(one, f"{batch.id}: {batch.status}, {batch.done} of {one.size} answered")
                polls += 1
                if self.closing.wait(min(self._poll_seconds, 1.5**polls)) or self._is_left(one):
                    return
                batch = self._patiently(self._get, one)
            if batch:
                self._again(self._read, one, batch)
                self._end(one, batch)
        except Exception as error:  # nobody may wait for ever
            self._give_up(one, error)

    def _get(self, one: Round) -> RequestBatch:
        return self.api.get(one.batch or "")

    def _is_left(self, one: Round) -> bool:
        with self.lock:
            return not one.asks and self.under_way.pop(one.id, None) is one

    def _submit(self, one: Round) -> RequestBatch | None:
        """Its batch: made, or found; None where it was never made, and its requests go into another
        round."""
        batch = self._find_adopted(one) if one.is_adopted else self._upload_and_make(one)
        if batch is None:
            self._send_again(one)
            return None
        one.batch = batch.id
        self._note(one)
        return batch

    def _find_adopted(self, one: Round) -> RequestBatch | None:
        batch = self._insist(self._find, one)
        # A server's list of batches may be behind by a moment.
        if batch is None and not self.closing.wait(LOOK_SECONDS):
            batch = self._insist(self._find, one)
        return batch

    def _upload_and_make(self, one: Round) -> RequestBatch:
        with tempfile.TemporaryFile() as lines:
            for name, ask in tuple(one.asks.items()):
                head = json.dumps({"custom_id": name, "method": "POST", "url": ENDPOINT})
                # The body is written as it is: it may be megabytes.
                lines.write(head[:-1].encode() + b', "body": ' + ask.body + b"}\n")
            one.file = self._insist(self._upload, one, lines)
        # Noted before there is a batch: after a kill it is found by its file.
        self._note(one)
        return self._insist(self._make, one)

    def _insist(self, work: Callable[..., T], one: Round, *given: IO[bytes]) -> T:
        """What `work` returns, tried again for some minutes. Raises BatchesUnreachable when that
        was in vain."""
        began = time.monotonic()
        try:
            return self._again(work, one, *given)
        except LLMError as error:
            if not error.retryable:
                raise
            tried = f"tried for {time.monotonic() - began:.3g} s"
            message = f"the batch interface does not answer: {error.message} ({tried})"
            raise BatchesUnreachable(message, hint=error.hint) from error

    def _upload(self, one: Round, lines: IO[bytes]) -> str:
        lines.seek(0)
        return self.api.upload(f"{one.id}.jsonl", lines)

    def _make(self, one: Round) -> RequestBatch:
        found = self._find(one) if one.is_doubtful else None
        one.is_doubtful = True
        return found or self.api.create(one.file or "", one.id)

    def _find(self, one: Round) -> RequestBatch | None:
        return self.api.find(one.id, one.file, one.begun)

    def _note(self, one: Round) -> None:
        with self.lock:
            self.journal.note(one.id, one.file, one.batch)

    def _read(self, one: Round, batch: RequestBatch) -> None:
        try:
            if batch.status == "completed" and not batch.files:
                raise ServerFailed("it names no file of results")
            for file in batch.files:
                results = self.api.results(file)
                while rows := tuple(islice(results, _CHUNK)):
                    with self.lock:
                        self.journal.answer(rows)
                        for row in rows:
                            if ask := one.asks.pop(row.id, None):
                                ask.give(row)
        except LLMError as error:  # whatever it is, what was paid for may be there a little later
            raise ServerFailed(
                f"the results of {batch.id} cannot be read: {error.message}", hint=error.hint
            ) from error

    def _end(self, one: Round, batch: RequestBatch) -> None:
        """What becomes of the requests that a batch has not answered. One that was refused for too
        many tokens: smaller ones, one after the other. One refused for single lines: those are, and
        the others sent again."""
        with self.lock:
            answered = one.size - len(one.asks)
            self._tell(one, f"{batch.id}: {batch.status}, {answered} of {one.size} answered")
            whole = next(iter(batch.errors), {"message": f"{batch.id} {batch.status}"})
            if batch.status != "failed":
                message = f"{batch.id} has ended ({batch.status}) without an answer"
                for ask in one.asks.values():
                    ask.answer.set_exception(ServerFailed(message))
                one.asks = {}
            elif whole.get("code") == "token_limit_exceeded" and one.size > 1:
                self.most = max(1, one.size // 2)
                self.hold_until = time.monotonic() + self._poll_seconds
            else:
                _refuse_lines(one, batch, whole)
            self._send_again(one)

    def _send_again(self, one: Round) -> None:
        """Put what is still waited for into the next round."""
        with self.lock:
            self.under_way.pop(one.id, None)
            self.journal.end(one.id)
            self._queue(one.asks.values())

    def _give_up(self, one: Round, error: Exception) -> None:
        """End the waits of a round; what may have been sent stays known, for whoever asks again."""
        with self.lock, suppress(StoreFailed):
            asks = one.asks
            one.asks = {}
            self.under_way.pop(one.id, None)
            for ask in asks.values():
                ask.answer.set_exception(copy.copy(error))
            is_passing = isinstance(error, BatchesUnreachable)
            is_refused = isinstance(error, LLMError) and not (error.retryable or is_passing)
            if is_refused and (not one.batch or getattr(error, "status", 0) == 404):
                self.journal.end(one.id)
            else:
                self.journal.release(asks)

    def _tell(self, one: Round, text: str) -> None:
        text = self._endpoint.clean(text)
        if text != one.last_text:
            one.last_text = text
            log.info("%s", text)
            for ask in tuple(one.asks.values()):
                ask.tell(text)

    def _tell_failure(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        self._tell(state.args[0], f"the next try: {getattr(error, 'message', '')}")


def _refuse_lines(one: Round, batch: RequestBatch, whole: Mapping[str, Any]) -> None:
    """Give a failed batch's errors to the requests of the lines that they name, or to all where
    they name none."""
    faults = {f"{one.id}-{error['line']}": error for error in batch.errors if error.get("line")}
    for name in [name for name in one.asks if not faults or name in faults]:
        body = json.dumps({"error": faults.get(name, whole)}).encode()
        one.asks.pop(name).give(Result(name, 400, body))


def _seconds_before_next(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    return getattr(error, "retry_after", None) or min(60.0, 2.0**state.attempt_number) * _FACTOR
