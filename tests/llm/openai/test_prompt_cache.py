"""Prompts marked for the provider's cache: what a server is sent, what it bills, and what a refusal costs."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import genai_prices
import pytest

from aeon import Aeon
from aeon.domain.request import LLMRequest, Message
from aeon.llm.openai.adapter import OpenAIAdapter
from aeon.llm.protocols import OfRun
from aeon.llm.settings import OpenAIProvider
from tests.support.caching_server import CachingServer, marked_places
from tests.support.openai_server import Failure, error
from tests.support.requests import request

MODEL = "gpt-5.6-sol"
LONG = "What stays the same in all calls of a run. " * 120
Refuse = Callable[[Mapping[str, Any]], Failure | None]


def asked(question: str = "Why?") -> LLMRequest:
    content = LONG + question
    messages = Message("system", "Be brief."), Message("user", content, (len(LONG),))
    return request("step", messages=messages)


def connect(server: CachingServer, **given: Any) -> OpenAIAdapter:
    settings = {"base_url": server.url, "model": MODEL, "prompt_cache": "openai", **given}
    return OpenAIAdapter(OpenAIProvider(**settings))


def texts_marked(body: Mapping[str, Any]) -> bool:
    return bool(marked_places(body))


def test_the_second_request_reads_what_the_first_has_written_and_usage_says_both() -> None:
    with CachingServer({"step": {"answer": "x"}}) as server:
        adapter = connect(server)
        first = adapter.complete(asked("Why?")).usage
        second = adapter.complete(asked("How?")).usage
        adapter.close()
    assert (first.cached_tokens, second.cache_write_tokens) == (0, 0)
    assert first.cache_write_tokens == second.cached_tokens > 1024
    assert second.input_tokens > second.cached_tokens


@pytest.mark.parametrize("marks", ["openai", "anthropic"])
def test_calls_of_a_run_share_a_key_where_the_server_has_keys(marks: str) -> None:
    with CachingServer({"step": {"answer": "x"}}) as server:
        adapter = connect(server, prompt_cache=marks)
        for run_id in ("one", "one", "two", None):
            OfRun(adapter, run_id).complete(asked())
        adapter.close()
    keys = [received.body.get("prompt_cache_key") for received in server.requests]
    assert keys == (["one", "one", "two", None] if marks == "openai" else [None] * 4)
    assert all(texts_marked(received.body) for received in server.requests)


def refuse_naming(*fields: str) -> Refuse:
    """A server that names the fields that it does not know."""

    def refuse(body: Mapping[str, Any]) -> Failure | None:
        parts = [part for message in body["messages"] for part in message["content"]]
        sent = {*body, *(key for part in parts if isinstance(part, dict) for key in part)}
        named = [field for field in fields if field in sent]
        return error(400, f"Unknown parameter: '{named[0]}'.") if named else None

    return refuse


def refuse_parts(body: Mapping[str, Any]) -> Failure | None:
    """A server that takes messages in one piece alone, and says so as pydantic does."""
    places = [
        {"loc": ["body", "messages", number, "content"], "msg": "Input should be a valid string"}
        for number, message in enumerate(body["messages"])
        if isinstance(message["content"], list)
    ]
    return Failure(422, body={"detail": places}) if places else None  # type: ignore[dict-item]


def refuse_vaguely(body: Mapping[str, Any]) -> Failure | None:
    """A server that says nothing of what it refuses."""
    return error(400, "Invalid request") if texts_marked(body) else None


@pytest.mark.parametrize(
    "refuse",
    [
        refuse_naming("prompt_cache_breakpoint"),
        refuse_naming("prompt_cache_key", "prompt_cache_options", "prompt_cache_breakpoint"),
        refuse_parts,
        refuse_vaguely,
    ],
)
def test_a_server_that_refuses_marks_is_sent_none_after_one_refusal(refuse: Refuse) -> None:
    with CachingServer({"step": {"answer": "x"}}, refuse=refuse) as server:
        adapter = connect(server)
        for _ in range(3):
            assert OfRun(adapter, "run").complete(asked()).text == '{"answer": "x"}'
        findings = [str(finding) for finding in adapter.findings()]
        adapter.close()
    assert len(server.refused) == 1
    assert [texts_marked(received.body) for received in server.requests] == [False] * 3
    assert not {"prompt_cache_key", "prompt_cache_options"} & server.requests[0].body.keys()
    assert findings == [
        "openai, model gpt-5.6-sol: takes no prompt_cache: it is left out from now on; "
        "provider.prompt_cache=off skips the trial"
    ]


def test_a_server_that_refuses_the_options_alone_is_sent_marks_without_them() -> None:
    refuse = refuse_naming("prompt_cache_options")
    with CachingServer({"step": {"answer": "x"}}, refuse=refuse) as server:
        adapter = connect(server)
        for _ in range(2):
            adapter.complete(asked())
        adapter.close()
    assert len(server.refused) == 1
    assert all(texts_marked(received.body) for received in server.requests)
    assert all("prompt_cache_options" not in received.body for received in server.requests)


def test_a_refusal_of_something_else_costs_no_marks() -> None:
    def refuse(body: Mapping[str, Any]) -> Failure | None:
        named = "Unsupported parameter: 'temperature' is not supported with this model."
        return error(400, named) if "temperature" in body else None

    with CachingServer({"step": {"answer": "x"}}, refuse=refuse) as server:
        adapter = connect(server, temperature=0.5)
        adapter.complete(asked())
        adapter.close()
    assert len(server.refused) == 1
    assert texts_marked(server.requests[0].body)


def test_a_run_costs_what_the_published_prices_say_writes_included(tmp_path: Path) -> None:
    """A run whose input is long enough to be cached, with its server's usage priced by hand."""
    thousand = 1_000
    rate = {
        "input": price(input_tokens=thousand),
        "output": price(output_tokens=thousand),
        "cached": price(input_tokens=thousand, cache_read_tokens=thousand),
        "cache_write": price(input_tokens=thousand, cache_write_tokens=thousand),
    }
    priced = ", ".join(f"{name}: {value * 1_000}" for name, value in rate.items())
    with CachingServer({"direct": {"working": "", "answer": "done"}}) as server:
        overrides = [
            "provider=openai",
            f"provider.base_url={server.url}",
            f"provider.model={MODEL}",
            "provider.prompt_cache=openai",
            f"provider.prices={{{MODEL}: {{{priced}}}}}",
            "mode=single",
            "execution.samples=3",
            "execution.max_parallel=1",
            "progress=none",
        ]
        with Aeon.from_config(overrides, environ={"OPENAI_API_KEY": "k"}) as aeon:
            result = aeon.run(LONG)
    usage = result.usage.total
    assert usage.cache_write_tokens == sum(bill.written for bill in server.bills) > 0
    assert usage.cached_tokens == sum(bill.read for bill in server.bills) > 0
    published = sum(
        price(
            input_tokens=bill.tokens,
            cache_read_tokens=bill.read,
            cache_write_tokens=bill.written,
            output_tokens=20,
        )
        for bill in server.bills
    )
    assert usage.cost == pytest.approx(published, rel=1e-9)
    assert {received.body["prompt_cache_key"] for received in server.requests} == {result.run_id}


def price(**usage: int) -> float:
    """What usage costs at OpenAI by the published prices."""
    counted = genai_prices.Usage(**usage)
    return float(genai_prices.calc_price(counted, MODEL, provider_id="openai").total_price)


@pytest.mark.parametrize("marks", ["openai", "anthropic"])
def test_a_server_that_took_what_had_no_marks_may_refuse_the_first_that_has(marks: str) -> None:
    script = {"step": {"answer": "x"}, "plan": {"answer": "x"}}
    with CachingServer(script, refuse=refuse_vaguely) as server:
        adapter = connect(server, prompt_cache=marks)
        for each in (request("step"), request("plan"), asked()):
            assert adapter.complete(each).text == '{"answer": "x"}'
        adapter.close()
    assert len(server.refused) == 1
