"""The worked examples run as they are, in both modes, without a model."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import RunAeon
from tests.e2e.conftest import whole

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples" / "workflows").glob("*/workflow.yaml"))
COMMAND = re.compile(r"^#   python -m aeon (?P<rest>(?:.*\\\n#)*.*)$", re.MULTILINE)


def arguments(example: Path) -> list[str]:
    """The overrides of the command in the example's head, with paths that hold from anywhere."""
    found = COMMAND.search(example.read_text(encoding="utf-8"))
    assert found is not None
    words = shlex.split(found["rest"].replace("\\\n#", " "))
    return [re.sub(r"=(examples/)", f"={ROOT}/\\1", word) for word in words]


def test_there_are_four_examples() -> None:
    names = [path.parent.name for path in EXAMPLES]
    assert names == ["data-question", "design", "document-review", "regions"]


@pytest.mark.parametrize("mode", ["core", "adaptive"])
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.parent.name)
def test_the_command_in_its_head_runs_every_step(
    aeon: RunAeon, tmp_path: Path, example: Path, mode: str
) -> None:
    tools = (
        [] if any(word.startswith("tools=") for word in arguments(example)) else ["tools=builtin"]
    )
    ended = aeon(
        *arguments(example),
        *tools,
        f"mode={mode}",
        "provider=simulated",
        "provider.seed=1",
        "progress=plain",
    )
    run = whole(ended, tmp_path)
    assert run.status == 0
    assert set(run.statuses.values()) == {"complete"}
    assert run.advisories("unknown_tool") == []
    assert "Warning: " not in run.err
    assert len(run.statuses) == len(run.steps) > 4


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["core", "adaptive"])
def test_the_figures_of_the_data_question_are_worked_out_by_tools(
    aeon: RunAeon, tmp_path: Path, mode: str
) -> None:
    (example,) = (path for path in EXAMPLES if path.parent.name == "data-question")
    ended = aeon(
        *arguments(example),
        f"mode={mode}",
        "provider=simulated",
        "provider.seed=1",
        "progress=none",
    )
    run = whole(ended, tmp_path)
    figures = {
        name: float(run.steps[name]["step_output"]) for name in ("north", "south", "west", "all")
    }
    assert all(-100 < figure < 1000 for figure in figures.values())
    assert min(figures.values()) < figures["all"] < max(figures.values())
    calls = [line for line in run.cycles if line["tool_calls"]]
    assert len(calls) == 5
    assert {line["cycle"] for line in calls} == {None}


@pytest.mark.parametrize(("target", "missing"), [("15", "20"), ("10", None)])
def test_the_regions_are_worked_out_one_by_one_and_what_is_missing_only_where_it_is(
    aeon: RunAeon, tmp_path: Path, target: str, missing: str | None
) -> None:
    (example,) = (path for path in EXAMPLES if path.parent.name == "regions")
    given = [word for word in arguments(example) if not word.startswith("inputs.target=")]
    simulated = ("mode=core", "provider=simulated", "progress=none")
    run = whole(aeon(*given, f"inputs.target={target}", *simulated), tmp_path)
    assert run.status == 0
    outputs = {name: step["step_output"] for name, step in run.steps.items()}
    assert [outputs[f"growth[{number}]"] for number in range(3)] == ["16.1", "5", "26"]
    assert run.statuses["shortfall"] == ("complete" if missing else "skipped")
    assert outputs["shortfall"] == missing


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.parent.name)
def test_its_check_finds_nothing(aeon: RunAeon, example: Path) -> None:
    options = [word for word in arguments(example) if not word.startswith("plan_file=")]
    ended = aeon("check", str(example), *options)
    assert (ended.status, ended.err) == (0, "")
    assert "warning" not in ended.out
