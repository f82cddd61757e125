"""What `${oc.env:NAME}` put into a configuration is in no file of a run that others may read."""

from __future__ import annotations

import base64
import re
import zlib
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from aeon import Aeon
from aeon.files.secret_forms import unmask_all
from tests.support.openai_server import OpenAIServer
from tests.support.scripted_model import clear, defaults, plan, planned

VALUE = 'tenant-"zqxw"/ü-given'


@pytest.fixture(autouse=True)
def _unmasked() -> Iterator[None]:
    yield
    unmask_all()


def files_with(directory: Path, secret: str) -> dict[str, int]:
    files = [path for path in directory.rglob("*") if path.is_file()]
    return {
        path.name: path.stat().st_mode & 0o777
        for path in files
        if secret.encode() in path.read_bytes()
    }


def read_page(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    packed = re.search(r'"packed": ?"([^"]+)"', text)
    assert packed
    return text + zlib.decompress(base64.b64decode(packed[1])).decode()


def run(server: OpenAIServer, folder: Path, *overrides: str) -> Path:
    encoded = b64encode(VALUE.encode()).decode()
    server.script |= {
        **defaults(),
        "plan": plan(planned("say")),
        "step": clear(f"It is {VALUE}, or {encoded}."),
    }
    given = ["provider=openai", f"provider.base_url={server.url}", "provider.require_key=false"]
    with Aeon.from_config([*given, "mode=core", *overrides], environ={}) as aeon:
        result = aeon.run(f"Say {VALUE}", directory=folder / "run")
    assert result.answer == f"It is {VALUE}, or {encoded}."
    return folder / "run"


def test_no_file_of_a_run_that_others_may_read_has_a_value_of_the_environment(
    tmp_path: Path, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENANT", VALUE)
    directory = run(openai_server, tmp_path, "++provider.extra_body.user='of ${oc.env:TENANT}'")
    assert openai_server.of("step")[0].body["user"] == f"of {VALUE}"
    for form in ("zqxw", b64encode(VALUE.encode()).decode().rstrip("=")):
        found = files_with(directory, form)
        assert set(found) <= {"store.sqlite", "store.sqlite-wal", "run.json"}, found
        assert set(found.values()) <= {0o600}
    assert "[value of TENANT]" in (directory / "answer.md").read_text(encoding="utf-8")
    assert "[value of TENANT]" in (directory / "result.json").read_text(encoding="utf-8")


def test_no_page_has_it_either(
    tmp_path: Path, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENANT", VALUE)
    directory = run(openai_server, tmp_path, "++provider.extra_body.user=${oc.env:TENANT}")
    page = read_page(directory / "report.html")
    assert "[value of TENANT]" in page
    assert "0123" not in page


@pytest.mark.parametrize(
    ("name", "value", "key"),
    [
        ("MODEL", "model-of-mine", "provider.model"),
        ("SHORT", "0123", "++provider.extra_body.user"),
        ("PLACE", "/tmp", "++provider.extra_body.user"),
    ],
)
def test_names_of_models_short_values_and_places_are_no_secrets(
    tmp_path: Path,
    openai_server: OpenAIServer,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    value: str,
    key: str,
) -> None:
    monkeypatch.setenv(name, value)
    directory = run(openai_server, tmp_path, f"{key}=${{oc.env:{name}}}")
    text = (directory / "result.json").read_text(encoding="utf-8")
    assert value in text
    assert "[value of" not in text
