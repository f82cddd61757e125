"""A provider or an answer that cannot be used: a message to act on, and nothing already paid for is lost."""

from __future__ import annotations

import json

import pytest

from aeon import Aeon, ArtefactError, ConfigError, read_history
from tests.integration.wire import TASK, overrides, run, script, worked
from tests.support.fences import texts_in
from tests.support.openai_server import Failure
from tests.support.scripted_model import plan, planned, unfinished


def test_production_without_a_key_is_refused_before_anything_happens():
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        Aeon.from_config(["env=prod"], environ={})


def test_a_wrong_key_fails_at_once_and_names_the_variable_not_the_key(start_server, tmp_path):
    server = start_server(script(), key="sk-right")
    result = run(server, directory=tmp_path)
    assert result.exit_status == 1
    assert result.error.type == "AuthenticationFailed"
    assert "OPENAI_API_KEY" in result.error.message + result.error.hint
    assert "sk-test" not in (tmp_path / "result.json").read_text()
    assert server.names == []


def test_a_server_that_is_not_there_is_named(tmp_path):
    with Aeon.from_config(
        overrides("http://127.0.0.1:9/v1"), environ={"OPENAI_API_KEY": "k"}
    ) as aeon:
        result = aeon.run(TASK, directory=tmp_path)
    assert result.exit_status == 1
    assert result.error.type == "ConnectionFailed"
    assert "127.0.0.1:9" in result.error.message + result.error.hint
    assert "3 attempts" in result.error.message
    assert json.loads((tmp_path / "result.json").read_text())["termination_reason"] == "failed"


def test_a_server_that_answers_pages_is_told_from_an_api(start_server):
    server = start_server(script(plan=Failure(200, html=True)))
    result = run(server)
    assert result.error.type == "NotAnAPI"
    assert "base_url" in result.error.hint


def test_errors_for_ever_end_the_run_after_three_attempts_a_call(start_server):
    server = start_server(script(plan=Failure(500)))
    result = run(server)
    assert server.names.count("plan") == 3
    assert result.error.type == "ServerFailed"


def test_what_was_done_before_the_provider_failed_is_kept(start_server, tmp_path):
    def step(request):
        return Failure(500) if "do b" in texts_in(request.user, "step_goal") else worked(request)

    server = start_server(
        script(plan=plan("a", planned("b", "a")), step=step, convergence=unfinished())
    )
    result = run(server, directory=tmp_path)
    assert result.exit_status == 1
    assert result.answer == "Work on: do a"
    saved = read_history(tmp_path)
    assert saved.passes[1].steps[0].step_output == "Work on: do a"
    assert saved.passes[2].steps[1].status == "failed"


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (plan(planned("a", "b"), planned("b", "a")), "loop"),
        (plan(planned("a", "ghost")), "ghost"),
        (plan("a", "a"), "a"),
        ({"goal": "g", "steps": []}, "non-empty"),
        (plan(*(f"s{n}" for n in range(6))), "5"),
    ],
    ids=["cycle", "missing dependency", "duplicate ids", "no steps", "too many steps"],
)
def test_a_plan_that_stays_structurally_wrong_fails_with_the_reason(start_server, bad, why):
    server = start_server(script(plan=bad, repair=bad))
    result = run(server, "execution.max_steps=5")
    assert server.names[1:] == ["plan", "repair", "repair"]
    assert result.exit_status == 1
    assert result.error.type == "ValidationError"
    assert why in result.error.message
    assert why in server.of("repair")[0].user


def test_an_output_directory_that_cannot_be_written_is_told_before_any_call(start_server, tmp_path):
    file = tmp_path / "a file"
    file.write_text("")
    server = start_server(script())
    with pytest.raises(ArtefactError, match="a file"):
        run(server, directory=file / "run")
    assert server.requests == []
