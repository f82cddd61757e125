"""Whether a changed answer is accepted: compared with the one before it, by the grader and
blind."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from aeon.convergence.comparison import Candidate, Comparer
from aeon.domain.assessment import AnswerComparison, settle_comparison
from aeon.domain.checks import CheckOutcome
from aeon.domain.errors import LLMError, ValidationError, go_on_without
from aeon.domain.events import AnswerCompared
from aeon.domain.graph import answer_text, is_answer_complete
from aeon.domain.history import AdvisoryKind, EvaluationResults, Phase, RunState
from aeon.domain.plan import Plan
from aeon.domain.refinement import RefinementRecord
from aeon.domain.request import Budget
from aeon.execution.event_stream import EventStream
from aeon.execution.outcome import remember_steps
from aeon.execution.recorder import AcceptedAnswer, OpenPass
from aeon.memory.interface import Memory
from aeon.plan.triggers import Trigger

_SHOWN = {"name", "passed", "feedback"}
_CYCLES = 2  # both orders


class GatedRun(Budget, Protocol):
    """A run as the gate uses it: its record, and what it may spend."""

    stream: EventStream
    state: RunState
    accepted: AcceptedAnswer | None
    taken_back: list[Trigger]

    @property
    def plan(self) -> Plan:
        """The plan in force."""

    def update(self, **changes: Any) -> None:
        """Change fields of the state."""

    def advise(self, kind: AdvisoryKind, message: str) -> None:
        """Advise the person."""

    def phase(self, stage: str, phase: Phase) -> AbstractContextManager[object]:
        """A phase, announced and recorded."""


class AnswerGate:
    """Compares a changed answer with the one before it (`refinement.accept=not_worse`), and a
    `rival`, another answer to the task, with the one of a mode without assessments."""

    def __init__(self, comparer: Comparer, rival: str | None = None) -> None:
        self._comparer = comparer
        self._rival = rival

    def set_back(
        self,
        run: GatedRun,
        this: OpenPass,
        checks: tuple[CheckOutcome, ...],
        memory: Memory,
    ) -> EvaluationResults | None:
        """What holds again of the answer before, where the changed one of `this` pass is not
        accepted; None where it is, or where there is nothing to compare. Raises what ends the
        run."""
        earlier = run.accepted
        if earlier is None:
            return None
        compared = self.compare_changed(earlier, run.plan, checks, run)
        if compared is None:
            return None
        this.comparison = compared
        run.stream.emit(AnswerCompared(pass_number=this.number, comparison=compared))
        if compared.is_accepted:
            run.taken_back.clear()
            return None
        run.taken_back.append(explain_set_back(compared, run.state.passes[-1].refinement))
        run.advise("set_back", "A changed answer was set back: " + " ".join(compared.explanations))
        before = earlier.evaluation
        run.update(plan=earlier.plan, results=dict(earlier.results), assessment=before.convergence)
        remember_steps(memory, earlier.results.values())
        this.answer = run.state.answer
        this.evaluation = EvaluationResults(checks=before.checks, comparison=compared)
        this.complete = run.affordable()
        return before

    def compare_rival(self, run: GatedRun, this: OpenPass) -> None:
        """Compare the rival, if there is one, with the answer of the run as it stands."""
        if self._rival is None:
            return
        own = Candidate(run.state.answer)
        with run.phase("C", "EVALUATE"):
            compared = self.compare(run.plan.task, own, Candidate(self._rival), run)
        this.evaluation = this.evaluation.model_copy(update={"comparison": compared})
        run.stream.emit(AnswerCompared(pass_number=this.number, comparison=compared))

    def compare_changed(
        self,
        earlier: AcceptedAnswer,
        plan: Plan,
        checks: Sequence[CheckOutcome],
        run: GatedRun,
    ) -> AnswerComparison | None:
        """The answer of a plan against the earlier one; None where there is nothing to compare: the
        same answer, or one that is not whole yet. Raises what ends the run."""
        later = answer_text(plan)
        if not is_answer_complete(plan) or later == earlier.text:
            return None
        before = _show(earlier.text, earlier.evaluation.checks)
        return self.compare(plan.task, before, _show(later, checks), run)

    def compare(
        self, task: str, earlier: Candidate, later: Candidate, run: GatedRun
    ) -> AnswerComparison:
        """Two answers, in both orders. What cannot be had, or not be paid, is `unknown`. Raises
        what ends the run."""
        if not run.affordable(_CYCLES):
            return AnswerComparison(outcome="unknown", later=later.text)
        questions = self._comparer.questions(task, earlier, later)
        try:
            answers = [run.call("comparison", question) for question in questions]
        except (LLMError, ValidationError) as error:
            go_on_without(error)
            why = (error.message,)
            return AnswerComparison(outcome="unknown", explanations=why, later=later.text)
        compared = settle_comparison(*answers)
        return (
            compared if compared.is_accepted else compared.model_copy(update={"later": later.text})
        )


def _show(text: str, checks: Sequence[CheckOutcome]) -> Candidate:
    return Candidate(text, [check.model_dump(include=_SHOWN) for check in checks])


def explain_set_back(compared: AnswerComparison, tried: RefinementRecord | None) -> Trigger:
    """What the planner is told of a change whose answer was not accepted."""
    changes = [
        f"{action.action_type} {action.fragment}: {action.justification}"
        for action in (tried.accepted if tried else ())
    ]
    found = "could not be compared" if compared.outcome == "unknown" else "was found worse"
    detail = " ".join(
        (
            f"This was tried, its answer {found}, and it was taken back.",
            *changes,
            *compared.explanations,
        )
    )
    return Trigger(kind="set_back", about="the answer", detail=detail)
