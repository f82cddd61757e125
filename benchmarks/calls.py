"""What five tasks of different size cost in each mode, in calls and characters.

    python benchmarks/calls.py [--modes single,core,adaptive,auto] [--by-call TASK]

The simulated provider answers, each task with a profile and a plan that a careful model would give it; reviews find
nothing, and scores follow the share of finished steps. So it is a good day: every fault that is found costs more.
Counted is what is sent, prompts and the schema as compact JSON. Answers are short here and not counted, but those of
steps are in the prompts of later calls.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from aeon import Aeon
from aeon.domain.events import CallAnswered, Recorded
from aeon.llm.prompts import to_json

# task -> depth, breadth, and the steps, each with what it depends on
TASKS: dict[str, tuple[int, str, dict[str, list[str]]]] = {
    "calculate the sum of 5 and 10": (1, "narrow", {"add": []}),
    "write a haiku about rain": (1, "narrow", {"write": []}),
    "write a Python function that merges two sorted lists, with tests": (
        2,
        "narrow",
        {"write": []},
    ),
    "compare three ways to heat an old house": (
        3,
        "moderate",
        {
            "list": [],
            "heat-pump": ["list"],
            "pellets": ["list"],
            "gas": ["list"],
            "compare": ["heat-pump", "pellets", "gas"],
        },
    ),
    "design a web application with user authentication": (
        4,
        "broad",
        {
            "requirements": [],
            "data": ["requirements"],
            "interface": ["requirements"],
            "authentication": ["requirements"],
            "security": ["data", "authentication"],
            "design": ["interface", "security"],
        },
    ),
}
OUTPUT = "What this step came to, said in the length of a short paragraph. " * 6


def scenario(depth: int, breadth: str, steps: dict[str, list[str]]) -> dict[str, Any]:
    profile = {
        "reasoning_depth": depth,
        "output_breadth": breadth,
        "expected_step_count": len(steps),
        "information_sufficiency": 0.9,
        "ambiguity_level": 0.1,
        "expected_tool_usage": "none",
        "confidence_requirement": "medium",
        "dependency_complexity": min(5, len(steps) - 1),
    }
    planned = [
        {
            "step_id": name,
            "description": f"Work out {name}, as the task asks for it",
            "dependencies": dependencies,
        }
        for name, dependencies in steps.items()
    ]
    worked = {"step_output": OUTPUT.strip(), "clarity_state": "CLEAR"}
    return {
        "calls": {
            "task_profile": {"answer": profile},
            "plan": {"answer": {"goal": "What the task asks for, complete", "steps": planned}},
            "step": {"answer": worked},
        }
    }


def measure(task: str, mode: str) -> tuple[Counter[str], Counter[str]]:
    """Calls, and characters sent, by the name of the call."""
    calls: Counter[str] = Counter()
    characters: Counter[str] = Counter()

    def count(recorded: Recorded) -> None:
        if isinstance(recorded.event, CallAnswered):
            request = recorded.event.request
            calls[request.call] += 1
            sent = sum(len(message.content) for message in request.messages) + len(
                to_json(request.schema)
            )
            characters[request.call] += sent

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scenario.yaml"
        path.write_text(yaml.safe_dump(scenario(*TASKS[task])), encoding="utf-8")
        overrides = ["provider=simulated", f"provider.scenario={path}", f"mode={mode}", "store=off"]
        with Aeon.from_config(overrides, environ={}) as aeon:
            result = aeon.run(task, observers=[count])
    if result.exit_status != 0:
        raise SystemExit(
            f"{task!r} in mode {mode} ended {result.termination_reason}: {result.error}"
        )
    return calls, characters


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--modes", default="single,core,adaptive,auto")
    parser.add_argument(
        "--by-call", metavar="TASK", choices=TASKS, help="the calls of one task instead"
    )
    given = parser.parse_args()
    modes = given.modes.split(",")
    if given.by_call:
        for mode in modes:
            calls, characters = measure(given.by_call, mode)
            print(f"\n| {mode} | calls | characters |\n|---|---:|---:|")
            for name in calls:
                print(f"| `{name}` | {calls[name]} | {characters[name]} |")
        return
    print(f"| task | {' | '.join(modes)} |\n|---|{'---:|' * len(modes)}")
    for task in TASKS:
        cells = [
            f"{sum(calls.values())}, {sum(sent.values())}"
            for calls, sent in (measure(task, m) for m in modes)
        ]
        print(f"| {task} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
