"""Parameters that a model does not take: known from the table, or found out from what the server says."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

from aeon.config.load import compose
from aeon.domain.errors import RequestRefused, Truncated
from aeon.domain.request import Parameters, Usage
from aeon.llm.dialects.model_rules import find_rule, fit_parameters
from aeon.llm.settings import EndpointSettings, ModelRule
from tests.llm.openai.test_negotiation import Start, start
from tests.support.openai_server import Completion, Failure
from tests.support.requests import request

__all__ = ["start"]

ASKED = {"temperature": 0.5, "max_tokens": 100, "effort": "low"}


def sent(body: Mapping[str, Any]) -> dict[str, Any]:
    names = ("temperature", "max_tokens", "max_completion_tokens", "reasoning_effort")
    return {name: body[name] for name in names if name in body}


@cache
def rules_of(preset: str) -> tuple[ModelRule, ...]:
    provider = compose([f"provider={preset}"]).provider
    assert isinstance(provider, EndpointSettings)
    return provider.models


@pytest.mark.parametrize(
    ("provider", "model", "given", "fits"),
    [
        ("openai", "o3-mini", (0.5, "minimal"), (None, "low")),
        ("openai", "o1", (0.5, "xhigh"), (None, "high")),
        ("openai", "o1-mini", (0.5, "low"), (None, None)),
        ("openai", "gpt-5-mini", (0.5, "none"), (None, "minimal")),
        ("openai", "gpt-5", (None, "xhigh"), (None, "high")),
        ("openai", "gpt-5-pro", (None, "low"), (None, "high")),
        ("openai", "gpt-5.1", (0.5, "none"), (0.5, "none")),
        ("openai", "gpt-5.1", (0.5, "medium"), (None, "medium")),
        ("openai", "gpt-5.2", (0.5, None), (0.5, None)),
        ("openai", "gpt-5.2-2025-12-11", (0.5, "minimal"), (None, "low")),
        ("openai", "gpt-5-chat-latest", (0.5, "low"), (0.5, "low")),
        ("openai", "gpt-4o-mini", (0.5, "low"), (0.5, None)),
        ("azure", "gpt-4.1", (0.5, "high"), (0.5, None)),
        ("azure", "my-deployment", (0.5, "high"), (0.5, "high")),
        ("openai", "ft/openai/o3", (0.5, "low"), (None, "low")),
        ("openai", "qwen3", (0.5, "xhigh"), (0.5, "xhigh")),
        ("openai", "o300", (0.5, "low"), (0.5, "low")),
        ("vllm", "gpt-5", (0.5, "low"), (0.5, "low")),
        ("mistral", "mistral-medium-latest", (0.5, "low"), (0.5, None)),
        ("anthropic", "claude-sonnet-4-6", (0.5, "high"), (0.5, None)),
        ("ollama", "gpt-oss:20b", (0.5, "xhigh"), (0.5, "high")),
        ("ollama", "llama3.1", (0.5, "medium"), (0.5, None)),
        ("ollama", "hf.co/bartowski/Llama-3.2-3B-Instruct-GGUF", (0.5, "medium"), (0.5, None)),
        ("ollama", "qwen3:8b", (0.5, "medium"), (0.5, "medium")),
        ("groq", "openai/gpt-oss-120b", (0.5, "minimal"), (0.5, "low")),
        ("groq", "llama-3.3-70b-versatile", (0.5, "medium"), (0.5, None)),
        ("gemini", "gemini-2.0-flash", (0.5, "medium"), (0.5, None)),
        ("gemini", "gemini-flash-latest", (0.5, "xhigh"), (0.5, "high")),
        ("openrouter", "meta-llama/llama-3.1-8b-instruct", (0.5, "medium"), (0.5, "medium")),
    ],
)
def test_the_table_fits_parameters_to_a_model(
    provider: str,
    model: str,
    given: tuple[float | None, str | None],
    fits: tuple[float | None, str | None],
) -> None:
    fitted, _ = fit_parameters(
        find_rule(rules_of(provider), model), Parameters(temperature=given[0], effort=given[1])
    )
    assert (fitted.temperature, fitted.effort) == fits


def test_a_person_is_told_of_what_the_table_changes_but_not_of_an_effort_for_a_model_that_has_none() -> (
    None
):
    _, changed = fit_parameters(
        find_rule(rules_of("openai"), "o3"), Parameters(temperature=0.5, effort="none")
    )
    assert list(changed) == ["reasoning_effort", "temperature"]
    without_effort = find_rule(rules_of("openai"), "gpt-4.1")
    assert fit_parameters(without_effort, Parameters(temperature=0.5, effort="low"))[1] == {}


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({}, "max_completion_tokens"),
        ({"name": "unheard-of"}, "max_completion_tokens"),
        ({"max_tokens_parameter": "max_completion_tokens"}, "max_completion_tokens"),
        ({"max_tokens_parameter": "max_tokens"}, "max_tokens"),
    ],
)
def test_the_limit_of_tokens_goes_by_the_name_that_is_set_or_the_providers(
    settings: dict[str, Any], name: str, start: Start
) -> None:
    server, adapter = start({"max_tokens": 7, **settings})
    adapter.complete(request())
    assert sent(server.bodies[0]) == {name: 7}


def openai_says(name: str) -> Failure:
    said = {
        "message": f"Unsupported parameter: '{name}'.",
        "param": name,
        "code": "unsupported_parameter",
    }
    return Failure(400, body={"error": said})


def value_refused(name: str) -> Failure:
    said = {
        "message": f"'{name}' does not support 0.5 with this model.",
        "param": name,
        "code": "unsupported_value",
    }
    return Failure(400, body={"error": said})


def validation_says(name: str) -> Failure:
    detail = [
        {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}
    ]
    return Failure(422, body={"detail": detail})


def plain_text_says(name: str) -> Failure:
    return Failure(400, body={"error": f"unknown field: `{name}`"})


@pytest.mark.parametrize("says", [openai_says, value_refused, validation_says, plain_text_says])
def test_what_a_server_refuses_by_name_is_left_out_remembered_and_said_once(
    says: Any, start: Start
) -> None:
    server, adapter = start(
        dict(ASKED), refuses={name: says(name) for name in ("temperature", "reasoning_effort")}
    )
    for _ in range(2):
        adapter.complete(request())
    assert [sorted(sent(body)) for body in server.bodies] == [
        ["max_completion_tokens", "reasoning_effort", "temperature"],
        ["max_completion_tokens", "reasoning_effort"],
        ["max_completion_tokens"],
        ["max_completion_tokens"],
    ]
    assert set(server.forms_asked) == {"json_schema"}
    assert [finding.about for finding in adapter.findings()] == ["reasoning_effort", "temperature"]


def test_a_limit_of_tokens_is_not_dropped_but_called_by_its_other_name(start: Start) -> None:
    said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    refusal = Failure(
        400,
        body={"error": {"message": said, "param": "max_tokens", "code": "unsupported_parameter"}},
    )
    server, adapter = start(
        {"max_tokens": 7, "max_tokens_parameter": "max_tokens"}, refuses={"max_tokens": refusal}
    )
    for _ in range(2):
        adapter.complete(request())
    assert [sent(body) for body in server.bodies] == [
        {"max_tokens": 7},
        {"max_completion_tokens": 7},
        {"max_completion_tokens": 7},
    ]


def of_tokens(written: int) -> Completion:
    return Completion({"answer": "x"}, usage={"prompt_tokens": 100, "completion_tokens": written})


def cut(written: int, prompt: int = 100, reason: str = "length") -> Completion:
    return Completion(
        '{"answer": "bec',
        finish_reason=reason,
        usage={"prompt_tokens": prompt, "completion_tokens": written},
    )


def test_an_answer_that_is_cut_off_far_below_the_limit_says_what_may_be_the_reason(
    start: Start,
) -> None:
    server, adapter = start({"max_tokens": 900})
    server.script = {"plan": cut(16)}
    with pytest.raises(Truncated) as raised:
        adapter.complete(request())
    assert "its context is full" in raised.value.hint
    assert "provider.max_tokens_parameter" in raised.value.hint


def test_an_answer_cut_off_far_below_the_limit_is_asked_for_by_the_limits_other_name(
    start: Start,
) -> None:
    server, adapter = start({"max_tokens": 900})
    server.script = {"plan": [cut(16), of_tokens(400), of_tokens(7)]}
    assert adapter.complete(request()).usage == Usage(200, 416, requests=2)
    adapter.complete(request())
    names = [sorted(sent(body)) for body in server.bodies]
    assert names == [["max_completion_tokens"], ["max_tokens"], ["max_tokens"]]
    assert [finding.about for finding in adapter.findings()] == ["max_tokens"]


def test_a_server_that_cuts_off_by_either_name_is_asked_by_the_other_only_once(
    start: Start,
) -> None:
    server, adapter = start({"max_tokens": 900})
    server.script = {"plan": cut(16)}
    for _ in range(3):
        with pytest.raises(Truncated) as raised:
            adapter.complete(request())
    assert len(server.bodies) == 4
    assert "provider.max_tokens_parameter" in raised.value.hint
    assert adapter.findings() == ()


def test_a_limit_that_a_server_ignores_goes_by_its_other_name_from_then_on(start: Start) -> None:
    server, adapter = start({"max_tokens": 7})
    server.script = {"plan": [of_tokens(7), of_tokens(400), of_tokens(7), of_tokens(400)]}
    for _ in range(4):
        adapter.complete(request())
    names = [name for body in server.bodies for name in sent(body)]
    assert names == ["max_completion_tokens", "max_completion_tokens", "max_tokens", "max_tokens"]
    [finding] = adapter.findings()
    assert "ignores max_completion_tokens" in finding.message
    assert adapter.findings(only_new=True) == (finding,)
    assert adapter.findings(only_new=True) == ()


def test_an_answer_that_was_cut_off_shows_an_ignored_limit_too(start: Start) -> None:
    server, adapter = start({"max_tokens": 7})
    server.script = {"plan": [cut(400), of_tokens(7)]}
    with pytest.raises(Truncated):
        adapter.complete(request())
    adapter.complete(request())
    names = [name for body in server.bodies for name in sent(body)]
    assert names == ["max_completion_tokens", "max_tokens"]


def test_a_full_context_is_not_asked_again_by_the_limits_other_name(start: Start) -> None:
    server, adapter = start({"max_tokens": 900})
    server.script = {"plan": cut(16, reason="model_length")}
    with pytest.raises(Truncated):
        adapter.complete(request())
    assert len(server.bodies) == 1


def test_a_context_that_was_full_says_so(start: Start) -> None:
    server, adapter = start()
    server.script = {"plan": cut(77, reason="model_length")}
    with pytest.raises(
        Truncated, match="context is full: 100 tokens of prompt and these make 177"
    ) as raised:
        adapter.complete(request())
    assert "Raise provider.max_tokens" not in raised.value.hint


def test_an_answer_that_is_cut_off_at_the_limit_asks_for_a_higher_one(start: Start) -> None:
    server, adapter = start({"max_tokens": 400})
    server.script = {"plan": cut(400)}
    with pytest.raises(Truncated) as raised:
        adapter.complete(request())
    assert raised.value.hint.startswith("Raise provider.max_tokens")
    assert len(server.bodies) == 1


def test_a_limits_name_that_a_person_has_set_stays(start: Start) -> None:
    server, adapter = start({"max_tokens": 7, "max_tokens_parameter": "max_completion_tokens"})
    server.script = {"plan": of_tokens(400)}
    for _ in range(2):
        adapter.complete(request())
    assert [sent(body) for body in server.bodies] == [{"max_completion_tokens": 7}] * 2


def test_a_value_out_of_its_range_is_the_persons_to_correct(start: Start) -> None:
    said = {
        "message": "temperature must be at most 1",
        "param": "temperature",
        "code": "invalid_value",
    }
    server, adapter = start(
        {"temperature": 1.5}, refuses={"temperature": Failure(400, body={"error": said})}
    )
    with pytest.raises(RequestRefused, match="at most 1"):
        adapter.complete(request())
    assert len(server.bodies) == 1


def test_an_extra_field_of_the_persons_own_is_never_left_out(start: Start) -> None:
    server, adapter = start({"extra_body": {"top_k": 4}}, refuses={"top_k": openai_says("top_k")})
    with pytest.raises(RequestRefused, match="top_k"):
        adapter.complete(request())
    assert all("top_k" in body for body in server.bodies)
