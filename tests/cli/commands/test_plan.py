"""`aeon plan`: a plan made, written down, and nothing run."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from aeon.files.located_yaml import LocatedYaml
from aeon.plan.workflow.load import load_workflow
from tests.cli.conftest import RunAeon

ROOT = Path(__file__).parents[3]
QUIET = ("provider=simulated", "progress=none")
TASK = "compare, 'a' and ${b}:\n\n  # all of it\n"


def test_a_plan_goes_to_standard_output_and_the_drawing_to_standard_error(
    aeon: RunAeon, tmp_path: Path
) -> None:
    ended = aeon("plan", f"task={TASK}", *QUIET)
    assert ended.status == 0
    assert ended.out.startswith("# SIMULATED: no model was called")
    assert "●" in ended.err
    assert "SIMULATED" in ended.err
    assert "calls to the model to carry out." in ended.err
    (kept,) = tmp_path.glob("outputs/*/*/plan.yaml")
    assert kept.read_text().split("goal:")[1] == ended.out.split("goal:")[1]
    assert f"Written to {kept.relative_to(tmp_path)}. Run it: " in ended.err
    path = tmp_path / "plan.yaml"
    path.write_text(ended.out, encoding="utf-8")
    workflow = load_workflow(path)
    assert workflow.task == TASK
    assert [warning.message for warning in workflow.warnings] == []
    assert all(step.agent == "llm" for step in workflow.content.steps)


def test_a_plan_for_which_there_are_too_few_passes_says_which_key_to_raise(
    aeon: RunAeon,
) -> None:
    ended = aeon("plan", "task=x", *QUIET, "limits.max_passes=1")
    assert re.search(
        r"It takes (\d) passes, limits\.max_passes=1 allows 1: raise it to at least \1\.", ended.err
    )


@pytest.mark.slow
def test_the_same_plan_is_written_to_a_file(aeon: RunAeon, tmp_path: Path) -> None:
    printed = aeon("plan", f"task={TASK}", *QUIET).out
    ended = aeon("plan", f"task={TASK}", *QUIET, "out=made.yaml")
    assert (ended.status, ended.out) == (0, "")
    assert (
        "Written to made.yaml. Run it: python -m aeon plan_file=made.yaml provider=simulated progress=none\n"
        in ended.err
    )
    written = (tmp_path / "made.yaml").read_text(encoding="utf-8")
    schema, rest = written.split("\n", 1)
    assert (
        tmp_path / schema.removeprefix("# yaml-language-server: $schema=")
    ).resolve() == ROOT / "schemas/workflow.json"
    assert rest.replace("plan_file=made.yaml", "plan_file=plan.yaml") == printed
    assert aeon("check", "made.yaml").status == 0


def test_inputs_are_declared_in_the_file_and_named_in_the_command(
    aeon: RunAeon, tmp_path: Path
) -> None:
    (tmp_path / "my doc.md").write_text("text")
    ended = aeon("plan", "task=x", "input_files.doc=my doc.md", "inputs.who=us, all", *QUIET)
    assert """\ninputs:\n  doc: The contents of my doc.md.\n  who: A text.\n""" in ended.out
    assert (
        """#   python -m aeon plan_file=plan.yaml input_files.doc='my doc.md' inputs.who='us, all' provider=simulated"""
        in ended.out
    )


def test_the_task_comes_from_standard_input_too(
    aeon: RunAeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TASK.encode())))
    assert aeon("plan", "task=-", *QUIET, "out=p.yaml").status == 0
    assert LocatedYaml(tmp_path / "p.yaml").value["task"] == TASK


def test_an_existing_file_is_not_overwritten_and_no_model_is_asked(
    aeon: RunAeon, tmp_path: Path
) -> None:
    (tmp_path / "p.yaml").write_text("mine")
    ended = aeon("plan", "task=x", "out=p.yaml", *QUIET)
    assert ended.status == 2
    assert "already there" in ended.err
    assert "SIMULATED" not in ended.err
    assert (tmp_path / "p.yaml").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no task is given"),
        (("task=x", "out=/proc/p.yaml"), "/proc/p.yaml cannot be written"),
        (("task=x", "out=nowhere/p.yaml"), "in a folder that exists"),
        (("task=x", "out="), "must name one file"),
        (("task=x", "out=a", "out=b"), "out= is given twice"),
        (("task=x", "--multirun"), "leave out --multirun"),
        (("task=x", "ttl.bass=1"), "did you mean `base`?"),
        (("task=x", "interaction=ask"), "no terminal to ask at"),
        (("task=x", "provider.scenario=nowhere.yaml"), "nowhere.yaml"),
    ],
)
def test_what_cannot_be_used_ends_with_2_before_anything_is_written(
    aeon: RunAeon, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    ended = aeon("plan", *arguments, *QUIET)
    assert ended.status == 2
    assert said in ended.err
    assert ended.out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_provider_that_fails_ends_with_1_and_no_file(
    aeon: RunAeon, tmp_path: Path, scenario: Path
) -> None:
    ended = aeon("plan", "task=x", "out=p.yaml", f"provider.scenario={scenario}", *QUIET)
    assert ended.status == 1
    assert "Error: " in ended.err
    assert not (tmp_path / "p.yaml").exists()


def test_a_budget_that_ends_early_leaves_the_plan_and_says_so(
    aeon: RunAeon, tmp_path: Path
) -> None:
    ended = aeon("plan", "task=x", "out=p.yaml", "limits.max_llm_calls=2", *QUIET)
    assert ended.status == 3
    text = (tmp_path / "p.yaml").read_text(encoding="utf-8")
    assert "# Cut short: " in text
    assert "Cut short: " in ended.err
    assert load_workflow(tmp_path / "p.yaml").content.steps


def test_a_budget_that_ends_before_there_is_a_plan_says_what_to_raise(
    aeon: RunAeon, tmp_path: Path
) -> None:
    ended = aeon("plan", "task=x", "limits.max_llm_calls=1", *QUIET)
    assert ended.status == 3
    assert "No plan: " in ended.err
    assert "limits" in ended.err
    assert ended.out == ""


def test_questions_and_assumptions_stand_in_the_file(aeon: RunAeon, tmp_path: Path) -> None:
    scenario = tmp_path / "asks.yaml"
    scenario.write_text(
        "calls:\n  refinement:\n    answer: {actions: [], questions:"
        " [{question: 'Which colour?', assumption: red, step_id: null}]}\n"
    )
    ended = aeon("plan", "task=x", f"provider.scenario={scenario}", *QUIET)
    assert "# Asked: Which colour?\n# Assumed: red\n" in ended.out


def test_advisories_stand_in_the_file(aeon: RunAeon, tmp_path: Path) -> None:
    scenario = tmp_path / "unreviewed.yaml"
    scenario.write_text("calls:\n  semantic_validation: {fail: refused}\n")
    ended = aeon("plan", "task=x", f"provider.scenario={scenario}", *QUIET)
    assert ended.status == 0
    assert "# Note: semantic_validation: " in ended.out


def test_the_last_lines_say_when_no_review_was_had_and_how_to_ask_for_it(
    aeon: RunAeon, tmp_path: Path
) -> None:
    scenario = tmp_path / "s.yaml"
    scenario.write_text("calls:\n  semantic_validation: {fail: refused}\n", encoding="utf-8")
    ended = aeon("plan", "task=x", *QUIET, f"provider.scenario={scenario}")
    assert ended.status == 0
    (kept,) = tmp_path.glob("outputs/*/*")
    *_, lost, steps, _written = ended.err.splitlines()
    assert lost.startswith("This plan could not be reviewed: semantic_validation: ")
    assert lost.endswith(
        f"To ask for it again: python -m aeon plan resume={kept.relative_to(tmp_path)}"
    )
    assert "calls to the model to carry out" in steps


def test_help_says_what_it_does_and_plans_nothing(aeon: RunAeon) -> None:
    ended = aeon("plan", "--help")
    assert ended.status == 0
    assert "usage: aeon plan" in ended.out
    assert "SIMULATED" not in ended.err


def test_a_plan_that_cannot_be_written_is_not_lost(
    aeon: RunAeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.open

    def full(self: Path, mode: str = "r", *rest: object, **named: object) -> object:
        if self.name == "p.yaml":
            raise OSError(28, "No space left on device")
        return real(self, mode, *rest, **named)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", full)
    ended = aeon("plan", "task=x", "out=p.yaml", *QUIET)
    assert ended.status == 1
    assert "No space left on device" in ended.err
    assert "\nsteps:\n" in ended.out


MAKES_A_TOOL_STEP = """\
calls:
  plan:
    answer:
      goal: g
      steps:
        - {step_id: add, description: add, tool: calculator, agent: null, arguments: '{"expression": "1 + 1"}',
           dependencies: [], handoff_to_next: null}
        - {step_id: ask, description: ask, tool: echo, agent: null, arguments: null, dependencies: [add],
           handoff_to_next: null}
        - {step_id: say, description: say, tool: null, agent: llm, arguments: null, dependencies: [ask],
           handoff_to_next: null}
"""


def command_in(text: str) -> list[str]:
    """The arguments of the command that a plan's file, or what is said of it, gives to run it."""
    line = next(line for line in text.splitlines() if "python -m aeon " in line)
    return shlex.split(line.split("python -m aeon ")[1])


def forecast(text: str) -> int:
    """The number of calls that is foretold in a text, the same wherever it stands."""
    (number,) = set(re.findall(r"about (\d+) (?:calls|LLM cycles)", text))
    return int(number)


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "calls"), [("core", 2), ("adaptive", 16)])
def test_the_command_runs_the_plan_as_it_was_made_and_everyone_counts_its_calls_alike(
    aeon: RunAeon, tmp_path: Path, mode: str, calls: int
) -> None:
    (tmp_path / "s.yaml").write_text(MAKES_A_TOOL_STEP)
    (tmp_path / "own" / "ttl").mkdir(parents=True)
    (tmp_path / "own" / "ttl" / "mine.yaml").write_text("base: 33\nlimit: 99\n")
    given = ("tools=builtin", f"mode={mode}", "--config-dir", "own", "ttl=mine")
    made = aeon(
        "plan",
        "task=x",
        "provider=simulated",
        "provider.scenario=s.yaml",
        *given,
        "out=my plan.yaml",
    )
    command = command_in(made.err)
    assert command == [
        "plan_file=my plan.yaml",
        "provider=simulated",
        "provider.scenario=s.yaml",
        *given,
    ]
    assert command == command_in((tmp_path / "my plan.yaml").read_text())
    ran = aeon(*command, "progress=plain")
    assert "not found in registry" not in ran.err
    checked = aeon("check", "my plan.yaml", *given)
    assert f"{calls} with mode={mode}" in checked.out
    assert (forecast(made.err), forecast(ran.err)) == (calls, calls)


def test_a_tool_that_is_not_there_costs_a_call_whoever_counts(
    aeon: RunAeon, tmp_path: Path
) -> None:
    (tmp_path / "w.yaml").write_text(
        "goal: g\nsteps:\n  - {id: a, description: d, tool: gone, arguments: {}}\n"
        "  - {id: b, description: d, tool: calculator, arguments: {expresion: 1 + 1}}\n"
    )
    assert "2 with mode=core" in aeon("check", "w.yaml", "tools=builtin").out
    ran = aeon(
        "plan_file=w.yaml", "mode=core", "tools=builtin", "provider=simulated", "progress=plain"
    )
    assert forecast(ran.err) == 2


def test_texts_of_any_kind_stand_in_the_command_on_one_line(aeon: RunAeon, tmp_path: Path) -> None:
    text = "it's\ntwo \\ lines\t; $(rm x)"
    ended = aeon("plan", f"task={TASK}", f"inputs.who={text}", *QUIET, "out=p.yaml")
    line = next(line for line in ended.err.splitlines() if "python -m aeon " in line)
    words = line.split("python -m aeon ")[1]
    shown = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {words}"], capture_output=True, text=True, check=True
    ).stdout
    assert shown.split("\0")[:-1] == ["plan_file=p.yaml", f"inputs.who={text}", *QUIET]
    assert f"#   python -m aeon {words}\n" in (tmp_path / "p.yaml").read_text()
