"""An OpenAI adapter for the scripted server."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from aeon.llm.openai.adapter import OpenAIAdapter
from aeon.llm.settings import OpenAIProvider
from tests.support.openai_server import OpenAIServer

KEY = "sk-a-secret-that-nobody-may-see"
Connect = Callable[..., OpenAIAdapter]


@pytest.fixture
def connect(openai_server: OpenAIServer) -> Iterator[Connect]:
    """Makes adapters for the server, `connect(key, headers, **settings)`, and closes them when the test ends."""
    with ExitStack() as open_adapters:

        def make(
            key: str | None = KEY, headers: dict[str, str] | None = None, **settings: Any
        ) -> OpenAIAdapter:
            given = {"base_url": openai_server.url, "timeout_seconds": 5.0, **settings}
            adapter = OpenAIAdapter(OpenAIProvider(**given), key, headers)
            open_adapters.callback(adapter.close)
            return adapter

        yield make
