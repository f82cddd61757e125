"""`aeon doctor`: one tiny call for each role, and what to change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import RunAeon
from tests.support.openai_server import Failure, OpenAIServer
from tests.support.responses_server import ResponsesServer
from tests.support.scripted_model import defaults

KEY = "sk-very-secret-0123456789"
STEP = {
    "working": "",
    "step_output": "done",
    "quotes": [],
    "clarity_state": "CLEAR",
    "clarity_reason": "",
    "handoff_to_next": "",
}


@pytest.fixture
def doctor(aeon: RunAeon, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def run(server: OpenAIServer, *overrides: str) -> Any:
        ended = aeon("doctor", "provider=openai", f"provider.base_url={server.url}", *overrides)
        assert KEY not in ended.out + ended.err
        return ended

    return run


def answers(**other: Any) -> Mapping[str, Any]:
    return {**defaults(), "step": STEP, "repair": STEP, **other}


def test_every_role_is_asked_once_as_its_calls_are_made(doctor, start_server):
    server = start_server(answers())
    ended = doctor(server, "roles.grader.model=judge-1")
    assert ended.status == 0
    assert server.names == ["plan", "step", "convergence", "repair"]
    assert [request.body["model"] for request in server.requests] == [
        "gpt-5-mini",
        "gpt-5-mini",
        "judge-1",
        "gpt-5-mini",
    ]
    assert all(len(request.system + request.user) < 400 for request in server.requests)
    assert "Every role works." in ended.out
    assert server.url in ended.out
    assert "OPENAI_API_KEY" in ended.out


def test_it_says_which_interfaces_the_server_has(doctor):
    with ResponsesServer(answers()) as server:
        assert "Interfaces of openai (provider.api): chat yes, responses yes." in doctor(server).out
        asked = doctor(server, "provider.api=responses")
    assert asked.status == 0
    assert [body["text"]["format"]["name"] for body in server.inputs] == [
        "plan",
        "step",
        "convergence",
        "repair",
    ]


def test_a_server_without_the_interface_that_is_configured_is_told_with_what_to_change(
    doctor, start_server
):
    ended = doctor(start_server(answers()), "provider.api=responses")
    assert ended.status == 1
    assert "Interfaces of openai (provider.api): chat yes, responses no." in ended.out
    assert "try provider.api=chat" in ended.out


def test_an_answer_that_breaks_its_schema_is_told_with_its_place_and_what_to_change(
    doctor, start_server
):
    ended = doctor(start_server(answers(step={**STEP, "clarity_state": "WONDERFUL"})))
    assert ended.status == 1
    assert "/clarity_state" in ended.out
    assert "provider.structured_output" in ended.out
    assert "Cannot be used: " in ended.out


def test_an_answer_of_the_simulated_provider_is_checked_too(aeon: RunAeon, tmp_path: Path):
    (tmp_path / "bad.yaml").write_text("calls: {step: {text: '{}'}}", encoding="utf-8")
    ended = aeon("doctor", "provider=simulated", f"provider.scenario={tmp_path / 'bad.yaml'}")
    assert "is a required property" in ended.out
    assert "Every such answer costs a repair. Try another model" in ended.out


def test_a_wrong_key_is_told_once_and_nothing_more_is_tried(doctor, start_server):
    server = start_server(answers(), key="another")
    ended = doctor(server)
    assert ended.status == 1
    assert "AuthenticationFailed" in ended.out
    assert ended.out.count("not tried") == 3


def test_a_failing_server_is_asked_once_not_three_times(doctor, start_server):
    server = start_server(answers(plan=Failure(503)))
    assert doctor(server).status == 1
    assert server.names == ["plan"]


def test_a_model_that_the_server_does_not_have_costs_that_role_alone(doctor, start_server):
    refusal = Failure(
        404, body={"error": {"message": "no such model: judge-1", "code": "model_not_found"}}
    )
    ended = doctor(start_server(answers(convergence=refusal)), "roles.grader.model=judge-1")
    assert ended.status == 1
    assert "no such model: judge-1" in ended.out
    assert "Cannot be used: grader." in ended.out


def test_the_simulated_provider_proves_nothing_and_says_so(aeon):
    ended = aeon("doctor", "provider=simulated")
    assert ended.status == 0
    assert "No model is called" in ended.out


def test_a_configuration_that_cannot_be_used_is_refused_before_any_call(aeon):
    ended = aeon("doctor", "provider=openai")
    assert ended.status == 2
    assert "OPENAI_API_KEY" in ended.err


def test_fallbacks_are_asked_themselves_and_hide_no_failure_of_the_provider(doctor, start_server):
    broken, spare = start_server(answers(step=Failure(503))), start_server(answers())
    fallback = f"{{provider: openai, name: spare, base_url: '{spare.url}', model: other}}"
    ended = doctor(broken, f"provider.fallbacks=[{fallback}]")
    assert ended.status == 1
    assert "ServerFailed" in ended.out
    assert [request.body["model"] for request in spare.requests] == ["other"]
    assert "fallback spare:" in ended.out
    assert "Cannot be used: " in ended.out


def test_a_fallback_that_cannot_be_used_is_named(doctor, start_server):
    spare = start_server(answers(step=Failure(503)))
    fallback = f"{{provider: openai, name: spare, base_url: '{spare.url}', model: other}}"
    ended = doctor(start_server(answers()), f"provider.fallbacks=[{fallback}]")
    assert ended.status == 1
    assert "Cannot be used: fallback spare." in ended.out


def test_a_key_in_the_query_of_the_address_is_shown_nowhere(
    aeon: RunAeon, start_server, monkeypatch, tmp_path
):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv(
        "OPENAI_BASE_URL", f"{start_server(answers()).url}?key=hidden-1234#hidden-1234"
    )
    examined = aeon("doctor", "provider=openai")
    ran = aeon("task=do it", "provider=openai")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"run.json", "result.json"} <= {path.name for path in files}
    written = "".join(path.read_text(encoding="utf-8", errors="replace") for path in files)
    assert "/v1" in examined.out
    assert "hidden-1234" not in examined.out + examined.err + ran.out + ran.err + written


def test_the_limits_of_a_run_do_not_keep_a_role_from_being_tried(doctor, start_server):
    server = start_server(answers())
    assert doctor(server, "limits.max_llm_calls=1", "limits.max_tokens=1").status == 0
    assert server.names == ["plan", "step", "convergence", "repair"]


@pytest.mark.parametrize(("key", "said"), [("", "none needed"), (KEY, "in OPENAI_API_KEY")])
def test_a_key_that_is_not_needed_is_named_where_it_is_sent(
    doctor, start_server, monkeypatch, key: str, said: str
):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    server = start_server(answers())
    ended = doctor(server, "provider.require_key=false")
    assert f"Key: {said}" in ended.out.splitlines()
    assert (
        {request.headers.get("authorization") for request in server.requests} == {f"Bearer {KEY}"}
    ) == bool(key)
