"""What the wrappers around a provider cost: CPU per call, with a model that answers at once.

    python benchmarks/stack.py [--calls 5000] [--threads 64] [--repeat 5]

Each row is the stack with more of what can be configured; the first is the bare adapter. Ratios of one run on one
machine mean something; single times do not.
"""

from __future__ import annotations

import argparse
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse, Message, Usage
from aeon.llm.prices import PriceList
from aeon.llm.settings import BreakerSettings, RetrySettings
from aeon.llm.stack import build as stack
from aeon.llm.stack.endpoint_state import EndpointState
from aeon.llm.stack.limiter import Limiter
from aeon.llm.stack.limits import LimitSettings

REQUEST = LLMRequest(
    "step",
    (Message("system", "Be brief. " * 100), Message("user", "Why? " * 400)),
    {"type": "object"},
)
PUBLISHED = PriceList(address="https://api.openai.com/v1", model="gpt-5-mini")


class Instant:
    """A model that answers at once, each time with another usage, so that no price is a repetition."""

    model = "gpt-5-mini"

    def __init__(self) -> None:
        self.calls = 0

    def complete(self, request: LLMRequest) -> LLMResponse:  # noqa: ARG002
        """Answer one request."""
        self.calls += 1
        return LLMResponse("{}", Usage(1000 + self.calls, 100, requests=1), self.model)


def endpoint(**given: object) -> stack.Endpoint:
    """One endpoint, with whatever it is to have."""
    named = {
        "name": "e",
        "adapter": Instant(),
        "retry": RetrySettings(),
        "prices": PriceList(),
        **given,
    }
    return stack.Endpoint(**named)  # type: ignore[arg-type]


def run_of(*endpoints: stack.Endpoint) -> LLMAdapter:
    """The whole stack around them."""
    return stack.run_stack(stack.Endpoints(endpoints), limits=LimitSettings(max_tokens=10**12))


def cases() -> dict[str, LLMAdapter]:
    """What is compared, each built anew."""
    many = 10**9
    rates = state(Limiter(64, many, many))
    return {
        "adapter alone": Instant(),
        "limits, spend, fallback, retry": run_of(endpoint()),
        "and cooldown, concurrency": run_of(endpoint(state=state(Limiter(64)))),
        "and rates": run_of(endpoint(state=rates)),
        "and published prices": run_of(endpoint(state=state(Limiter(64)), prices=PUBLISHED)),
    }


def state(limiter: Limiter) -> EndpointState:
    """What is known of an endpoint with this limiter."""
    return EndpointState("e", limiter, BreakerSettings(), RetrySettings())


def measured(adapter: LLMAdapter, calls: int, threads: int) -> float:
    """CPU milliseconds per call."""
    began = time.process_time()
    if threads == 1:
        for _ in range(calls):
            adapter.complete(REQUEST)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(adapter.complete, [REQUEST] * calls))
    return (time.process_time() - began) / calls * 1000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--threads", type=int, default=64)
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    print(f"CPU per call in ms, medians of {args.repeat}: one thread, {args.threads} threads")
    for name in cases():
        times = {threads: [] for threads in (1, args.threads)}
        for _ in range(args.repeat):
            for threads, found in times.items():
                adapter = cases()[name]
                adapter.complete(REQUEST)
                found.append(measured(adapter, args.calls, threads))
        print(f"{name:32}", *(f"{statistics.median(found):8.3f}" for found in times.values()))


if __name__ == "__main__":
    main()
