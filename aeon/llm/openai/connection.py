"""The client of one server for all threads: created with the first request, and again after a close
or a fork."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from aeon.llm.openai.endpoint import Endpoint

if TYPE_CHECKING:
    from aeon.llm.openai.client import Client
    from aeon.llm.openai.own_client import OwnClient


class ConnectionClosed(Exception):
    """The connection was closed while a request was under way."""


class Connection:
    """Lends a server's client to at most `max_concurrency` requests at once. `closings` counts how
    often it was closed."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._slots = threading.Semaphore(endpoint.settings.max_concurrency)
        self._lock = threading.Lock()
        self._client: Client | OwnClient | None = None
        self._process = 0
        self.closings = 0

    @contextmanager
    def client(self, closings: int) -> Iterator[Client | OwnClient]:
        """Wait for a free slot and lend the client for one request.

        Raises ConnectionClosed if the connection was closed since `closings` was read.
        """
        with self._slots:
            if self.closings != closings:
                raise ConnectionClosed
            try:
                yield self._open()
            except Exception:
                # A close makes requests under way fail in whatever way; only this explains it.
                if self.closings != closings:
                    raise ConnectionClosed from None
                raise

    def close(self) -> None:
        """End the requests under way. A later request creates a new client."""
        with self._lock:
            self.closings += 1
            client = self._client
            self._client = None
        if client is not None and self._process == os.getpid():
            client.close()

    def _open(self) -> Client | OwnClient:
        client = self._client
        # A forked child leaves its parent's connections alone.
        if client is not None and self._process == os.getpid():
            return client
        with self._lock:
            # Another thread may have made it meanwhile.
            if self._client is None or self._process != os.getpid():
                self._client = self._make()
                self._process = os.getpid()
            return self._client

    def _make(self) -> Client | OwnClient:
        # Importing the SDK takes half a second.
        if self._endpoint.client is not None:
            from aeon.llm.openai.own_client import OwnClient

            return OwnClient(self._endpoint.client, self._endpoint.settings.api)
        from aeon.llm.openai.client import Client

        return Client(self._endpoint)
