"""Calls a second, CPU and memory of one process with many tasks at once, beside plain openai clients in threads.

    python benchmarks/scaling.py [--tasks 1,16,128,512] [--latency 0.1]      needs `pip install openai`

A server on this machine answers after the latency. A task is eleven calls, one after the other (mode=core: a plan and
ten steps), kept in memory as `Aeon.run_many` does, or as `kept` with its run's folder and store, as a batch does. The
plain client sends as many requests, of a step's size, and validates the answers, each task in a thread of its
own with one client for all. Each figure is of a process of its own, in turn, after one task that warms up. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench import overrides, served

CALLS_OF_A_TASK = 11
PROMPT = "Do the step that is asked for, and report what was found. " * 60


def memory() -> float:
    """Resident megabytes of this process."""
    found = re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def run_aeon(address: str, count: int, *, kept: bool = False) -> Any:
    from aeon import Aeon

    extra = [
        "mode=core",
        "ttl.base=100",
        f"provider.max_concurrency={max(count, 8)}",
        "observability.report=false",
    ]
    aeon = Aeon.from_config([*overrides(address), *extra])
    folder = Path(tempfile.mkdtemp())

    def work(tasks: int) -> int:
        place = {"directory": folder / f"{tasks}-{{}}"} if kept else {}
        given = (
            {
                "task": f"TASK-{number}",
                **{name: str(path).format(number) for name, path in place.items()},
            }
            for number in range(tasks)
        )
        return sum(
            result.usage.total.requests for result in aeon.run_many(given, max_concurrency=count)
        )

    return work


def run_plain(address: str, count: int) -> Any:
    import openai
    from pydantic import BaseModel

    class Step(BaseModel):
        step_output: str
        clarity_state: str
        clarity_reason: str | None
        handoff_to_next: str | None

    client = openai.OpenAI(base_url=address, api_key="none", max_retries=0)

    def ask_all(number: int) -> int:
        messages = [
            {"role": "system", "content": "Work."},
            {"role": "user", "content": f"TASK-{number} {PROMPT}"},
        ]
        for _ in range(CALLS_OF_A_TASK):
            client.chat.completions.parse(model="stub", messages=messages, response_format=Step)
        return CALLS_OF_A_TASK

    def work(tasks: int) -> int:
        with ThreadPoolExecutor(count) as pool:
            return sum(pool.map(ask_all, range(tasks)))

    return work


def measure(kind: str, address: str, count: int) -> dict[str, float]:
    """In this process: warm up, then `count` tasks at once, at least sixteen in all."""
    work = (
        run_plain(address, count)
        if kind == "plain"
        else run_aeon(address, count, kept=kind == "kept")
    )
    work(1)
    before, most, over = memory(), [0.0], threading.Event()

    def watch() -> None:
        while not over.wait(0.05):
            most[0] = max(most[0], memory())

    threading.Thread(target=watch, daemon=True).start()
    used, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    calls = work(max(count, 4))
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    over.set()
    cpu = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    return {
        "calls_a_second": round(calls / seconds, 1),
        "cpu_ms_a_call": round(1000 * cpu / calls, 2),
        "memory_mb_a_task": round(max(0.0, most[0] - before) / count, 2),
        "memory_mb": round(most[0], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", default="1,16,128,512")
    parser.add_argument("--latency", type=float, default=0.1)
    parser.add_argument("--one", nargs=3, metavar=("KIND", "ADDRESS", "COUNT"))
    options = parser.parse_args()
    if options.one:
        kind, address, count = options.one
        print(json.dumps(measure(kind, address, int(count))))
        return
    found: dict[str, Any] = {}
    with served(1, options.latency) as address:
        for count in options.tasks.split(","):
            for kind in ("plain", "aeon", "kept"):
                command = [sys.executable, __file__, "--one", kind, address, count]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                found.setdefault(count, {})[kind] = json.loads(done.stdout)
    for rows in found.values():
        rows["ratio"] = round(rows["aeon"]["calls_a_second"] / rows["plain"]["calls_a_second"], 2)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
