"""Core mode keeps each output once: journals and history grow with the plan, not with its square."""

from __future__ import annotations

from pathlib import Path

import pytest

from aeon import Aeon

STEP = """  - id: s{n}
    description: say it
    tool: echo
    arguments: {{text: "{text}"}}
"""


DELTA = "observability.plan_state=delta"


def sizes(directory: Path, steps: int) -> dict[str, int]:
    directory.mkdir()
    workflow = directory / "plan.yaml"
    workflow.write_text(
        "goal: say it\nsteps:\n" + "".join(STEP.format(n=n, text="x" * 2000) for n in range(steps))
    )
    with Aeon.from_config(
        ["provider=simulated", "mode=core", "tools=builtin", f"plan_file={workflow}", DELTA]
    ) as aeon:
        assert aeon.run(directory=directory / "run").termination_reason == "completed"
    return {
        name: (directory / "run" / name).stat().st_size for name in ("cycles.jsonl", "history.json")
    }


@pytest.mark.parametrize("name", ["cycles.jsonl", "history.json"])
def test_twice_the_steps_are_about_twice_the_size(tmp_path: Path, name: str):
    small, large = sizes(tmp_path / "small", 10), sizes(tmp_path / "large", 20)
    assert large[name] / small[name] < 2.5
