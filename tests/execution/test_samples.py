"""Several answers to one step: how many are asked for, and which is chosen."""

from __future__ import annotations

from threading import Barrier, Event
from typing import Any

import pytest

from aeon.domain.checks import CheckOutcome
from aeon.domain.errors import (
    AeonError,
    AuthenticationFailed,
    LimitReached,
    ServerFailed,
    StopRequested,
    StoreFailed,
    StoreMiss,
)
from aeon.domain.history import Outcome, StepResult
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.request import LLMRequest
from aeon.execution.outcome import Worked
from aeon.execution.samples import Sample, choose_by_checks, choose_by_vote
from aeon.execution.settings import ExecutionSettings
from aeon.kernel.control import RunControl
from aeon.llm.stack.limits import LimitSettings
from tests.kernel.build import advisories, run
from tests.support.scripted_model import ScriptedModel, clear, plan, planned


def sample(number: int, text: str, *checks: CheckOutcome) -> Sample:
    step = PlanStep(step_id="answer", description="d", status="complete", step_output=text)
    result = StepResult(step_id="answer", step_output=text)
    return Sample(number, Worked(step, result), checks)


def found(name: str, *, passed: bool, required: bool = True, weight: float = 1) -> CheckOutcome:
    return CheckOutcome(name=name, type="equals", passed=passed, required=required, weight=weight)


def test_the_answer_given_most_often_wins_and_the_first_among_equals() -> None:
    votes = [sample(0, "14"), sample(1, "15"), sample(2, "15.0"), sample(3, "16")]
    chosen, reason = choose_by_vote(votes)
    assert (chosen.number, reason) == (1, "2 of 4 votes")
    assert choose_by_vote(votes[:2])[0].number == 0


def test_an_empty_answer_has_no_vote_where_there_is_another() -> None:
    votes = [sample(0, ""), sample(1, "15"), sample(2, " \n")]
    chosen, reason = choose_by_vote(votes)
    assert (chosen.number, reason) == (1, "1 of 1 votes; 2 of 3 answers were empty")
    assert choose_by_vote([votes[0], votes[2]])[0].number == 0


def test_the_first_that_passes_the_required_checks_wins() -> None:
    drawn = [
        sample(0, "a", found("r", passed=False), found("o", passed=True, required=False, weight=9)),
        sample(1, "b", found("r", passed=True)),
        sample(2, "c", found("r", passed=True)),
    ]
    assert choose_by_checks(drawn)[0].number == 1


def test_without_one_that_passes_the_weight_of_the_passed_checks_decides() -> None:
    light = sample(0, "a", found("r", passed=False), found("x", passed=True, weight=1))
    heavy = sample(1, "b", found("r", passed=False), found("y", passed=True, weight=2))
    chosen, reason = choose_by_checks([light, heavy])
    assert chosen.number == 1
    assert "no sample passed" in reason


def test_answers_that_no_check_ran_on_are_not_said_to_have_passed() -> None:
    chosen, reason = choose_by_checks([sample(0, "a"), sample(1, "b")])
    assert (chosen.number, reason) == (0, "the first that could be used; no check ran on it")


def numbered(request: LLMRequest) -> dict[str, Any]:
    return {"working": None, "answer": f"answer {request.sample}"}


def single(model: ScriptedModel, **options: Any) -> Outcome:
    check = {"check": options.pop("check")} if "check" in options else {}
    settings = ExecutionSettings(**options)
    return run(model, mode="single", base_ttl=25, execution=settings, **check)


def result_of(outcome: Outcome) -> StepResult:
    return outcome.history.passes[-1].execution_results["answer"]


def test_each_sample_is_a_request_of_its_own_and_a_cycle() -> None:
    model = ScriptedModel(direct=numbered)
    outcome = single(model, samples=4)
    assert sorted(request.sample for request in model.requests) == [0, 1, 2, 3]
    assert len({request.site.cycle for request in model.requests}) == 4
    assert outcome.state.ttl_used == 4
    assert outcome.answer == "answer 0"
    record = result_of(outcome).samples
    assert record is not None
    assert (record.asked, record.usable, record.chosen) == (4, 4, 0)


def test_a_vote_takes_the_commonest() -> None:
    def answer(request: LLMRequest) -> dict[str, Any]:
        return {"working": None, "answer": "15" if request.sample else "14"}

    outcome = single(ScriptedModel(direct=answer), samples=3, select="vote")
    assert outcome.answer == "15"


def test_a_sample_that_fails_is_left_out() -> None:
    def answer(request: LLMRequest) -> Any:
        return ServerFailed("no", status=500) if request.sample == 0 else numbered(request)

    outcome = single(ScriptedModel(direct=answer), samples=2)
    assert outcome.answer == "answer 1"
    record = result_of(outcome).samples
    assert record is not None
    assert (record.asked, record.usable) == (2, 1)


def test_where_all_fail_the_run_fails_as_with_one() -> None:
    outcome = single(ScriptedModel(direct=ServerFailed("no", status=500)), samples=3)
    assert outcome.termination_reason == "failed"


def test_nothing_more_is_asked_once_the_checks_pass() -> None:
    model = ScriptedModel(direct=numbered)

    def check(_: Plan, step: PlanStep) -> list[CheckOutcome]:
        return [found("is_second", passed=step.step_output == "answer 1")]

    outcome = single(model, samples=8, select="check", max_parallel=1, check=check)
    assert outcome.answer == "answer 1"
    assert len(model.requests) < 8


def test_a_knock_out_asks_both_orders_of_each_pair() -> None:
    def prefer(request: LLMRequest) -> dict[str, Any]:
        shown = request.messages[1].content
        better = "first" if shown.index("answer 2") < shown.index("The second") else "second"
        return {"checked": None, "explanation": "It has more.", "better": better}

    def compare(request: LLMRequest) -> dict[str, Any]:
        if "answer 2" in request.messages[1].content:
            return prefer(request)
        return {"checked": None, "explanation": "Both do.", "better": "neither"}

    model = ScriptedModel(direct=numbered, comparison=compare)
    outcome = single(model, samples=3, select="pairwise")
    assert outcome.answer == "answer 2"
    assert model.calls.count("comparison") == 4
    assert outcome.state.ttl_used == 7


def prefer_later_number(request: LLMRequest) -> dict[str, Any]:
    shown = request.messages[1].content
    one, other = sorted(range(4), key=lambda number: shown.find(f"answer {number}"))[-2:]
    better = "first" if one > other else "second"
    return {"checked": None, "explanation": "It has more.", "better": better}


ALWAYS_FIRST: dict[str, Any] = {"checked": None, "explanation": "It has more.", "better": "first"}


def prefer_the_last(request: LLMRequest) -> dict[str, Any]:
    shown = request.messages[1].content
    if "answer 3" not in shown:
        return ALWAYS_FIRST
    better = "first" if shown.index("answer 3") < shown.index("The second") else "second"
    return {"checked": None, "explanation": "It has more.", "better": better}


@pytest.mark.parametrize(
    ("samples", "comparison", "chosen", "reason"),
    [
        (2, prefer_later_number, 1, "the winner of 1 comparison in pairs"),
        (4, prefer_later_number, 3, "the winner of 3 comparisons in pairs"),
        (2, ALWAYS_FIRST, 0, "the first that could be used; 1 comparison was a tie"),
        (4, ALWAYS_FIRST, 0, "the first that could be used; 3 comparisons were ties"),
        (4, prefer_the_last, 3, "not beaten in 3 comparisons in pairs; 1 comparison was a tie"),
        (2, "garbage", 0, "the first that could be used; 1 comparison could not be used"),
    ],
)
def test_no_answer_is_called_a_winner_that_ties_left(
    samples: int, comparison: Any, chosen: int, reason: str
) -> None:
    model = ScriptedModel(direct=numbered, comparison=comparison)
    record = result_of(single(model, samples=samples, select="pairwise")).samples
    assert record is not None
    assert (record.chosen, record.reason) == (chosen, reason)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (LimitReached("the cap", limit="max_tokens"), "max_tokens"),
        (StopRequested("stop"), "interrupted"),
        (ServerFailed("no", status=500), "failed"),
        (AuthenticationFailed("no", status=401), "failed"),
        (StoreFailed("disk full"), "failed"),
    ],
)
def test_a_comparison_that_ends_the_run_leaves_an_answer_that_was_not_beaten(
    error: AeonError, reason: str
) -> None:
    compared: list[Any] = [prefer_later_number, prefer_later_number, error]
    outcome = single(
        ScriptedModel(direct=numbered, comparison=compared), samples=4, select="pairwise"
    )
    assert outcome.termination_reason == reason
    assert outcome.answer == "answer 1"
    record = result_of(outcome).samples
    assert record is not None
    assert record.reason == "the first of 3 left after 1 comparison in pairs"


def test_a_comparison_is_not_awaited_beyond_the_grace_period() -> None:
    control = RunControl()
    never = Event()

    def compare(_: LLMRequest) -> dict[str, Any]:
        control.request_stop()
        never.wait(10)
        return {"checked": None, "explanation": "Both do.", "better": "neither"}

    settings = ExecutionSettings(samples=2, select="pairwise", grace_seconds=0.4)
    model = ScriptedModel(direct=numbered, comparison=compare)
    outcome = run(model, mode="single", base_ttl=25, execution=settings, control=control)
    never.set()
    assert outcome.termination_reason == "interrupted"
    assert outcome.answer == "answer 0"
    assert model.calls.count("comparison") == 1


def test_comparisons_that_could_not_be_used_are_advised_of() -> None:
    model = ScriptedModel(direct=numbered, comparison="garbage")
    outcome = single(model, samples=4, select="pairwise")
    assert outcome.answer == "answer 0"
    message = "Step answer: 3 of 3 comparisons could not be used"
    assert advisories(outcome, "lost_comparisons") == [message]
    record = result_of(outcome).samples
    assert record is not None
    assert record.reason == "the first that could be used; 3 comparisons could not be used"


def test_equal_answers_are_not_compared() -> None:
    model = ScriptedModel()
    single(model, samples=3, select="pairwise")
    assert "comparison" not in model.calls


def test_in_a_plan_the_final_step_alone_has_samples_unless_all_have() -> None:
    chain = plan("a", planned("b", "a"))

    def asked(**options: Any) -> list[str]:
        model = ScriptedModel(plan=chain, step=clear("done"))
        run(model, mode="core", base_ttl=25, execution=ExecutionSettings(samples=2, **options))
        return [call for call in model.calls if call.startswith("step")]

    assert asked() == ["step:a", "step:b", "step:b"]
    assert asked(sample_steps="all") == ["step:a", "step:a", "step:b", "step:b"]


@pytest.mark.parametrize(("ttl", "count"), [(6, 2), (5, 1)])
def test_of_a_small_budget_fewer_are_asked_for_and_the_run_says_so(ttl: int, count: int) -> None:
    model = ScriptedModel(plan=plan("only"), step=clear("done"))
    outcome = run(model, ttl=ttl, execution=ExecutionSettings(samples=8))
    assert model.calls.count("step:only") == count
    assert advisories(outcome, "lost_samples") == [
        f"Step only: budget and limits allowed {count} of 8 answers"
    ]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (LimitReached("the cap", limit="max_cost"), "max_cost"),
        (StopRequested("stop"), "interrupted"),
        (StoreFailed("disk full"), "failed"),
        (StoreMiss("not recorded"), "failed"),
    ],
)
def test_what_must_end_the_run_ends_it_with_the_answer_that_is_there(
    error: AeonError, reason: str
) -> None:
    def answer(request: LLMRequest) -> Any:
        return error if request.sample == 1 else numbered(request)

    model = ScriptedModel(direct=answer)
    outcome = single(model, samples=3, max_parallel=1)
    assert outcome.termination_reason == reason
    assert outcome.answer == "answer 0"
    assert len(model.requests) == 2


def test_a_stop_begins_no_further_sample() -> None:
    control = RunControl()

    def answer(request: LLMRequest) -> Any:
        control.request_stop()
        return numbered(request)

    model = ScriptedModel(direct=answer)
    settings = ExecutionSettings(samples=6, max_parallel=1)
    outcome = run(model, mode="single", base_ttl=25, execution=settings, control=control)
    assert outcome.termination_reason == "interrupted"
    assert len(model.requests) == 1


def test_samples_already_sent_get_the_grace_period_of_a_stop() -> None:
    control = RunControl()
    all_sent = Barrier(3)

    def answer(request: LLMRequest) -> Any:
        all_sent.wait(10)
        if request.sample == 0:
            control.request_stop()
        else:
            Event().wait(0.1)
        return numbered(request)

    settings = ExecutionSettings(samples=3)
    model = ScriptedModel(direct=answer)
    outcome = run(model, mode="single", base_ttl=25, execution=settings, control=control)
    assert outcome.termination_reason == "interrupted"
    record = result_of(outcome).samples
    assert record is not None
    assert (record.asked, record.usable) == (3, 3)


def test_samples_that_outlast_the_time_of_a_run_do_not_end_it_as_interrupted() -> None:
    never = Event()

    def answer(request: LLMRequest) -> Any:
        never.wait(10)
        return numbered(request)

    settings = ExecutionSettings(samples=3, grace_seconds=0.2)
    limits = LimitSettings(max_seconds=0.05)
    model = ScriptedModel(direct=answer)
    outcome = run(model, mode="single", base_ttl=25, execution=settings, limits=limits)
    never.set()
    assert outcome.termination_reason == "max_seconds"


def test_answers_that_were_lost_are_advised_of() -> None:
    def answer(request: LLMRequest) -> Any:
        return ServerFailed("no", status=500) if request.sample else numbered(request)

    outcome = single(ScriptedModel(direct=answer), samples=3)
    assert advisories(outcome, "lost_samples") == ["Step answer: 2 of 3 answers could not be used"]
