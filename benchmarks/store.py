"""What the store costs: keeping an answer, finding one among many, and a whole call through the wrapper.

    python benchmarks/store.py [entries]

Prints a table; docs/store.md quotes it. The file is made in the working directory, since /tmp may be in memory.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from aeon.domain.request import CallSite, LLMRequest, LLMResponse, Message, Usage
from aeon.llm.schemas import load_packaged_schemas
from aeon.llm.settings import OpenAIProvider
from aeon.llm.stack.stored import Stored
from aeon.store.models import CallPath, Entry, StoreRequest
from aeon.store.opening import open_session
from aeon.store.settings import StoreSettings
from aeon.store.sqlite_store import SqliteStore

SYSTEM = "You carry out one step of a plan. " * 60
SCHEMA = dict(load_packaged_schemas().wire("step").schema)
ROUNDS = 300


def entry(number: int) -> Entry:
    """As large as a usual call: 2 kB of instructions, 4 kB of prompt, a schema, 2 kB of answer."""
    asked = StoreRequest(
        kind="model",
        path=CallPath(
            pass_number=1 + number // 100, phase="EXECUTE", call="step", step_id=f"s{number % 100}"
        ),
        body={
            "model": "some-model",
            "parameters": {"temperature": 0.2},
            "sample": 0,
            "messages": [
                {"role": "system", "content": SYSTEM},
                {
                    "role": "user",
                    "content": f"Step {number}. " + "What has been worked out so far. " * 120,
                },
            ],
            "strict": True,
            "schema": SCHEMA,
        },
    )
    answer = {
        "text": "An answer. " * 180,
        "usage": {"input_tokens": 1800, "output_tokens": 500},
        "model": "some-model",
    }
    return Entry(request=asked, answer=answer, time="2026-01-01T00:00:00.000+00:00")


class Instant:
    """A model that takes no time."""

    def complete(self, request: LLMRequest) -> LLMResponse:  # noqa: ARG002
        return LLMResponse("An answer. " * 180, Usage(1800, 500, requests=1), "some-model")


def timed(work: Callable[[int], object], rounds: int = ROUNDS) -> str:
    """Median and 99th percentile, in milliseconds."""
    taken = []
    for number in range(rounds):
        began = perf_counter()
        work(number)
        taken.append((perf_counter() - began) * 1000)
    return f"{statistics.median(taken):8.3f} {statistics.quantiles(taken, n=100)[98]:8.3f}"


def filled(path: Path, count: int) -> SqliteStore:
    """A store with that many answers."""
    store = SqliteStore(path)
    for number in range(count):
        store.put(entry(number))
    return store


def parallel(store: SqliteStore, threads: int, each: int, first: int) -> float:
    """Seconds for all."""
    start = threading.Barrier(threads + 1)

    def work(thread: int) -> None:
        start.wait()
        for number in range(each):
            store.put(entry(first + thread * each + number))

    running = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
    for thread in running:
        thread.start()
    start.wait()
    began = perf_counter()
    for thread in running:
        thread.join()
    return perf_counter() - began


def calls(directory: Path, mode: str) -> Callable[[int], object]:
    """A whole call through the wrapper."""
    session = open_session(StoreSettings(mode=mode), directory=directory)
    model = Stored(Instant(), session, OpenAIProvider())

    def call(number: int) -> object:
        whole = entry(number).request
        messages = tuple(Message(m["role"], m["content"]) for m in whole.body["messages"])
        site = CallSite(
            pass_number=whole.path.pass_number, phase="EXECUTE", step_id=whole.path.step_id
        )
        return model.complete(LLMRequest("step", messages, SCHEMA, site=site))

    return call


def main(count: int) -> None:
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        path = Path(folder) / "store.sqlite"
        began = perf_counter()
        store = filled(path, count)
        seconds = perf_counter() - began
        size = sum(file.stat().st_size for file in Path(folder).iterdir()) / 1e6
        print(f"{count} answers, {size:.0f} MB, filled in {seconds:.1f} s")
        print(f"{'milliseconds':34}   median     99 %")
        known = [entry((number * 7919) % count).request for number in range(ROUNDS)]
        unknown = [entry(count + 10**6 + number).request for number in range(ROUNDS)]
        for asked in (*known, *unknown):
            assert asked.key
            assert asked.content
        print(f"{'lookup by key, found':34} {timed(lambda n: store.get(known[n].key))}")
        print(f"{'lookup by key, missing':34} {timed(lambda n: store.get(unknown[n].key))}")
        print(
            f"{'lookup by content, found':34} {timed(lambda n: store.by_content(known[n].content))}"
        )
        print(f"{'put':34} {timed(lambda n: store.put(entry(count + n)))}")
        for threads in (8, 64):
            taken = parallel(store, threads, 10, 10 * count + threads * 1000)
            print(f"{f'put, {threads} threads, each':34} {taken / (threads * 10) * 1000:8.3f}")
        store.close()
        for mode in ("off", "record"):
            print(f"{f'a call through store={mode}':34} {timed(calls(Path(folder) / mode, mode))}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
