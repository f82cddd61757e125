"""Checks in configured runs: tried before the first call, stored, run once, named by plan files and rows."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon
from aeon.app.run import RunPlace
from aeon.app.trials.replay import check_recording
from aeon.checks.selection import read_outer_checks
from aeon.cli.commands.cassette import export
from aeon.domain.checks import NamedCheck
from aeon.domain.errors import ConfigError
from aeon.domain.result import RunResult
from tests.support.scripted_model import ScriptedModel, clear, profile

COUNTER = """
from pathlib import Path


def look(answer, context):
    log = Path(__file__).with_name("log")
    log.write_text(log.read_text() + "x" if log.exists() else "x")
    return "" if "milk" in answer else f"no milk for {context.task}"
"""


EXPORTED = {"answered_by": None, "note": None, "force": False, "files": None}


class Counted:
    """A check that counts how often it is run."""

    def __init__(self, folder: Path) -> None:
        self.name = f"counting_{folder.name.replace('-', '_')}"
        self._log = folder / "log"
        (folder / f"{self.name}.py").write_text(COUNTER, encoding="utf-8")

    @property
    def override(self) -> str:
        return f"convergence.checks.milk={{type: python, value: '{self.name}:look'}}"

    @property
    def count(self) -> int:
        return len(self._log.read_text()) if self._log.exists() else 0


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Counted:
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    return Counted(tmp_path)


def carry_out(model: ScriptedModel, *overrides: str, **more: Any) -> RunResult:
    with Aeon.from_config(list(overrides), adapter=model, environ={}) as aeon:
        return aeon.run("make tea", **more)


def test_what_checks_found_is_in_the_result(counted: Counted) -> None:
    result = carry_out(ScriptedModel(), counted.override, "limits.max_passes=1")
    (found,) = result.checks
    assert (found.name, found.passed, found.feedback) == ("milk", False, "no milk for make tea")
    assert result.reason_codes == ("milk",)
    assert not result.converged


def test_a_resumed_run_and_a_replay_run_no_check_again(counted: Counted, tmp_path: Path) -> None:
    model = ScriptedModel()
    run = tmp_path / "run"
    first = carry_out(model, counted.override, "limits.max_passes=1", directory=run)
    assert counted.count == 1
    with Aeon.from_config([f"resume={run}", "trust=true"], adapter=model, environ={}) as aeon:
        again = aeon.run(directory=tmp_path / "again")
    replay = ["store.mode=replay", f"store.path={run}", "trust=true"]
    with Aeon.from_config(replay, environ={}) as aeon:
        replayed = aeon.run()
    assert counted.count == 1
    assert first.checks == again.checks == replayed.checks


def test_a_replay_needs_no_module(counted: Counted, tmp_path: Path) -> None:
    run = tmp_path / "run"
    first = carry_out(ScriptedModel(), counted.override, "limits.max_passes=1", directory=run)
    (tmp_path / f"{counted.name}.py").unlink()
    sys.modules.pop(counted.name)
    with Aeon.from_config(
        ["store.mode=replay", f"store.path={run}", "trust=true"], environ={}
    ) as aeon:
        assert aeon.run().checks == first.checks


def test_a_cassette_is_replayed_with_its_checks_and_starts_nothing(
    counted: Counted, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    settings = [counted.override, "convergence.checks.hot={type: contains, value: hot}"]
    first = carry_out(ScriptedModel(), *settings, "limits.max_passes=1", directory=run)
    cassette = tmp_path / "run.aeon"
    export(Namespace(run=run, out=cassette, **EXPORTED))
    replay = ["store.mode=replay", f"store.path={cassette}"]
    with Aeon.from_config(replay, environ={}) as aeon:
        assert aeon.settings.convergence.checks["milk"].value == ""
        assert aeon.run().checks == first.checks
    assert counted.count == 1


def test_a_check_without_what_it_calls_is_refused_but_in_a_replay() -> None:
    with pytest.raises(ConfigError, match=r"checks\.mine: type python: needs a value"):
        Aeon.from_config(["convergence.checks.mine={type: python}"], environ={})


@pytest.mark.parametrize("is_required", [True, False], ids=["stopped", "ended well"])
def test_a_resumed_run_runs_a_check_again_that_does_something_else_now(
    counted: Counted, tmp_path: Path, is_required: bool
) -> None:
    run = tmp_path / "run"
    model = ScriptedModel()
    required = f"convergence.checks.milk.required={is_required}"
    first = carry_out(model, counted.override, required, "limits.max_passes=1", directory=run)
    assert first.converged is not is_required
    module = tmp_path / f"{counted.name}.py"
    module.write_text(COUNTER + "\n# mended\n", encoding="utf-8")
    with Aeon.from_config([f"resume={run}", "trust=true"], adapter=model, environ={}) as aeon:
        aeon.run(directory=tmp_path / "again")
    assert counted.count == 2


def test_a_check_with_other_settings_is_run_again(counted: Counted, tmp_path: Path) -> None:
    run = tmp_path / "run"
    model = ScriptedModel()
    carry_out(model, counted.override, "limits.max_passes=1", directory=run)
    overrides = [f"resume={run}", "trust=true", "convergence.checks.milk.required=false"]
    with Aeon.from_config(overrides, adapter=model, environ={}) as aeon:
        assert aeon.run(directory=tmp_path / "again").converged
    assert counted.count == 2


@pytest.mark.parametrize(
    ("check", "problem"),
    [
        ("{type: python, value: 'no_such_module:look'}", "No module named 'no_such_module'"),
        ("{type: regex, value: '('}", "is no regular expression"),
        ("{type: command, value: [no-such-program]}", "there is no program 'no-such-program'"),
        ("{type: tool, value: no_such_tool}", "'no_such_tool' not found"),
        ("{type: contain, value: x}", "did you mean contains"),
        ("{type: equals, value: x, files: [y]}", "unknown key"),
    ],
)
def test_what_cannot_be_run_is_refused_before_the_first_call(check: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as refused:
        Aeon.from_config([f"convergence.checks.mine={check}"], environ={})
    assert "convergence.checks.mine" in refused.value.message


@pytest.mark.parametrize(
    ("overrides", "judged"),
    [
        (["mode=auto"], 0),
        (["mode=auto", "evaluation.skip_judge_when_checks_fail=false"], 1),
        (["mode=adaptive"], 1),
        (["mode=adaptive", "evaluation.skip_judge_when_checks_fail=true"], 0),
    ],
)
def test_auto_mode_spares_the_judge_where_a_check_failed(overrides: list[str], judged: int) -> None:
    model = ScriptedModel(task_profile=profile(1))
    check = "convergence.checks.milk={type: contains, value: milk}"
    result = carry_out(model, check, "limits.max_passes=1", *overrides)
    assert model.calls.count("convergence") == judged
    assert result.reason_codes == ("milk",)


def test_a_rubric_needs_a_judge() -> None:
    rubric = "convergence.checks.kind={type: llm-rubric, value: It is kind.}"
    with pytest.raises(ConfigError, match="asks the judge, and this mode has none"):
        Aeon.from_config(["mode=core", rubric], environ={})
    Aeon.from_config(["mode=single", "answer.judge=true", rubric], environ={}).close()


@pytest.mark.parametrize("name", ["complete", "blocking_issue", "hallucination_detected"])
def test_a_check_has_no_reason_code_of_aeons_own(name: str) -> None:
    with pytest.raises(ConfigError, match="a reason code of Aeon's own"):
        Aeon.from_config([f"convergence.checks.{name}={{type: is-json}}"], environ={})


def plan_file(folder: Path, checks: dict[str, Any]) -> Path:
    steps = [
        {"id": "draft", "description": "Draft it.", "agent": "llm", "checks": checks},
        {"id": "final", "description": "Write it.", "agent": "llm", "depends_on": ["draft"]},
    ]
    path = folder / "plan.json"
    path.write_text(json.dumps({"goal": "tea", "steps": steps}), encoding="utf-8")
    return path


def test_a_steps_checks_look_at_its_output_and_may_be_configured_ones(
    counted: Counted, tmp_path: Path
) -> None:
    plan = plan_file(tmp_path, {"milk": {}, "hot": {"type": "contains", "value": "hot"}})
    model = ScriptedModel(step=[clear("hot milk"), clear("done")])
    result = carry_out(model, counted.override, f"plan_file={plan}", "mode=core")
    assert result.termination_reason == "completed"
    assert [(one.name, one.step_id, one.passed) for one in result.checks] == [
        ("draft.milk", "draft", True),
        ("draft.hot", "draft", True),
    ]


def test_a_step_cannot_be_put_to_the_judge_alone(tmp_path: Path) -> None:
    plan = plan_file(tmp_path, {"kind": {"type": "llm-rubric", "value": "It is kind."}})
    with pytest.raises(ConfigError, match="the judge is asked about the answer alone") as refused:
        Aeon.from_config([f"plan_file={plan}"], environ={})
    assert "step draft: checks.kind" in refused.value.message


def test_a_plan_file_brings_nothing_that_starts_code(tmp_path: Path) -> None:
    plan = plan_file(tmp_path, {"it": {"type": "command", "value": ["touch", "PWNED"]}})
    with pytest.raises(ConfigError, match="a check of type command starts code"):
        Aeon.from_config([f"plan_file={plan}"], environ={})


def test_a_step_that_names_no_configured_check_is_refused(tmp_path: Path) -> None:
    plan = plan_file(tmp_path, {"milk": {}})
    with pytest.raises(
        ConfigError, match=r"plan file: step draft: checks\.milk: no check of this name"
    ):
        Aeon.from_config([f"plan_file={plan}"], environ={})


def test_a_row_has_its_own_checks_in_place_of_the_configured_ones(counted: Counted) -> None:
    overrides = [
        "mode=single",
        counted.override,
        "convergence.checks.never={type: equals, value: no}",
    ]
    model = ScriptedModel(direct={"working": None, "answer": "milk"})
    with Aeon.from_config(overrides, adapter=model, environ={}) as aeon:
        run = aeon.prepare_run("make tea", checks={"milk": NamedCheck()}, row={"id": "r"})
        result = run.to_end(_unattended())
    assert [(one.name, one.passed) for one in result.checks] == [("milk", True)]


def test_a_row_is_resumed_and_replayed_with_the_checks_that_it_brought(
    counted: Counted, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    model = ScriptedModel()
    brought = read_outer_checks(
        {
            "milk": {},
            "hot": {"type": "contains", "value": "hot"},
            "good": {"type": "llm-rubric", "value": "It is tea."},
        }
    )
    settings = [counted.override, "convergence.checks.never={type: equals, value: no}"]
    with Aeon.from_config([*settings, "limits.max_passes=1"], adapter=model, environ={}) as aeon:
        row = aeon.prepare_run("make tea", checks=brought)
        first = row.to_end(_unattended(), RunPlace(directory=run))
    assert {one.name for one in first.checks} == {"milk", "hot", "good"}
    with Aeon.from_config([f"resume={run}", "trust=true"], adapter=model, environ={}) as aeon:
        assert aeon.run(directory=tmp_path / "again").checks == first.checks
    for recorded in (run, tmp_path / "again"):
        cassette = tmp_path / f"{recorded.name}.aeon"
        export(Namespace(run=recorded, out=cassette, **EXPORTED))
        checked = check_recording(cassette, [], environ={})
        assert checked.holds, checked.divergence
    assert counted.count == 1


def test_the_judgement_of_an_answer_is_replayed(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with Aeon.from_config(["mode=single", "answer.judge=true"], environ={}) as aeon:
        judged = aeon.prepare_run("make tea", answer="Pour hot water over tea leaves.")
        assert judged.to_end(_unattended(), RunPlace(directory=run)).usage.total.requests == 1
    cassette = tmp_path / "run.aeon"
    export(Namespace(run=run, out=cassette, **EXPORTED))
    checked = check_recording(cassette, [], environ={})
    assert checked.holds, checked.divergence


def _unattended() -> Any:
    from aeon.app.attendance import Attendance

    return Attendance()
