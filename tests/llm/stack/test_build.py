"""The stack: which adapter a provider gets, and the order of a run's wrappers."""

import pytest

from aeon.app.process import process_stack
from aeon.domain.errors import ConfigError, LimitReached, ServerFailed
from aeon.domain.events import Event
from aeon.domain.request import CallSite, LLMAdapter
from aeon.llm.openai.adapter import OpenAIAdapter
from aeon.llm.protocols import close
from aeon.llm.settings import OpenAIProvider, Price, RetrySettings, SimulatedProvider
from aeon.llm.stack import build as stack
from aeon.llm.stack.limits import LimitSettings
from tests.support.openai_server import Completion, Failure, OpenAIServer
from tests.support.requests import request

FAST = RetrySettings(initial_seconds=0, jitter_seconds=0)


def openai_adapter(server: OpenAIServer, **settings: object) -> LLMAdapter:
    provider = OpenAIProvider.model_validate({"base_url": server.url, "model": "m", **settings})
    return process_stack(provider, {"OPENAI_API_KEY": "k", "TEAM": "blue"})


def test_the_key_and_secret_headers_come_from_the_variables_that_the_settings_name(
    openai_server: OpenAIServer,
) -> None:
    openai_server.script["plan"] = {"answer": "x"}
    provider = OpenAIProvider(
        base_url=openai_server.url, api_key_env="MY_KEY", extra_headers_env={"X-Team": "TEAM"}
    )
    adapter = process_stack(
        provider, {"MY_KEY": " sk-1\n", "TEAM": "blue", "OPENAI_API_KEY": "another"}
    )
    adapter.complete(request())
    close(adapter)
    headers = openai_server.requests[0].headers
    assert (headers["authorization"], headers["x-team"]) == ("Bearer sk-1", "blue")


def test_the_address_comes_from_the_environment_unless_it_is_configured(
    openai_server: OpenAIServer,
) -> None:
    openai_server.script["plan"] = {"answer": "x"}
    environ = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": openai_server.url}
    adapter = process_stack(OpenAIProvider(), environ)
    adapter.complete(request())
    close(adapter)
    assert openai_server.names == ["plan"]
    elsewhere = process_stack(OpenAIProvider(base_url="http://localhost:1/v1"), environ)
    assert "localhost:1" in repr(next(iter(elsewhere)).adapter)


@pytest.mark.parametrize("environ", [{}, {"MY_KEY": ""}, {"MY_KEY": "  "}, {"OPENAI_API_KEY": "k"}])
def test_a_missing_key_is_named(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="MY_KEY") as raised:
        process_stack(OpenAIProvider(api_key_env="MY_KEY"), environ)
    assert "provider=simulated" in raised.value.hint


def test_a_server_without_keys_needs_none() -> None:
    adapter = process_stack(OpenAIProvider(require_key=False, base_url="http://localhost:1/v1"), {})
    assert [type(endpoint.adapter) for endpoint in adapter] == [OpenAIAdapter]


def test_a_missing_header_variable_is_named() -> None:
    provider = OpenAIProvider(extra_headers_env={"X-A": "HEADER_A", "X-B": "HEADER_B"})
    with pytest.raises(ConfigError, match="X-B=HEADER_B: the environment has no HEADER_B"):
        process_stack(provider, {"OPENAI_API_KEY": "k", "HEADER_A": "a"})


def test_the_simulated_provider_gets_its_adapter() -> None:
    adapter = process_stack(SimulatedProvider(), {})
    assert isinstance(adapter, LLMAdapter)
    assert adapter.complete(request("task_profile")).synthetic


def test_retries_are_inside_the_limits_and_count_as_one_call(openai_server: OpenAIServer) -> None:
    openai_server.script["plan"] = [Failure(500), Failure(500), {"answer": "x"}]
    adapter = openai_adapter(openai_server)
    told: list[Event] = []

    def emit(event: Event, site: CallSite | None = None) -> None:
        told.append(event)

    run = stack.run_stack(adapter, limits=LimitSettings(max_llm_calls=1), retry=FAST, emit=emit)
    assert run.complete(request()).text == '{"answer": "x"}'
    assert (run.spent.calls, len(openai_server.requests), len(told)) == (1, 3, 2)
    with pytest.raises(LimitReached):
        run.complete(request())
    close(adapter)
    assert len(openai_server.requests) == 3


def test_calls_that_name_no_model_are_priced_as_the_providers(openai_server: OpenAIServer) -> None:
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 1}
    openai_server.script["plan"] = Completion({"answer": "x"}, usage=usage)
    adapter = openai_adapter(openai_server, model="m", prices={"m": Price(input=3, output=0)})
    run = stack.run_stack(adapter, limits=LimitSettings(max_cost=100), retry=FAST)
    run.complete(request())
    close(adapter)
    assert run.spent.cost == pytest.approx(3.0)


def test_runs_share_an_adapter_and_not_their_limits(openai_server: OpenAIServer) -> None:
    openai_server.script["plan"] = {"answer": "x"}
    adapter = openai_adapter(openai_server)
    for _ in range(2):
        run = stack.run_stack(adapter, limits=LimitSettings(max_llm_calls=1), retry=FAST)
        assert run.complete(request()).text == '{"answer": "x"}'
    close(adapter)


def test_a_run_that_is_stopped_retries_no_more(openai_server: OpenAIServer) -> None:
    openai_server.script["plan"] = Failure(500)
    adapter = openai_adapter(openai_server)
    run = stack.run_stack(adapter, limits=LimitSettings(), retry=FAST, stop=lambda: True)
    with pytest.raises(Exception, match="stopped before attempt 2"):
        run.complete(request())
    close(adapter)
    assert len(openai_server.requests) == 1


def test_the_last_failure_comes_out_of_the_whole_stack(openai_server: OpenAIServer) -> None:
    openai_server.script["plan"] = Failure(500)
    adapter = openai_adapter(openai_server)
    run = stack.run_stack(adapter, limits=LimitSettings(), retry=FAST)
    with pytest.raises(ServerFailed, match="3 attempts"):
        run.complete(request())
    close(adapter)
    assert len(openai_server.requests) == 3


def test_closing_an_adapter_that_holds_nothing_is_no_error() -> None:
    class Plain:
        complete = None

    close(Plain())
