"""The life of a round: its requests go out as one batch, are waited for, and get their answers by
id."""

from __future__ import annotations

import copy
import json
import logging
import tempfile
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import IO, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception
from tenacity.nap import sleep_using_event
from tenacity.stop import stop_after_attempt, stop_after_delay, stop_when_event_set

from aeon.domain.errors import BatchesUnreachable, LLMError, ServerFailed, StoreFailed
from aeon.domain.values import JsonMapping
from aeon.llm.openai.batches.api import ENDPOINT, BatchAPI, RequestBatch, Result
from aeon.llm.openai.batches.journal import BatchJournal
from aeon.llm.openai.endpoint import Endpoint, Response
from aeon.llm.watching import WAITS

MAX_REQUESTS = 50_000  # the most that OpenAI takes in a batch
LOOK_SECONDS = 3.0
_LONGEST_JOIN_SECONDS = 5.0
_CHUNK = 500  # results stored under one lock
_FACTOR = 1.0  # scales the seconds between retries; tests make it small
_DAY_SECONDS = 86400
log = logging.getLogger(WAITS)
T = TypeVar("T")


@dataclass(eq=False)
class RoundMember:
    """A run that takes part: `stop` returns True when it is over or must stop; `asks` are its
    waiting requests."""

    stop: Callable[[], bool]
    asks: set[Ask] = field(default_factory=set)

    def is_waiting(self) -> bool:
        """Whether one of its requests has no answer yet. A run that was answered may send another
        request at once, so a round of all runs waits for it too."""
        return any(not ask.answer.done() for ask in self.asks)


@dataclass(eq=False)
class Ask:
    """A request that waits for its answer. `identity` (default: `body`) is the same in an equal
    request of an earlier process. `answer` resolves to its id and the response; `tell` is called
    with the state of the wait."""

    body: bytes
    member: RoundMember
    tell: Callable[[str], None]
    identity: bytes | None = None
    answer: Future[tuple[str, Response]] = field(default_factory=Future)

    def __post_init__(self) -> None:
        self.digest = sha256(self.identity or self.body).hexdigest()
        self.model = str(json.loads(self.body).get("model"))
        self.size = len(self.body) + 200  # including the JSON around it in the file

    def give(self, result: Result) -> None:
        """End the wait with a response."""
        self.answer.set_result((result.id, Response(result.status, {}, result.body)))


@dataclass(eq=False)
class Round:
    """Requests sent as one batch: `size` of them, of which `asks` still wait, by id. `is_adopted`:
    another process created the batch, if there is one; `is_doubtful`: an attempt that seemed to
    fail may have created it."""

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
    """Runs rounds, each in its own thread, until closed. At most `most` requests go into one batch,
    and none is sent before `hold_until`."""

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
        # Batches under way are paid for, and a network may be down for hours.
        self._patiently = self._again.copy(
            stop=stop_after_delay(_DAY_SECONDS) | stop_when_event_set(self.closing)
        )

    def start(self, one: Round) -> None:
        """Start the thread of a round."""
        self.under_way[one.id] = one
        # A daemon, so that a program can end while the provider works on; the journal remembers.
        thread = threading.Thread(
            target=self._carry_out, args=(one,), daemon=True, name="aeon-batch"
        )
        self._threads = [thread, *(other for other in self._threads if other.is_alive())]
        thread.start()

    def close(self) -> None:
        """Stop waiting; batches already sent continue at the provider."""
        self.closing.set()
        for thread in self._threads:
            thread.join(_LONGEST_JOIN_SECONDS)
        # A thread may be in the middle of a long upload and still use them.
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
        """Return the round's batch, created or found; None if it was never created and its requests
        move to another round."""
        batch = self._find_adopted(one) if one.is_adopted else self._upload_and_make(one)
        if batch is None:
            self._send_again(one)
            return None
        one.batch = batch.id
        self._note(one)
        return batch

    def _find_adopted(self, one: Round) -> RequestBatch | None:
        batch = self._insist(self._find, one)
        # A server's list of batches may lag by a moment.
        if batch is None and not self.closing.wait(LOOK_SECONDS):
            batch = self._insist(self._find, one)
        return batch

    def _upload_and_make(self, one: Round) -> RequestBatch:
        with tempfile.TemporaryFile() as lines:
            for name, ask in tuple(one.asks.items()):
                head = json.dumps({"custom_id": name, "method": "POST", "url": ENDPOINT})
                # The body is copied unparsed: it may be megabytes.
                lines.write(head[:-1].encode() + b', "body": ' + ask.body + b"}\n")
            one.file = self._insist(self._upload, one, lines)
        # Recorded before the batch exists: after a kill, the batch is found by this file.
        self._note(one)
        return self._insist(self._make, one)

    def _insist(self, work: Callable[..., T], one: Round, *given: IO[bytes]) -> T:
        """Return the result of `work`, retried for some minutes. Raises BatchesUnreachable if it
        keeps failing."""
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
        # A request whose answer was lost may have created the batch; a second would be paid too.
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
                raise ServerFailed("it names no results file")
            for file in batch.files:
                results = self.api.results(file)
                while rows := tuple(islice(results, _CHUNK)):
                    with self.lock:
                        # Before anybody uses them: after a kill they are found here.
                        self.journal.answer(rows)
                        for row in rows:
                            if ask := one.asks.pop(row.id, None):
                                ask.give(row)
        # Whatever the error, results that were paid for may be readable a little later.
        except LLMError as error:
            raise ServerFailed(
                f"the results of {batch.id} cannot be read: {error.message}", hint=error.hint
            ) from error

    def _end(self, one: Round, batch: RequestBatch) -> None:
        """Handle the requests that a batch did not answer. After a refusal for too many tokens,
        they go into smaller batches, one after the other. After a refusal for single lines, those
        requests fail and the others are sent again."""
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
        """Move the requests that still wait into the next round."""
        with self.lock:
            self.under_way.pop(one.id, None)
            self.journal.end(one.id)
            self._queue(one.asks.values())

    def _give_up(self, one: Round, error: Exception) -> None:
        """End the waits of a round; requests that may have been sent stay in the journal for a
        later process."""
        with self.lock, suppress(StoreFailed):
            asks = one.asks
            one.asks = {}
            self.under_way.pop(one.id, None)
            for ask in asks.values():
                # Each call gets an error of its own: who catches one changes its usage.
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
        self._tell(state.args[0], f"retrying: {getattr(error, 'message', '')}")


def _refuse_lines(one: Round, batch: RequestBatch, whole: JsonMapping) -> None:
    """Pass a failed batch's errors to the requests of the lines they name, or to all requests if
    they name none."""
    faults = {f"{one.id}-{error['line']}": error for error in batch.errors if error.get("line")}
    for name in [name for name in one.asks if not faults or name in faults]:
        body = json.dumps({"error": faults.get(name, whole)}).encode()
        one.asks.pop(name).give(Result(name, 400, body))


def _seconds_before_next(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    return getattr(error, "retry_after", None) or min(60.0, 2.0**state.attempt_number) * _FACTOR
