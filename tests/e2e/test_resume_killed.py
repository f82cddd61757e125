"""Killed at any write to its store, a run is resumed: what was kept is not asked again, and it ends as ever."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from aeon.store.opening import open_source
from tests.support.compared import artefacts, differences
from tests.support.killed_runs import Kill, Spec, kill_and_resume
from tests.support.openai_server import OpenAIServer, Received
from tests.support.simulated_server import asker_of, content_of, simulated

TASK = "compare four ways to heat a house, with prices"
PARALLEL = 4
TOOLS = '''
import os
from pathlib import Path

def weigh(thing: str) -> int:
    """Tell what a thing weighs."""
    with Path("weighed.log").open("a") as log:
        log.write(f"{os.environ.get('RUN_NAME')} {thing}\\n")
    return len(thing)
'''


def wide(plan: dict[str, Any], _: Received) -> dict[str, Any]:
    """The plan with four steps and two tools side by side, which the last step puts together."""
    *_, last = plan["steps"]
    side = [
        {
            **last,
            "step_id": f"way{n}",
            "description": f"describe way {n}",
            "dependencies": [],
            "tool": None,
        }
        for n in range(1, 5)
    ]
    tools = [
        {
            **last,
            "step_id": f"weigh{n}",
            "description": f"weigh thing {n}",
            "dependencies": [],
            "tool": "weigh",
        }
        | {"arguments": json.dumps({"thing": "x" * n})}
        for n in (1, 2)
    ]
    steps = [*side, *tools]
    return {
        **plan,
        "steps": [*steps, {**last, "dependencies": [step["step_id"] for step in steps]}],
    }


@dataclass
class Killed:
    """The runs of a test: which requests each made, and where its artefacts are."""

    root: Path
    server: OpenAIServer

    def asked(self, name: str) -> Counter[str]:
        return Counter(content_of(r) for r in self.server.requests if asker_of(r) == name)

    def kept(self, name: str, kind: str) -> list[Any]:
        source = open_source(self.root / name)
        try:
            return [entry for entry in source.entries() if entry.request.kind == kind]
        finally:
            source.close()

    def weighed(self, name: str) -> Counter[str]:
        lines = [line.split(" ") for line in (self.root / "weighed.log").read_text().splitlines()]
        return Counter(thing for run, thing in lines if run == name)

    def overrides(self, *more: str) -> list[str]:
        return [
            "provider=openai",
            f"provider.base_url={self.server.url}",
            "provider.model=scripted",
            "tools.functions.weigh=tools_of_the_test:weigh",
            f"execution.max_parallel={PARALLEL}",
            *more,
        ]

    def run(self, kills: list[Kill], *more: str) -> None:
        kill_and_resume(Spec(self.overrides(*more), TASK, str(self.root), kills))


@contextmanager
def house(root: Path, delay: float = 0.01) -> Iterator[Killed]:
    (root / "tools_of_the_test.py").write_text(TOOLS)
    with OpenAIServer(simulated(edits={"plan": wide}, delay=delay)) as server:
        yield Killed(root, server)


def check(
    runs: Killed, kill: Kill, whole: dict[str, Any], once: Counter[str], tools: Counter[str]
) -> None:
    """What was kept is not asked again, everything else is asked once, and the artefacts are those of a whole run."""
    resumed = f"{kill.name}-resumed"
    killed, then = runs.asked(kill.name), runs.asked(resumed)
    kept = len(runs.kept(kill.name, "model"))
    assert sum(then.values()) == sum(once.values()) - kept
    repeated = killed + then - once
    assert sum(repeated.values()) == sum(killed.values()) - kept <= PARALLEL
    again = runs.weighed(kill.name) + runs.weighed(resumed) - tools
    assert (
        sum(again.values())
        == sum(runs.weighed(kill.name).values()) - len(runs.kept(kill.name, "tool"))
        <= PARALLEL
    )
    assert not differences(artefacts(runs.root / resumed), whole)
    parent = json.loads((runs.root / resumed / "result.json").read_bytes())["parent"]
    assert parent["saved"]["model_calls"] == kept
    assert parent["path"] == str(runs.root / kill.name)


def whole_run(runs: Killed, *more: str) -> tuple[dict[str, Any], Counter[str], Counter[str], int]:
    """An uninterrupted run, and how many writes it made to its store."""
    runs.run([Kill("whole")], *more)
    writes = len(runs.kept("whole", "model")) + len(runs.kept("whole", "tool"))
    return artefacts(runs.root / "whole"), runs.asked("whole"), runs.weighed("whole"), writes


@pytest.mark.slow
def test_a_run_killed_early_midway_and_late_is_resumed_as_if_nothing_had_been(
    tmp_path: Path,
) -> None:
    with house(tmp_path) as runs:
        whole, once, tools, writes = whole_run(runs)
        kills = [Kill("first", 1), Kill("midway", writes // 2, before=True), Kill("last", writes)]
        runs.run(kills)
        for kill in kills:
            check(runs, kill, whole, once, tools)
        assert runs.asked("whole-resumed") == Counter()
        assert not differences(artefacts(tmp_path / "whole-resumed"), whole)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("more", [(), ("mode=core",)], ids=["adaptive", "core"])
def test_a_run_killed_at_any_write_to_its_store_is_resumed_as_if_nothing_had_been(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    with house(tmp_path) as runs:
        whole, once, tools, writes = whole_run(runs, *more)
        kills = [
            Kill(f"{when}{n}", n, before=when == "before")
            for n in range(1, writes + 1)
            for when in ("before", "after")
        ]
        runs.run(kills, *more)
        for kill in kills:
            check(runs, kill, whole, once, tools)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_run_killed_at_any_moment_is_resumed_as_if_nothing_had_been(tmp_path: Path) -> None:
    """`AEON_KILLS=200` kills that often; what became of them is printed."""
    draw, number = random.Random(4), int(os.environ.get("AEON_KILLS", "8"))
    with house(tmp_path, delay=0.05) as runs:
        whole, once, tools, _ = whole_run(runs)
        runs.run([Kill(f"timed{n}") for n in range(PARALLEL)])
        took = [
            json.loads((tmp_path / f"timed{n}" / "result.json").read_bytes())
            for n in range(PARALLEL)
        ]
        longest = max(result["timings"]["total_seconds"] for result in took)
        kills = [Kill(f"kill{n}", seconds=draw.uniform(0, longest)) for n in range(number)]
        runs.run(kills)
        for kill in kills:
            check(runs, kill, whole, once, tools)
        finished = sum((tmp_path / kill.name / "result.json").exists() for kill in kills)
        repeated = [
            sum((runs.asked(kill.name) + runs.asked(f"{kill.name}-resumed") - once).values())
            for kill in kills
        ]
        kept = [len(runs.kept(kill.name, "model")) for kill in kills]
        print(f"{number} kills within {longest:.1f} s, {finished} of them after the end;")
        print(f"kept {min(kept)} to {max(kept)} of {sum(once.values())} answers;")
        print(f"calls repeated, and how often: {sorted(Counter(repeated).items())}")
    assert finished < number / 2
