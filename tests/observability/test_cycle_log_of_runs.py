"""`cycles.jsonl` of whole runs: its size, what is left of it after a kill, and what its lines may not depend on."""

from __future__ import annotations

import copy
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon
from aeon.domain import events
from aeon.domain.plan import Plan
from aeon.files.jsonl import read_lines
from aeon.observability.cycle_log import plan_of
from tests.integration.artefacts import Late, timeless
from tests.support.scripted_model import (
    ScriptedModel,
    action,
    assessment,
    clear,
    modify,
    plan,
    planned,
    profile,
    refinement,
    unfinished,
)

FR_038 = {
    "step_number",
    "plan_state",
    "llm_output",
    "supervisor_actions",
    "tool_calls",
    "ttl_remaining",
    "errors",
}
DELTA = "observability.plan_state=delta"
TEXT = "words " * 340  # two kilobytes
Plans = dict[int, Plan | None]


def wide(width: int) -> ScriptedModel:
    """A step of 2 kB, `width` parallel ones that each are given it, and each say as much."""
    steps = [planned(f"s{number}", "root") for number in range(width)]
    thorough = profile(5, expected_step_count=2 * width)
    passes = [unfinished(), assessment()]
    return ScriptedModel(
        task_profile=thorough, plan=plan("root", *steps), step=clear(TEXT), convergence=passes
    )


def layered(width: int) -> ScriptedModel:
    """Passes of parallel and of single steps, one that fails, one that is refined, one without an answer."""
    first, second = [f"a{n}" for n in range(width)], [f"b{n}" for n in range(width)]
    steps = [planned("root"), *(planned(name, "root") for name in first)]
    steps += [planned(below, above) for above, below in zip(first, second, strict=True)]

    def step(request: Any) -> Any:
        return (
            "no JSON at all"
            if request.site.step_id in ("a1", "b2")
            else clear(f"{request.site.step_id}: {TEXT}")
        )

    refined = [
        refinement(),
        refinement(modify("b0", "a0")),
        refinement(),
        refinement(action("REMOVE", "b1")),
    ]
    return ScriptedModel(
        task_profile=profile(5, expected_step_count=4 * width),
        plan=plan(*steps),
        step=step,
        refinement=refined,
        convergence=[unfinished(), unfinished(), assessment()],
    )


def run(directory: Path, model: Any, *overrides: str) -> Plans:
    """A run into a directory; the plan that each of its cycles was dispatched with, by its sequence."""
    plans: Plans = {}

    def note(recorded: events.Recorded) -> None:
        if isinstance(recorded.event, events.CycleStarted):
            plans[recorded.sequence] = recorded.event.plan

    with Aeon.from_config(
        ("provider=simulated", "ttl.limit=1000", "execution.max_steps=1000", *overrides)
    ) as made:
        aeon = copy.copy(made)
        aeon._process = replace(made._process, adapter=model)
        aeon.run("make tea", directory=directory, observers=[note])
    return plans


def assert_rebuilt(lines: Sequence[dict[str, Any]], plans: Plans) -> None:
    assert [plan_of(lines, line["sequence"]) for line in lines] == [
        plans[line["sequence"]] for line in lines
    ]


@pytest.mark.slow
def test_the_log_grows_linearly_with_the_width_of_a_batch(tmp_path: Path) -> None:
    per_step = []
    for width in (10, 40, 160):
        run(tmp_path / str(width), wide(width), DELTA)
        log = tmp_path / str(width) / "cycles.jsonl"
        assert sum(line["call"] == "step" for line in read_lines(log)) == width + 1
        per_step.append(log.stat().st_size / width)
    assert per_step[2] < per_step[1] < per_step[0] < 5 * len(TEXT)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["core", "adaptive"])
def test_the_log_grows_linearly_with_the_length_of_a_chain(tmp_path: Path, mode: str) -> None:
    per_step = []
    for length in (8, 32):
        steps = [planned(f"s{n}", *([f"s{n - 1}"] if n else [])) for n in range(length)]
        model = ScriptedModel(
            task_profile=profile(5, expected_step_count=6 * length),
            plan=plan(*steps),
            step=clear(TEXT),
            convergence=[*[unfinished()] * (length - 1), assessment()],
        )
        more = ("ttl.base=40",) if mode == "core" else ("limits.max_passes=40",)
        run(tmp_path / str(length), model, f"mode={mode}", DELTA, *more)
        log = tmp_path / str(length) / "cycles.jsonl"
        assert sum(line["call"] == "step" for line in read_lines(log)) == length
        per_step.append(log.stat().st_size / length)
    assert per_step[1] < 1.1 * per_step[0]


def test_every_entry_has_every_field_those_of_failed_cycles_too(tmp_path: Path) -> None:
    run(tmp_path / "run", layered(4))
    lines = list(read_lines(tmp_path / "run" / "cycles.jsonl"))
    assert all(set(line) >= FR_038 for line in lines)
    assert {line["step_id"] for line in lines if line["errors"]} >= {"a1", "b2"}
    assert [line["step_number"] for line in sorted(lines, key=number)] == list(range(len(lines)))


def test_cycles_are_told_from_batches_by_their_call(tmp_path: Path) -> None:
    plans = run(tmp_path / "run", layered(4), DELTA)
    lines = list(read_lines(tmp_path / "run" / "cycles.jsonl"))
    batches = [line for line in lines if line["call"] == "batch"]
    assert sorted(line["sequence"] for line in lines if line["call"] != "batch") == sorted(plans)
    assert [(line["cycle"], line["step_id"]) for line in batches] == [(None, None)] * len(batches)
    assert len(batches) == 2


def test_core_mode_has_cycles_alone(tmp_path: Path) -> None:
    plans = run(tmp_path / "run", layered(4), "mode=core")
    assert [line["sequence"] for line in read_lines(tmp_path / "run" / "cycles.jsonl")] == sorted(
        plans
    )


@pytest.mark.slow
@pytest.mark.parametrize("overrides", [(), (DELTA,), (DELTA, "mode=core")])
def test_wherever_the_file_is_cut_off_the_plan_of_every_line_left_is_rebuilt(
    tmp_path: Path, overrides: tuple[str, ...]
) -> None:
    plans = run(tmp_path / "run", Late(layered(5), 1), *overrides)
    whole = (tmp_path / "run" / "cycles.jsonl").read_bytes()
    ends = [position for position, byte in enumerate(whole, start=1) if byte == ord("\n")]
    assert len(ends) >= len(plans) >= 12
    for count, end in enumerate(ends, start=1):
        for kept in (end - 1, end, end + 1, end + 200):
            (tmp_path / "cut").write_bytes(whole[:kept])
            left = list(read_lines(tmp_path / "cut"))
            assert len(left) == (count - 1 if kept < end else count)
            assert_rebuilt(left, plans)


@pytest.mark.slow
def test_the_lines_do_not_depend_on_the_order_in_which_parallel_steps_end(tmp_path: Path) -> None:
    def lines(name: str, model: Any, parallel: int) -> list[dict[str, Any]]:
        run(tmp_path / name, model, f"execution.max_parallel={parallel}")
        happened = read_lines(tmp_path / name / "events.jsonl")
        orders.add(tuple(e["step"]["step_id"] for e in happened if e["event"] == "step_finished"))
        return list(timeless(list(read_lines(tmp_path / name / "cycles.jsonl"))))

    orders: set[tuple[str, ...]] = set()
    expected = lines("one", layered(6), 1)
    assert [line["step_number"] for line in expected] == list(range(len(expected)))
    for seed in range(3):
        assert lines(f"eight-{seed}", Late(layered(6), seed), 8) == expected
    assert len(orders) > 1


KILLED = """
import os, signal, sys, time
from pathlib import Path
from aeon import Aeon
from aeon.tools.function import tool

log = Path(sys.argv[1], "run", "cycles.jsonl")

@tool
def die(after: int) -> str:
    "Kills the process once the log has that many lines of steps."
    while log.read_bytes().count(b'"call":"tool"') < after:
        time.sleep(0.005)
    os.kill(os.getpid(), signal.SIGKILL)

overrides = ["provider=simulated", f"plan_file={sys.argv[1]}/plan.yaml", "tools=builtin"]
with Aeon.from_config(overrides, tools=[die]) as aeon:
    aeon.run(directory=log.parent)
"""


@pytest.mark.slow
def test_a_kill_in_the_middle_of_a_batch_loses_the_cycles_in_flight_alone(tmp_path: Path) -> None:
    said = "".join(
        f"  - {{id: s{n}, description: d, tool: echo, arguments: {{text: {TEXT!r}}}}}\n"
        for n in range(6)
    )
    death = "  - {id: last, description: d, tool: die, arguments: {after: 6}}\n"
    (tmp_path / "plan.yaml").write_text("goal: g\nsteps:\n" + said + death)
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)], capture_output=True, timeout=60, check=False
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    lines = list(read_lines(tmp_path / "run" / "cycles.jsonl"))
    steps = {f"s{n}": line for n in range(6) for line in lines if line["step_id"] == f"s{n}"}
    assert len(steps) == 6
    for line in steps.values():
        rebuilt = plan_of(lines, line["sequence"])
        assert rebuilt is not None
        assert [step.status for step in rebuilt.steps] == ["running"] * 7


def number(line: dict[str, Any]) -> int:
    return int(line["step_number"])
