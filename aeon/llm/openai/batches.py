"""Half the price: the requests of a run go into batches with those of all others under way, and are waited for."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from aeon.domain.errors import ProviderError
from aeon.domain.request import LLMRequest, LLMResponse
from aeon.llm.dialects.dialect import Wire
from aeon.llm.dialects.server import Server
from aeon.llm.openai.adapter import OpenAIAdapter
from aeon.llm.openai.batches_journal import Journal
from aeon.llm.openai.batches_rounds import Ask, Member, Rounds
from aeon.llm.openai.endpoint import Endpoint
from aeon.llm.openai.transport import Receive, Response, Transport
from aeon.llm.settings import EndpointSettings
from aeon.llm.watching import waiting_teller

JOURNAL = Path(".aeon/batches.sqlite")
_open: dict[str, tuple[Rounds, int]] = {}  # with how many use them
_opening = threading.Lock()


class BatchAdapter(OpenAIAdapter):
    """`provider.batch=true`. What belongs to no run is asked at once. Raises ConfigError as `OpenAIAdapter` does, and for
    a journal that cannot be opened."""

    def __init__(
        self, settings: EndpointSettings, api_key: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(settings.model_copy(update={"stream": "never"}), api_key, headers)
        self._key, self._rounds = _open_rounds(self._endpoint)
        self._given = threading.local()

    def of_run(self, stop: Callable[[], bool]) -> OpenAIAdapter:
        """The adapter of one run, whose requests go into batches until `stop` says that it is over."""
        mine = copy.copy(self)
        mine._transport = _Turn(self._endpoint, self._rounds, Member(stop), self._given)
        return mine

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request, however long that takes; its time-out is for what is sent, not for the wait."""
        self._given.tell = waiting_teller(request)
        return super().complete(request)

    def settle(self) -> None:
        """The answers that this thread was given are stored: they need not be kept here."""
        self._rounds.settle(vars(self._given).pop("ids", ()))

    def close(self) -> None:
        """Close the connections; runs that still wait are stopped."""
        super().close()
        _close_rounds(self._key)

    def _note_failure(self, failure: ProviderError, wire: Wire, seconds: float, server: Server) -> None:
        """Nothing: what fails in a batch costs nothing, and how long it took says nothing of the server."""


class _Turn(Transport):
    """Instead of posting a request, waits for its turn in a batch."""

    def __init__(self, endpoint: Endpoint, rounds: Rounds, member: Member, given: threading.local) -> None:
        super().__init__(endpoint.base_url, {}, 1)
        self._rounds, self._member, self._given = rounds, member, given
        rounds.members.add(member)

    @contextmanager
    def slot(self, closings: int) -> Iterator[None]:
        """Any number of requests may wait."""
        yield

    def post(self, body: bytes, deadline: float, closings: int, receive: Receive | None = None) -> Response:
        """The response to a request, whatever the deadline. Raises an LLMError, and StopRequested."""
        name, response = self._rounds.ask(Ask(body, self._member, self._given.tell))
        vars(self._given).setdefault("ids", []).append(name)
        return response


def _open_rounds(endpoint: Endpoint) -> tuple[str, Rounds]:
    """The rounds of all adapters of one server and account, that of a row that goes on too."""
    settings = endpoint.settings
    path = (settings.batch_journal or JOURNAL).expanduser().absolute()
    account = sorted(endpoint.headers.items())
    place = sha256(repr((endpoint.base_url, account)).encode()).hexdigest()
    key = f"{place} {path}"
    with _opening:
        rounds, users = _open.get(key) or (Rounds(endpoint, Journal(path, place)), 0)
        _open[key] = rounds, users + 1
    return key, rounds


def _close_rounds(key: str) -> None:
    with _opening:
        rounds, users = _open[key]
        _open[key] = rounds, users - 1
        if users == 1:
            del _open[key]
            rounds.close()
