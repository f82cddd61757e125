"""Two nodes of Ray on one machine, in network namespaces where those are permitted: rows a second, and what is asked
again when the second node and the batch are killed at random moments. Needs `make test-cluster` to have run once.

    .venv/bin/python benchmarks/two_nodes.py --rows 200 --node-kills 10 --batch-kills 3
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.cluster.two_nodes import Cluster, repeated, two_places


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (
        ("rows", 200),
        ("node-kills", 10),
        ("batch-kills", 3),
        ("parallel", 8),
        ("seed", 1),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument(
        "--seconds", type=float, default=0.4, help="how long the server takes at most"
    )
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        two_places() as places,
        Cluster(places, Path(folder), given.seconds) as cluster,
    ):
        print(json.dumps(measure(cluster, given), indent=1))


def measure(cluster: Cluster, given: argparse.Namespace) -> dict[str, object]:
    tasks, out, chance = (
        cluster.folder / "tasks.jsonl",
        cluster.folder / "out.jsonl",
        random.Random(given.seed),
    )
    rows = (
        {"id": str(number), "task": f"name {number} rivers of Europe"}
        for number in range(given.rows)
    )
    tasks.write_text("".join(json.dumps(row) + "\n" for row in rows))
    kills, began = list[float](), time.monotonic()
    plan = ["node"] * given.node_kills + ["batch"] * given.batch_kills
    chance.shuffle(plan)

    def begin() -> subprocess.Popen[str]:
        one_step = "execution.max_parallel=1"  # `repeated` tells by the order of a row's requests
        return cluster.batch(tasks, out, f"batch.parallel={given.parallel}", one_step)

    batch = begin()
    for what in plan:
        time.sleep(chance.uniform(6, 12))  # a node takes about 5 s to run rows
        if batch.poll() is not None:
            break
        kills.append(time.time())
        batch = cluster.strike(what, batch, begin)
    batch.communicate()
    log, seconds = cluster.asked(), time.monotonic() - began
    ids = Counter(json.loads(line)["id"] for line in out.read_text().splitlines())
    again, on_its_way = repeated(log, kills)
    return {
        "namespaces": bool(cluster.places[0].prefix),
        "exit": batch.returncode,
        "seconds": round(seconds, 1),
        "rows": len(ids),
        "rows_twice": sum(count > 1 for count in ids.values()),
        "calls": len(log),
        "kills": dict(Counter(plan[: len(kills)])),
        "answered_and_asked_again": again,
        "on_the_way_and_asked_again": on_its_way,
    }


if __name__ == "__main__":
    main()
