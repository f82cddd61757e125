"""What is believed of a server, as it is kept with answers for a run that goes on."""

from __future__ import annotations

from typing import Any

import pytest

from aeon.domain.errors import StoreFailed
from aeon.domain.request import LLMRequest
from aeon.llm.dialects.server import forget_servers, server_at
from aeon.llm.openai.adapter import OpenAIAdapter
from aeon.llm.settings import OpenAIProvider
from aeon.llm.stack.stored import Stored
from aeon.store.session import Session

ADDRESS = "http://127.0.0.1:9/v1"


def test_of_a_server_that_does_all_it_is_asked_nothing_is_kept() -> None:
    assert OpenAIAdapter(OpenAIProvider(name="own", model="m", base_url=ADDRESS)).beliefs() == {}


def test_another_process_speaks_to_an_endpoint_as_this_one_does() -> None:
    adapter = OpenAIAdapter(OpenAIProvider(name="own", model="m", base_url=ADDRESS))
    learned = {
        "schema_in_prompt": True,
        "schema_beside": True,
        "without": frozenset({"temperature"}),
    }
    server_at("own", ADDRESS, "m").believe("stream", "was cut off", stream=True, **learned)
    beliefs, findings = adapter.beliefs(), adapter.findings()
    dialect = server_at("own", ADDRESS, "m").dialect("a schema")
    forget_servers()
    adapter.learn(beliefs)
    assert server_at("own", ADDRESS, "m").dialect("a schema") == dialect
    assert dialect.schema_in_prompt
    assert dialect.stream
    assert (adapter.findings(), adapter.beliefs()) == (findings, beliefs)
    assert "127.0.0.1" not in str(beliefs)
    forget_servers()
    OpenAIAdapter(OpenAIProvider(name="own", model="m", base_url="http://127.0.0.1:10/v1")).learn(
        beliefs
    )
    assert not server_at("own", "http://127.0.0.1:10/v1", "m").dialect("a schema").schema_in_prompt


@pytest.mark.parametrize(
    "found", [3, {"DIGEST": {"m": {"dialect": {"form": "verse"}}}}, {"DIGEST": [1]}]
)
def test_beliefs_that_cannot_be_read_are_reported_as_a_store_that_cannot_be_read(
    found: Any,
) -> None:
    adapter = OpenAIAdapter(OpenAIProvider(name="own", model="m", base_url=ADDRESS))
    server_at("own", ADDRESS, "m").believe("stream", "was cut off", stream=True)
    if isinstance(found, dict):
        found = dict.fromkeys(adapter.beliefs(), found["DIGEST"])

    class Answered(Session):
        def answer(self, *_: Any, **__: Any) -> dict[str, Any]:
            return {"text": "t", "found_out": found}

    stored = Stored(adapter, Answered(), OpenAIProvider(), learners=[adapter])
    with pytest.raises(StoreFailed, match="found_out"):
        stored.complete(LLMRequest("step", (), {}))
