"""What is found out about endpoints, as it is kept with answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from aeon.domain.errors import StoreFailed
from aeon.domain.request import LLMRequest, LLMResponse
from aeon.llm.dialects.capabilities import capabilities, forget
from aeon.llm.openai.adapter import OpenAIAdapter
from aeon.llm.settings import OpenAIProvider
from aeon.llm.stack.knowledge import Knowledge
from aeon.llm.stack.stored import Stored
from aeon.store.session.session import Session

ADDRESS = "http://127.0.0.1:9/v1"


class Learner:
    """Knows what it is told."""

    def __init__(self, **known: Any) -> None:
        self.now: dict[str, Any] = known
        self.learnt: list[Mapping[str, Any]] = []

    def complete(self, request: LLMRequest) -> LLMResponse:
        raise AssertionError(f"nobody asks a model here, and it was asked for {request.call}")

    def known(self) -> dict[str, Any]:
        return self.now

    def learn(self, found: Mapping[str, Any]) -> None:
        self.learnt.append(found)


def test_what_is_new_is_given_out_once() -> None:
    adapter = Learner(e={"m": {"settled": True, "accepted": ["a"]}})
    knowledge = Knowledge([adapter])
    assert knowledge.news() == adapter.now
    assert knowledge.news() == {}
    adapter.now = {"e": {"m": {"settled": True, "accepted": ["a", "b"], "findings": {"x": "takes no x"}}}}
    assert knowledge.news() == {"e": {"m": {"accepted": ["b"], "findings": {"x": "takes no x"}}}}


def test_what_was_restored_is_no_news() -> None:
    adapter = Learner()
    knowledge = Knowledge([adapter])
    knowledge.restore({"e": {"m": {"settled": True}}})
    adapter.now = {"e": {"m": {"settled": True, "renamed": True}}}
    assert adapter.learnt == [{"e": {"m": {"settled": True}}}]
    assert knowledge.news() == {"e": {"m": {"renamed": True}}}


def test_another_process_speaks_to_an_endpoint_as_this_one_does() -> None:
    forget()
    adapter = OpenAIAdapter(OpenAIProvider(name="own", model="m", base_url=ADDRESS))
    capabilities("own", ADDRESS, "m").not_enforced(strict=True)
    capabilities("own", ADDRESS, "m").object_not_enforced()
    capabilities("own", ADDRESS, "m").cut_off(60.0)
    found, said = adapter.known(), adapter.findings()
    dialect = capabilities("own", ADDRESS, "m").dialect("a schema", True)
    forget()
    adapter.learn(found)
    assert capabilities("own", ADDRESS, "m").dialect("a schema", True) == dialect
    assert dialect.schema_in_prompt
    assert dialect.stream
    assert (adapter.findings(), adapter.known()) == (said, found)
    assert "127.0.0.1" not in str(found)
    forget()
    OpenAIAdapter(OpenAIProvider(name="own", model="m", base_url="http://127.0.0.1:10/v1")).learn(found)
    assert not capabilities("own", "http://127.0.0.1:10/v1", "m").dialect("a schema", True).schema_in_prompt


def test_what_was_found_out_does_not_make_an_endpoint_stream_that_never_may() -> None:
    forget()
    adapter = OpenAIAdapter(OpenAIProvider(name="own", model="m", base_url=ADDRESS, stream="never"))
    [digest] = adapter.known()
    adapter.learn({digest: {"m": {"settled": True, "stream": True}}})
    assert not capabilities("own", ADDRESS, "m").dialect("a schema", True).stream


@pytest.mark.parametrize("found", [3, {"DIGEST": {"m": {"form": "verse"}}}, {"DIGEST": [1]}])
def test_what_cannot_have_been_found_out_is_told_as_a_store_that_cannot_be_read(found: Any) -> None:
    adapter = OpenAIAdapter(OpenAIProvider(name="own", model="m", base_url=ADDRESS))
    if isinstance(found, dict):
        found = dict.fromkeys(adapter.known(), found["DIGEST"])

    class Answered(Session):
        def answer(self, *_: Any, **__: Any) -> dict[str, Any]:
            return {"text": "t", "found_out": found}

    stored = Stored(adapter, Answered(), OpenAIProvider(), knowledge=Knowledge([adapter]))
    with pytest.raises(StoreFailed, match="found_out"):
        stored.complete(LLMRequest("step", (), {}))
