"""The scripted server itself: what it refuses and what it remembers."""

import json
from typing import Any

import httpx2
import pytest

from tests.support.fixtures import StartServer
from tests.support.openai_server import OpenAIServer
from tests.support.requests import SCHEMA


def body(
    call: str = "plan", schema: Any = SCHEMA, strict: bool = True, **given: Any
) -> dict[str, Any]:
    return {
        "model": "m",
        "messages": [{"role": "user", "content": "Why?"}],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": call, "schema": schema, "strict": strict},
        },
        **given,
    }


def post(server: OpenAIServer, sent: Any, key: str = "k") -> httpx2.Response:
    headers = {"authorization": f"Bearer {key}"}
    return httpx2.post(f"{server.url}/chat/completions", json=sent, headers=headers, timeout=60)


def test_answers_come_by_the_calls_name_in_the_order_of_the_script(
    openai_server: OpenAIServer,
) -> None:
    openai_server.script.update(
        {"plan": [{"answer": "1"}, "raw"], "step": lambda seen: {"answer": seen.user}}
    )
    texts = [
        post(openai_server, body(name)).json()["choices"][0]["message"]["content"]
        for name in ("plan", "step", "plan")
    ]
    assert texts == [json.dumps({"answer": "1"}), json.dumps({"answer": "Why?"}), "raw"]
    assert openai_server.names == ["plan", "step", "plan"]
    assert [seen.index for seen in openai_server.of("plan")] == [0, 2]
    assert openai_server.refused == []


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (body(schema={"type": "object"}), "additionalProperties must be false"),
        (body("a name"), "with a name"),
        (body(response_format={"type": "json_object"}), "must be a json_schema"),
        (body(messages=[]) | {"messages": "hello"}, "messages must be a list"),
        (body(model=None), "with a model"),
        (body("unheard_of"), "no answer for 'unheard_of'"),
    ],
)
def test_what_a_strict_server_would_refuse_is_answered_with_400(
    sent: dict[str, Any], why: str, openai_server: OpenAIServer
) -> None:
    openai_server.script["plan"] = {"answer": "x"}
    response = post(openai_server, sent)
    assert response.status_code == 400
    assert why in response.json()["error"]["message"]
    assert len(openai_server.refused) == 1


def test_a_schema_that_does_not_claim_to_be_strict_may_be_anything(
    openai_server: OpenAIServer,
) -> None:
    openai_server.script["plan"] = {"answer": "x"}
    assert post(openai_server, body(schema={"type": "object"}, strict=False)).status_code == 200


def test_a_script_that_has_run_out_is_a_refusal(openai_server: OpenAIServer) -> None:
    openai_server.script["plan"] = [{"answer": "x"}]
    assert [post(openai_server, body()).status_code for _ in range(2)] == [200, 400]
    assert openai_server.refused == ["no answer is left for 'plan'"]


def test_a_wrong_key_is_answered_with_401(start_server: StartServer) -> None:
    server = start_server({"plan": {"answer": "x"}}, key="right")
    assert [post(server, body(), key).status_code for key in ("wrong", "right")] == [401, 200]
