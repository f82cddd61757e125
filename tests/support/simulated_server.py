"""A server that answers as the simulated provider does: from the request alone, whoever asks, and however often."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, get_args

from aeon.domain.request import CallName, LLMRequest, Message
from aeon.llm.settings import SimulatedProvider
from aeon.simulated.adapter import SimulatedAdapter
from tests.support.openai_server import Completion, Received, Script
from tests.support.rendered_values import rendered_values

Edit = Callable[[dict[str, Any], Received], dict[str, Any]]


def simulated(
    seed: int = 0, *, edits: Mapping[str, Edit] | None = None, delay: float = 0.0
) -> dict[str, Script]:
    """A script for `OpenAIServer`. `edits` change the answers of a call; each takes up to `delay` seconds."""
    adapter = SimulatedAdapter(SimulatedProvider(seed=seed))

    def answer(received: Received) -> Completion:
        messages = tuple(
            Message(role=m["role"], content=text_of(m["content"]))
            for m in received.body["messages"]
        )
        variables = rendered_values(messages[-1].content)
        request = LLMRequest(received.name, messages, received.schema, variables=variables)  # type: ignore[arg-type]
        value = json.loads(adapter.complete(request).text)
        if edits and received.name in edits:
            value = edits[received.name](value, received)
        key = content_of(received)
        return Completion(value, delay=delay * int(key[:2], 16) / 255, id=f"chatcmpl-{key[:12]}")

    return dict.fromkeys(get_args(CallName), answer)


def text_of(content: str | list[dict[str, Any]]) -> str:
    """The text of a message, the last of its parts where it has files."""
    return content if isinstance(content, str) else str(content[-1]["text"])


def content_of(received: Received) -> str:
    """A digest of what was asked."""
    return hashlib.sha256(json.dumps(received.body, sort_keys=True).encode()).hexdigest()


def asker_of(received: Received) -> str:
    """The key that the request came with, by which tests tell runs apart."""
    return received.headers.get("authorization", "").removeprefix("Bearer ")
