"""The files of examples/kubernetes, held to the schemas of Kubernetes, and their commands, run."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import ray
import yaml

pytestmark = pytest.mark.timeout(900)  # processes that a busy machine takes minutes to start

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "kubernetes"
VERSION = str(kubernetes_validate.latest_version())


def read(name: str) -> Any:
    return yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    cluster = read("cluster.yaml")["spec"]["rayClusterSpec"]
    yield "head", cluster["headGroupSpec"]["template"]
    for group in cluster["workerGroupSpecs"]:
        yield group["groupName"], group["template"]
    for name in ("shards", "merge"):
        yield name, read(f"{name}.yaml")["spec"]["template"]


@pytest.mark.parametrize("name", ["storage.yaml", "shards.yaml", "merge.yaml"])
def test_a_file_is_what_kubernetes_takes(name: str) -> None:
    kubernetes_validate.validate(read(name), VERSION, strict=True)


@pytest.mark.parametrize(("name", "template"), list(pods()), ids=[name for name, _ in pods()])
def test_a_pod_is_what_kubernetes_takes_and_has_no_key_in_it(
    name: str, template: dict[str, Any]
) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, **template}
    kubernetes_validate.validate(pod, VERSION, strict=True)
    for container in template["spec"]["containers"]:
        assert all("secretKeyRef" in variable["valueFrom"] for variable in container.get("env", ()))


def test_the_cluster_has_the_version_of_ray_that_is_tested() -> None:
    assert read("cluster.yaml")["spec"]["rayClusterSpec"]["rayVersion"] == ray.__version__


def test_the_command_of_the_cluster_runs_a_batch(tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_text('{"task": "name three lakes"}\n')
    entrypoint = read("cluster.yaml")["spec"]["entrypoint"].replace(
        "address=auto", "address=null provider=simulated"
    )
    run(["sh", "-c", entrypoint], tmp_path)
    assert json.loads((tmp_path / "results.jsonl").read_text())["ended"] == "converged"


def test_the_shards_of_the_array_and_their_merge_give_every_row_once(tmp_path: Path) -> None:
    lines = (
        json.dumps({"id": f"row{number}", "task": f"name {number} lakes"}) for number in range(8)
    )
    (tmp_path / "tasks.jsonl").write_text("\n".join(lines))
    shard, merge = (
        read(name)["spec"]["template"]["spec"]["containers"][0]["command"] for name in JOBS
    )
    count = read("shards.yaml")["spec"]["completions"]
    for index in range(count):
        run(
            [*shard[:2], shard[2].replace("/8 ||", "/8 provider=simulated ||")],
            tmp_path,
            JOB_COMPLETION_INDEX=str(index),
        )
    run(merge, tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == [f"row{number}" for number in range(8)]


JOBS = ("shards.yaml", "merge.yaml")


def run(command: list[str], folder: Path, **environ: str) -> None:
    words = [word.replace("/batch", str(folder)) for word in command]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(
        words,
        check=True,
        cwd=folder,
        env={**os.environ, "PATH": path, **environ},
        capture_output=True,
    )
