"""A server on loopback, as `aeon serve` starts it, and clients of it."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache

import httpx2
import openai
import pytest

from aeon.service.http.guard import Access
from aeon.service.http.server import make_server, open_socket
from aeon.service.jobs import Jobs
from tests.service.gates import OpenJobs

TOKEN = "t" * 32


@cache
def read_certificates() -> ssl.SSLContext:
    """What a client checks certificates with; no server here has one."""
    return httpx2.create_ssl_context()


@dataclass
class Served:
    """A server that answers at `url`, and what it serves."""

    jobs: Jobs
    port: int
    token: str | None
    clients: list[openai.OpenAI] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def connect(self, **given: object) -> openai.OpenAI:
        """An unmodified client, but for certificates that are read once for all of them."""
        client = openai.OpenAI(
            base_url=f"{self.url}/v1",
            api_key=self.token or "none",
            timeout=30,
            max_retries=0,
            http_client=openai.DefaultHttpxClient(verify=read_certificates()),
        )
        self.clients.append(client)
        return client.with_options(**given) if given else client  # type: ignore[arg-type]


@contextmanager
def answering(jobs: Jobs, token: str | None, most: int) -> Iterator[Served]:
    """The server, in a thread of its own."""
    listening = open_socket("127.0.0.1", 0)
    server = make_server(jobs, Access(token, most), jobs.close)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
    thread.start()
    served = Served(jobs, listening.getsockname()[1], token)
    try:
        yield served
    finally:
        for client in served.clients:
            client.close()
        jobs.close()
        server.should_exit = True
        thread.join(30)
        listening.close()
        assert not thread.is_alive()


Start = Callable[..., Served]


@pytest.fixture
def start(open_jobs: OpenJobs) -> Iterator[Start]:
    """Starts a server: `start("provider=simulated", parallel=1, small=("mode=single",))`."""
    with ExitStack() as opened:

        def begin(
            *overrides: str, token: str | None = None, most: int = 100_000, **given: object
        ) -> Served:
            jobs = open_jobs(*overrides, **given)  # type: ignore[arg-type]
            return opened.enter_context(answering(jobs, token, most))

        yield begin
