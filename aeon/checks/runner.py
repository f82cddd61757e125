"""Runs the checks of a run concurrently on an answer and stores their outcomes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from aeon.checks.interface import CheckContext, CheckResult, describe_failure
from aeon.checks.selection import Check, CheckAccess, CheckSet
from aeon.domain.checks import (
    CheckOutcome,
    CheckSettings,
    CommandCheck,
    ComparingCheck,
    RubricCheck,
    is_negated,
)
from aeon.domain.errors import AeonError
from aeon.domain.graph import by_id, current_outputs, final_steps, is_answer_awaited
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.request import CallSite, at_site, current_site
from aeon.domain.values import JsonMapping, JsonObject
from aeon.store.lookup import ReuseScope
from aeon.store.models import CallPath, StoreRequest
from aeon.store.session import Session
from aeon.tools.invoke import cut_text

MOST_FEEDBACK = 4_000
_MOST_AT_ONCE = 8
_MOST_CONDITION = 300


class _Subject(NamedTuple):
    """A check and its subject: the answer, or the output of a step."""

    check: Check
    text: str
    step_id: str | None = None


@dataclass
class RunChecks:
    """The checks `of` one run; its `session` stores their outcomes; `row` is the dataset row of the
    run. `waits_for_answer`: an answer that is still to come is not checked."""

    of: CheckSet
    task: str
    inputs: Mapping[str, str]
    session: Session
    access: CheckAccess
    row: JsonMapping | None = None
    waits_for_answer: bool = False
    _before: dict[str, str] = field(default_factory=dict)

    @property
    def rubrics(self) -> Mapping[str, RubricCheck]:
        """The rubrics; see `AnswerChecks`."""
        return self.of.rubrics

    def run(self, plan: Plan, answer: str, site: CallSite) -> tuple[CheckOutcome, ...]:
        """Run all checks on an answer concurrently, or return their earlier outcomes; a check of a
        step waits until that step is complete. Raises StoreMiss, StoreFailed and StopRequested."""
        subjects = tuple(self._find_subjects(plan, answer))
        outcomes = self._run_all(subjects, plan, site)
        self._before |= {subject.check.name: subject.text for subject in subjects}
        return outcomes

    def run_on_sample(self, plan: Plan, step: PlanStep) -> tuple[CheckOutcome, ...]:
        """Run a step's checks on one of the answers to it; also those of the answer if the step is
        the only final one."""
        text = step.step_output or ""
        is_final = [final.step_id for final in final_steps(plan)] == [step.step_id]
        steps = by_id(plan.steps)
        subjects = []
        for check in self.of.checks:
            if check.step_id is None:
                subjects += [_Subject(check, text)] if is_final else []
                continue
            looked_at = _follow(steps, check.step_id)
            if looked_at is not None and looked_at.step_id == step.step_id:
                subjects.append(_Subject(check, text, step.step_id))
        return self._run_all(subjects, plan, current_site())

    def _run_all(
        self, subjects: Sequence[_Subject], plan: Plan, site: CallSite
    ) -> tuple[CheckOutcome, ...]:
        outputs = current_outputs(plan.steps)
        works = [
            partial(self._answer, subject, self._describe_run(subject, outputs, site), site)
            for subject in subjects
        ]
        return tuple(_run_side_by_side(works))

    def _find_subjects(self, plan: Plan, answer: str) -> Iterator[_Subject]:
        steps = by_id(plan.steps)
        is_to_come = self.waits_for_answer and is_answer_awaited(plan)
        for check in self.of.checks:
            if check.step_id is None:
                if not is_to_come:
                    yield _Subject(check, answer)
                continue
            step = _follow(steps, check.step_id)
            if step is not None and step.status == "complete":
                yield _Subject(check, step.step_output or "", step.step_id)

    def _describe_run(
        self, subject: _Subject, outputs: Mapping[str, str], site: CallSite
    ) -> CheckContext:
        return CheckContext(
            task=self.task,
            inputs=dict(self.inputs),
            outputs=dict(outputs),
            pass_number=site.pass_number,
            previous_answer=self._before.get(subject.check.name),
            row=dict(self.row) if self.row is not None else None,
        )

    def _answer(self, subject: _Subject, context: CheckContext, site: CallSite) -> CheckOutcome:
        check = subject.check
        path = CallPath(
            pass_number=site.pass_number,
            phase=site.phase,
            call=check.name,
            step_id=subject.step_id,
        )
        # A cassette does not say what code runs: a replay has its outcome.
        code = None if isinstance(check.settings, ComparingCheck) else {"value", "files"}
        settings = check.settings.model_dump(mode="json", exclude=code)
        body = {"check": settings, "answer": subject.text}

        def ask() -> JsonObject:
            with at_site(site):
                found = self._look(subject, context)
            return {"outcome": found.model_dump(mode="json"), "code": check.code}

        def choose_scope(found: JsonObject) -> ReuseScope:
            # Outcomes that were not measured, or came from other code, are requested again in a
            # resumed run.
            is_current = found["outcome"]["measured"] and found["code"] == check.code
            return "here" if is_current else "replay"

        request = StoreRequest(kind="check", path=path, body=body)
        answer = self.session.answer(request, ask, policy=choose_scope)
        return CheckOutcome.model_validate(answer["outcome"])

    def _look(self, subject: _Subject, context: CheckContext) -> CheckOutcome:
        check = subject.check
        measured = True
        try:
            result = check.work(subject.text, context, self.access)
            if is_negated(check.settings):
                result = _negate(result)
        except AeonError:
            raise
        except Exception as error:  # no failure of a check ends a run
            measured = False
            result = CheckResult(passed=False, feedback=describe_failure(error))
        # Half of a surrogate pair, as in the name of a file, could be neither sent nor written.
        feedback = result.feedback.encode("utf-8", "backslashreplace").decode()
        if not isinstance(check.settings, CommandCheck):  # it has its own limit
            feedback = cut_text(feedback, MOST_FEEDBACK)[0]
        return CheckOutcome(
            name=check.name,
            type=check.settings.type,
            step_id=subject.step_id,
            passed=result.passed,
            score=result.score,
            feedback=feedback,
            required=check.settings.required,
            weight=check.settings.weight,
            measured=measured,
            condition=_describe_condition(check.settings),
        )


def _negate(result: CheckResult) -> CheckResult:
    """Return the result of the opposite condition. A score is turned round with it, if it is a
    share."""
    score = result.score
    if score is not None:
        score = 1 - score if 0 <= score <= 1 else None
    passed = not result.passed
    return CheckResult(passed=passed, score=score, feedback="" if passed else result.feedback)


def _describe_condition(settings: CheckSettings) -> str:
    if not isinstance(settings, ComparingCheck):
        return ""
    from aeon.checks.comparing import describe_condition  # few runs compare

    return cut_text(describe_condition(settings), _MOST_CONDITION)[0]


def _run_side_by_side(works: Sequence[Callable[[], CheckOutcome]]) -> Iterator[CheckOutcome]:
    room = threading.Semaphore(_MOST_AT_ONCE)

    def run_one(work: Callable[[], CheckOutcome], future: Future[CheckOutcome]) -> None:
        with room:
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)

    futures = []
    for work in works:
        future: Future[CheckOutcome] = Future()
        # A daemon: an abandoned check must not keep the process alive.
        arguments = (run_one, work, future)
        threading.Thread(target=copy_context().run, args=arguments, daemon=True).start()
        futures.append(future)
    return (future.result() for future in futures)


def _follow(steps: Mapping[str, PlanStep], step_id: str) -> PlanStep | None:
    """Return the step that now does the work of a step, following replacements."""
    step = steps.get(step_id)
    for _ in steps:
        if step is None or step.replaced_by is None:
            return step
        step = steps.get(step.replaced_by)
    return step
