"""Checks in a run: they decide, whatever the judge says, and refinement has to answer them."""

from __future__ import annotations

from typing import Any

from aeon.domain import events
from aeon.domain.checks import ComparingCheck
from aeon.domain.errors import Truncated
from aeon.domain.history import Outcome
from aeon.domain.request import LLMRequest
from aeon.execution.settings import ExecutionSettings
from tests.checks.builders import run_checks
from tests.kernel.build import run
from tests.support.scripted_model import (
    ScriptedModel,
    add,
    assessment,
    clear,
    plan,
    planned,
    refinement,
)

BERLIN = {"berlin": {"type": "contains", "value": "Berlin"}}


def checked(model: ScriptedModel, settings: dict[str, Any], **options: Any) -> Outcome:
    return run(model, checks=run_checks(settings), **options)


def step_after(target: str) -> dict[str, Any]:
    return add("b", target, addresses_issues=["check:berlin"])


def mending_model() -> ScriptedModel:
    return ScriptedModel(
        step=[clear("Paris"), clear("Berlin")],
        refinement=refinement(step_after("only")),
    )


def test_a_required_check_that_fails_blocks_whatever_the_judge_says():
    outcome = checked(ScriptedModel(), BERLIN, ttl=8)
    assert not outcome.converged
    assert outcome.history.passes[1].evaluation_results.convergence.reason_codes == ("berlin",)


def test_what_a_check_says_goes_into_refinement_word_for_word_and_binds_it():
    model = mending_model()
    outcome = checked(model, BERLIN)
    assert outcome.converged
    record = outcome.history.passes[1].refinement
    assert record.triggers == ("failed_check:check:berlin",)
    assert record.unanswered == ()
    prompt = model.prompts("refinement")[0]
    assert '"type":"failed_check","severity":"HIGH"' in prompt.replace(" ", "")
    assert 'The answer must contain \\"Berlin\\".' in prompt


def test_a_refinement_that_leaves_a_failed_check_alone_is_asked_again_and_reported():
    model = ScriptedModel(refinement=refinement())
    outcome = checked(model, BERLIN)
    assert outcome.termination_reason == "stalled"
    assert outcome.history.passes[1].refinement.unanswered == ("check:berlin",)
    assert "repair" in model.calls
    assert any(one.kind == "unanswered_issue" for one in outcome.state.advisories)


def test_the_judge_is_shown_what_checks_found():
    model = mending_model()
    checked(model, BERLIN)
    first, second = model.prompts("convergence")
    kind = '{"name":"berlin","type":"contains","passed":'
    failed = rf'{kind}false,"feedback":"The answer must contain \"Berlin\"."}}'
    assert failed in first
    assert rf'{kind}true,"condition":"must contain \"Berlin\""}}' in second


def test_checks_cost_no_cycle_and_are_recorded_with_their_pass():
    seen: list[events.Recorded] = []
    outcome = checked(ScriptedModel(step=clear("Berlin")), BERLIN, seen=seen)
    plain = run(ScriptedModel(step=clear("Berlin")))
    assert outcome.state.ttl_used == plain.state.ttl_used
    (found,) = outcome.history.passes[1].evaluation_results.checks
    assert found.passed
    assert outcome.checks == (found,)
    (done,) = [each.event for each in seen if isinstance(each.event, events.ChecksDone)]
    assert done.checks == (found,)


def test_the_judge_is_spared_where_a_check_has_failed():
    model = mending_model()
    outcome = checked(model, BERLIN, skip_judge_when_checks_fail=True)
    assert outcome.converged
    assert model.calls.count("convergence") == 1
    first = outcome.history.passes[1].evaluation_results
    assert first.validation_report is None
    assert first.convergence.reason_codes == ("berlin",)


def test_without_the_judge_a_run_that_cannot_go_on_is_stalled():
    outcome = checked(ScriptedModel(), BERLIN, skip_judge_when_checks_fail=True)
    assert outcome.termination_reason == "stalled"


def test_a_check_that_is_not_required_blocks_nothing():
    optional = {"berlin": {**BERLIN["berlin"], "required": False}}
    assert checked(ScriptedModel(), optional).converged


def test_an_unfinished_answer_that_fails_calls_for_no_refinement():
    model = ScriptedModel(
        plan=plan("a", planned("b", "a")),
        step=[clear("Paris"), clear("Berlin")],
    )
    outcome = checked(model, BERLIN)
    assert outcome.converged
    assert outcome.history.passes[1].refinement is None


def test_in_core_mode_a_required_check_decides_how_the_run_ends():
    failed = checked(ScriptedModel(), BERLIN, mode="core", base_ttl=25)
    assert failed.termination_reason == "check_failed"
    assert [check.passed for check in failed.checks] == [False]
    passed = checked(ScriptedModel(step=clear("Berlin")), BERLIN, mode="core", base_ttl=25)
    assert passed.termination_reason == "completed"


def test_in_single_mode_a_required_check_decides_how_the_run_ends():
    failed = checked(ScriptedModel(), BERLIN, mode="single", base_ttl=25)
    assert failed.termination_reason == "check_failed"


def test_a_rubric_is_a_criterion_of_the_judges():
    met = {"name": "kind", "met": False, "reason": "It is rude."}
    model = ScriptedModel(convergence=assessment(criteria=[met]))
    rubric = {"type": "llm-rubric", "value": "It is kind."}
    outcome = checked(model, {"kind": rubric}, ttl=8)
    found = outcome.history.passes[1].evaluation_results
    assert found.convergence.reason_codes == ("kind",)
    assert [(check.name, check.passed) for check in found.checks] == [("kind", False)]
    assert checked(model, {"kind": {**rubric, "required": False}}, ttl=8).converged


def test_checks_look_at_what_a_failed_step_has_left():
    broken = ScriptedModel(plan=plan("a", "b"), step=[clear("Berlin"), Truncated("cut off")])
    outcome = checked(broken, BERLIN, mode="core", base_ttl=25)
    assert outcome.termination_reason == "step_failed"
    assert [check.passed for check in outcome.checks] == [True]


def test_of_several_samples_the_first_that_passes_the_checks_is_taken():
    def answer(request: LLMRequest) -> dict[str, Any]:
        return {"working": None, "answer": ("Paris", "Berlin", "Rome")[request.sample]}

    checks = run_checks(BERLIN)
    settings = ExecutionSettings(samples=3, select="check", max_parallel=1)
    model = ScriptedModel(direct=answer)
    more = {"execution": settings, "check": checks.run_on_sample, "checks": checks}
    outcome = run(model, mode="single", base_ttl=25, **more)
    assert outcome.termination_reason == "completed"
    assert outcome.answer == "Berlin"
    assert len(model.requests) == 2


def test_a_pass_whose_answer_is_to_come_is_checked_at_its_steps_alone():
    of_a = {"a": {"tea": ComparingCheck(type="contains", value="tea")}}
    checks = run_checks(BERLIN, by_step=of_a, waits_for_answer=True)
    better = add("a2", addresses_issues=["check:a.tea"])
    model = ScriptedModel(
        plan=plan("a", planned("b", "a")),
        step=[clear("coffee"), clear("Berlin"), clear("Berlin")],
        refinement=[refinement(), refinement(better)],
    )
    outcome = run(model, checks=checks, evaluates_whole_answers=True, ttl=12)
    first = outcome.history.passes[1]
    assert [check.name for check in first.evaluation_results.checks] == ["a.tea"]
    assert first.evaluation_results.convergence.reason_codes == ("answer_awaited", "a.tea")
    assert first.refinement.triggers == ("failed_check:check:a.tea",)
    later = outcome.history.passes[2].evaluation_results.checks
    assert [check.name for check in later] == ["berlin", "a.tea"]
