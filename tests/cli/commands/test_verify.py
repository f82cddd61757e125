"""`aeon verify`: small tasks in both modes on the configured provider, as a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aeon.app.trials.verify import TASKS
from tests.cli.conftest import RunAeon
from tests.integration.wire import script
from tests.support.fences import texts_in
from tests.support.openai_server import Completion, Failure, OpenAIServer, Received
from tests.support.scripted_model import clear

pytestmark = pytest.mark.slow

RIGHT = {
    "sum": "The sum is **15**.",
    "rivers": "Danube, Rhine, Rhone",
    "packing": "- boots\n- a map",
    "JSON": '{"France": "Paris", "Japan": "Tokyo"}',
    "table": "| item | amount |\n|---|---|\n| bread | 2 |\n| milk | 1 |\n| apples | 6 |",
}
PRICED = "provider.prices={gpt-5-mini: {input: 1000, output: 1000}, scripted: {input: 1000, output: 1000}}"
A_RUN = "P|LER|XE"


@pytest.fixture
def verify(aeon: RunAeon, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-0123456789")

    def run(server: OpenAIServer, *overrides: str) -> Any:
        retry = ("provider.retry.initial_seconds=0", "provider.retry.jitter_seconds=0")
        return aeon(
            "verify", "provider=openai", f"provider.base_url={server.url}", *retry, *overrides
        )

    return run


def solved(request: Received) -> dict[str, Any]:
    """A step that gives the right answer to the task that its prompt names."""
    (task,) = texts_in(request.user, "task")
    return clear(next(answer for word, answer in RIGHT.items() if word in task))


def untold(answer: Any) -> Any:
    """The answer, or what a function answers, without its usage."""
    if callable(answer):
        return lambda request: untold(answer(request))
    if isinstance(answer, list):
        return [untold(one) for one in answer]
    return Completion(answer, usage=None)


def rows(out: str) -> list[list[str]]:
    return [line.split() for line in out.splitlines() if line.startswith(("  adaptive", "  core"))]


def test_five_tasks_run_in_both_modes_each_with_its_phases_answers_and_tokens(verify, start_server):
    server = start_server(script(step=solved))
    ended = verify(server)
    assert ended.status == 0
    assert [row[7] for row in rows(ended.out)] == [*["right"] * 2, *["-"] * 2, *["right"] * 6]
    assert ended.out.endswith("8 of 8 checked answers right.\n")
    assert [row[0] for row in rows(ended.out)] == ["adaptive", "core"] * len(TASKS)
    assert {tuple(row[1:6]) for row in rows(ended.out) if row[0] == "adaptive"} == {
        (A_RUN, "6/6", "0", "6", "720")
    }
    assert {tuple(row[1:4]) for row in rows(ended.out) if row[0] == "core"} == {
        ("|L|X", "2/2", "0")
    }
    assert "10 of 10 runs kept the order and came to an end (converged or not)" in ended.out
    assert len(server.requests) == len(TASKS) * 8


def test_a_wrong_answer_is_called_wrong_and_changes_the_status(verify, start_server):
    ended = verify(start_server(script(step=clear("14"))))
    assert ended.status == 3
    assert [row[7] for row in rows(ended.out)][:4] == ["wrong", "wrong", "-", "-"]
    assert "0 of 8 checked answers right, 8 wrong." in ended.out


def test_the_money_is_for_all_runs_together(verify, start_server):
    ended = verify(start_server(script()), PRICED, "limits.max_cost=1.3")
    assert ended.status == 3
    assert [row[0] for row in rows(ended.out)] == ["adaptive", "core", "adaptive"]
    assert "max_cost" in ended.out
    assert "7 runs not made: limits.max_cost is used up, or the cost is unknown." in ended.out


def test_repairs_are_counted_and_told_from_answers_that_were_valid_at_once(verify, start_server):
    ended = verify(start_server(script(step={"clarity_state": "CLEAR"}, repair=clear("repaired"))))
    assert {tuple(row[2:4]) for row in rows(ended.out)} == {("5/6", "1"), ("1/2", "1")}


def test_a_run_that_fails_is_told_with_its_error_and_the_others_are_made(verify, start_server):
    def plan(request: Any) -> Any:
        return Failure(500) if TASKS[1].text in request.user else script()["plan"]

    ended = verify(start_server(script(plan=plan)), "provider.patience_seconds=0")
    assert ended.status == 1
    assert len(rows(ended.out)) == len(TASKS) * 2
    assert "8 of 10 runs" in ended.out


def test_a_server_that_tells_no_usage_is_said_to(verify, start_server):
    server = start_server({name: untold(answer) for name, answer in script().items()})
    ended = verify(server, PRICED, "limits.max_cost=1.7")
    assert [row[0] for row in rows(ended.out)] == ["adaptive"]
    assert "cost unknown: no usage reported for scripted-1." in ended.out
    assert "9 runs not made: limits.max_cost is used up, or the cost is unknown." in ended.out
    assert "no price" not in ended.out


def test_a_model_without_a_price_is_named(verify, start_server):
    ended = verify(start_server(script()))
    assert "cost unknown: no price for scripted-1." in ended.out


def test_a_server_that_is_down_is_left_alone_by_the_runs_that_follow(verify, start_server):
    server = start_server({name: Failure(503) for name in script()})
    ended = verify(
        server,
        "provider.retry.initial_seconds=0.3",
        "provider.retry.attempts=2",
        "provider.patience_seconds=0",
    )
    assert ended.status == 1
    assert len(rows(ended.out)) == len(TASKS) * 2
    assert len(server.requests) <= 10


def test_the_simulated_provider_costs_nothing(aeon, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    ended = aeon("verify", "limits.max_cost=0.50")
    assert ended.status == 0, ended.err
    assert len(rows(ended.out)) == len(TASKS) * 2
    assert "cost 0.0000" in ended.out


def test_tasks_of_ones_own_are_refused(aeon):
    ended = aeon("verify", "task=x")
    assert ended.status == 2
    assert "leave out task" in ended.err


def test_a_simulated_run_says_that_its_end_is_made_up(aeon: RunAeon):
    ended = aeon("verify", "provider=simulated")
    assert ended.status == 0
    assert "every figure and every outcome below is made up" in ended.err
    assert {row[7] for row in rows(ended.out)} == {"-"}
    assert "No answer was checked." in ended.out
    assert "10 of 10 runs kept the order and came to an end (converged or not)" in ended.out


def test_nobody_is_waited_for(aeon: RunAeon) -> None:
    assert aeon("verify", "provider=simulated", "interaction=defer").status == 0
