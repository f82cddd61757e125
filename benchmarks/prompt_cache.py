"""What the input of a run is billed where the provider caches what is marked, and what is not.

    python benchmarks/prompt_cache.py

Prints JSON: for each run, its requests and their input in tokens; and for each way in which a server caches, the
requests that read from its cache (`hits`) and the billed input as a share of the plain price: without marks
(`unmarked`), and with them (`marked`). The runs are those of `benchmarks/prompts.py`; each request is sent by the
adapter, one after the other, to a server on loopback that bills by OpenAI's rule (`tests/support/caching_server.py`):
`unless_explicit`, as OpenAI's does; `always` adds a mark at the end of each prompt whatever the request says; `never`
adds none, as Anthropic's does.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from prompts import recorded_requests, simulated_requests

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from aeon.domain.request import LLMRequest, LLMResponse
from aeon.llm.dialects.server import forget_servers
from aeon.llm.openai.adapter import OpenAIAdapter
from aeon.llm.protocols import OfRun
from aeon.llm.settings import OpenAIProvider
from tests.support.caching_server import CachingServer, Implicit
from tests.support.openai_server import Completion

MODEL = "gpt-5.6-sol"
RUNS = {
    "rest-api": recorded_requests,
    "web-architecture": recorded_requests,
    "adaptive": simulated_requests,
    "chain": simulated_requests,
}
KINDS: tuple[Implicit, ...] = get_args(Implicit)


def send(
    requests: Sequence[LLMRequest], marks: str, implicit: Implicit
) -> tuple[CachingServer, list[LLMResponse]]:
    """Send the requests of one run to a server, and return it with its answers."""
    script = {request.call: Completion("{}") for request in requests}
    forget_servers()
    with CachingServer(script, implicit=implicit) as server:
        # The form is given, so that no answer is looked at: what is measured is the prompts.
        settings = OpenAIProvider(
            base_url=server.url,
            model=MODEL,
            prompt_cache=marks,  # type: ignore[arg-type]
            structured_output="json_schema",
        )
        adapter = OpenAIAdapter(settings)
        run = OfRun(adapter, "a-run")
        answers = [run.complete(request) for request in requests]
        adapter.close()
    return server, answers


def measure_run(requests: Sequence[LLMRequest]) -> dict[str, Any]:
    """The figures of one run."""
    figures: dict[str, Any] = {"requests": len(requests)}
    for implicit in KINDS:
        for name, marks in (("unmarked", "off"), ("marked", "openai")):
            bills = send(requests, marks, implicit)[0].bills
            plain = sum(bill.tokens for bill in bills)
            share = round(sum(bill.billed for bill in bills) / plain, 3)
            figures["tokens"] = plain
            figures.setdefault(implicit, {})[name] = {
                "hits": sum(bill.read > 0 for bill in bills),
                "share": share,
            }
    return figures


def measure() -> dict[str, Any]:
    """The figures of each run."""
    return {name: measure_run(collect(name)) for name, collect in RUNS.items()}


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))
