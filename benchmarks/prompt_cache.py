"""What the input of a run is billed where the provider caches what is marked, and what is not.

    python benchmarks/prompt_cache.py

Prints JSON: for each run, its requests and their input in tokens; and for each way in which a server caches, the
requests that read from its cache (`hits`) and the billed input as a share of the plain price: without marks
(`unmarked`), and with them (`marked`). The runs are those of `benchmarks/prompts.py`; each request is sent by the
adapter, one after the other, to a server on loopback that bills by OpenAI's rule (`tests/support/caching_server.py`):
`unless_explicit`, as OpenAI's does; `always` adds a mark at the end of each prompt whatever the request says; `never`
adds none, as Anthropic's does, and is sent Anthropic's marks. `cost` is what Aeon counts for the run in US dollars at
the published price of the model, `published` what that price list says for the tokens that the server billed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import genai_prices

from prompts import recorded_requests, simulated_requests

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from aeon.domain.request import LLMRequest, LLMResponse
from aeon.llm.dialects.server import forget_servers
from aeon.llm.openai.adapter import OpenAIAdapter
from aeon.llm.prices import OPENAI, PriceList
from aeon.llm.protocols import OfRun
from aeon.llm.settings import OpenAIProvider
from tests.support.caching_server import Bill, CachingServer, Implicit
from tests.support.openai_server import Completion

MODEL = "gpt-5.6-sol"
OUTPUT_TOKENS = 20
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
    usage = {"completion_tokens": OUTPUT_TOKENS}
    script = {request.call: Completion("{}", usage=usage) for request in requests}
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


def cost_of(answer: LLMResponse) -> float:
    """What Aeon counts for an answer."""
    return PriceList(address=OPENAI).cost(answer.usage, MODEL) or 0.0


def published_price(bill: Bill) -> float:
    """What the price list says for the tokens of a bill."""
    counted = genai_prices.Usage(
        input_tokens=bill.tokens,
        cache_read_tokens=bill.read,
        cache_write_tokens=bill.written,
        output_tokens=OUTPUT_TOKENS,
    )
    return float(genai_prices.calc_price(counted, MODEL, provider_id="openai").total_price)


def measure_run(requests: Sequence[LLMRequest]) -> dict[str, Any]:
    """The figures of one run."""
    figures: dict[str, Any] = {"requests": len(requests)}
    for implicit in KINDS:
        taken = "anthropic" if implicit == "never" else "openai"
        for name, marks in (("unmarked", "off"), ("marked", taken)):
            server, answers = send(requests, marks, implicit)
            bills = server.bills
            plain = sum(bill.tokens for bill in bills)
            share = round(sum(bill.billed for bill in bills) / plain, 3)
            figures["tokens"] = plain
            figures.setdefault(implicit, {})[name] = {
                "hits": sum(bill.read > 0 for bill in bills),
                "share": share,
                "cost": round(sum(cost_of(answer) for answer in answers), 6),
                "published": round(sum(map(published_price, bills)), 6),
            }
    return figures


def measure() -> dict[str, Any]:
    """The figures of each run."""
    return {name: measure_run(collect(name)) for name, collect in RUNS.items()}


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))
