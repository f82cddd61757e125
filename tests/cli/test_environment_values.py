"""What `${oc.env:NAME}` put into a configuration is in no line of progress, no page made again and no cassette."""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from aeon.files.secret_forms import unmask_all
from tests.cli.conftest import Ended, RunAeon
from tests.support.openai_server import Failure, OpenAIServer
from tests.support.scripted_model import clear, defaults, plan, planned

VALUE = "tenant-0123-given"
USED = "++provider.extra_body.user=${oc.env:TENANT}"


@pytest.fixture(autouse=True)
def _tenant(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TENANT", VALUE)
    yield
    unmask_all()


@pytest.fixture
def given(openai_server: OpenAIServer) -> list[str]:
    """The words of a run whose model gives the value away."""
    answers = {"plan": plan(planned("say")), "step": clear(f"It is {VALUE}.")}
    openai_server.script |= {**defaults(), **answers}
    address = f"provider.base_url={openai_server.url}"
    return ["provider=openai", address, "provider.require_key=false", "mode=core", USED]


def run(aeon: RunAeon, given: list[str]) -> Ended:
    ended = aeon("task=x", "hydra.run.dir=run", "progress=plain", *given)
    assert ended.status == 0
    unmask_all()
    return ended


def read_page(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    packed = re.search(r'"packed": ?"([^"]+)"', text)
    assert packed
    return text + zlib.decompress(base64.b64decode(packed[1])).decode()


def test_no_line_of_progress_has_it(aeon: RunAeon, given: list[str]) -> None:
    ended = run(aeon, given)
    assert "It is [value of TENANT]." in ended.err
    assert VALUE not in ended.err


def test_no_message_and_no_row_of_a_batch_has_it(
    aeon: RunAeon, given: list[str], openai_server: OpenAIServer
) -> None:
    refusal = Failure(400, body={"error": {"message": f"user {VALUE} is unknown"}})
    openai_server.script |= {"plan": refusal}
    assert "user [value of TENANT] is unknown" in aeon("task=x", *given).err
    Path("rows.jsonl").write_text('{"task": "x"}\n')
    ended = aeon("batch", "dataset=rows.jsonl", "out=-", *given)
    assert "user [value of TENANT] is unknown" in ended.out
    assert VALUE not in ended.out + ended.err


def test_a_page_made_again_does_not_have_it(aeon: RunAeon, given: list[str]) -> None:
    run(aeon, given)
    assert aeon("inspect", "run").err == ""
    page = read_page(Path("run/report.html"))
    assert "[value of TENANT]" in page
    assert VALUE not in page


def test_a_page_that_may_have_it_is_the_owners_alone(
    aeon: RunAeon, given: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(aeon, given)
    monkeypatch.delenv("TENANT")
    assert "TENANT is not set" in aeon("inspect", "run").err
    assert Path("run/report.html").stat().st_mode & 0o777 == 0o600


def test_a_cassette_does_not_have_it(
    aeon: RunAeon, given: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(aeon, given)
    assert aeon("cassette", "export", "run", "masked.aeon").status == 0
    text = Path("masked.aeon").read_text(encoding="utf-8")
    assert "It is [value of TENANT]." in text
    assert VALUE not in text
    monkeypatch.delenv("TENANT")
    assert "TENANT is not set" in aeon("cassette", "export", "run", "other.aeon").err
