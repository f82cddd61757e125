"""What is believed of a server, as it is kept with answers for a run that goes on."""

from __future__ import annotations

from typing import Any

import pytest

from aeon.domain.errors import StoreFailed
from aeon.domain.request import LLMRequest
from aeon.llm.dialects.capabilities import capabilities, forget
from aeon.llm.openai.adapter import OpenAIAdapter
from aeon.llm.settings import OpenAIProvider
from aeon.llm.stack.stored import Stored
from aeon.store.session import Session

ADDRESS = "http://127.0.0.1:9/v1"


def test_of_a_server_that_does_all_it_is_asked_nothing_is_kept() -> None:
    assert OpenAIAdapter(OpenAIProvider(name="own", model="m", base_url=ADDRESS)).beliefs() == {}


def test_another_process_speaks_to_an_endpoint_as_this_one_does() -> None:
    adapter = OpenAIAdapter(OpenAIProvider(name="own", model="m", base_url=ADDRESS))
    capabilities("own", ADDRESS, "m").not_enforced(strict=True)
    capabilities("own", ADDRESS, "m").object_not_enforced()
    capabilities("own", ADDRESS, "m").cut_off(60.0)
    beliefs, findings = adapter.beliefs(), adapter.findings()
    dialect = capabilities("own", ADDRESS, "m").dialect("a schema", True)
    forget()
    adapter.learn(beliefs)
    assert capabilities("own", ADDRESS, "m").dialect("a schema", True) == dialect
    assert dialect.schema_in_prompt
    assert dialect.stream
    assert (adapter.findings(), adapter.beliefs()) == (findings, beliefs)
    assert "127.0.0.1" not in str(beliefs)
    forget()
    OpenAIAdapter(OpenAIProvider(name="own", model="m", base_url="http://127.0.0.1:10/v1")).learn(beliefs)
    assert not capabilities("own", "http://127.0.0.1:10/v1", "m").dialect("a schema", True).schema_in_prompt


def test_what_was_found_out_does_not_make_an_endpoint_stream_that_never_may() -> None:
    adapter = OpenAIAdapter(OpenAIProvider(name="own", model="m", base_url=ADDRESS))
    capabilities("own", ADDRESS, "m").cut_off(60.0)
    beliefs = adapter.beliefs()
    forget()
    OpenAIAdapter(OpenAIProvider(name="own", model="m", base_url=ADDRESS, stream="never")).learn(beliefs)
    assert not capabilities("own", ADDRESS, "m").dialect("a schema", True).stream


@pytest.mark.parametrize("found", [3, {"DIGEST": {"m": {"form": "verse"}}}, {"DIGEST": [1]}])
def test_beliefs_that_cannot_be_read_are_reported_as_a_store_that_cannot_be_read(found: Any) -> None:
    adapter = OpenAIAdapter(OpenAIProvider(name="own", model="m", base_url=ADDRESS))
    capabilities("own", ADDRESS, "m").cut_off(60.0)
    if isinstance(found, dict):
        found = dict.fromkeys(adapter.beliefs(), found["DIGEST"])

    class Answered(Session):
        def answer(self, *_: Any, **__: Any) -> dict[str, Any]:
            return {"text": "t", "found_out": found}

    stored = Stored(adapter, Answered(), OpenAIProvider(), learners=[adapter])
    with pytest.raises(StoreFailed, match="found_out"):
        stored.complete(LLMRequest("step", (), {}))
