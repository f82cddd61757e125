"""A run reports where it was not judged as its thresholds were calibrated."""

from pathlib import Path
from typing import Any

import pytest

from aeon.app.aeon import Aeon
from aeon.app.attendance import Attendance
from aeon.config.load import compose
from aeon.domain.assessment import Calibration
from aeon.domain.result import RunResult
from aeon.report.ending import headline, open_points
from tests.support.scripted_model import ScriptedModel, assessment, plan, planned


def calibrate(aeon: Aeon, **fields: Any) -> Calibration:
    """The calibration of the judge of an Aeon."""
    given = {
        "threshold": 0.9,
        "max_false": 0.1,
        "at_most": 0.08,
        "passes": 3,
        "models": ("scripted",),
        "hashes": dict(aeon.judge_digests),
        "good": 120,
        "bad": 60,
        "repeat": 1,
        "sensitivity": 0.9,
        "specificity": 0.95,
    }
    return Calibration.model_validate({**given, **fields})


def run(*overrides: str, model: ScriptedModel | None = None, **fields: Any) -> RunResult:
    """A run whose thresholds were calibrated with the packaged judge."""
    model = model or ScriptedModel()
    settings = compose(["mode=adaptive", *overrides])
    packaged = Aeon(compose(["mode=adaptive"]), adapter=model)
    changed = {"calibration": calibrate(packaged, **fields)}
    convergence = settings.convergence.model_copy(update=changed)
    settings = settings.model_copy(update={"convergence": convergence})
    return Aeon(settings, adapter=model).run("plan a move")


def advice(result: RunResult) -> list[str]:
    return [one.message for one in result.advisories if one.kind == "not_calibrated"]


def test_a_run_that_is_judged_as_calibrated_says_nothing() -> None:
    result = run()
    assert result.converged
    assert advice(result) == []


def test_without_a_calibration_nothing_is_said() -> None:
    result = Aeon(compose(["mode=adaptive"]), adapter=ScriptedModel()).run("plan a move")
    assert advice(result) == []


@pytest.mark.parametrize(
    ("overrides", "fields", "words"),
    [
        ((), {"models": ("other",)}, "the judge was scripted, and the calibrated one is other"),
        (
            ("convergence.criteria.x=It rhymes",),
            {},
            "the judge's criteria changed since the calibration",
        ),
        (
            (),
            {"hashes": {"templates": "0", "schema": "0"}},
            "the judge's prompt templates, schema, criteria, parameters (roles.grader) changed",
        ),
        (
            ("roles.grader.effort=low",),
            {},
            "the judge's parameters (roles.grader) changed since the calibration",
        ),
        (("convergence.coherence=0.8",), {}, "a threshold is below the calibrated 0.9"),
        (("convergence.margin=0.05",), {}, "convergence.margin takes the median"),
    ],
)
def test_what_is_not_as_it_was_calibrated_stands_in_result_and_headline(
    overrides: tuple[str, ...], fields: dict[str, Any], words: str
) -> None:
    met = [{"name": "x", "met": True, "reason": "it does"}] if "rhymes" in str(overrides) else []
    result = run(*overrides, model=ScriptedModel(convergence=assessment(criteria=met)), **fields)
    (message,) = advice(result)
    assert message.startswith("The thresholds promise nothing for this run: ")
    assert words in message
    assert "not judged as the thresholds were calibrated" in headline(result)
    assert [text for name, text in open_points(result) if name == "judge"] == [message]


THREE_STEPS = plan("a", planned("b", "a"), planned("c", "b"))


def test_a_run_that_could_have_converged_in_more_passes_than_was_promised_says_so() -> None:
    model = ScriptedModel(
        plan=THREE_STEPS, convergence=[assessment(0.5), assessment(0.5), assessment()]
    )
    result = run(model=model, passes=2)
    assert result.converged
    assert "it could have converged in 3 passes, and the promise is for 2" in advice(result)[0]


def test_where_only_a_whole_answer_converges_passes_before_it_do_not_count() -> None:
    model = ScriptedModel(
        plan=THREE_STEPS, convergence=[assessment(0.5), assessment(), assessment()]
    )
    result = run("convergence.when=plan_done", model=model, passes=1)
    assert result.converged
    assert advice(result) == []


def test_the_page_shows_it(tmp_path: Path) -> None:
    model = ScriptedModel()
    settings = compose(["mode=adaptive", "observability.report=true"])
    changed = {"calibration": calibrate(Aeon(settings, adapter=model), models=("other",))}
    convergence = settings.convergence.model_copy(update=changed)
    settings = settings.model_copy(update={"convergence": convergence})
    Aeon(settings, adapter=model).run("plan a move", directory=tmp_path / "run")
    page = (tmp_path / "run/report.html").read_text()
    assert "not judged as the thresholds were calibrated" in page
    assert "the calibrated one is other" in page


def test_an_answer_that_is_given_is_judged_by_the_same_prompt_as_one_that_was_asked_for() -> None:
    asked = ScriptedModel(direct={"working": None, "answer": "42"})
    given = ScriptedModel()
    settings = compose(["mode=single", "answer.judge=true"])
    Aeon(settings, adapter=asked).run("six by seven")
    run_of_answer = Aeon(settings, adapter=given).prepare_run("six by seven", answer="42")
    result = run_of_answer.to_end(Attendance())
    assert result.answer == "42"
    assert given.calls == ["convergence"]
    assert given.prompts("convergence") == asked.prompts("convergence")
