"""`aeon serve` as a process: what it refuses, how it stops, and that a kill loses nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx2
import openai
import psutil
import pytest

from aeon.cli.main import main
from tests.service.gates import GatedModel, wait_for
from tests.support.openai_server import OpenAIServer

SIMULATED = ("provider=simulated", "provider.seed=1")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.com"])
def test_it_refuses_to_start_for_others_without_a_token(
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    host: str,
):
    monkeypatch.delenv("AEON_SERVE_TOKEN", raising=False)
    assert main(["serve", *SIMULATED, f"serve.host='{host}'"]) == 2
    assert "AEON_SERVE_TOKEN holds no token" in capsys.readouterr().err
    assert not (here / "outputs").exists()


@pytest.mark.parametrize("token", ["short", "x" * 20 + " y"])
def test_a_token_that_is_easily_guessed_or_cannot_be_sent_is_refused(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], token: str
):
    monkeypatch.setenv("AEON_SERVE_TOKEN", token)
    assert main(["serve", *SIMULATED]) == 2
    assert "at least 16 characters" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("task=x", "each job brings its own"),
        ('serve.models.a=["ttl.bass=1"]', "ttl.bass"),
        ('serve.models.a=["serve.port=3"]', "a: serve.port: no run reads it"),
        ('serve.models.a=["hydra.run.dir=x"]', "a: hydra.run.dir: no run reads it"),
        ('serve.models.a=["output=json"]', "a: output: no run reads it"),
        ("interaction=ask", "no terminal to ask at"),
        ("batch.parallel=2", "only `aeon batch` reads batch.parallel"),
        ("serve.port=70000", "serve.port"),
    ],
)
def test_a_mistake_is_reported_before_anything_is_served(
    here: Path, capsys: pytest.CaptureFixture[str], override: str, message: str
):
    assert main(["serve", *SIMULATED, override]) == 2
    assert message in capsys.readouterr().err


def test_its_keys_are_no_keys_of_a_run(here: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["task=x", *SIMULATED, "serve.port=1"]) == 2
    assert "only `aeon serve` reads serve.port" in capsys.readouterr().err


class Process:
    """A server of its own."""

    def __init__(self, folder: Path, overrides: tuple[str, ...]) -> None:
        command = [sys.executable, "-m", "aeon", "serve", "serve.port=0", *overrides]
        environment = {**os.environ, "OPENAI_API_KEY": "k"}
        self.process = subprocess.Popen(
            command, cwd=folder, stderr=subprocess.PIPE, text=True, env=environment
        )
        assert self.process.stderr
        line = self.process.stderr.readline()
        found = re.search(r"at (http://127\.0\.0\.1:\d+/v1)", line)
        assert found, line + self.process.stderr.read()
        self.client = openai.OpenAI(base_url=found[1], api_key="none", max_retries=0, timeout=30)

    def end(self, by: signal.Signals) -> int:
        self.process.send_signal(by)
        status = self.process.wait(30)
        assert self.process.stderr
        self.said = self.process.stderr.read()
        self.process.stderr.close()
        self.client.close()
        return status


Begin = Callable[..., Process]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Starts servers on one folder, one after the other."""
    begun: list[Process] = []

    def start(*overrides: str) -> Process:
        begun.append(Process(tmp_path, overrides))
        return begun[-1]

    yield start
    for each in begun:
        with suppress(ProcessLookupError):
            if each.process.poll() is None:
                each.end(signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_and_what_was_under_way_goes_on(
    begin: Begin, openai_server: OpenAIServer, by: signal.Signals
):
    model = GatedModel(openai_server)
    overrides = (*model.overrides, "execution.grace_seconds=0.2")
    server = begin(*overrides)
    response = server.client.responses.create(model="aeon", input="abc", background=True)
    wait_for(lambda: openai_server.requests)
    assert server.end(by) == 0
    assert "continue with the next start" in server.said
    model.open()
    client = begin(*overrides).client
    wait_for(lambda: client.responses.retrieve(response.id).status == "completed")
    assert client.responses.retrieve(response.id).output_text == "cba"


@pytest.mark.slow
def test_a_kill_between_any_two_polls_loses_nothing_and_goes_on_once(begin: Begin, tmp_path: Path):
    overrides = ("provider=simulated", "provider.seed=1", "provider.latency_seconds=0.05")
    server = begin(*overrides)
    response = server.client.responses.create(model="aeon", input="make tea", background=True)
    for _ in range(4):
        time.sleep(0.2)
        assert server.end(signal.SIGKILL) == -signal.SIGKILL
        server = begin(*overrides)
        response = server.client.responses.retrieve(response.id)
        assert response.status in ("queued", "in_progress", "completed")
    client = server.client
    wait_for(lambda: client.responses.retrieve(response.id).status == "completed", 60)
    figures = httpx2.get(str(client.base_url).replace("/v1/", "/metrics")).text
    asked = re.search(r"^aeon_llm_calls_total (\d+)$", figures, re.MULTILINE)
    assert asked
    alone = client.responses.create(model="aeon", input="make tea")
    assert alone.output_text == client.responses.retrieve(response.id).output_text
    runs = tmp_path / "outputs" / "serve" / response.id.removeprefix("resp_")
    last = max(runs.glob("run-*"), key=lambda path: int(path.name[4:]))
    result = json.loads((last / "result.json").read_text())
    saved = result["parent"]["saved"]["model_calls"]
    whole = json.loads((runs.parent / alone.id[5:] / "run-1" / "result.json").read_text())
    assert saved > 0
    assert saved + int(asked[1]) == whole["usage"]["total"]["requests"]
    assert server.end(signal.SIGTERM) == 0


@pytest.mark.slow
def test_a_hundred_clients_are_answered_and_small_requests_leave_nothing_behind(begin: Begin):
    server = begin(*SIMULATED, "mode=single", "serve.queue=100")
    chat = server.client.chat.completions

    def ask(number: int) -> str:
        said = [{"role": "user", "content": f"task {number}"}]
        if number % 2:
            return str(chat.create(model="aeon", messages=said).choices[0].message.content)  # type: ignore[arg-type]
        stream = chat.create(model="aeon", messages=said, stream=True)  # type: ignore[call-overload]
        return "".join(chunk.choices[0].delta.content or "" for chunk in stream)

    with ThreadPoolExecutor(100) as clients:
        answers = list(clients.map(ask, range(100)))
    assert all(answer.endswith(f"task {number}") for number, answer in enumerate(answers))

    base = str(server.client.base_url).removesuffix("/v1/")
    process = psutil.Process(server.process.pid)
    with httpx2.Client(base_url=base) as client:

        def ask_much(times: int) -> int:
            for _ in range(times):
                client.get("/v1/models")
                client.get("/v1/responses/resp_none")
                client.post("/v1/chat/completions", json={"model": "none", "messages": []})
                client.get("/metrics")
            return int(process.memory_info().rss)

        before = ask_much(250)
        assert ask_much(750) - before < 4_000_000
