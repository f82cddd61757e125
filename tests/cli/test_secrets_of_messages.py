"""A key or a password that was typed where it does not belong is in no message."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aeon.files.secret_forms import unmask_all
from tests.cli.conftest import RunAeon
from tests.support.openai_server import Failure, OpenAIServer
from tests.support.scripted_model import clear, defaults

KEY = "sk-0123456789-of-mine"


@pytest.fixture(autouse=True)
def _unmasked() -> Iterator[None]:
    yield
    unmask_all()


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


@pytest.mark.slow
@pytest.mark.parametrize("from_environment", [False, True])
@pytest.mark.parametrize(
    "words",
    [
        ("task=t",),
        ("-m", "task=t,u"),
        ("-m", "hydra/launcher=basic", "task=t,u"),
        ("batch", "dataset=rows.jsonl", "out=out.jsonl", "batch.records=all"),
    ],
    ids=["run", "sweep", "sweep in processes", "batch"],
)
def test_the_query_of_an_address_is_in_no_file_though_the_server_repeats_it(
    aeon: RunAeon,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    from_environment: bool,
) -> None:
    secret = "of-a-query-0123456789"
    (tmp_path / "rows.jsonl").write_text('{"task": "t"}\n{"task": "u"}\n')
    script = {**defaults(), "step": clear(f"It is {secret}.")}
    with OpenAIServer(script) as server:
        server.path += f"?token={secret}"
        address = f"{server.url}?token={secret}"
        typed = [f"provider.base_url='{address}'"]
        if from_environment:
            monkeypatch.setenv("OPENAI_BASE_URL", address)
            typed = []
        ended = aeon(*words, "mode=core", "provider=openai", *typed, "provider.require_key=false")
        assert server.requests
    assert ended.status == 0, ended.err
    assert secret not in ended.out + ended.err
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    found = {path for path in files if secret.encode() in path.read_bytes()}
    # A multirun goes on with them.
    assert {path.name for path in found} <= {"multirun.json", "multirun.yaml"}
    assert {path.stat().st_mode & 0o777 for path in found} <= {0o600}
    assert any(b"It is [secret]." in path.read_bytes() for path in files)


def test_resuming_a_run_takes_the_query_of_its_address_again(
    aeon: RunAeon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with OpenAIServer({**defaults(), "step": Failure(500)}) as server:
        server.path += "?token=of-a-query-0123456789"
        typed = f"provider.base_url='{server.url}?token=of-a-query-0123456789'"
        first = ("task=t", "mode=core", "provider.retry.attempts=1", "hydra.run.dir=one")
        assert aeon(*first, "provider=openai", typed).status == 1
        asked = len(server.requests)
        refused = aeon("resume=one")
        assert (refused.status, len(server.requests)) == (2, asked)
        assert "provider.base_url" in refused.err
        server.script["step"] = clear("done")
        ended = aeon("resume=one", typed)
    assert (ended.status, ended.out) == (0, "done\n")
