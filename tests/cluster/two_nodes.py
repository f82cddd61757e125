"""A cluster of two nodes on one machine, each in a network namespace of its own where that is permitted, with a model
that counts what it is asked, and batches that are killed there."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
READY_SECONDS = 300.0


@dataclass
class Place:
    """Where something runs: what its command begins with, and its address."""

    prefix: tuple[str, ...]
    address: str


@contextmanager
def two_namespaces() -> Iterator[tuple[Place, Place]]:
    """Two network namespaces with a cable between them. Raises CalledProcessError where they are not permitted."""
    names, addresses = [f"aeon-{os.getpid()}-{end}" for end in "ab"], ("10.77.0.1", "10.77.0.2")
    with ExitStack() as made:
        for name in names:
            _ip("netns", "add", name)
            made.callback(_ip, "netns", "del", name)
        cable = [f"aeon{os.getpid()}{end}"[-15:] for end in "ab"]
        _ip("link", "add", cable[0], "type", "veth", "peer", "name", cable[1])
        for name, end, address in zip(names, cable, addresses, strict=True):
            _ip("link", "set", end, "netns", name)
            _ip("-n", name, "address", "add", f"{address}/24", "dev", end)
            for device in (end, "lo"):
                _ip("-n", name, "link", "set", device, "up")
        one, other = (
            Place(("ip", "netns", "exec", n), a) for n, a in zip(names, addresses, strict=True)
        )
        yield one, other


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@contextmanager
def two_places() -> Iterator[tuple[Place, Place]]:
    """Two namespaces, or where they are not permitted, this machine twice."""
    with ExitStack() as opened:
        try:
            places = opened.enter_context(two_namespaces())
        except (OSError, subprocess.CalledProcessError):
            places = Place((), "127.0.0.1"), Place((), "127.0.0.1")
        yield places


@dataclass
class Node:
    """A node of Ray, as it was started here."""

    place: Place
    folder: Path
    environ: dict[str, str]
    process: subprocess.Popen[bytes] | None = None

    def start(self, *arguments: str) -> None:
        """Start it, with all its processes."""
        own = f"--node-ip-address={self.place.address}"
        bounds = ("--num-cpus=2", "--object-store-memory=100000000", "--include-log-monitor=false")
        command = ["start", own, *bounds, "--disable-usage-stats", "--block", *arguments]
        with (self.folder / "nodes.log").open("ab") as log:
            whole = [*self.place.prefix, sys.executable, "-m", "ray.scripts.scripts", *command]
            self.process = subprocess.Popen(
                whole, stdout=log, stderr=log, env=self.environ, cwd=self.folder
            )

    def kill(self) -> None:
        """Kill all its processes."""
        if self.process is None:
            return
        processes = [
            *psutil.Process(self.process.pid).children(recursive=True),
            psutil.Process(self.process.pid),
        ]
        for process in processes:
            process.suspend() if process.is_running() else None
        for process in processes:
            process.kill() if process.is_running() else None
        self.process.wait()
        self.process = None


@dataclass(frozen=True)
class Asked:
    """A request that the server got: when, which, the task of its row, and the hashes of its images."""

    time: float
    request: str
    task: str
    images: tuple[str, ...] = ()


@dataclass
class Cluster:
    """Two nodes, and a server beside the first; `places` are theirs. A context manager."""

    places: tuple[Place, Place]
    folder: Path
    seconds: float = 0.2
    key: str | None = "of-the-nodes"
    nodes: list[Node] = field(default_factory=list)
    batches: list[subprocess.Popen[str]] = field(default_factory=list)
    token: dict[str, str] = field(
        default_factory=lambda: {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    )

    def __enter__(self) -> Cluster:
        place = self.places[0]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address, self.log = f"{place.address}:{self.port}", self.folder / "server.log"
        command = [
            sys.executable,
            "-m",
            "tests.cluster.counted_server",
            place.address,
            str(self.log),
            str(self.seconds),
        ]
        environ = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.server = subprocess.Popen(
            [*place.prefix, *command], stdin=subprocess.PIPE, env=environ
        )
        environ = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}
        environ |= self.token | ({"OPENAI_API_KEY": self.key} if self.key else {})
        environ["AEON_STATE_DIR"] = str(self.folder / "state-of-the-nodes")
        self.nodes = [Node(place, self.folder, environ) for place in self.places]
        self.nodes[0].start("--head", f"--port={self.port}", "--include-dashboard=false")
        _wait_until(self._answers)
        self.start_second()
        _wait_until(lambda: self.log.is_file() and self.log.stat().st_size > 0)
        (self.url,) = json.loads(self.log.read_text().splitlines()[0])
        return self

    def __exit__(self, *_: object) -> None:
        self.kill_batches()
        for node in reversed(self.nodes):
            node.kill()
        self.server.communicate()

    def start_second(self) -> None:
        """Start the second node."""
        self.nodes[1].start(f"--address={self.address}")

    def strike(
        self, what: str, batch: subprocess.Popen[str], begin: Callable[[], subprocess.Popen[str]]
    ) -> subprocess.Popen[str]:
        """Kill the second node or the batch, and start it again; the batch that is then under way."""
        if what == "node":
            self.nodes[1].kill()
            self.start_second()
            return batch
        kill(batch)
        return begin()

    def batch(self, dataset: Path, out: Path, *more: str, **environ: str) -> subprocess.Popen[str]:
        """A batch that was begun on the first node."""
        words = [
            f"dataset={dataset}",
            f"out={out}",
            "batch.backend=ray",
            f"batch.ray.address={self.address}",
        ]
        provider = ["provider=openai", f"provider.base_url={self.url}", "provider.model=scripted-1"]
        environ = {**os.environ, **self.token, "OPENAI_API_KEY": "of-the-batch", **environ}
        command = [
            *self.places[0].prefix,
            sys.executable,
            "-m",
            "aeon",
            "batch",
            *words,
            *provider,
            *more,
        ]
        batch = subprocess.Popen(
            command, cwd=self.folder, env=environ, stderr=subprocess.PIPE, text=True
        )
        self.batches.append(batch)
        return batch

    def kill_batches(self) -> None:
        """Kill the batches that have not ended: they would ask on beside the next ones."""
        for batch in self.batches:
            if batch.poll() is None:
                kill(batch)
        self.batches.clear()

    def asked(self) -> list[Asked]:
        """The requests that the server got, in their order."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines()[1:]]
        return [
            Asked(time, request, task, tuple(images))
            for time, what, request, _, task, images in lines
            if what == "asked"
        ]

    def keys(self) -> list[str]:
        """The keys that requests came with."""
        return [json.loads(line)[3] for line in self.log.read_text().splitlines()[1:]]

    def _answers(self) -> bool:
        place = self.places[0]
        test = f"import socket; socket.create_connection(('{place.address}', {self.port}), 1)"
        return (
            subprocess.run(
                [*place.prefix, sys.executable, "-c", test], capture_output=True
            ).returncode
            == 0
        )


DYING_SECONDS = 5
"""A process may still ask after the moment that a kill has: until it is dead, and its actors are."""


def repeated(log: list[Asked], kills: list[float]) -> tuple[int, int]:
    """How many requests were asked again though their answers had been kept, and how many that were on their way at a
    kill. Undisturbed, batches with `execution.max_parallel=1` ask each request once, and a row only when the answer
    before it is kept: so whatever a row asked before its last request had been kept when it was killed."""
    again, on_its_way = 0, 0
    last_of_task, asked_at = dict[str, str](), dict[str, float]()
    for asked in log:
        earlier = asked_at.get(asked.request)
        if earlier is not None:
            was_killed = any(earlier - DYING_SECONDS < kill < asked.time for kill in kills)
            if was_killed and last_of_task[asked.task] == asked.request:
                on_its_way += 1
            else:
                again += 1
        asked_at[asked.request] = asked.time
        last_of_task[asked.task] = asked.request
    return again, on_its_way


def _wait_until(condition: object, seconds: float = READY_SECONDS) -> None:
    until = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        if time.monotonic() > until:
            raise TimeoutError("the cluster did not come up")
        time.sleep(0.1)


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a batch, as a machine that loses its power does."""
    process.send_signal(signal.SIGKILL)
    process.communicate()
