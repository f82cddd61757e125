"""The whole stack against real servers that are busy, down, or both."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from aeon.app.process import process_stack
from aeon.domain.errors import (
    CircuitOpen,
    ConnectionFailed,
    QuotaExhausted,
    RateLimited,
    StopRequested,
)
from aeon.domain.events import FallbackUsed
from aeon.domain.request import LLMResponse
from aeon.llm.settings import OpenAIFallback, OpenAIProvider
from aeon.llm.stack import build as stack
from aeon.llm.stack.limits import LimitSettings, Spend
from tests.llm.scripted import Heard
from tests.support.able_server import AbleServer
from tests.support.fixtures import StartServer
from tests.support.openai_server import Answer, Completion, Failure, OpenAIServer, Received, error
from tests.support.requests import request
from tests.support.timing import SOON, wait_for

ANSWER = {"answer": "x"}
QUICK = {"initial_seconds": 0.05, "jitter_seconds": 0.05}
ENVIRON = {"OPENAI_API_KEY": "k"}


def endpoint(server: OpenAIServer, **given: Any) -> dict[str, Any]:
    return {"base_url": server.url, "model": "m", "retry": QUICK, **given}


@contextmanager
def stacked(settings: OpenAIProvider, **given: Any) -> Iterator[tuple[stack.Endpoints, Spend]]:
    endpoints = process_stack(settings, ENVIRON)
    try:
        yield endpoints, stack.run_stack(endpoints, limits=LimitSettings(), **given)
    finally:
        endpoints.close()


def at_once(run: Spend, calls: int) -> list[LLMResponse]:
    with ThreadPoolExecutor(calls) as pool:
        return [
            future.result()
            for future in [pool.submit(run.complete, request()) for _ in range(calls)]
        ]


def slots(endpoints: stack.Endpoints) -> int:
    state = next(iter(endpoints)).state
    assert state is not None
    return state.limiter.slots


def busy_beyond(
    server: OpenAIServer, most: int, headers: dict[str, str] | None = None
) -> Callable[[Received], Answer]:
    """Answers at most so many at once, 429 to the others."""
    lock, under_way = threading.Lock(), [0]

    def answer(_: Received) -> Answer:
        with lock:
            if under_way[0] >= most:
                return Failure(429, headers=headers or {})
            under_way[0] += 1
        time.sleep(0.02)
        with lock:
            under_way[0] -= 1
        return Completion(ANSWER)

    return answer


@pytest.mark.slow
def test_a_storm_of_429_ends_well_for_everyone_and_the_window_comes_back(
    openai_server: OpenAIServer,
) -> None:
    openai_server.script["plan"] = busy_beyond(openai_server, 3)
    patient = endpoint(openai_server, retry={**QUICK, "attempts": 8})
    with stacked(OpenAIProvider.model_validate(patient)) as (endpoints, run):
        assert [response.text for response in at_once(run, 20)] == ['{"answer": "x"}'] * 20
        narrowed = slots(endpoints)
        assert narrowed < 20
        assert len(openai_server.requests) <= 70
        openai_server.script["plan"] = ANSWER
        for _ in range(60):
            run.complete(request())
        assert slots(endpoints) > narrowed


@pytest.mark.slow
def test_a_storm_with_retry_after_is_waited_out_by_everyone(openai_server: OpenAIServer) -> None:
    began = time.monotonic()
    arrived: list[float] = []
    lock = threading.Lock()

    def answer(_: Received) -> Answer:
        now = time.monotonic() - began
        with lock:
            arrived.append(now)
        return (
            Failure(429, headers={"retry-after-ms": str(max(1, int((0.6 - now) * 1000)))})
            if now < 0.6
            else ANSWER
        )

    openai_server.script["plan"] = answer
    provider = OpenAIProvider.model_validate(endpoint(openai_server, max_concurrency=8))
    with stacked(provider) as (_, run):
        assert len(at_once(run, 20)) == 20
    refused = [at for at in arrived if at < 0.6]
    assert len(refused) <= 16
    assert len(arrived) == 20 + len(refused)


def test_a_server_that_is_busy_for_ever_is_not_asked_for_ever(openai_server: OpenAIServer) -> None:
    openai_server.script["plan"] = Failure(429)
    retry = {**QUICK, "max_seconds": 0.05, "attempts": 5}
    given = endpoint(openai_server, retry=retry, patience_seconds=0)
    provider = OpenAIProvider.model_validate(given)
    with stacked(provider) as (_, run), pytest.raises(RateLimited, match="5 attempts made"):
        run.complete(request())
    assert len(openai_server.requests) == 5


def test_a_used_up_quota_is_told_at_once_and_falls_back(start_server: StartServer) -> None:
    empty, spare = start_server(), start_server({"plan": ANSWER})
    empty.script["plan"] = error(429, "You exceeded your current quota", code="insufficient_quota")
    with stacked(OpenAIProvider.model_validate(endpoint(empty))) as (_, run):
        with pytest.raises(QuotaExhausted) as raised:
            run.complete(request())
        assert "credit" in raised.value.hint
    assert len(empty.requests) == 1
    fallback = OpenAIFallback.model_validate(endpoint(spare, name="spare"))
    with stacked(OpenAIProvider.model_validate(endpoint(empty, fallbacks=[fallback]))) as (_, run):
        assert run.complete(request()).endpoint == "spare"
    assert len(empty.requests) == 2


def test_a_dead_provider_costs_a_few_attempts_and_then_none_until_it_is_tried_again(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    main, spare = start_server({"plan": Failure(503)}), start_server({"plan": ANSWER})
    fallback = OpenAIFallback.model_validate(endpoint(spare, name="spare", model="of-the-spare"))
    given = endpoint(main, breaker={"failures": 5, "open_seconds": 3600}, fallbacks=[fallback])
    heard = Heard()
    with stacked(OpenAIProvider.model_validate(given), emit=heard) as (endpoints, run):
        answers = at_once(run, 10) + [run.complete(request()) for _ in range(30)]
        assert {answer.endpoint for answer in answers} == {"spare"}
        assert len(main.requests) <= 5 + 10
        assert {asked.body["model"] for asked in spare.requests} == {"of-the-spare"}
        (told,) = heard.of(FallbackUsed)
        assert isinstance(told, FallbackUsed)
        assert (told.failed, told.endpoint) == ("openai", "spare")
        main.script["plan"] = ANSWER
        state = next(iter(endpoints)).state
        assert state is not None
        monkeypatch.setattr(state, "_clock", lambda: time.monotonic() + 3600)
        asked = len(main.requests)
        assert [run.complete(request()).endpoint for _ in range(5)] == ["openai"] * 5
        assert len(main.requests) == asked + 5


@pytest.mark.slow
def test_a_dead_provider_alone_is_left_alone_too_once_a_call_has_used_up_its_attempts(
    openai_server: OpenAIServer,
) -> None:
    openai_server.script["plan"] = Failure(500)
    given = endpoint(openai_server, patience_seconds=0)
    with stacked(OpenAIProvider.model_validate(given)) as (_, run):
        kinds: list[type[BaseException]] = []
        end = time.monotonic() + 60
        while CircuitOpen not in kinds and time.monotonic() < end:
            with pytest.raises(Exception, match="500") as raised:
                run.complete(request())
            kinds.append(raised.type)
        asked = len(openai_server.requests)
        with pytest.raises(CircuitOpen):
            run.complete(request())
    assert kinds[0] is not CircuitOpen
    assert len(openai_server.requests) == asked


def test_a_moment_of_failure_is_survived_by_calls_side_by_side(openai_server: OpenAIServer) -> None:
    until = time.monotonic() + 0.1
    openai_server.script["plan"] = lambda _: (
        Failure(500) if time.monotonic() < until else Completion(ANSWER)
    )
    retry = {"initial_seconds": 0.1, "jitter_seconds": 0.05}
    with stacked(OpenAIProvider.model_validate(endpoint(openai_server, retry=retry))) as (_, run):
        assert len(at_once(run, 20)) == 20


def test_connections_that_are_reset_are_tried_again(openai_server: OpenAIServer) -> None:
    lock, number = threading.Lock(), [0]

    def answer(_: Received) -> Answer:
        with lock:
            number[0] += 1
            return Failure(reset=True) if number[0] % 3 == 0 else ANSWER

    openai_server.script["plan"] = answer
    retry = {"initial_seconds": 0, "jitter_seconds": 0, "attempts": 10}
    with stacked(OpenAIProvider.model_validate(endpoint(openai_server, retry=retry))) as (
        endpoints,
        run,
    ):
        assert len(at_once(run, 20)) == 20
        assert slots(endpoints) == 128
    assert len(openai_server.requests) <= 40


def test_a_provider_that_is_busy_for_ever_is_not_asked_by_all_runs(
    start_server: StartServer,
) -> None:
    main, spare = start_server({"plan": Failure(429)}), start_server({"plan": ANSWER})
    fallback = OpenAIFallback.model_validate(endpoint(spare, name="spare"))
    with stacked(OpenAIProvider.model_validate(endpoint(main, fallbacks=[fallback]))) as (
        endpoints,
        first,
    ):
        assert [first.complete(request()).endpoint for _ in range(6)] == ["spare"] * 6
        heard = Heard()
        second = stack.run_stack(endpoints, limits=LimitSettings(), emit=heard)
        assert {answer.endpoint for answer in at_once(second, 10)} == {"spare"}
    assert len(main.requests) == 3
    [told] = heard.of(FallbackUsed)
    assert isinstance(told, FallbackUsed)
    assert (told.failed, told.endpoint) == ("openai", "spare")
    assert "not asked" in told.error


@pytest.mark.slow
def test_calls_side_by_side_leave_a_busy_provider_together(start_server: StartServer) -> None:
    main, spare = (
        start_server({"plan": Failure(429, headers={"Retry-After": "1"})}),
        start_server({"plan": ANSWER}),
    )
    fallback = OpenAIFallback.model_validate(endpoint(spare, name="spare"))
    began = time.monotonic()
    with stacked(OpenAIProvider.model_validate(endpoint(main, fallbacks=[fallback]))) as (_, run):
        assert {answer.endpoint for answer in at_once(run, 20)} == {"spare"}
    assert len(main.requests) < 3 * 20
    assert time.monotonic() - began < SOON


def test_a_dead_port_falls_back_without_waiting(start_server: StartServer) -> None:
    spare = start_server({"plan": ANSWER})
    fallback = OpenAIFallback.model_validate(endpoint(spare))
    given = {**endpoint(spare), "base_url": "http://127.0.0.1:9/v1", "fallbacks": [fallback]}
    with stacked(OpenAIProvider.model_validate(given)) as (_, run):
        assert {answer.endpoint for answer in at_once(run, 20)} == {"openai-2"}
    alone = OpenAIProvider.model_validate({**given, "fallbacks": []})
    with stacked(alone) as (_, run), pytest.raises(ConnectionFailed):
        run.complete(request())


def test_requests_keep_to_the_rate_and_waiting_ends_with_the_run(
    openai_server: OpenAIServer,
) -> None:
    openai_server.script["plan"] = ANSWER
    stopped = threading.Event()
    provider = OpenAIProvider.model_validate(endpoint(openai_server, requests_per_minute=5))
    with stacked(provider, stop=stopped.is_set) as (_, run), ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(run.complete, request()) for _ in range(8)]
        wait_for(lambda: len(openai_server.requests) >= 5)
        time.sleep(0.1)
        stopped.set()
        outcomes = [type(future.exception(SOON)) for future in asked]
    assert outcomes.count(StopRequested) == 3
    assert len(openai_server.requests) == 5


class LateRefusals(AbleServer):
    """Takes its time before it refuses."""

    def answer(self, body: Any, headers: Any) -> Answer:
        time.sleep(0.2)
        return super().answer(body, headers)


def test_runs_of_one_process_share_what_is_known_of_a_server(start_server: StartServer) -> None:
    main, spare = start_server({"plan": Failure(503)}), start_server({"plan": ANSWER})
    fallback = OpenAIFallback.model_validate(endpoint(spare))
    with stacked(OpenAIProvider.model_validate(endpoint(main, fallbacks=[fallback]))) as (
        endpoints,
        first,
    ):
        for _ in range(3):
            first.complete(request())
        asked = len(main.requests)
        second = stack.run_stack(endpoints, limits=LimitSettings())
        for _ in range(3):
            second.complete(request())
        assert len(main.requests) == asked
        assert (first.spent.calls, second.spent.calls) == (3, 3)
