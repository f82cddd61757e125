"""Half the price: a run's requests go into batches with those of all other runs in the process, and
the run waits for the results."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from aeon.domain.request import LLMRequest
from aeon.llm.dialects.asking import AttemptResult
from aeon.llm.dialects.dialect import Dialect, Wire
from aeon.llm.dialects.server import Server
from aeon.llm.openai.adapter import OpenAIAdapter
from aeon.llm.openai.batches.journal import BatchJournal
from aeon.llm.openai.batches.round import Ask, RoundMember
from aeon.llm.openai.batches.rounds import Rounds
from aeon.llm.openai.endpoint import Endpoint
from aeon.llm.settings import EndpointSettings
from aeon.llm.watching import WATCHER, Waiting

if TYPE_CHECKING:
    from openai import OpenAI

_ACCOUNT = ("openai-organization", "openai-project")
JOURNAL = Path(".aeon/batches.sqlite")
_open: dict[str, tuple[Rounds, int]] = {}  # with its number of users
_opening = threading.Lock()


class BatchAdapter(OpenAIAdapter):
    """`provider.batch=true`: requests of runs wait for their batch; requests outside a run are sent
    at once. Raises ConfigError as `OpenAIAdapter` does, and for a journal that cannot be opened."""

    def __init__(
        self,
        settings: EndpointSettings,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        client: OpenAI | None = None,
    ) -> None:
        super().__init__(settings.model_copy(update={"stream": "never"}), api_key, headers, client)
        self._key, self._rounds = _open_rounds(self._endpoint)
        self._member: RoundMember | None = None
        self._given = threading.local()

    def of_run(self, stop: Callable[[], bool]) -> BatchAdapter:
        """Return the adapter of one run, until `stop` returns True. Time spent waiting does not
        count towards the time-out."""
        mine = copy.copy(self)
        mine._member = RoundMember(stop)
        self._rounds.members.add(mine._member)
        return mine

    def settle(self) -> None:
        """Drop the answers given to this thread from the journal: they are stored elsewhere."""
        self._rounds.settle(vars(self._given).pop("ids", ()))

    def close(self) -> None:
        """Close the connections; runs that still wait are stopped."""
        super().close()
        with _opening:
            rounds, users = _open.pop(self._key, (self._rounds, 0))
            if users > 1:
                _open[self._key] = rounds, users - 1
            elif users:
                rounds.close()

    def _attempt(
        self, wire: Wire, dialect: Dialect, server: Server, closings: int
    ) -> AttemptResult:
        if self._member is None:
            return super()._attempt(wire, dialect, server, closings)
        try:
            identity = wire.identify(dialect)
            body = wire.body(dialect, server.prefixes)
        except UnicodeEncodeError as error:
            return AttemptResult(dialect, failure=self._failure_of(error, 0))
        ask = Ask(body, self._member, _teller(wire.request), identity)
        name, response = self._rounds.ask(ask)
        vars(self._given).setdefault("ids", []).append(name)
        return self._read(response, wire, dialect)


def _teller(request: LLMRequest) -> Callable[[str], None]:
    watcher = WATCHER.get()
    site = request.site
    call = request.call
    return lambda text: watcher.see(Waiting(site, call, 0.0, text)) if watcher else None


def _open_rounds(endpoint: Endpoint) -> tuple[str, Rounds]:
    """Return the rounds shared by all adapters of one server and key, including those of resumed
    rows."""
    path = (endpoint.settings.batch_journal or JOURNAL).expanduser().absolute()
    sent = {name.lower(): value for name, value in endpoint.headers.items()}
    place = _digest(
        endpoint.address, *map(sent.get, _ACCOUNT)
    )  # without the key: another finds what went out
    key = _digest(endpoint.base_url, endpoint.key, *sorted(sent.items()), path)
    with _opening:
        rounds, users = _open.get(key) or (Rounds(endpoint, BatchJournal(path, place)), 0)
        _open[key] = rounds, users + 1
    return key, rounds


def _digest(*parts: object) -> str:
    return sha256(repr(parts).encode()).hexdigest()
