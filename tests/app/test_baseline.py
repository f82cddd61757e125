"""One direct call to the task of a run, and how the run's answer compares with its answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon, load
from aeon.cli.main import main
from aeon.domain.errors import AuthenticationFailed, ConfigError
from aeon.domain.request import LLMRequest, LLMResponse
from aeon.domain.result import BaselineReport
from aeon.report.ending import describe_baseline, headline
from tests.support.scripted_model import ScriptedModel, clear, profile

BASELINE = ["answer.baseline=true"]


def preferring(text: str) -> Any:
    def compare(request: LLMRequest) -> dict[str, Any]:
        first = request.messages[1].content.index("The second answer")
        better = "first" if request.messages[1].content.index(text) < first else "second"
        return {"checked": None, "explanation": f"{text} is better.", "better": better}

    return compare


def model(**answers: Any) -> ScriptedModel:
    return ScriptedModel(step=clear("The run's answer."), **answers)


def run(scripted: ScriptedModel, directory: Path | None = None, *overrides: str) -> Any:
    with Aeon.from_config([*BASELINE, *overrides], adapter=scripted, environ={}) as aeon:
        return aeon.run("make tea", inputs={"note": "mind the milk"}, directory=directory)


@pytest.mark.parametrize(
    ("preferred", "outcome", "words"),
    [
        ("The run's answer.", "better", "better than one direct call, at"),
        ("The whole answer.", "worse", "worse than one direct call, at"),
    ],
)
def test_the_result_says_which_answer_is_better_and_at_what_price(
    preferred: str, outcome: str, words: str
) -> None:
    scripted = model(comparison=preferring(preferred))
    result = run(scripted)
    assert result.baseline.outcome == outcome
    assert result.baseline.answer == "The whole answer."
    assert result.baseline.times == pytest.approx(result.usage.total.total_tokens / 15)
    assert words in headline(result)
    assert scripted.calls[-3:] == ["direct", "comparison", "comparison"]


def test_so_many_times_the_tokens_are_unknown_where_a_server_reported_no_usage() -> None:
    class Silent(ScriptedModel):
        def complete(self, request: LLMRequest) -> LLMResponse:
            return replace(super().complete(request), usage_reported=False)

    result = run(Silent(step=clear("The run's answer.")))
    assert result.baseline.times is None


def test_the_direct_call_is_given_the_task_and_inputs_and_is_no_part_of_the_runs_figures() -> None:
    scripted = model()
    result = run(scripted)
    (prompt,) = scripted.prompts("direct")
    assert "mind the milk" in prompt
    assert "direct" not in result.usage.by_call
    assert result.baseline.tokens == 15


@pytest.mark.parametrize(("depth", "worker", "grader"), [(1, "low", "medium"), (5, "high", "high")])
def test_worker_and_grader_have_the_effort_that_the_profile_of_the_run_gave_them(
    depth: int, worker: str, grader: str
) -> None:
    scripted = model(task_profile=profile(reasoning_depth=depth))
    run(scripted)
    efforts = {one.call: one.parameters.effort for one in scripted.requests}
    assert efforts["step"] == efforts["direct"] == worker
    assert efforts["convergence"] == efforts["comparison"] == grader


def test_an_effort_of_the_role_wins_and_a_run_without_profile_has_none() -> None:
    scripted = model()
    run(scripted, None, "roles.worker.effort=minimal")
    efforts = {one.call: one.parameters.effort for one in scripted.requests}
    assert efforts["direct"] == "minimal"
    scripted = model()
    run(scripted, None, "mode=core")
    efforts = {one.call: one.parameters.effort for one in scripted.requests}
    assert efforts["step"] is efforts["direct"] is efforts["comparison"] is None


def test_it_has_a_folder_of_its_own(tmp_path: Path) -> None:
    result = run(model(), tmp_path / "run")
    assert result.baseline.folder == "baseline"
    direct = load(tmp_path / "run" / "baseline")
    assert (direct.answer, direct.termination_reason) == ("The whole answer.", "completed")
    assert load(tmp_path / "run").baseline == result.baseline


def test_a_direct_call_that_fails_leaves_the_run_as_it_is() -> None:
    result = run(model(direct="no JSON at all"))
    assert result.converged
    assert result.baseline.outcome == "unknown"
    assert describe_baseline(result.baseline) == "could not be compared with one direct call"


@pytest.mark.parametrize("call", ["direct", "comparison"])
def test_a_comparison_that_failed_has_its_cause(call: str) -> None:
    result = run(model(**{call: AuthenticationFailed("no such key", status=401)}))
    assert result.baseline.outcome == "unknown"
    assert result.baseline.explanations == ("no such key",)


@pytest.mark.parametrize(
    ("cap", "cause"),
    [
        ("max_llm_calls=7", "the caps of the run left too few calls for a comparison"),
        ("max_tokens=100", "the direct call ended max_tokens"),
    ],
)
def test_a_comparison_that_was_not_made_has_its_cause(cap: str, cause: str) -> None:
    result = run(model(), None, f"limits.{cap}")
    assert result.baseline.outcome == "unknown"
    assert result.baseline.explanations == (cause,)


def test_checks_are_run_on_the_direct_answer_too() -> None:
    result = run(model(), None, "convergence.checks.whole={type: contains, value: whole}")
    assert [check.passed for check in result.baseline.checks] == [True]
    assert [check.passed for check in result.checks] == [False]


def test_a_run_that_is_one_direct_call_is_refused() -> None:
    with pytest.raises(ConfigError, match="mode=single is that call"):
        Aeon.from_config(["mode=single", *BASELINE, "provider=simulated"], environ={})


@pytest.mark.parametrize(
    ("outcome", "times", "words"),
    [
        ("better", 11.2, "better than one direct call, at 11.2 times the tokens"),
        ("as_good", None, "as good as one direct call"),
        ("worse", 134.4, "worse than one direct call, at 134 times the tokens"),
    ],
)
def test_the_sentence_is_plain(outcome: Any, times: float | None, words: str) -> None:
    report = BaselineReport(outcome=outcome, answer="a", tokens=1, times=times)
    assert describe_baseline(report) == words


@pytest.mark.slow
def test_the_command_measures_a_finished_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["task=make tea", "provider=simulated", "hydra.run.dir=run"]) == 0
    assert main(["baseline", "run"]) == 0
    assert "As good as one direct call, at " in capsys.readouterr().out
    assert load(tmp_path / "run").baseline is not None
    assert "one direct call" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")


def test_a_folder_without_a_run_is_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["baseline", "nowhere"]) == 2
    assert "this is not a run's directory" in capsys.readouterr().err


def test_a_resume_makes_no_direct_call_again(tmp_path: Path) -> None:
    run(model(comparison=preferring("The run's answer.")), tmp_path / "run")
    scripted = model()
    for name, before in (("again", "run"), ("once more", "again")):
        overrides = [f"resume={tmp_path / before}"]
        with Aeon.from_config(overrides, adapter=scripted, environ={}) as aeon:
            result = aeon.run(directory=tmp_path / name)
        assert result.baseline is not None
        assert (result.baseline.outcome, result.baseline.folder) == ("better", "baseline")
    assert scripted.calls == []


def test_a_direct_call_that_was_cut_off_is_all_that_a_resume_makes(tmp_path: Path) -> None:
    run(model(comparison="no JSON at all"), tmp_path / "run")
    scripted = model(comparison=preferring("The run's answer."))
    with Aeon.from_config([f"resume={tmp_path / 'run'}"], adapter=scripted, environ={}) as aeon:
        result = aeon.run(directory=tmp_path / "again")
    assert result.baseline is not None
    assert result.baseline.outcome == "better"
    assert scripted.calls == ["comparison", "comparison"]


def test_a_replay_of_a_run_gives_its_baseline_again(tmp_path: Path) -> None:
    run(model(comparison=preferring("The run's answer.")), tmp_path / "run")
    overrides = ["store.mode=replay", f"store.path={tmp_path / 'run'}"]
    with Aeon.from_config(overrides, environ={}) as aeon:
        result = aeon.run()
    assert result.baseline is not None
    assert (result.baseline.outcome, result.baseline.answer) == ("better", "The whole answer.")


def test_a_recording_without_a_direct_call_is_replayed_without_a_baseline(tmp_path: Path) -> None:
    with Aeon.from_config([], adapter=model(), environ={}) as aeon:
        aeon.run("make tea", directory=tmp_path / "run")
    warnings: list[str] = []
    overrides = ["store.mode=replay", f"store.path={tmp_path / 'run'}", *BASELINE]
    with Aeon.from_config(overrides, environ={}) as aeon:
        result = aeon.run(warn=warnings.append)
    assert result.baseline is None
    assert warnings == ["answer.baseline: the recording has no direct call"]
