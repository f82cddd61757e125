"""A sink is one object that the configuration names; it changes no run and no hash."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon, ArtefactError, ConfigError
from aeon.domain.result import RunResult
from aeon.observability.settings import ObservabilitySettings
from aeon.observability.sinks import SINKS
from tests.support.timing import SOON

PLUG_IN = """
import json, time, urllib.request
from aeon.domain.events import RunFinished, RunStarted

class Webhook:
    def __init__(self, url):
        self.url = url

    def __call__(self, recorded):
        if isinstance(recorded.event, (RunStarted, RunFinished)):
            body = json.dumps({"event": type(recorded.event).__name__}).encode()
            urllib.request.urlopen(urllib.request.Request(self.url, body), timeout=60).close()

class Slow:
    def __call__(self, recorded):
        time.sleep(90)

class Failing:
    def __call__(self, recorded):
        raise RuntimeError("no such host")

    def close(self):
        raise OSError("still no such host")

def nothing():
    return 3
"""


@pytest.fixture(autouse=True)
def plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plug_in.py").write_text(PLUG_IN, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "plug_in", raising=False)


@pytest.fixture
def received() -> Iterator[tuple[str, list[Any]]]:
    bodies: list[Any] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nothing is logged."""

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/secret", bodies
        server.shutdown()


def run(*overrides: str, **more: Any) -> RunResult:
    with Aeon.from_config(
        ["provider=simulated", "mode=core", "store=off", *overrides], environ={}
    ) as aeon:
        return aeon.run("plan a move", **more)


def test_a_webhook_is_one_configuration_key(
    received: tuple[str, list[Any]], tmp_path: Path
) -> None:
    url, bodies = received
    keys = (
        "observability.sinks.hook.sink=plug_in:Webhook",
        f"observability.sinks.hook.options.url={url}",
    )
    result = run(*keys, directory=tmp_path / "run")
    assert bodies == [{"event": "RunStarted"}, {"event": "RunFinished"}]
    assert result.hashes.configuration == run().hashes.configuration
    for path in (tmp_path / "run").iterdir():
        if path.name != "run.json":
            assert b"secret" not in path.read_bytes()


def test_a_sink_that_fails_is_said_once_and_fails_no_run() -> None:
    warnings: list[str] = []
    assert run("observability.sinks.bad=plug_in:Failing", warn=warnings.append).passes > 1
    closed, failed = warnings
    assert closed == "observability.sinks.bad: cannot be closed: OSError: still no such host"
    assert "0 were dropped; the first error: RuntimeError: no such host" in failed


@pytest.mark.slow
def test_a_slow_sink_takes_no_time_of_the_run() -> None:
    usual, warnings = run(), list[str]()
    began = time.monotonic()
    result = run("observability.sinks.slow=plug_in:Slow", warn=warnings.append)
    assert time.monotonic() - began < SOON
    assert result.timings.total_seconds < usual.timings.total_seconds + SOON
    assert result.answer == usual.answer
    assert "were dropped" in warnings[0]


def fail(*_: Any) -> None:
    raise RuntimeError("a defect")


def fail_to_write(*_: Any) -> None:
    raise ArtefactError("the disk is full")


FAILING: dict[str, tuple[str, Any]] = {
    "events": ("aeon.files.jsonl.JsonLines.write", fail_to_write),
    "cycles": ("aeon.files.jsonl.JsonLines.write", fail_to_write),
    "otel": ("aeon.observability.otel.Tracing._take", fail),
    "sinks": ("plug_in.Webhook.__call__", fail),
}


def test_each_kind_of_sink_is_a_key_of_the_configuration_and_is_tested_to_fail_no_run() -> None:
    assert FAILING.keys() == SINKS.keys() <= ObservabilitySettings.model_fields.keys()


@pytest.mark.parametrize("kind", FAILING)
def test_no_kind_of_sink_fails_a_run_by_failing(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for signal in ("TRACES", "METRICS", "LOGS"):
        monkeypatch.setenv(f"OTEL_{signal}_EXPORTER", "none")
    keys = [
        f"observability.{name}={'{}' if name == 'sinks' else 'false'}"
        for name in FAILING
        if name != kind
    ]
    own = (
        "observability.sinks.hook.sink=plug_in:Webhook",
        "observability.sinks.hook.options.url=unused",
    )
    usual, warnings = run(), list[str]()
    monkeypatch.setattr(*FAILING[kind])
    on = own if kind == "sinks" else (f"observability.{kind}=true",)
    result = run(*keys, *on, directory=tmp_path / "run", warn=warnings.append)
    assert (result.answer, result.termination_reason) == (usual.answer, usual.termination_reason)
    assert len(warnings) == 1


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("plug_in:Missing", "cannot be imported"),
        ("plug_in", "write package.module:object"),
        ("plug_in:Webhook", "cannot be made: TypeError"),
        ("plug_in:nothing", "returned a int, which cannot be called with an event"),
    ],
)
def test_a_sink_that_cannot_be_made_is_refused(reference: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        run(f"observability.sinks.bad={reference}")
