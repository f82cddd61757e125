"""Whole runs on a model in this process: each comes to a clear end, though the weights are random."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon
from tests.support.timing import SOON

PLAN = """
goal: Two sentences.
steps:
  - id: first
    description: Say something.
    agent: llm
  - id: second
    description: Say something else.
    agent: llm
    depends_on: [first]
"""
COMMIT = "0" * 39 + "1"


def overrides(model: Path, *more: str) -> list[str]:
    given = [
        "provider=local",
        f"provider.model_path={model}",
        "provider.temperature=1.0",
        "provider.n_threads=1",
    ]
    return [*given, "provider.n_ctx=65536", "provider.max_tokens=1500", "store=off", *more]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_run_ends_clearly_and_is_no_simulation(
    tiny_model: Path, tmp_path: Path, seed: int
) -> None:
    with Aeon.from_config(
        overrides(tiny_model, f"provider.seed={seed}", "ttl.base=5"), environ={}
    ) as aeon:
        result = aeon.run("Say why.", directory=tmp_path)
    assert not result.synthetic
    assert result.termination_reason
    assert result.converged or result.error or result.reason_codes or result.ttl_expiration
    assert (
        json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))["provider"]["kind"]
        == "local"
    )


@pytest.mark.slow
def test_steps_of_a_given_plan_are_answered(tiny_model: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN, encoding="utf-8")
    with Aeon.from_config(
        overrides(tiny_model, "mode=core", f"plan_file={plan}"), environ={}
    ) as aeon:
        result = aeon.run("Say something.", directory=tmp_path / "run")
    assert result.error is None
    assert result.provider.models["worker"] == [tiny_model.stem]
    assert result.termination_reason in ("completed", "step_failed")


def aeon(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "aeon", *arguments]
    variables = {
        name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "HF_"))
    }
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command,
        cwd=folder,
        env={**variables, **environment},
        stdout=pipe,
        stderr=pipe,
        text=True,
        bufsize=1,
    )


def test_a_file_that_is_none_ends_before_anything_is_made(tiny_model: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.gguf").write_text("<html>", encoding="utf-8")
    ended = aeon(tmp_path, "task=why?", "provider=local", "provider.model_path=broken.gguf")
    _, told = ended.communicate(timeout=60)
    assert ended.returncode == 2
    assert "broken.gguf: not a GGUF file" in told
    assert [path.name for path in tmp_path.iterdir()] == ["broken.gguf"]


@pytest.mark.slow
def test_a_file_that_breaks_off_ends_the_run_with_its_name(
    tiny_model: Path, tmp_path: Path
) -> None:
    (tmp_path / "half.gguf").write_bytes(tiny_model.read_bytes()[:50_000])
    ended = aeon(tmp_path, "task=why?", *overrides(Path("half.gguf")))
    _, told = ended.communicate(timeout=60)
    assert ended.returncode == 1
    assert "half.gguf: the model could not be loaded" in told


@pytest.mark.slow
def test_control_c_abandons_the_step_that_is_written(endless_model: Path, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN, encoding="utf-8")
    given = overrides(
        endless_model,
        "task=why?",
        "mode=core",
        "plan_file=plan.yaml",
        "execution.grace_seconds=0.2",
    )
    running = aeon(
        tmp_path, *given, "provider.max_tokens=60000", "progress=plain", "hydra.run.dir=run"
    )
    wait_for_call(running)
    started = time.monotonic()
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    assert running.returncode == 130
    assert time.monotonic() - started < SOON
    assert json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))[
        "termination_reason"
    ]


@pytest.mark.slow
def test_a_second_control_c_ends_at_once_in_the_middle_of_a_call(
    endless_model: Path, tmp_path: Path
) -> None:
    running = aeon(
        tmp_path,
        "task=why?",
        *overrides(endless_model),
        "provider.max_tokens=60000",
        "progress=plain",
    )
    wait_for_call(running)
    started = time.monotonic()
    running.send_signal(signal.SIGINT)
    time.sleep(0.3)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    assert running.returncode == 130
    assert time.monotonic() - started < SOON


def wait_for_call(running: subprocess.Popen[str]) -> None:
    """Until the program has told of its first phase, and a moment for the model to be loaded."""
    assert running.stderr is not None
    for line in running.stderr:
        if "pass" in line:
            break
    time.sleep(1.0)


@pytest.fixture
def hub(tiny_model: Path) -> Iterator[str]:
    """The address of a hub that has one repository with one file."""
    content = tiny_model.read_bytes()

    class Hub(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            known = self.path.startswith(
                ("/owner/tiny/resolve/main/tiny.gguf", f"/owner/tiny/resolve/{COMMIT}/")
            )
            self.send_response(200 if known else 404)
            headers = {
                "ETag": '"tiny"',
                "X-Repo-Commit": COMMIT,
                "Content-Length": str(len(content) if known else 0),
            }
            for name, value in (
                headers if known else {**headers, "X-Error-Code": "EntryNotFound"}
            ).items():
                self.send_header(name, value)
            self.end_headers()
            if known and self.command == "GET":
                self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def from_hub(tmp_path: Path, hub: str, filename: str) -> tuple[int, str]:
    given = [word for word in overrides(Path("x")) if not word.startswith("provider.model_path")]
    where = [
        "provider.repo_id=owner/tiny",
        f"provider.filename={filename}",
        "hydra.run.dir=run",
        "limits.max_llm_calls=2",
    ]
    environment = {
        "HF_ENDPOINT": hub,
        "HF_HOME": str(tmp_path / "hub"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    running = aeon(tmp_path, "task=why?", *given, *where, **environment)
    _, told = running.communicate(timeout=100)
    return running.returncode, told


@pytest.mark.slow
def test_a_file_of_a_hub_is_downloaded_once_and_used(tmp_path: Path, hub: str) -> None:
    status, told = from_hub(tmp_path, hub, "tiny.gguf")
    assert status in (1, 3), told
    assert list((tmp_path / "hub").rglob("tiny.gguf"))
    result = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    assert result["provider"]["models"]["planner"] == ["tiny"]


@pytest.mark.slow
def test_a_file_that_the_hub_has_not_ends_the_run_with_its_name(tmp_path: Path, hub: str) -> None:
    status, told = from_hub(tmp_path, hub, "missing.gguf")
    assert status == 1
    assert "missing.gguf of owner/tiny could not be downloaded" in told
