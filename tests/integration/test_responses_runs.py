"""Whole runs by the Responses API are those by chat completions."""

from __future__ import annotations

from typing import Any

import pytest

from aeon import Aeon
from aeon.domain.result import RunResult
from aeon.llm.openai import background
from tests.support.openai_server import Completion
from tests.support.responses_server import ResponsesServer
from tests.support.scripted_model import clear, defaults

BROKEN = Completion('{"goal": "no steps"}')


def run(server: ResponsesServer, *overrides: str) -> RunResult:
    given = ["provider=openai", f"provider.base_url={server.url}", "progress=none", *overrides]
    with Aeon.from_config(given, environ={"OPENAI_API_KEY": "k"}) as aeon:
        return aeon.run("write a haiku")


def script() -> dict[str, Any]:
    """A run whose plan has to be repaired."""
    answers = {**defaults(), "step": clear("Rain on the old roof")}
    return {**answers, "plan": BROKEN, "repair": answers["plan"]}


def figures(result: RunResult) -> dict[str, Any]:
    usage = result.usage.model_dump()
    return {
        "answer": result.answer,
        "reason": result.termination_reason,
        "usage": usage,
        "repairs": [(repair.call, repair.outcome) for repair in result.repairs],
    }


@pytest.mark.parametrize("how", [(), ("provider.stream=always",), ("provider.background=true",)])
def test_a_run_comes_to_the_same_by_both(
    how: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "_FIRST_WAIT_SECONDS", 0.01)
    with ResponsesServer(script()) as server:
        server.polls = 1
        by_chat = run(server)
        by_responses = run(server, "provider.api=responses", *how)
        asked = list(server.inputs)
    assert figures(by_responses) == figures(by_chat)
    assert by_responses.converged
    assert len(asked) == by_chat.usage.total.requests
    [repair] = [body for body in asked if any("encrypted_content" in i for i in body["input"])]
    assert [item.get("type", item.get("role")) for item in repair["input"]] == [
        "system",
        "reasoning",
        "message",
        "user",
    ]
