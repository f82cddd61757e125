"""What the shared parts of a cluster do at a million tasks and a hundred nodes: a model, fed with measurements.

    python benchmarks/cluster_model.py [--latency 2] [--cpu-ms 4] [--processes 4] [--parallel 128] [--calls 20]

Measured on this machine: keeping an answer (`Answers.put`), writing a row's line, lending from a minute (`Limits`).
Given: a call's latency in seconds, Aeon's CPU for it in milliseconds, the processes of a node (each has a core), rows
at once in each, calls of a task, and what a message costs its receiver. A closed queueing network (mean value
analysis): each row in a slot waits for the model, for its process, for the one process that keeps answers, and at its
end for the one that writes lines. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aeon.batch.ray.answers import Answers
from aeon.batch.ray.limits import Limits
from aeon.files.jsonl import JsonLines
from aeon.llm.stack.limits import LimitSettings

TASKS = 1_000_000
NODES = (1, 2, 10, 30, 100, 300)
REPEAT = 4000
ANSWER = json.dumps({"answer": "found: " + "detail " * 300})


def timed(act: Callable[[int], object]) -> float:
    """Milliseconds of one act, of many."""
    began = time.perf_counter()
    for number in range(REPEAT):
        act(number)
    return 1000 * (time.perf_counter() - began) / REPEAT


def measure() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        answers = Answers(Path(name, "out.running"))
        answers.open()
        keep = timed(lambda number: answers.put(number // 20, 0, f"key-{number}", ANSWER, None))
        forget = timed(answers.forget)
        lines = JsonLines(Path(name, "out.jsonl"))
        write = timed(lambda number: lines.write({"row": number, "answer": ANSWER}))
        lines.close()
        answers.close()
    limits = Limits(LimitSettings.model_construct(max_llm_calls=10**9, max_cost=10**6))
    minute = timed(
        lambda number: limits.lend_minute(
            "requests", 10**9, 1, 2, 0, worker=f"worker-{number % 100}"
        )
    )
    return {"keep_ms": keep, "forget_ms": forget, "write_ms": write, "lend_ms": minute}


def solve(
    customers: int, think: float, demands: dict[str, float]
) -> tuple[float, dict[str, float]]:
    """Calls a second of so many rows at once, and how busy each station is: `demands` are its seconds for a call."""
    queues, rate = dict.fromkeys(demands, 0.0), 0.0
    for count in range(1, customers + 1):
        waits = {name: demand * (1 + queues[name]) for name, demand in demands.items()}
        rate = count / (think + sum(waits.values()))
        queues = {name: rate * wait for name, wait in waits.items()}
    return rate, {name: rate * demand for name, demand in demands.items()}


def cluster(nodes: int, options: argparse.Namespace, found: dict[str, float]) -> dict[str, Any]:
    """One process, and what all share as slow for it as there are processes: all of them have an equal share."""
    message, processes = options.message_ms, nodes * options.processes
    head = {
        "answers": (found["keep_ms"] + message + (found["forget_ms"] + message) / options.calls)
        / 1000,
        "lines": (found["write_ms"] + message) / options.calls / 1000,
    }
    demands = {
        "process": options.cpu_ms / 1000,
        **{name: seconds * processes for name, seconds in head.items()},
    }
    rate, busy = solve(options.parallel, options.latency + message / 1000, demands)
    asks_a_second = processes * (1 / 2 + 1 / 2)  # leases of two seconds, of requests and of tokens
    busy["limits"] = asks_a_second * (found["lend_ms"] + message) / 1000
    first = max(busy, key=lambda name: busy[name])
    return {
        "rows_at_once": processes * options.parallel,
        "calls_a_second": round(processes * rate),
        "of_ideal": round(rate * options.latency / options.parallel, 3),
        "busy": {name: round(share, 4) for name, share in busy.items()},
        "busiest": first,
        "hours_of_a_million_tasks": round(TASKS * options.calls / (processes * rate) / 3600, 1),
        "gigabytes_kept_at_once": round(
            processes * options.parallel * options.calls / 2 * len(ANSWER) / 1e9, 3
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency", type=float, default=2.0)
    parser.add_argument("--cpu-ms", type=float, default=4.0)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--parallel", type=int, default=128)
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--message-ms", type=float, default=0.2)
    options = parser.parse_args()
    found = measure()
    print(
        json.dumps(
            {
                "measured": {name: round(value, 4) for name, value in found.items()},
                "given": vars(options),
                "nodes": {str(nodes): cluster(nodes, options, found) for nodes in NODES},
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
