"""The worked example of docs/nemo.md: its configuration, and its step on a scripted model that uses the tools."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon
from aeon.domain.request import LLMRequest
from tests.cli.conftest import RunAeon
from tests.support.scripted_model import ScriptedModel, clear

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "nemo"
PAGE = (ROOT / "docs" / "nemo.md").read_text(encoding="utf-8")


def calls(*asked: tuple[str, dict[str, str]]) -> dict[str, Any]:
    listed = [{"tool": tool, "arguments": json.dumps(given)} for tool, given in asked]
    return {"tool_calls": listed, "answer": None}


def shop(request: LLMRequest) -> dict[str, Any]:
    """Looks both prices up, adds them, and answers with the sum."""
    _, *later = (message.content for message in request.messages[1:])
    results = later[1::2]
    if not results:
        return calls(("price_of", {"part": "P-102"}), ("price_of", {"part": "P-103"}))
    if len(results) == 1:
        cheap, dear = re.findall(r"\d+\.\d+", results[0])
        return calls(("calculator", {"expression": f"3 * {cheap} + {dear}"}))
    return clear(f"{re.findall(r'[0-9]+[.][0-9]+', results[1])[0]} euros")


def test_the_step_uses_the_functions_of_the_workflow() -> None:
    spec = importlib.util.spec_from_file_location("nemo_shop", EXAMPLE / "shop.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    overrides = [f"plan_file={EXAMPLE / 'plan.yaml'}", "mode=core", "store=off", "tools=builtin"]
    with Aeon.from_config(
        overrides, environ={}, adapter=ScriptedModel(step=shop), tools=[module.price_of]
    ) as aeon:
        result = aeon.run("What do three of P-102 and one P-103 cost together?")
    assert result.answer == "142.75 euros"


@pytest.mark.slow
def test_the_commands_of_the_page_work(aeon: RunAeon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLE)
    monkeypatch.syspath_prepend(EXAMPLE)
    command = re.search(r"\$ python -m aeon (.+?)\n```", PAGE, re.DOTALL)
    assert command
    words = shlex.split(command[1].replace("\\\n", " "))
    assert aeon(*words, "--cfg", "job").status == 0
    shown = aeon("config", "why", "provider.model", "--config-dir", "conf", "provider=nim")
    assert "examples/nemo/conf/provider/nim.yaml" in shown.out


def test_what_the_page_names_exists() -> None:
    named = re.findall(r"\]\((?:\.\./)?([\w./-]+?)(?:#[\w-]+)?\)", PAGE)
    assert all((ROOT / "docs" / name).exists() or (ROOT / name).exists() for name in named)
