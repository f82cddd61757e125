"""Requests through a provider's batch interface: which go together, and what becomes of each, whatever happens."""

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from aeon.domain.errors import (
    AuthenticationFailed,
    ConfigError,
    LLMError,
    NotAnAPI,
    QuotaExhausted,
    RateLimited,
    RequestRefused,
    ServerFailed,
    StopRequested,
)
from aeon.domain.request import LLMResponse, Message, Parameters
from aeon.llm.dialects.server import forget_servers
from aeon.llm.openai.batches import round as batches_round
from aeon.llm.openai.batches import rounds as batches_rounds
from aeon.llm.openai.batches.adapter import BatchAdapter
from aeon.llm.openai.batches.api import Result
from aeon.llm.openai.batches.journal import BatchJournal
from aeon.llm.protocols import OfRun
from aeon.llm.settings import OpenAIProvider
from tests.support.batch_server import BatchServer, Fate
from tests.support.openai_server import Failure, Received, error
from tests.support.requests import request
from tests.support.timing import SOON, wait_for

FILES, BATCHES, CONTENT = (
    ("POST", "/v1/files"),
    ("POST", "/v1/batches"),
    ("GET", "/v1/files/*/content"),
)
Connect = Callable[..., BatchAdapter]


def echo(received: Received) -> dict[str, str]:
    return {"answer": received.user}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[BatchServer]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(batches_round, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(batches_round, "_FACTOR", 0.01)
    monkeypatch.setattr(batches_rounds, "_LOOK_SECONDS", 0.02)
    monkeypatch.setattr(batches_rounds, "_LEAST_SECONDS", 0.01)
    with BatchServer({"plan": echo, "step": echo}) as running:
        running.seconds = 0.05
        yield running


@pytest.fixture
def connect(server: BatchServer) -> Iterator[Connect]:
    """Makes adapters for the server, and closes them when the test ends."""
    with ExitStack() as open_adapters:

        def make(**settings: Any) -> BatchAdapter:
            fast = {"batch": True, "batch_wait_seconds": 0.4, "batch_poll_seconds": 0.05}
            adapter = BatchAdapter(
                OpenAIProvider(**{"base_url": server.url, **fast, **settings}), "key"
            )
            open_adapters.callback(adapter.close)
            return adapter

        yield make


def asked(text: str, **given: Any) -> Any:
    return request(messages=(Message("system", "Be brief."), Message("user", text)), **given)


def ask_all(
    adapter: BatchAdapter, *requests: Any, stop: Callable[[], bool] = lambda: False
) -> list[Any]:
    """What each request gives, asked by a run of its own: the text of an answer, or the error."""
    runs = [adapter.of_run(stop) for _ in requests]

    def ask(run: BatchAdapter, one: Any) -> Any:
        try:
            return json.loads(run.complete(one).text)["answer"]
        except Exception as failure:
            return failure
        finally:
            run._member.stop = lambda: True  # type: ignore[union-attr] # the run is over

    with ThreadPoolExecutor(max(1, len(requests))) as pool:
        return list(pool.map(ask, runs, requests))


def noted(path: Path = Path(".aeon/batches.sqlite")) -> list[tuple[Any, ...]]:
    with sqlite3.connect(path) as journal:
        return journal.execute(
            "SELECT id, owner, batch, status FROM requests ORDER BY rowid"
        ).fetchall()


def test_requests_of_all_runs_go_together_and_each_gets_its_own_answer(
    server: BatchServer, connect: Connect
) -> None:
    texts = [f"number {n}" for n in range(20)]
    assert ask_all(connect(), *map(asked, texts)) == texts
    [made] = server.batches
    assert len({line["custom_id"] for line in made.lines}) == 20
    assert made.told["metadata"].keys() == {"aeon_round"}


def test_a_body_may_be_a_text(server: BatchServer, connect: Connect) -> None:
    server.says_text = True
    assert ask_all(connect(), asked("a")) == ["a"]


def test_equal_requests_are_asked_as_often_as_they_are_made(
    server: BatchServer, connect: Connect
) -> None:
    assert ask_all(connect(), asked("same"), asked("same")) == ["same", "same"]
    assert len({line["custom_id"] for line in server.requests}) == 2


def test_each_model_has_a_batch_of_its_own(server: BatchServer, connect: Connect) -> None:
    other = Parameters(model="other")
    assert ask_all(connect(), asked("a"), asked("b", parameters=other), asked("c")) == [
        "a",
        "b",
        "c",
    ]
    assert sorted(made.size for made in server.batches) == [1, 2]


@pytest.mark.slow
def test_a_round_waits_for_who_does_not_wait_yet_but_not_for_ever(
    server: BatchServer, connect: Connect
) -> None:
    adapter = connect(batch_wait_seconds=3)
    idle = adapter.of_run(lambda: False)
    began = time.monotonic()
    assert ask_all(adapter, asked("a")) == ["a"]
    assert time.monotonic() - began > 3
    del idle
    began = time.monotonic()
    assert ask_all(adapter, asked("b")) == ["b"]
    assert time.monotonic() - began < 3


@pytest.mark.slow
def test_a_full_round_goes_out_at_once(
    server: BatchServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches_round, "MAX_REQUESTS", 3)
    texts = [str(n) for n in range(7)]
    assert ask_all(connect(), *map(asked, texts)) == texts
    assert sorted(made.size for made in server.batches) == [1, 3, 3]
    monkeypatch.setattr(batches_rounds, "MAX_BYTES", 1500)
    before = len(server.batches)
    assert ask_all(connect(), *map(asked, texts)) == texts
    assert all(len(made.lines) <= 3 for made in server.batches[before:])


@pytest.mark.parametrize(
    ("status", "kind", "passes"),
    [
        (400, RequestRefused, False),
        (401, AuthenticationFailed, False),
        (402, QuotaExhausted, False),
        (429, RateLimited, True),
        (500, ServerFailed, True),
        (504, ServerFailed, True),
    ],
)
def test_a_line_that_failed_is_the_error_it_would_be_without_a_batch(
    server: BatchServer, connect: Connect, status: int, kind: type[LLMError], passes: bool
) -> None:
    server.fates = [Fate(seconds=0.1, failing={2: status})] * 5
    good, bad, other = ask_all(connect(structured_output="json_schema"), *map(asked, "abc"))
    failed = {type(one): one for one in (good, bad, other) if isinstance(one, Exception)}
    assert list(failed) == [kind]
    assert failed[kind].retryable is passes
    assert failed[kind].usage.requests == 0
    assert len([one for one in (good, bad, other) if isinstance(one, str)]) == 2


@pytest.mark.parametrize("status", ["expired", "cancelled"])
def test_what_a_batch_did_not_answer_fails_and_what_it_did_is_taken(
    server: BatchServer, connect: Connect, status: str
) -> None:
    server.fates = [Fate(status, seconds=0.1, left=(1, 3))]
    answers = ask_all(connect(), *map(asked, "abc"))
    failed = [one for one in answers if isinstance(one, ServerFailed)]
    assert [len(failed), len(answers)] == [2, 3]
    assert {one.message for one in failed} == {f"batch_1 has ended ({status}) without an answer"}
    assert all(one.retryable for one in failed)


def test_lines_that_are_missing_fail_and_lines_that_stand_twice_count_once(
    server: BatchServer, connect: Connect
) -> None:
    server.fates = [Fate(seconds=0.1, lost=(2,), double=(1, 3))]
    answers = ask_all(connect(), *map(asked, "abc"))
    assert [type(one) for one in answers].count(ServerFailed) == 1
    assert len([one for one in answers if isinstance(one, str)]) == 2


@pytest.mark.slow
def test_too_many_tokens_at_once_go_out_as_smaller_batches_one_after_the_other(
    server: BatchServer, connect: Connect
) -> None:
    limit = {
        "code": "token_limit_exceeded",
        "message": "Enqueued token limit reached",
        "line": None,
    }
    server.fates = [Fate("failed", 0.1, errors=[limit])]
    texts = [str(n) for n in range(8)]
    assert ask_all(connect(), *map(asked, texts)) == texts
    assert [made.size for made in server.batches] == [8, 4, 4]
    assert server.batches[2].made >= server.batches[1].made + 0.1


@pytest.mark.slow
def test_lines_at_fault_are_refused_and_the_others_sent_again(
    server: BatchServer, connect: Connect
) -> None:
    fault = {"code": "invalid_value", "message": "no such value", "line": 2, "param": "body.effort"}
    server.fates = [Fate("failed", 0.1, errors=[fault])]
    answers = ask_all(connect(structured_output="json_schema"), *map(asked, "abc"))
    [failed] = [one for one in answers if isinstance(one, Exception)]
    assert isinstance(failed, RequestRefused)
    assert "no such value" in failed.message
    assert [made.size for made in server.batches] == [3, 2]


def test_a_batch_refused_as_a_whole_fails_each_of_its_requests(
    server: BatchServer, connect: Connect
) -> None:
    fault = {
        "code": "model_not_found",
        "message": "The provided model 'x' does not exist",
        "line": None,
    }
    server.fates = [Fate("failed", 0.1, errors=[fault])] * 4
    answers = ask_all(connect(structured_output="json_schema"), *map(asked, "ab"))
    assert [type(one) for one in answers] == [RequestRefused, RequestRefused]
    assert "does not exist" in answers[0].message
    assert answers[0] is not answers[1]


@pytest.mark.slow
def test_a_form_that_is_refused_is_found_out_in_one_round_for_all(
    server: BatchServer, connect: Connect
) -> None:
    script = {"plan": lambda received: error(400, "response_format json_schema is not supported")}
    server.model.script.update(script)
    asks = [asked(text) for text in "abc"]
    ask_all(connect(), *asks)
    forms = [
        {line["body"].get("response_format", {}).get("type") for line in made.lines}
        for made in server.batches
    ]
    assert forms == [{"json_schema"}, {"json_object"}, {None}]


def test_a_run_whose_request_was_answered_does_not_wait() -> None:
    member = batches_round.RoundMember(lambda: False)
    first = batches_round.Ask(b"{}", member, lambda _: None)
    second = batches_round.Ask(b"{}", member, lambda _: None)
    member.asks |= {first, second}
    first.give(Result("1", 200, b""))
    assert member.is_waiting()
    second.give(Result("2", 200, b""))
    assert not member.is_waiting()


@pytest.mark.parametrize("path", [FILES, BATCHES])
@pytest.mark.parametrize("status", [404, 405, 501])
def test_a_provider_without_batches_says_what_to_do(
    server: BatchServer, connect: Connect, path: tuple[str, str], status: int
) -> None:
    server.trouble[path] = [error(status, "not here")] * 3
    [failed] = ask_all(connect(), asked("a"))
    assert isinstance(failed, NotAnAPI)
    assert f"takes no batches: it answered {status} to {path[1]}" in failed.message
    assert "provider.batch=false" in failed.hint
    assert noted() == []


@pytest.mark.slow
@pytest.mark.parametrize("path", [FILES, BATCHES, CONTENT, ("GET", "/v1/batches/*")])
@pytest.mark.parametrize(
    "failure", [Failure(429, {"retry-after": "0.1"}), Failure(503), Failure(reset=True)]
)
def test_an_interface_that_fails_for_a_moment_is_tried_again(
    server: BatchServer, connect: Connect, path: tuple[str, str], failure: Failure
) -> None:
    server.trouble[path] = [failure, failure]
    assert ask_all(connect(), asked("a"), asked("b")) == ["a", "b"]
    assert len(server.batches) == 1


def test_a_batch_that_was_made_though_that_seemed_to_fail_is_not_made_twice(
    server: BatchServer, connect: Connect
) -> None:
    server.after[BATCHES] = [Failure(reset=True), Failure(502)]
    assert ask_all(connect(), asked("a"), asked("b")) == ["a", "b"]
    assert len(server.batches) == 1


@pytest.mark.slow
def test_results_that_are_not_there_yet_are_waited_for(
    server: BatchServer, connect: Connect
) -> None:
    server.trouble[CONTENT] = [error(404, "No such File object")] * 3
    assert ask_all(connect(), asked("a")) == ["a"]
    assert len(server.batches) == 1


@pytest.mark.slow
def test_results_that_stay_away_are_an_error_that_passes_and_are_not_paid_for_again(
    server: BatchServer, connect: Connect
) -> None:
    adapter = connect()
    server.trouble[CONTENT] = [error(404, "No such File object")] * 8
    [failed] = ask_all(adapter, asked("a"))
    assert isinstance(failed, ServerFailed)
    assert failed.retryable
    assert ask_all(adapter, asked("a")) == ["a"]
    assert len(server.batches) == 1


def test_a_batch_that_is_gone_is_made_again(server: BatchServer, connect: Connect) -> None:
    server.trouble["GET", "/v1/batches/*"] = [error(404, "No batch found")]
    adapter = connect()
    assert isinstance(ask_all(adapter, asked("a"))[0], RequestRefused)
    assert ask_all(adapter, asked("a")) == ["a"]
    assert len(server.batches) == 2


def stopped_while_waiting(server: BatchServer, adapter: BatchAdapter, *texts: str) -> list[Any]:
    """What runs get that are asked to stop while their batch is under way."""
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        answers: Future[list[Any]] = pool.submit(
            ask_all, adapter, *map(asked, texts), stop=stop.is_set
        )
        wait_for(lambda: server.batches and any(row[2] for row in noted()))
        stop.set()
        return answers.result(SOON)


@pytest.mark.slow
def test_a_stop_ends_the_wait_and_the_batch_goes_on_for_who_asks_again(
    server: BatchServer, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    server.seconds = 3600
    adapter = connect()
    assert [type(one) for one in stopped_while_waiting(server, adapter, "a", "b")] == [
        StopRequested
    ] * 2
    server.batches[0].fate = Fate(seconds=0)
    server.seconds = 0.05
    assert (
        "batch_1 (2 requests) continues at the provider; resuming the run uses its results."
        in caplog.text
    )
    assert ask_all(adapter, *map(asked, "abc")) == ["a", "b", "c"]
    assert [made.size for made in server.batches] == [2, 1]
    assert all(call != ("POST", "/v1/batches/*/cancel") for call in server.calls)


def test_a_stop_cancels_the_batch_where_that_is_asked_for(
    server: BatchServer, connect: Connect
) -> None:
    server.seconds = 3600
    adapter = connect(batch_cancel=True)
    stopped_while_waiting(server, adapter, "a", "b")
    assert ("POST", "/v1/batches/*/cancel") in server.calls
    assert {type(one) for one in ask_all(adapter, *map(asked, "ab"))} == {str, ServerFailed}
    assert len(server.batches) == 1


@pytest.mark.slow
def test_the_same_process_takes_no_answer_that_another_run_waits_for(
    server: BatchServer, connect: Connect
) -> None:
    one, other = connect(), connect()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(ask_all, one, asked("same"))
        time.sleep(0.3)
        second = pool.submit(ask_all, other, asked("same"))
        assert (first.result(SOON), second.result(SOON)) == (["same"], ["same"])
    assert len({line["custom_id"] for line in server.requests}) == 2


def of_the_dead(connect: Connect, adapter: BatchAdapter) -> None:
    """Make what is noted that of a process that was killed."""
    with sqlite3.connect(".aeon/batches.sqlite") as journal:
        journal.execute("UPDATE requests SET owner = 'elsewhere:1:x'")


def place_of(adapter: BatchAdapter) -> BatchJournal:
    return adapter._rounds._journal


@pytest.mark.parametrize("file", [None, "file-1"])
def test_a_round_that_was_killed_before_its_batch_was_made_is_sent_again(
    server: BatchServer, connect: Connect, file: str | None
) -> None:
    adapter = connect()
    digest = digest_of(adapter, "a")
    place_of(adapter).begin("aeon-1", [("aeon-1-1", digest), ("aeon-1-2", "of another")])
    place_of(adapter).note("aeon-1", file, None)
    of_the_dead(connect, adapter)
    assert ask_all(adapter, asked("a")) == ["a"]
    assert [made.size for made in server.batches] == [1]
    assert server.requests[0]["custom_id"] != "aeon-1-1"


@pytest.mark.slow
def test_a_round_that_was_killed_before_its_batch_was_noted_is_found(
    server: BatchServer, connect: Connect
) -> None:
    adapter = connect()
    assert ask_all(adapter, *map(asked, "ab")) == ["a", "b"]
    for _ in range(3):  # the list has more than one page
        ask_all(adapter, asked("other"))
    with sqlite3.connect(".aeon/batches.sqlite") as journal:
        journal.execute(
            "UPDATE requests SET batch = NULL, file = NULL, status = NULL, owner = 'elsewhere:1:x'"
        )
    before = len(server.batches)
    assert ask_all(adapter, *map(asked, "ab")) == ["a", "b"]
    assert len(server.batches) == before


@pytest.mark.slow
def test_answers_that_were_given_and_not_stored_are_given_once_more_after_a_kill(
    server: BatchServer, connect: Connect
) -> None:
    adapter = connect()
    assert ask_all(adapter, asked("a")) == ["a"]
    of_the_dead(connect, adapter)
    calls = len(server.calls)
    assert ask_all(adapter, asked("a")) == ["a"]
    assert len(server.calls) == calls
    assert ask_all(adapter, asked("a")) == ["a"]
    assert len(server.batches) == 2


@pytest.mark.slow
def test_marks_for_the_cache_are_no_part_of_what_was_sent_before(
    server: BatchServer, connect: Connect
) -> None:
    same = "What all calls of a run begin with. " * 200
    texts = [f"{same}{n}" for n in range(6)]
    ends = tuple(range(len(same) // 2, len(same) + 1, len(same) // 10))
    asks = [request("step", messages=(Message("user", text, ends),)) for text in texts]
    adapter = connect(model="gpt-5.6", prompt_cache="openai")
    for ask in asks:
        assert OfRun(adapter.of_run(lambda: False), "one").complete(ask).text
    assert "prompt_cache_breakpoint" in json.dumps(server.requests[0])
    of_the_dead(connect, adapter)
    forget_servers()
    for ask in asks:
        assert OfRun(adapter.of_run(lambda: False), "two").complete(ask).text
    assert len(server.batches) == 6


def test_what_is_stored_is_kept_no_longer(server: BatchServer, connect: Connect) -> None:
    run = connect().of_run(lambda: False)
    response: LLMResponse = run.complete(asked("a"))
    assert [row[3] for row in noted()] == [200]
    run.settle()
    assert (response.text, noted()) == ('{"answer": "a"}', [])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "headers", "batches"),
    [
        ("new-key", {}, 1),
        ("key", {"X-Gateway-Key": "new-key"}, 1),
        ("key", {"OpenAI-Organization": "another"}, 2),
        ("key", {"openai-project": "another"}, 2),
    ],
)
def test_a_new_key_finds_the_batches_of_the_old_one_and_another_account_those_of_its_own(
    server: BatchServer, connect: Connect, key: str, headers: dict[str, str], batches: int
) -> None:
    adapter = connect()
    assert ask_all(adapter, asked("a")) == ["a"]
    of_the_dead(connect, adapter)
    other = BatchAdapter(adapter._settings, key, headers)
    try:
        assert ask_all(other, asked("a")) == ["a"]
    finally:
        other.close()
    assert len(server.batches) == batches


def test_two_keys_at_once_each_send_their_own(
    server: BatchServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter, sent, answer = connect(), set[str](), server.answer

    def noted_answer(method: str, path: str, query: Any, headers: Any, raw: bytes) -> Any:
        sent.add(headers["authorization"])
        return answer(method, path, query, headers, raw)

    monkeypatch.setattr(server, "answer", noted_answer)
    other = BatchAdapter(adapter._settings, "another-key")
    try:
        assert ask_all(other, asked("a")) == ["a"]
    finally:
        other.close()
    assert sent == {"Bearer another-key"}


def test_who_belongs_to_no_run_is_asked_at_once(server: BatchServer, connect: Connect) -> None:
    assert connect().complete(asked("a")).text == '{"answer": "a"}'
    assert server.batches == []
    assert server.calls[-1] == ("POST", "/v1/chat/completions")


def test_a_journal_that_cannot_be_opened_is_said_before_anything_is_paid(
    connect: Connect, tmp_path: Path
) -> None:
    (tmp_path / "text").write_text(
        "not a journal, but a text that is long enough to be read as one" * 10
    )
    with pytest.raises(ConfigError, match=r"provider\.batch_journal=.*text: cannot be opened"):
        connect(batch_journal=tmp_path / "text")


def digest_of(adapter: BatchAdapter, text: str) -> str:
    from aeon.llm.dialects.dialect import Dialect, Wire

    body = Wire(asked(text), adapter._settings).body(Dialect())
    return batches_round.Ask(body, batches_round.RoundMember(lambda: False), lambda _: None).digest
