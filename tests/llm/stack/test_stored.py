import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from aeon.domain.errors import (
    AeonError,
    AnswerError,
    EmptyAnswer,
    Filtered,
    ProviderError,
    Refused,
    ServerFailed,
    StopRequested,
    StoreFailed,
    StoreMiss,
    Truncated,
)
from aeon.domain.request import CallSite, LLMRequest, LLMResponse, Message, Parameters, Usage
from aeon.llm.settings import LocalProvider, OpenAIProvider, RetrySettings, SimulatedProvider
from aeon.llm.stack import stored
from aeon.llm.stack.build import run_stack
from aeon.llm.stack.limits import LimitSettings
from aeon.llm.stack.stored import Absent, Stored, reuse_scope, select_shaping_settings
from aeon.store.models import Entry
from aeon.store.opening import open_session, open_source
from aeon.store.session import Session
from aeon.store.settings import StoreSettings
from tests.support.timing import SOON

PROVIDER = OpenAIProvider(model="own-model", temperature=0.3)
REQUEST = LLMRequest(
    "step",
    (Message("system", "You work."), Message("user", "Make tea.")),
    {"type": "object"},
    site=CallSite(pass_number=2, phase="EXECUTE", cycle=7, sequence=40, step_id="boil"),
)
RESPONSE = LLMResponse(
    "done",
    Usage(100, 20, 50, 5, 2),
    "own-model-2026",
    "id-1",
    "stop",
    False,
    "backup",
    usage_reported=False,
)
Made = Callable[..., Stored]


class Model:
    """Gives one answer, or raises it."""

    def __init__(self, answer: LLMResponse | AeonError = RESPONSE) -> None:
        self.answer, self.requests = answer, list[LLMRequest]()

    def complete(self, request: LLMRequest) -> LLMResponse:
        self.requests.append(request)
        if isinstance(self.answer, AeonError):
            raise self.answer
        return self.answer


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[Callable[..., Session]]:
    """Sessions on one store each name, closed with the test."""
    made: list[Session] = []

    def session(mode: str = "record", name: str = "a", **more: Any) -> Session:
        path = tmp_path / name
        settings = StoreSettings(
            mode=mode, path=path if mode == "replay" else tmp_path / "shared.sqlite", **more
        )
        made.append(open_session(settings, directory=path))
        return made[-1]

    yield session
    for one in made:
        one.close()


def kept(path: Path) -> list[Entry]:
    source = open_source(path)
    try:
        return list(source.entries())
    finally:
        source.close()


def test_an_answer_comes_back_as_it_was_given_and_the_model_is_asked_once(sessions: Any) -> None:
    model = Model()
    assert Stored(model, sessions(), PROVIDER).complete(REQUEST) == RESPONSE
    assert Stored(Absent("x"), sessions("replay"), PROVIDER).complete(REQUEST) == RESPONSE
    assert model.requests == [REQUEST]


def test_what_is_asked_is_kept_as_it_is_in_force_with_the_place_that_asks(
    sessions: Any, tmp_path: Path
) -> None:
    asking = replace(REQUEST, parameters=Parameters(model="of-the-role", effort="high"))
    Stored(Model(), sessions(), OpenAIProvider(temperature=0.3, extra_body={"top_k": 5})).complete(
        asking
    )
    asked = kept(tmp_path / "a")[0].request
    assert asked.body == {
        "model": "of-the-role",
        "parameters": {"temperature": 0.3, "effort": "high"},
        "provider": {"extra_body": {"top_k": 5}},
        "sample": 0,
        "messages": [
            {"role": "system", "content": "You work."},
            {"role": "user", "content": "Make tea."},
        ],
        "strict": True,
        "schema": {"type": "object"},
    }
    path = asked.path
    assert (path.pass_number, path.phase, path.call, path.step_id, path.attempt) == (
        2,
        "EXECUTE",
        "step",
        "boil",
        0,
    )


@pytest.mark.parametrize(
    "other",
    [
        replace(REQUEST, parameters=Parameters(temperature=0.4)),
        replace(REQUEST, parameters=Parameters(model="another")),
        replace(REQUEST, messages=(Message("user", "Make coffee."),)),
        replace(REQUEST, schema={"type": "array"}),
        replace(REQUEST, strict=False),
        replace(REQUEST, sample=1),
        replace(REQUEST, call="convergence"),
        replace(REQUEST, site=replace(REQUEST.site, pass_number=3)),
        replace(REQUEST, site=replace(REQUEST.site, phase="RE_EXECUTE")),
        replace(REQUEST, site=replace(REQUEST.site, step_id="pour")),
        replace(REQUEST, site=replace(REQUEST.site, attempt=1)),
    ],
    ids=lambda request: repr(request)[:200],
)
def test_another_request_or_another_place_is_another_answer(
    sessions: Any, other: LLMRequest
) -> None:
    Stored(Model(), sessions(), PROVIDER).complete(REQUEST)
    with pytest.raises(StoreMiss):
        Stored(Absent("x"), sessions("replay"), PROVIDER).complete(other)


@pytest.mark.parametrize(
    "same",
    [
        replace(REQUEST, parameters=Parameters(model="own-model")),
        replace(REQUEST, parameters=Parameters(temperature=0.3)),
        replace(REQUEST, role="grader"),
        replace(REQUEST, site=replace(REQUEST.site, cycle=9, sequence=99, mode="deep")),
    ],
    ids=["the model said", "the temperature said", "role", "cycle"],
)
def test_what_changes_no_answer_changes_no_request(sessions: Any, same: LLMRequest) -> None:
    Stored(Model(), sessions(), PROVIDER).complete(REQUEST)
    assert Stored(Absent("x"), sessions("replay"), PROVIDER).complete(same) == RESPONSE


def test_where_and_how_often_a_provider_is_reached_is_no_part_of_what_it_is_asked() -> None:
    reached = OpenAIProvider(
        base_url="http://localhost:1/v1",
        api_key_env="OTHER",
        retry=RetrySettings(attempts=1),
        timeout_seconds=1,
    )
    assert select_shaping_settings(reached) == select_shaping_settings(OpenAIProvider()) == {}


def test_the_seed_and_the_content_of_a_scenario_shape_what_the_simulated_provider_answers(
    tmp_path: Path,
) -> None:
    scenario = tmp_path / "one.yaml"
    found = []
    for text in ("seed: 1\n", "seed: 1\n", "seed: 2\n"):
        scenario.write_text(text)
        found.append(select_shaping_settings(SimulatedProvider(seed=4, scenario=scenario)))
    assert found[0] == found[1] != found[2]
    assert found[0]["seed"] == 4
    assert (
        select_shaping_settings(LocalProvider(repo_id="owner/name", filename="m.gguf"))["repo_id"]
        == "owner/name"
    )
    with pytest.raises(StoreFailed, match="cannot be read"):
        select_shaping_settings(SimulatedProvider(scenario=tmp_path / "gone.yaml"))


@pytest.mark.parametrize("kind", [Truncated, Refused, Filtered, EmptyAnswer])
def test_an_answer_that_is_none_was_paid_for_and_is_raised_again(
    sessions: Any, kind: type[AnswerError]
) -> None:
    error = kind(
        "nothing there",
        hint="ask otherwise",
        usage=Usage(9, 8, requests=1),
        model="m-1",
        usage_reported=False,
    )
    with pytest.raises(kind) as first:
        Stored(Model(error), sessions(), PROVIDER).complete(REQUEST)
    assert first.value is error
    with pytest.raises(kind) as again:
        Stored(Absent("x"), sessions("replay"), PROVIDER).complete(REQUEST)
    assert vars(again.value) == vars(error)


def provider_errors(kind: type[ProviderError] = ProviderError) -> list[type[ProviderError]]:
    own = (below for below in kind.__subclasses__() if below.__module__ == kind.__module__)
    return [kind, *(found for below in own for found in provider_errors(below))]


@pytest.mark.parametrize("kind", provider_errors())
def test_a_failure_of_the_provider_is_given_to_a_replay_and_to_nobody_else(
    sessions: Any, tmp_path: Path, kind: type[ProviderError]
) -> None:
    error = kind("down", status=503, retry_after=2.5, hint="wait", usage=Usage(3, requests=2))
    error.endpoint = "backup"
    with pytest.raises(kind) as first:
        Stored(Model(error), sessions(), PROVIDER).complete(REQUEST)
    assert first.value is error
    with pytest.raises(kind) as again:
        Stored(Absent("x"), sessions("replay"), PROVIDER).complete(REQUEST)
    assert vars(again.value) == vars(error)
    parent = open_source(tmp_path / "a")
    resumed = open_session(StoreSettings(), directory=tmp_path / "b", parents=[parent])
    assert Stored(Model(), resumed, PROVIDER).complete(REQUEST) == RESPONSE
    assert resumed.saved == {}
    resumed.close()
    parent.close()


@pytest.mark.parametrize(
    "none",
    [
        Truncated("cut off"),
        replace(RESPONSE, finish_reason="length"),
        replace(RESPONSE, finish_reason="content_filter"),
        replace(RESPONSE, text=" \n"),
    ],
    ids=["error", "length", "filter", "empty"],
)
def test_a_cache_does_not_hold_other_runs_to_what_is_no_answer(sessions: Any, none: Any) -> None:
    for name, model in (("a", Model(none)), ("b", Model()), ("c", Model())):
        adapter = Stored(model, sessions("cache", name), PROVIDER)
        if isinstance(none, AeonError) and name == "a":
            with pytest.raises(Truncated):
                adapter.complete(REQUEST)
        else:
            assert adapter.complete(REQUEST) == (none if name == "a" else RESPONSE)
        assert len(model.requests) == (0 if name == "c" else 1)


def test_another_sample_is_another_answer_to_the_same_request(sessions: Any) -> None:
    models = [Model(replace(RESPONSE, text=str(number))) for number in range(3)]
    asked = [(0, models[0]), (1, models[1]), (0, models[2]), (1, models[2])]
    texts = [
        Stored(model, sessions("cache", f"run {n}"), PROVIDER, StoreSettings(sample=sample))
        .complete(REQUEST)
        .text
        for n, (sample, model) in enumerate(asked)
    ]
    assert texts == ["0", "1", "0", "1"]
    assert models[2].requests == []


@pytest.mark.slow
def test_a_replayed_answer_takes_its_time_side_by_side_and_one_that_is_recorded_does_not(
    sessions: Any,
) -> None:
    steps = [
        replace(REQUEST, site=replace(REQUEST.site, step_id=f"s{number}")) for number in range(40)
    ]
    began = monotonic()
    for step in steps:
        Stored(Model(), sessions(), PROVIDER, StoreSettings(pace_seconds=60)).complete(step)
    assert monotonic() - began < SOON
    replayed = Stored(Absent("x"), sessions("replay"), PROVIDER, StoreSettings(pace_seconds=1))
    threads = [threading.Thread(target=replayed.complete, args=(step,)) for step in steps]
    began = monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 <= monotonic() - began < SOON


def test_a_pace_ends_when_the_run_is_asked_to_stop(sessions: Any) -> None:
    Stored(Model(), sessions(), PROVIDER).complete(REQUEST)
    asked = threading.Event()
    threading.Timer(0.1, asked.set).start()
    began = monotonic()
    pace = StoreSettings(pace_seconds=60)
    replayed = Stored(Absent("x"), sessions("replay"), PROVIDER, pace, stop=asked.is_set)
    with pytest.raises(StopRequested):
        replayed.complete(REQUEST)
    assert monotonic() - began < SOON


def test_in_the_place_of_a_provider_nothing_answers() -> None:
    with pytest.raises(AeonError, match=r"store\.mode=replay calls no model"):
        Absent("some-model").complete(REQUEST)
    assert Absent("some-model").model == "some-model"


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"text": "t", "usage": {"input_tokens": "many"}},
        {"error": "Refused"},
        {"text": "t", "usage": 3},
    ],
)
def test_an_answer_that_cannot_be_read_is_told(answer: dict[str, Any]) -> None:
    with pytest.raises(StoreFailed, match="cannot be read"):
        stored.response(answer)


def test_what_a_newer_aeon_adds_to_an_answer_is_passed_over() -> None:
    assert stored.response({"text": "t", "usage": {}, "mood": "good"}) == LLMResponse("t")
    assert reuse_scope({"text": "t", "finish_reason": "stop"}) == "anywhere"


def test_in_the_stack_the_store_is_within_the_limits_and_outside_of_retries(sessions: Any) -> None:
    class Flaky(Model):
        def complete(self, request: LLMRequest) -> LLMResponse:
            self.requests.append(request)
            if len(self.requests) == 1:
                raise ServerFailed("once", usage=Usage(1, requests=1))
            return RESPONSE

    def stack(adapter: Any, session: Session) -> Any:
        settings = {
            "limits": LimitSettings(max_llm_calls=1),
            "retry": RetrySettings(initial_seconds=0, jitter_seconds=0),
        }
        return run_stack(adapter, **settings, session=session, provider=PROVIDER)

    first = stack(Flaky(), sessions()).complete(REQUEST)
    assert first.usage == RESPONSE.usage + Usage(1, requests=1)
    replaying = stack(Absent("own-model"), sessions("replay"))
    assert replaying.complete(REQUEST) == first
    assert replaying.spent.calls == 1
    with pytest.raises(AeonError, match="max_llm_calls"):
        replaying.complete(REQUEST)
