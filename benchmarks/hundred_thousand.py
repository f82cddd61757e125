"""A hundred thousand simulated tasks in one batch, one in a hundred failing, the batch killed three times on the way.

    python benchmarks/hundred_thousand.py [--rows 100000] [--parallel 16] [--kills 3]

Prints JSON: rows a second, the peak of memory of each start in megabytes, and whether every row is there exactly once.
A task is one call (mode=core, a plan of one step), its answer simulated, its run's journals left out: what is measured
is the batch. Rows with a fault fail, as a request that a server refuses does.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

PLAN = "goal: say it\ntask: say it\nsteps:\n  - {id: s1, agent: llm, description: say it}\n"
SCENARIO = "calls:\n  step:\n    - {when: {contains: FAULT}, fail: request}\n"
OVERRIDES = [
    *(
        "mode=core",
        "plan_file=plan.yaml",
        "provider=simulated",
        "provider.scenario=faults.yaml",
        "batch.records=none",
    ),
    *("observability=none", "progress=none"),
]


def prepare(folder: Path, rows: int) -> None:
    (folder / "plan.yaml").write_text(PLAN)
    (folder / "faults.yaml").write_text(SCENARIO)
    with (folder / "tasks.jsonl").open("w") as file:
        for number in range(rows):
            task = f"name {number} rivers" + " FAULT" * (number % 100 == 7)
            file.write(json.dumps({"id": f"row-{number}", "task": task}) + "\n")


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def peak_memory(process: subprocess.Popen[bytes]) -> float:
    status = Path(f"/proc/{process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+)", status)
    return int(found[1]) / 1024 if found else 0.0


def start(folder: Path, parallel: int, kill_at: int | None) -> dict[str, Any]:
    """One start of the batch, to its end or until its results have so many bytes."""
    command = [sys.executable, "-m", "aeon", "batch", "dataset=tasks.jsonl", "out=results.jsonl"]
    began, peak = time.monotonic(), 0.0
    with (folder / "log.txt").open("ab") as log:
        process = subprocess.Popen(
            [*command, f"batch.parallel={parallel}", *OVERRIDES], cwd=folder, stderr=log
        )
        while process.poll() is None:
            time.sleep(0.2)
            if process.poll() is None:
                peak = max(peak, peak_memory(process))
            if kill_at is not None and size(folder / "results.jsonl") >= kill_at:
                process.send_signal(signal.SIGKILL)
                process.wait()
    return {
        "seconds": round(time.monotonic() - began, 1),
        "peak_mb": round(peak, 1),
        "status": process.returncode,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--parallel", type=int, default=16)
    parser.add_argument("--kills", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, line_bytes = Path(name), 540
        prepare(folder, options.rows)
        places = sorted(
            random.uniform(0.1, 0.9) * options.rows * line_bytes for _ in range(options.kills)
        )
        starts = [start(folder, options.parallel, int(place)) for place in places]
        starts.append(start(folder, options.parallel, None))
        found, ends = Counter[str](), Counter[str]()
        with (folder / "results.jsonl").open() as file:
            for line in map(json.loads, file):
                found[line["id"]] += 1
                ends[line["ended"]] += 1
        seconds = sum(one["seconds"] for one in starts)
        report = {
            "rows": options.rows,
            "exactly_once": len(found) == options.rows == found.total(),
            "ends": dict(ends),
            "seconds": round(seconds, 1),
            "rows_a_second": round(options.rows / seconds, 1),
            "starts": starts,
            "bytes_a_row": round(size(folder / "results.jsonl") / options.rows),
            "left_behind": sorted(path.name for path in folder.iterdir()),
        }
        print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
