"""A key or a password that was typed where it does not belong is in no message."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import RunAeon
from tests.support.openai_server import Failure, OpenAIServer
from tests.support.scripted_model import defaults

KEY = "sk-0123456789-of-mine"


@pytest.mark.parametrize(
    "override", [f"ttl.base={KEY}", f"provider.model=[{KEY}", f"task_file={KEY}", f"ttl={KEY}"]
)
def test_an_override_is_quoted_without_a_key_of_the_environment(
    aeon: RunAeon, monkeypatch: pytest.MonkeyPatch, override: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    ended = aeon(override)
    assert ended.status == 2
    assert KEY not in ended.err + ended.out
    assert "[value of OPENAI_API_KEY]" in ended.err


@pytest.mark.parametrize("form", ["{}", "[{}]", "[{}", "{}?key=of-mine"])
def test_an_address_is_quoted_without_its_user_and_its_query(aeon: RunAeon, form: str) -> None:
    address = form.format("http://me:pass-of-mine@models.example/v1?key=of-mine")
    ended = aeon("task=x", "provider=openai", f"provider.base_url={address}")
    assert ended.status == 2
    assert "models.example/v1" in ended.err
    assert "of-mine" not in ended.err + ended.out


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("task=t", "progress=plain"),
        ("-m", "task=t,u", "progress=plain"),
        ("batch", "dataset=rows.jsonl", "out=out.jsonl", "batch.records=all"),
        ("plan", "task=t", "progress=plain"),
        ("doctor",),
    ],
    ids=["run", "sweep", "batch", "plan", "doctor"],
)
def test_a_key_that_a_server_repeats_is_in_no_line_and_in_no_file(
    aeon: RunAeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    key = "sk-proj-0123456789abcdefghij"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    (tmp_path / "rows.jsonl").write_text('{"task": "t"}\n{"task": "u"}\n')
    refusal = Failure(401, body={"error": {"message": f"Incorrect API key provided: {key}."}})
    with OpenAIServer(dict.fromkeys(defaults(), refusal)) as server:
        ended = aeon(*words, "provider=openai", f"provider.base_url={server.url}")
        assert server.requests
    assert ended.status == 1
    assert "Incorrect API key provided" in ended.out + ended.err
    assert key not in ended.out + ended.err
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.name for path in files if key.encode() in path.read_bytes()] == []
