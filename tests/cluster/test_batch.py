"""Batches on two nodes of Ray, which are killed, and what their server was asked."""

import hashlib
import json
import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import Mock

import pytest

from aeon.batch.dataset import Common, open_dataset
from aeon.batch.identity import identify
from aeon.batch.ray import cluster as of_batch
from aeon.batch.ray.worker import BatchJob, Worker
from aeon.batch.records import Running
from aeon.batch.run import RowRunner, open_aeon
from aeon.cli.job.arguments import read_composition
from aeon.cli.syntax.commands import make_parser
from aeon.config.compose.literal import Composition
from aeon.config.settings import BatchColumns, BatchSettings
from tests.cluster.two_nodes import Cluster, repeated, two_places
from tests.support.input_files import make_png

ray = pytest.importorskip("ray")

# Nodes and batches are many processes, which a busy machine takes minutes to start: no test depends on how long.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with two_places() as places, Cluster(places, tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def no_batch_is_left(cluster: Cluster) -> Iterator[None]:
    yield
    cluster.kill_batches()


def dataset(folder: Path, rows: int) -> Path:
    path = folder / "tasks.jsonl"
    lines = (
        {"id": f"row{number}", "task": f"name {number} rivers of {folder.name}"}
        for number in range(rows)
    )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def ended(batch: subprocess.Popen[str]) -> tuple[int, str]:
    _, printed = batch.communicate()
    return batch.returncode, printed


def rows_of(out: Path) -> list[str]:
    return sorted(json.loads(line)["id"] for line in out.read_text().splitlines())


def wait_for_rows(out: Path, count: int, batch: subprocess.Popen[str]) -> None:
    def has_rows() -> bool:
        return out.exists() and len(out.read_text().splitlines()) >= count

    while batch.poll() is None and not has_rows():
        time.sleep(0.05)
    assert has_rows(), batch.communicate()


def test_nodes_and_batches_that_are_killed_ask_nothing_twice_and_every_row_is_there_once(
    cluster: Cluster, tmp_path: Path
) -> None:
    tasks, out = dataset(tmp_path, 40), tmp_path / "out.jsonl"
    before = len(cluster.asked())  # other tests kill, too
    chance = random.Random(4)
    kills: list[float] = []

    def begin() -> subprocess.Popen[str]:
        return cluster.batch(tasks, out, "batch.parallel=6", "execution.max_parallel=1")

    batch = begin()
    for rows, what in ((3, "node"), (10, "batch"), (20, "node")):
        wait_for_rows(out, rows, batch)
        time.sleep(chance.uniform(0, 1))
        kills.append(time.time())
        batch = cluster.strike(what, batch, begin)
    status, said = ended(batch)
    assert status == 0, said
    assert "40 of 40 rows: 40 converged." in said
    assert rows_of(out) == sorted(f"row{number}" for number in range(40))
    again, _ = repeated(cluster.asked()[before:], kills)
    assert again == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "out.jsonl",
        "out.jsonl.html",
        "tasks.jsonl",
    ]


def test_a_cap_stops_all_nodes_and_the_same_command_goes_on(
    cluster: Cluster, tmp_path: Path
) -> None:
    tasks, out, before = dataset(tmp_path, 8), tmp_path / "out.jsonl", len(cluster.asked())
    status, said = ended(cluster.batch(tasks, out, "batch.max_llm_calls=20"))
    assert status == 3
    assert "batch.max_llm_calls: is reached" in said
    # What one node was lent and has not used, no other may use.
    assert 0 < len(cluster.asked()) - before <= 20
    assert ended(cluster.batch(tasks, out))[0] == 0
    assert repeated(cluster.asked()[before:], []) == (0, 0)
    assert len(rows_of(out)) == 8


def test_a_file_goes_with_every_request_of_every_node_also_after_a_kill(
    cluster: Cluster, tmp_path: Path
) -> None:
    picture = make_png()
    photo = tmp_path / "photo.png"
    photo.write_bytes(picture)
    tasks, out, before = dataset(tmp_path, 12), tmp_path / "out.jsonl", len(cluster.asked())
    more = (f"input_files.photo={photo}", "batch.parallel=3", "execution.max_parallel=1")

    kills: list[float] = []

    def begin() -> subprocess.Popen[str]:
        kills.append(time.time())  # after the kill: what was asked until then was on its way
        return cluster.batch(tasks, out, *more)

    batch = begin()
    wait_for_rows(out, 2, batch)
    status, said = ended(cluster.strike("batch", batch, begin))
    assert status == 0, said
    assert "12 of 12 rows: 12 converged." in said
    asked = cluster.asked()[before:]
    assert {one.images for one in asked} == {(hashlib.sha256(picture).hexdigest(),)}
    assert repeated(asked, kills)[0] == 0


def test_a_node_with_another_file_of_the_same_name_is_refused(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    photo = tmp_path / "photo.png"
    photo.write_bytes(make_png())
    words = ("provider=simulated", "provider.accepts=[image]", f"input_files.photo={photo}")
    composition = read_composition(make_parser("").parse(words))
    job = job_of(composition, tmp_path, monkeypatch)
    photo.write_bytes(make_png(width=5))
    worker = Worker(job, Mock(), Mock())
    assert "it does not have the same input_files" in worker._open()
    photo.unlink()
    assert f"input_files.photo={photo}: cannot be read" in Worker(job, Mock(), Mock())._open()


@contextmanager
def outage(cluster: Cluster) -> Iterator[None]:
    """The server answers 503 while the block lasts."""
    mark = cluster.log.with_suffix(".down")
    mark.touch()
    try:
        yield
    finally:
        mark.unlink()


def test_an_outage_of_seconds_costs_no_row_on_any_node(cluster: Cluster, tmp_path: Path) -> None:
    tasks, out, before = dataset(tmp_path, 16), tmp_path / "out.jsonl", len(cluster.asked())
    batch = cluster.batch(tasks, out, "batch.parallel=4")
    wait_for_rows(out, 2, batch)
    with outage(cluster):
        time.sleep(5)
    status, said = ended(batch)
    assert status == 0, said
    assert "16 of 16 rows: 16 converged." in said
    assert repeated(cluster.asked()[before:], []) == (0, 0)


def test_a_provider_that_stays_down_stops_the_batch_on_all_nodes_and_fails_no_row(
    cluster: Cluster, tmp_path: Path
) -> None:
    tasks, out, before = dataset(tmp_path, 16), tmp_path / "out.jsonl", len(cluster.asked())
    batch = cluster.batch(tasks, out, "batch.parallel=4", "batch.patience_seconds=3")
    wait_for_rows(out, 2, batch)
    with outage(cluster):
        status, said = ended(batch)
    assert status == 1, said
    assert "batch.patience_seconds=3" in said
    assert {json.loads(line)["ended"] for line in out.read_text().splitlines()} == {"converged"}
    assert ended(cluster.batch(tasks, out))[0] == 0
    assert len(rows_of(out)) == 16
    assert repeated(cluster.asked()[before:], []) == (0, 0)


def test_keys_are_those_of_the_nodes_and_stand_in_nothing_that_is_sent(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ended(cluster.batch(dataset(tmp_path, 2), tmp_path / "out.jsonl"))[0] == 0
    assert set(cluster.keys()) == {"Bearer of-the-nodes"}
    secrets = {"OPENAI_API_KEY": "key-of-the-batch", "TEAM": "header-of-the-batch"}
    for name, secret in secrets.items():
        monkeypatch.setenv(name, secret)
    words = (
        "provider=openai",
        f"provider.base_url={cluster.url}",
        "+provider.extra_headers_env.X-Team=TEAM",
    )
    (row,) = open_dataset(dataset(tmp_path, 1), BatchColumns(), Common()).rows()
    composition = read_composition(make_parser("").parse(words))
    sent = ray.cloudpickle.dumps((job_of(composition, tmp_path, monkeypatch), row))
    assert cluster.url.encode() in sent
    assert not [secret for secret in secrets.values() if secret.encode() in sent]


def job_of(composition: Composition, folder: Path, monkeypatch: pytest.MonkeyPatch) -> BatchJob:
    """What the nodes of a batch would be told."""
    nodes = Mock()
    for name, replaced in {"connect": Mock(), "start_actor": Mock(), "Nodes": nodes}.items():
        monkeypatch.setattr(of_batch, name, replaced)
    with open_aeon(composition) as aeon:
        of_batch.Cluster(
            RowRunner(aeon, composition, 1, identify(aeon), Running(folder / "running")),
            BatchSettings(),
        )
    job: BatchJob = nodes.call_args.args[1]
    return job


def test_a_node_without_the_key_is_named_before_anything_is_asked(
    cluster: Cluster, tmp_path: Path
) -> None:
    tasks, before = dataset(tmp_path, 2), len(cluster.asked())
    more = ("provider.api_key_env=KEY_OF_THE_BATCH_ALONE",)
    status, said = ended(
        cluster.batch(tasks, tmp_path / "out.jsonl", *more, KEY_OF_THE_BATCH_ALONE="secret-key")
    )
    assert status == 2
    assert f"node {cluster.places[1].address}: " in said
    assert "KEY_OF_THE_BATCH_ALONE" in said
    assert len(cluster.asked()) == before


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("127.0.0.1:1", "no Ray answers: [Errno 111] Connection refused"),
        ("ray://127.0.0.1:10001", "must be HOST:PORT or auto"),
        ("here", "must be HOST:PORT or auto"),
        ("SERVER", "what answers is no Ray, or too busy"),
    ],
)
def test_where_no_ray_is_the_batch_ends_with_the_cause(
    cluster: Cluster, tmp_path: Path, address: str, problem: str
) -> None:
    address = (
        cluster.url.removeprefix("http://").removesuffix("/v1") if address == "SERVER" else address
    )
    status, said = ended(
        cluster.batch(dataset(tmp_path, 1), tmp_path / "o.jsonl", f"batch.ray.address={address}")
    )
    assert status == 2
    assert f"batch.ray.address={address}: {problem}" in said
    assert "Traceback" not in said
