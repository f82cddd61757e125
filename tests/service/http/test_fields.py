"""What becomes of each field of the requests of OpenAI's interface."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsBase,
    CompletionCreateParamsStreaming,
)
from openai.types.responses.response_create_params import (
    ResponseCreateParamsBase,
    ResponseCreateParamsStreaming,
)

import aeon
from aeon.service.http.errors import ApiError
from aeon.service.http.fields import CHAT, RESPONSES, Fields
from tests.service.http.conftest import Start

KINDS = {
    "chat": (CHAT, CompletionCreateParamsBase, CompletionCreateParamsStreaming),
    "responses": (RESPONSES, ResponseCreateParamsBase, ResponseCreateParamsStreaming),
}
ASKS_FOR_MORE: dict[str, Any] = {
    "audio": {"voice": "alloy", "format": "wav"},
    "background": "yes",
    "conversation": "conv_1",
    "function_call": {"name": "f"},
    "functions": [{"name": "f"}],
    "include": ["message.output_text.logprobs"],
    "logit_bias": {"50256": -100},
    "logprobs": True,
    "max_tool_calls": 3,
    "modalities": ["text", "audio"],
    "moderation": {"model": "m"},
    "n": 2,
    "previous_response_id": "resp_1",
    "prompt": {"id": "pmpt_1"},
    "stop": ["\n"],
    "stream": 1,
    "tool_choice": "required",
    "tools": [{"type": "function"}],
    "top_logprobs": 2,
    "web_search_options": {},
}
ASKS_FOR_NOTHING: dict[str, Any] = {
    "background": False,
    "functions": [],
    "include": ["reasoning.encrypted_content"],
    "logit_bias": {},
    "logprobs": False,
    "modalities": ["text"],
    "n": 1,
    "stop": None,
    "stream": False,
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_the_client_is_decided_once(kind: str):
    fields, *types = KINDS[kind]
    known = set().union(*(each.__annotations__ for each in types))
    decided = [*fields.read, *fields.left_out, *fields.refused]
    assert len(decided) == len(set(decided))
    assert known <= set(decided), "fields that are decided by nobody"
    assert fields.flags <= fields.read


def list_values(values: dict[str, Any]) -> list[Any]:
    """Each value with the kinds of request that have its field."""
    return [
        pytest.param(fields, name, value, id=f"{kind}-{name}")
        for kind, (fields, *_) in KINDS.items()
        for name, value in values.items()
        if name in fields.refused or name in fields.flags
    ]


@pytest.mark.parametrize(("fields", "name", "value"), list_values(ASKS_FOR_MORE))
def test_what_a_run_does_not_do_is_refused_by_its_name(fields: Fields, name: str, value: Any):
    with pytest.raises(ApiError) as refused:
        fields.check({"model": "aeon", name: value})
    assert refused.value.status == 400
    assert refused.value.param == name
    assert refused.value.message.startswith(name)


@pytest.mark.parametrize(("fields", "name", "value"), list_values(ASKS_FOR_NOTHING))
def test_what_asks_for_nothing_is_taken(fields: Fields, name: str, value: Any):
    fields.check({"model": "aeon", name: value})
    fields.check({"model": "aeon", name: None})


@pytest.mark.parametrize("fields", [CHAT, RESPONSES])
def test_each_refused_field_has_an_example_here(fields: Fields):
    assert set(fields.refused) | fields.flags <= set(ASKS_FOR_MORE)


@pytest.mark.parametrize("fields", [CHAT, RESPONSES])
def test_a_field_that_is_not_known_is_refused(fields: Fields):
    with pytest.raises(ApiError) as refused:
        fields.check({"top_k": 3})
    assert refused.value.code == "unknown_parameter"


@pytest.mark.parametrize("fields", [CHAT, RESPONSES])
def test_the_documentation_names_what_is_left_out_and_refused(fields: Fields):
    page = (Path(aeon.__file__).parents[1] / "docs/serve.md").read_text(encoding="utf-8")
    missing = [name for name in (*fields.left_out, *fields.refused) if f"`{name}`" not in page]
    assert missing == []


def test_a_client_may_send_all_that_is_left_out(start: Start):
    client = start("provider=simulated", "mode=single").connect()
    for name in ("chat/completions", "responses"):
        fields = CHAT if name.startswith("chat") else RESPONSES
        given = (
            {"messages": [{"role": "user", "content": "tea"}]}
            if fields is CHAT
            else {"input": "tea"}
        )
        body = {"model": "aeon", **given, **dict.fromkeys(fields.left_out, 1)}
        assert client.post(f"/{name}", body=body, cast_to=object)
