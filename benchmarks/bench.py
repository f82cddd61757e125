"""What Aeon costs beside the model, as JSON on standard output: `make bench`.

    python benchmarks/bench.py [--repeat 5] [--only calls,start,commands,api,growth,prompts]

Figures (medians): CPU milliseconds a call and peak memory at no latency; wall time over the least possible one at
100 ms; seconds from the command to its first request; seconds of CPU of commands that call no model; calls a second of
128 tasks through the Python API; the exponents by which files, CPU and memory grow with a plan of 50, 100 and 300
steps; the share of prompt text that repeats an earlier prompt's beginning. Ratios of one run mean something; times of
two machines do not.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ENVIRONMENT = {**os.environ, "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": ""}
PLANS = 2
ROUNDS = 4 + 9 * PLANS
"""Calls that wait for each other: four before execution, then a step, a review and an assessment a layer."""
LATENCY = 0.1
TASKS = 128
SIZES = (50, 100, 300)
COMMANDS = {
    "help": ["--help"],
    "show": ["--cfg", "job", "task=x"],
    "check": ["check", "plan.yaml"],
    "render": ["render", "plan", "task=x"],
    "tools": ["tools"],
    "configuration error": ["task=x", "no.such.key=1"],
}
WORKFLOW = "goal: say it\nsteps:\n  - id: s1\n    description: say it\n"


@contextmanager
def served(plans: int, latency: float) -> Iterator[str]:
    """The address of a stub server."""
    command = [sys.executable, str(HERE / "stub_server.py"), str(plans), str(latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        finally:
            server.terminate()


def overrides(address: str) -> list[str]:
    return [
        *(
            "provider=openai",
            f"provider.base_url={address}",
            "provider.model=stub",
            "progress=none",
        ),
        *("ttl.base=100", "ttl.limit=1000", "limits.max_passes=400"),
    ]


def finished(arguments: list[str], folder: Path) -> tuple[float, float]:
    """Run Aeon: seconds of CPU, and the peak of its memory in megabytes."""
    with subprocess.Popen(
        [sys.executable, "-m", "aeon", *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def one_run(latency: float, plans: int = PLANS) -> dict[str, float]:
    """One run against a server of its own."""
    with served(plans, latency) as address, tempfile.TemporaryDirectory() as folder:
        began = time.time()
        cpu, memory = finished(["task=TASK-0", *overrides(address)], Path(folder))
        with urllib.request.urlopen(address.removesuffix("/v1") + "/stats") as response:
            stats = json.load(response)
    arrivals, replies = stats["arrivals"], stats["replies"]
    return {
        "calls": len(arrivals),
        "cpu": cpu,
        "memory": memory,
        "start": arrivals[0] - began,
        "span": replies[-1] - arrivals[0],
    }


def median(values: list[float], digits: int = 3) -> float:
    return round(statistics.median(values), digits)


def measure_calls(repeat: int) -> dict[str, Any]:
    short, long = ([one_run(0, plans) for _ in range(repeat)] for plans in (1, 5))
    cpu = [
        1000 * (b["cpu"] - a["cpu"]) / (b["calls"] - a["calls"])
        for a, b in zip(short, long, strict=True)
    ]
    waited = [one_run(LATENCY)["span"] / (ROUNDS * LATENCY) for _ in range(repeat)]
    return {
        "cpu_ms_per_call": median(cpu, 2),
        "peak_memory_mb": median([run["memory"] for run in long], 1),
        "wall_over_ideal_at_100_ms": median(waited),
    }


def measure_start(repeat: int) -> dict[str, Any]:
    return {"seconds_to_first_request": median([one_run(0, 1)["start"] for _ in range(repeat)])}


def measure_commands(repeat: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "plan.yaml").write_text(WORKFLOW)
        taken = {
            title: median([finished(arguments, folder)[0] for _ in range(repeat)])
            for title, arguments in COMMANDS.items()
        }
    return {"cpu_seconds_of_commands": taken}


def measure_api(repeat: int) -> dict[str, Any]:
    from aeon import Aeon

    def rate() -> float:
        with (
            served(1, 0) as address,
            Aeon.from_config([*overrides(address), "store.mode=off"]) as aeon,
        ):
            aeon.run("TASK-1000")
            began = time.perf_counter()
            with ThreadPoolExecutor(TASKS) as pool:
                results = list(pool.map(lambda number: aeon.run(f"TASK-{number}"), range(TASKS)))
            return sum(result.usage.total.requests for result in results) / (
                time.perf_counter() - began
            )

    return {f"calls_per_second_of_{TASKS}_tasks": median([rate() for _ in range(repeat)], 0)}


def grown(mode: str, steps: int) -> dict[str, float]:
    """A run of `steps` steps with an output each, in a process of its own: bytes of its files, CPU, memory."""
    with served(steps // 10, 0) as address, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        arguments = [
            "task=TASK-0",
            f"mode={mode}",
            *overrides(address),
            "execution.max_steps=400",
            "ttl.base=1000",
        ]
        arguments += ["ttl.limit=3000", "hydra.run.dir=out", "limits.max_passes=null"]
        cpu, memory = finished(arguments, folder)
        files = {
            path.name: float(path.stat().st_size)
            for path in (folder / "out").iterdir()
            if path.is_file()
        }
    return {**files, "cpu": cpu, "memory": memory}


def measure_growth(repeat: int) -> dict[str, Any]:  # noqa: ARG001
    found: dict[str, Any] = {}
    for mode in ("adaptive", "core"):
        runs = [grown(mode, steps) for steps in SIZES]
        names = [
            name
            for name in runs[0]
            if name in ("cpu", "memory") or name.endswith((".json", ".jsonl", ".sqlite"))
        ]
        found[mode] = {
            name: round(exponent([run[name] for run in runs]), 2) for name in sorted(names)
        }
        found[mode]["megabytes_at_300"] = round(
            sum(v for k, v in runs[-1].items() if "." in k) / 1e6, 1
        )
    return {"growth_exponents": found}


def exponent(values: list[float]) -> float:
    """The slope of log(value) over log(steps), by least squares."""
    fit = statistics.linear_regression(
        [math.log(size) for size in SIZES], [math.log(value) for value in values]
    )
    return float(fit.slope)


def measure_prompts(repeat: int) -> dict[str, Any]:  # noqa: ARG001
    from prompts import measure

    return dict(measure())


PARTS: dict[str, Callable[[int], dict[str, Any]]] = {
    "calls": measure_calls,
    "start": measure_start,
    "commands": measure_commands,
    "api": measure_api,
    "growth": measure_growth,
    "prompts": measure_prompts,
}


def main() -> None:
    """Measure what is asked for and print it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas between them")
    args = parser.parse_args()
    figures = [PARTS[part](args.repeat) for part in args.only.split(",")]
    print(json.dumps(dict(chain.from_iterable(found.items() for found in figures)), indent=2))


if __name__ == "__main__":
    main()
