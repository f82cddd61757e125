"""A key that a model or a tool gives away is in nothing that a run writes."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

from aeon import Aeon
from aeon.tools.registry import Tool
from tests.support.openai_server import OpenAIServer
from tests.support.scripted_model import clear, defaults, plan, planned

KEY = "sk-0123456789-given-away"
ENCODED = b64encode(KEY.encode()).decode()


def files_with(directory: Path, secret: str) -> list[str]:
    files = [path for path in directory.rglob("*") if path.is_file()]
    return [path.name for path in files if secret.encode() in path.read_bytes()]


def leaking(_: object) -> object:
    return {"environment": f"KEY={KEY}", "basic": b64encode(f"user:{KEY}".encode()).decode()}


def test_no_artefact_and_no_journal_has_a_key_that_an_answer_or_a_tool_gave(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    leak = planned("look", tool="leak", arguments="{}")
    openai_server.script |= {
        **defaults(),
        "plan": plan(leak, planned("say", "look")),
        "step": clear(f"The key is {KEY}, or {ENCODED}."),
    }
    overrides = [
        "provider=openai",
        f"provider.base_url={openai_server.url}",
        "progress=none",
        "mode=core",
    ]
    tool = Tool("leak", "Leaks.", {"type": "object"}, {}, leaking, approval="always")
    with Aeon.from_config(overrides, environ={"OPENAI_API_KEY": KEY}, tools=[tool]) as aeon:
        result = aeon.run("x", directory=tmp_path / "run")
    assert result.answer == "The key is [secret], or [secret]."
    shown = [request.user for request in openai_server.of("step")]
    assert all("[value of OPENAI_API_KEY]" in prompt for prompt in shown)
    assert files_with(tmp_path / "run", KEY) == []
    assert files_with(tmp_path / "run", ENCODED) == []
    assert result.exit_status == 0
