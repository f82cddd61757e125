"""The checks of a run: what each looks at, side by side, and what is stored of it."""

from __future__ import annotations

import threading
from typing import Any

from pydantic import TypeAdapter

from aeon.checks.interface import CheckBroken, CheckContext, CheckResult
from aeon.checks.runner import RunChecks
from aeon.checks.selection import Check, CheckAccess, CheckSet, Work
from aeon.domain.checks import CheckOutcome, OuterCheck, PythonCheck
from aeon.domain.request import CallSite
from aeon.store.lookup import ByKey
from aeon.store.session import Session
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import ToolRegistry
from tests.checks.builders import run_checks
from tests.plan.builders import done, plan_of, step
from tests.support.dict_store import DictStore

CHECKS_OF_STEPS: TypeAdapter[dict[str, dict[str, OuterCheck]]] = TypeAdapter(
    dict[str, dict[str, OuterCheck]]
)
PLAN = plan_of(done("a"), done("b", "a"))


def site(number: int = 1) -> CallSite:
    return CallSite(pass_number=number, phase="EVALUATE")


def calling(*works: Work, session: Session | None = None, code: str = "") -> RunChecks:
    settings = PythonCheck(type="python", value="m:f")
    checks = [Check(f"check{n}", settings, work, code=code) for n, work in enumerate(works)]
    access = CheckAccess(ToolInvoker(ToolRegistry()))
    return RunChecks(CheckSet(tuple(checks)), "make tea", {}, session or Session(), access)


def test_checks_run_side_by_side_and_are_listed_in_their_order() -> None:
    together = threading.Barrier(3, timeout=60)

    def meet(answer: str, *_: Any) -> CheckResult:
        together.wait()
        return CheckResult(passed=True)

    outcomes = calling(meet, meet, meet).run(PLAN, "x", site())
    assert [one.name for one in outcomes] == ["check0", "check1", "check2"]
    assert all(one.passed for one in outcomes)


def test_a_check_sees_what_it_looked_at_in_the_pass_before() -> None:
    seen: list[CheckContext] = []

    def look(answer: str, context: CheckContext, _: CheckAccess) -> CheckResult:
        seen.append(context)
        return CheckResult(passed=True)

    checks = calling(look)
    checks.run(PLAN, "first", site(1))
    checks.run(PLAN, "second", site(2))
    assert [each.previous_answer for each in seen] == [None, "first"]
    assert [each.pass_number for each in seen] == [1, 2]
    assert seen[0].outputs == {"a": "output of a", "b": "output of b"}
    assert seen[0].task == "make tea"


def test_long_feedback_is_cut_with_a_note() -> None:
    outcomes = calling(lambda *_: CheckResult(passed=False, feedback="x" * 9_000))
    (outcome,) = outcomes.run(PLAN, "x", site())
    assert outcome.feedback.startswith("x" * 4_000)
    assert outcome.feedback.endswith("[5000 of 9000 characters cut]")


def stored(store: DictStore, work: Work, code: str = "") -> CheckOutcome:
    checks = calling(work, session=Session([ByKey(store)], own=store), code=code)
    (outcome,) = checks.run(PLAN, "x", site())
    return outcome


def fail_to_run(*_: Any) -> CheckResult:
    raise CheckBroken("out of order")


def refuse(*_: Any) -> CheckResult:
    raise AssertionError("it is stored")


def test_what_was_found_is_given_again_from_the_store() -> None:
    store = DictStore("checks 1")
    first = stored(store, lambda *_: CheckResult(passed=True, score=0.5))
    assert stored(store, refuse) == first


def test_what_could_not_be_measured_is_asked_again() -> None:
    store = DictStore("checks 2")
    assert not stored(store, fail_to_run).measured
    assert stored(store, lambda *_: CheckResult(passed=True)).passed


def test_what_other_code_found_is_asked_again() -> None:
    store = DictStore("checks 3")
    assert stored(store, lambda *_: CheckResult(passed=True), code="1").passed
    assert not stored(store, lambda *_: CheckResult(passed=False), code="2").passed


def test_a_steps_check_waits_for_its_step_and_follows_the_one_that_replaces_it() -> None:
    named = {"a": {"it": {"type": "contains", "value": "c"}}}
    checks = run_checks({}, by_step=CHECKS_OF_STEPS.validate_python(named))
    assert checks.run(plan_of(step("a")), "", site()) == ()
    old = done("a").model_copy(update={"status": "invalid", "replaced_by": "c"})
    (outcome,) = checks.run(plan_of(old, done("c")), "", site())
    assert (outcome.name, outcome.step_id, outcome.passed) == ("a.it", "c", True)


def test_a_sample_is_looked_at_by_the_checks_of_its_step_and_the_last_one_by_those_of_the_answer() -> (
    None
):
    named = {"a": {"it": {"type": "contains", "value": "output"}}}
    checks = run_checks(
        {"all": {"type": "contains", "value": "b"}},
        by_step=CHECKS_OF_STEPS.validate_python(named),
    )
    of_a = checks.run_on_sample(PLAN, done("a"))
    of_b = checks.run_on_sample(PLAN, done("b", "a"))
    assert [one.name for one in of_a] == ["a.it"]
    assert [one.name for one in of_b] == ["all"]
