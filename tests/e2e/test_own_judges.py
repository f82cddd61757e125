"""The examples of docs/components.md, as a person uses them: one class and one key."""

from __future__ import annotations

from pathlib import Path

import pytest

from aeon import Aeon
from aeon.domain.result import RunResult
from aeon.report.patterns import find_patterns
from aeon.report.record import load_record
from tests.support.scripted_model import ScriptedModel, assessment, clear

EXAMPLES = Path(__file__).parents[2] / "examples" / "components"


@pytest.fixture(autouse=True)
def beside_the_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))


def judges_of(model: ScriptedModel) -> list[str | None]:
    """The model of each assessment that was asked for."""
    return [each.parameters.model for each in model.requests if each.call == "convergence"]


def run(model: ScriptedModel, factory: str, directory: Path) -> RunResult:
    overrides = ["provider=custom", f"components.convergence={factory}", "limits.max_passes=1"]
    with Aeon.from_config(overrides, environ={}, adapter=model) as aeon:
        return aeon.run("do it", directory=directory)


@pytest.mark.parametrize(
    ("votes", "converged"),
    [((1.0, 0.2, 1.0), True), ((0.2, 1.0, 0.2), False), ((1.0, 1.0, 1.0), True)],
)
def test_the_majority_of_three_judges_decides(
    votes: tuple[float, ...], converged: bool, tmp_path: Path
):
    model = ScriptedModel(convergence=[assessment(score) for score in votes])
    result = run(model, "judges:Vote", tmp_path / "run")
    assert len(judges_of(model)) == 3
    assert result.converged is converged
    assert "convergence: judges:Vote" in (tmp_path / "run" / "report.html").read_text()


def test_each_judge_has_a_model_of_its_own_if_it_is_given_one(tmp_path: Path):
    model = ScriptedModel(convergence=assessment(1.0))
    factory = "{factory: 'judges:Vote', options: {models: [small, large]}}"
    result = run(model, factory, tmp_path / "run")
    assert judges_of(model) == ["small", "large"]
    assert result.converged


def test_an_assessment_costs_a_cycle_for_each_judge(tmp_path: Path):
    three = run(ScriptedModel(convergence=assessment(1.0)), "judges:Vote", tmp_path / "a")
    one = run(ScriptedModel(convergence=assessment(1.0)), "judges:MustParse", tmp_path / "b")
    assert three.ttl.used - one.ttl.used == 2


@pytest.mark.parametrize(("answer", "converged"), [("total = 1 + 2", True), ("total = ", False)])
def test_a_check_blocks_convergence_whatever_the_judge_says(
    answer: str, converged: bool, tmp_path: Path
):
    model = ScriptedModel(convergence=assessment(1.0), step=clear(answer))
    result = run(model, "judges:MustParse", tmp_path / "run")
    assert result.scores is not None
    assert result.scores.completeness_score == 1.0
    assert result.converged is converged
    assert ("no_python" in result.reason_codes) is not converged


def test_a_reason_that_only_a_judge_of_ones_own_knows_is_named_as_that(tmp_path: Path):
    model = ScriptedModel(convergence=assessment(1.0), step=clear("total = "))
    run(model, "judges:MustParse", tmp_path / "run")
    record = load_record(tmp_path / "run")
    assert [(one.code, one.kind) for one in find_patterns(record).blockers] == [
        ("no_python", "reason")
    ]
    page = (tmp_path / "run" / "report.html").read_text()
    assert "The judge gave the reason <code>no_python</code>" in page
    assert "The answer is no Python" in page
    assert "convergence.criteria.no_python" not in page
