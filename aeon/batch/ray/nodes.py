"""The nodes of a cluster, each with actors that run rows of one batch."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Any

from aeon.batch.ray.worker import BatchJob, Worker
from aeon.domain.errors import ConfigError

_START_SECONDS = 60.0
_LOOK_SECONDS = 2.0
_log = logging.getLogger("aeon")


def start_actor(ray: Any, kind: type, node: str, *given: Any, **options: Any) -> Any:
    """Start an actor on exactly this node."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    place = NodeAffinitySchedulingStrategy(node, soft=False)
    return ray.remote(kind).options(scheduling_strategy=place, **options).remote(*given)


@dataclass(eq=False, slots=True)
class Member:
    """An actor on a node; messages call it `name`. `free` counts its free slots. `opening` is set
    until it can run rows."""

    actor: Any
    node: str
    name: str
    opening: Any
    free: int = 0


class Nodes:
    """Starts actors on nodes that have none, as long as the batch lasts, and finds those with
    room."""

    def __init__(self, ray: Any, job: BatchJob, actors_per_node: int, *given: Any) -> None:
        """Wait for the actors of all nodes. Raises ConfigError when a node cannot run the batch, or
        none has a processor to spare."""
        self._ray = ray
        self._job = job
        self._per_node = actors_per_node
        self._given = given
        self._members: list[Member] = []
        self._problems: dict[str, str] = {}
        self._looked_at = 0.0
        until = time.monotonic() + _START_SECONDS
        while not (self._members or self._problems) or any(
            member.opening for member in self._members
        ):
            self._look()
            if time.monotonic() > until:
                break
            time.sleep(0.05)
        if self._problems:
            said = "; ".join(sorted(set(self._problems.values())))
            raise ConfigError(
                said, hint="Every node needs the same Aeon, files and environment variables."
            )
        if not any(member.free for member in self._members):
            raise ConfigError(
                "batch.backend=ray: no node has a processor to spare",
                hint="`ray status` shows them.",
            )

    def roomiest(self) -> Member | None:
        """The actor with the most room; None when none has any."""
        most = max(self._members, key=lambda member: member.free, default=None)
        return most if most is not None and most.free else None

    def look(self) -> None:
        """Check at intervals for new nodes, and for actors that have opened."""
        if time.monotonic() - self._looked_at > _LOOK_SECONDS:
            known = set(self._problems)
            self._look()
            for node in self._problems.keys() - known:
                _log.warning(self._problems[node])

    def remove(self, member: Member) -> None:
        """Kill and forget an actor that is dead or unreachable."""
        self._ray.kill(member.actor)
        if member in self._members:
            self._members.remove(member)

    def stop(self) -> None:
        """Ask all rows to stop."""
        for member in self._members:
            member.actor.stop.remote()

    def close(self) -> None:
        """Remove the files on the nodes, and the actors."""
        closing = [member.actor.close.remote() for member in self._members if not member.opening]
        self._ray.wait(closing, num_returns=len(closing), timeout=5.0)
        for member in tuple(self._members):
            self.remove(member)

    def _look(self) -> None:
        self._looked_at = time.monotonic()
        for node in self._ray.nodes():
            if (
                node["Alive"]
                and node["Resources"].get("CPU", 0) >= 1
                and node["NodeID"] not in self._problems
            ):
                self._fill(node["NodeID"], node["NodeManagerAddress"])
        for member in [member for member in self._members if member.opening]:
            if self._ray.wait([member.opening], timeout=0)[0]:
                self._take_in(member)

    def _fill(self, node: str, name: str) -> None:
        options = {
            "max_concurrency": self._job.settings.parallel + 2,
            "num_cpus": 1,
        }  # two more slots, for stop and close
        for _ in range(sum(member.node == node for member in self._members), self._per_node):
            actor = start_actor(self._ray, Worker, node, self._job, *self._given, **options)
            self._members.append(Member(actor, node, name, actor.open.remote()))

    def _take_in(self, member: Member) -> None:
        try:
            problem = self._ray.get(member.opening)
        except self._ray.exceptions.RayError:  # the next look starts another
            self.remove(member)
            return
        member.opening = None
        member.free = 0 if problem else self._job.settings.parallel
        if problem:
            self._problems[member.node] = f"node {member.name}: {problem}"
            self.remove(member)
