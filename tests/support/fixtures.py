"""Fixtures for every test; `tests/conftest.py` makes them known."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.composing import packaged_files_merged_once
from tests.support.openai_server import OpenAIServer, Script

StartServer = Callable[..., OpenAIServer]


@pytest.fixture(autouse=True, scope="session")
def packaged_files_are_merged_once() -> Iterator[None]:
    """Thousands of tests compose the same packaged files."""
    with packaged_files_merged_once():
        yield


@pytest.fixture(autouse=True)
def nothing_is_known_of_any_server() -> Iterator[None]:
    """What one test finds out about a server on some port must not hold for the next one on that port."""
    yield
    if (server := sys.modules.get("aeon.llm.dialects.server")) is not None:
        server.forget_servers()


@pytest.fixture(autouse=True)
def nothing_is_pinned() -> Iterator[None]:
    """A command pins the files of a trusted folder for the life of its process, and the next test is another one."""
    yield
    if (pinned := sys.modules.get("aeon.files.pinned")) is not None:
        pinned.unpin_all()


@pytest.fixture(autouse=True)
def no_store_is_left_in_memory() -> Iterator[None]:
    """Stores in a dictionary live as long as the process, and the next test counts its own."""
    yield
    if (stores := sys.modules.get("tests.support.dict_store")) is not None:
        stores.STORES.clear()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def start_server() -> Iterator[StartServer]:
    """Starts scripted servers: `start_server(script, key=None)`; they stop when the test ends."""
    with ExitStack() as running:

        def start(
            script: Mapping[str, Script] | None = None, *, key: str | None = None
        ) -> OpenAIServer:
            return running.enter_context(OpenAIServer(script, key=key))

        yield start


@pytest.fixture
def openai_server(start_server: StartServer) -> OpenAIServer:
    """One running server with an empty script, to be filled: `openai_server.script["plan"] = {...}`."""
    return start_server()
