"""llama-cpp-python's own server, unmodified: it refuses json_schema with 500, holds json_object to no schema but one
beside it, and answers with whatever model it was started with."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from aeon.domain.errors import ConnectionFailed, RequestRefused
from aeon.llm.extract import extract_json
from aeon.llm.openai.adapter import OpenAIAdapter
from aeon.llm.settings import OpenAIProvider
from tests.support.requests import request

STARTING_SECONDS = 60.0
# No text: random weights would put characters into it that this server's grammar lets pass and JSON does not.
VERDICT: dict[str, Any] = {
    "type": "object",
    "properties": {"verdict": {"enum": ["yes", "no"]}, "sure": {"type": "boolean"}},
    "required": ["verdict", "sure"],
    "additionalProperties": False,
}

pytestmark = pytest.mark.slow


class Server:
    """The server's process and its address."""

    def __init__(self, model: Path, log: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/v1"
        command = [
            sys.executable,
            "-m",
            "llama_cpp.server",
            "--model",
            str(model),
            "--port",
            str(port),
        ]
        command += ["--host", "127.0.0.1", "--n_ctx", "4096", "--n_threads", "1", "--seed", "1"]
        with log.open("wb") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output)

    def wait(self) -> None:
        """Until it answers."""
        end = time.monotonic() + STARTING_SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            try:
                urlopen(f"{self.url}/models", timeout=5).close()
                return
            except URLError:
                time.sleep(0.05)
        raise AssertionError("the server did not start")

    def kill(self) -> None:
        """At once, as an outage does."""
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def server(tiny_model: Path, tmp_path: Path) -> Iterator[Server]:
    """A server with the tiny model."""
    pytest.importorskip("fastapi", reason="needs the extra local-test: make test-local")
    pytest.importorskip("starlette_context", reason="needs the extra local-test: make test-local")
    started = Server(tiny_model, tmp_path / "server.log")
    try:
        started.wait()
        yield started
    finally:
        started.kill()


@pytest.fixture
def connect(server: Server) -> Iterator[Any]:
    """Makes adapters for the server: `connect(**settings)`."""
    made: list[OpenAIAdapter] = []

    def make(**given: Any) -> OpenAIAdapter:
        settings = {
            "name": "llama_cpp",
            "model": "loaded",
            "base_url": server.url,
            "temperature": 1.0,
        }
        made.append(
            OpenAIAdapter(OpenAIProvider.model_validate({**settings, "max_tokens": 200, **given}))
        )
        return made[-1]

    yield make
    for adapter in made:
        adapter.close()


def test_the_second_answer_at_the_latest_is_held_to_the_schema(connect: Any) -> None:
    adapter = connect()
    adapter.complete(request("plan", schema=VERDICT))
    for _ in range(5):
        answer = extract_json(adapter.complete(request("plan", schema=VERDICT)).text)
        assert answer.keys() == {"verdict", "sure"}
        assert answer["verdict"] in ("yes", "no")
    [told] = adapter.findings()
    assert "does not take json_schema" in str(told)


def test_a_prompt_without_room_is_told_as_that(connect: Any) -> None:
    adapter = connect()
    adapter.complete(request("plan", schema=VERDICT))
    long = request("plan", schema={**VERDICT, "description": "x" * 9000})
    with pytest.raises(RequestRefused) as raised:
        adapter.complete(long)
    assert "maximum context length" in raised.value.message
    assert "larger context" in raised.value.hint
    assert raised.value.falls_back


def test_a_server_that_is_killed_is_named(connect: Any, server: Server) -> None:
    adapter = connect()
    adapter.complete(request("plan", schema=VERDICT))
    server.kill()
    with pytest.raises(ConnectionFailed) as raised:
        adapter.complete(request("plan", schema=VERDICT))
    assert server.url in raised.value.hint
