"""Collects the requests of many runs into rounds; each request waits for its answer."""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Sequence
from contextlib import suppress
from weakref import WeakSet

from aeon.domain.errors import LLMError, StopRequested, StoreFailed
from aeon.llm.openai.batches.api import Result
from aeon.llm.openai.batches.journal import BatchJournal
from aeon.llm.openai.batches.round import MAX_REQUESTS, Ask, Carrier, Round, RoundMember, log
from aeon.llm.openai.endpoint import Endpoint, Response

MAX_BYTES = 190_000_000  # OpenAI takes files of 200 MB
_LOOK_SECONDS = 0.5
_LEAST_SECONDS = 0.1


class Rounds:
    """The rounds at one server; thread-safe. A round is sent `batch_wait_seconds` after its last
    request, after a tenth of that if every run waits, or as soon as it is full."""

    def __init__(self, endpoint: Endpoint, journal: BatchJournal) -> None:
        # A run that ends says nothing; with its adapter its member is gone.
        self.members: WeakSet[RoundMember] = WeakSet()
        self._carrier = Carrier(endpoint, journal, self._queue)
        self._settings = endpoint.settings
        self._lock = self._carrier.lock
        self._journal = journal
        self.close = self._carrier.close
        self._arrived: list[Ask] = []
        self._first_at = self._last_at = self._look_at = 0.0

    def ask(self, ask: Ask) -> tuple[str, Response]:
        """Wait for the response to a request and return its id and the response, however long that
        takes. Raises an LLMError, StopRequested if its run is to stop, and StoreFailed."""
        with self._lock:
            self._enter(ask)
            ask.member.asks.add(ask)
        try:
            while True:
                try:
                    return ask.answer.result(_LOOK_SECONDS)
                except TimeoutError:
                    self._look(ask)
        finally:
            with self._lock:
                ask.member.asks.discard(ask)
                if not ask.answer.done():
                    self._arrived = [other for other in self._arrived if other is not ask]

    def settle(self, ids: Sequence[str]) -> None:
        """Forget requests whose answers are stored elsewhere."""
        with self._lock:
            self._journal.forget(ids)

    def _enter(self, ask: Ask) -> None:
        sent = self._journal.claim(ask.digest)
        under_way = self._carrier.under_way
        if sent is None:
            self._queue([ask])
        elif sent.status is not None:
            ask.give(Result(sent.id, sent.status, sent.body or b""))
        else:
            if sent.round not in under_way:
                place = (sent.round, sent.size, sent.begun, sent.file, sent.batch)
                self._carrier.start(Round(*place, is_doubtful=True, is_adopted=True))
            under_way[sent.round].asks[sent.id] = ask

    def _queue(self, asks: Collection[Ask]) -> None:
        self._last_at = time.monotonic()
        self._first_at = self._first_at if self._arrived else self._last_at
        self._arrived += asks

    def _look(self, ask: Ask) -> None:
        """Check, while waiting, whether to leave because the run must stop, and whether to start a
        round."""
        is_over = self._carrier.closing.is_set() or ask.member.stop()
        with self._lock:
            if is_over and not ask.answer.done():
                self._leave(ask)
            if self._is_time():
                self._begin_round()

    def _is_time(self) -> bool:
        now = time.monotonic()
        # A server that limits pending tokens gets smaller rounds, one after the other.
        is_narrow = self._carrier.most < MAX_REQUESTS and self._carrier.under_way
        is_early = now < max(self._carrier.hold_until, self._look_at)
        if not self._arrived or is_narrow or is_early:
            return False
        self._look_at = now + _LEAST_SECONDS  # thousands of threads may poll
        if self._is_full():
            return True
        wait = self._settings.batch_wait_seconds
        quiet = now - self._last_at
        # Requests that keep arriving may not delay the first one for ever.
        if quiet >= wait or now - self._first_at >= 12 * wait:
            return True
        return quiet >= wait / 10 and self._do_all_wait()

    def _is_full(self) -> bool:
        size = sum(ask.size for ask in self._arrived)
        return len(self._arrived) >= self._carrier.most or size >= MAX_BYTES

    def _do_all_wait(self) -> bool:
        return all(member.is_waiting() or member.stop() for member in tuple(self.members))

    def _begin_round(self) -> None:
        """Start a round of arrived requests, all for one model as providers require."""
        one = Round(f"aeon-{uuid.uuid4().hex}")
        rest = list[Ask]()
        size = 0
        for ask in self._arrived:
            fits = ask.model == self._arrived[0].model and len(one.asks) < self._carrier.most
            if fits and (not one.asks or size + ask.size <= MAX_BYTES):
                one.asks[f"{one.id}-{len(one.asks) + 1}"] = ask
                size += ask.size
            else:
                rest.append(ask)
        self._journal.begin(one.id, [(name, ask.digest) for name, ask in one.asks.items()])
        self._arrived = rest
        one.size = len(one.asks)
        self._carrier.start(one)

    def _leave(self, ask: Ask) -> None:
        """End a wait. Raises StopRequested."""
        for one in self._carrier.under_way.values():
            for name in [name for name, other in one.asks.items() if other is ask]:
                del one.asks[name]
                with suppress(StoreFailed):
                    self._journal.release([name])
                if not one.asks and one.batch:
                    self._abandon(one.batch, one.size)
        raise StopRequested("stopped while waiting for a batch")

    def _abandon(self, batch: str, size: int) -> None:
        how = "continues at the provider"
        if self._settings.batch_cancel:
            how = "is cancelled"
            with suppress(LLMError):
                self._carrier.api.cancel(batch)
        log.warning("%s (%d requests) %s; resuming the run uses its results.", batch, size, how)
