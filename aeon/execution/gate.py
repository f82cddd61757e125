"""Decides whether a changed answer is accepted: the grader compares it blindly with the previous
one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Protocol

from aeon.convergence.comparison import CYCLES_OF_A_COMPARISON, Candidate, Comparer
from aeon.domain.assessment import (
    CHANGED_ANSWERS,
    AnswerComparison,
    Preferred,
    prefer_same_place,
    settle_comparison,
)
from aeon.domain.checks import CheckOutcome
from aeon.domain.errors import LLMError, ValidationError, go_on_without
from aeon.domain.events import AnswerCompared
from aeon.domain.graph import EVALUATION_CYCLES, answer_text, is_answer_complete
from aeon.domain.history import AdvisoryKind, EvaluationResults, Phase, RunState
from aeon.domain.plan import Plan
from aeon.domain.refinement import RefinementAction, RefinementRecord
from aeon.domain.request import Budget, ask_sample
from aeon.execution.event_stream import EventStream
from aeon.execution.outcome import remember_steps
from aeon.execution.recorder import AcceptedAnswer, OpenPass
from aeon.memory.interface import Memory
from aeon.plan.triggers import Trigger

_WITH_RIVAL = ("the direct answer", "the answer of the run")
_MOST_PAIRS = 2
"""How often a changed answer is compared in both orders. A grader that is right three times out of
four contradicts itself in three pairs of eight, and accepts as many spoiled answers."""


class GatedRun(Budget, Protocol):
    """The parts of a run that the gate uses: its record, and its budget."""

    stream: EventStream
    state: RunState
    accepted: AcceptedAnswer | None
    taken_back: list[Trigger]

    @property
    def plan(self) -> Plan:
        """The current plan."""

    def update(self, **changes: Any) -> None:
        """Change fields of the state."""

    def advise(self, kind: AdvisoryKind, message: str) -> None:
        """Add an advisory for the user."""

    def phase(self, stage: str, phase: Phase) -> AbstractContextManager[object]:
        """Open a phase, announced and recorded."""


class AnswerGate:
    """Compares a changed answer with the previous one (`refinement.accept=not_worse`), and the
    answer of a mode without assessments with a `rival`, another answer to the task."""

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
        """Restore the previous answer if the changed one of `this` pass is not accepted, and return
        its evaluation; None if it is accepted, or if there is nothing to compare. Raises errors
        that end the run."""
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
        # Memory holds the outputs of the answer that is taken back.
        remember_steps(memory, earlier.results.values())
        this.answer = run.state.answer
        this.evaluation = EvaluationResults(checks=before.checks, comparison=compared)
        this.complete = run.affordable()
        return before

    def compare_rival(self, run: GatedRun, this: OpenPass) -> None:
        """Compare the rival, if there is one, with the run's current answer."""
        if self._rival is None:
            return
        own = Candidate(run.state.answer)
        with run.phase("C", "EVALUATE"):
            rival = Candidate(self._rival)
            compared = self.compare(run.plan.task, own, rival, run, names=_WITH_RIVAL)
        this.evaluation = this.evaluation.model_copy(update={"comparison": compared})
        run.stream.emit(AnswerCompared(pass_number=this.number, comparison=compared))

    def compare_changed(
        self,
        earlier: AcceptedAnswer,
        plan: Plan,
        checks: Sequence[CheckOutcome],
        run: GatedRun,
    ) -> AnswerComparison | None:
        """Compare a plan's answer with the earlier one; None if there is nothing to compare: the
        same answer, or an incomplete one. Raises errors that end the run."""
        later = answer_text(plan)
        if not is_answer_complete(plan) or later == earlier.text:
            return None
        before = Candidate.of(earlier.text, earlier.evaluation.checks)
        after = Candidate.of(later, checks)
        return self.compare(plan.task, before, after, run, most_pairs=_MOST_PAIRS)

    def compare(
        self,
        task: str,
        earlier: Candidate,
        later: Candidate,
        run: GatedRun,
        *,
        most_pairs: int = 1,
        names: tuple[str, str] = CHANGED_ANSWERS,
    ) -> AnswerComparison:
        """Compare two answers in both orders, up to `most_pairs` times while the two orders
        contradict each other; `as_good` if the last pair still does. The outcome is `unknown` if
        the comparison fails or cannot be paid. The explanations call the answers by their `names`.
        Raises errors that end the run."""
        compared = AnswerComparison(outcome="unknown")
        for number in range(most_pairs):
            # A second pair must not take the cycles in which an accepted answer is evaluated.
            reserve = EVALUATION_CYCLES if number else 0
            if not run.affordable(CYCLES_OF_A_COMPARISON + reserve):
                break
            try:
                pair = self._ask_pair(number, task, earlier, later, run)
            except (LLMError, ValidationError) as error:
                go_on_without(error)
                compared = AnswerComparison(outcome="unknown", explanations=(error.message,))
                break
            compared = settle_comparison(*pair, names)
            if not prefer_same_place(*pair):
                break
        if compared.is_accepted:
            return compared
        return compared.model_copy(update={"later": later.text})

    def _ask_pair(
        self, number: int, task: str, earlier: Candidate, later: Candidate, run: GatedRun
    ) -> tuple[Preferred, Preferred]:
        later_second, later_first = self._comparer.questions(task, earlier, later)
        return (
            run.call("comparison", partial(ask_sample, number, later_second)),
            run.call("comparison", partial(ask_sample, number, later_first)),
        )


def explain_set_back(compared: AnswerComparison, tried: RefinementRecord | None) -> Trigger:
    """Describe for the planner a change whose answer was not accepted."""
    changes = [_describe_change(action) for action in (tried.accepted if tried else ())]
    found = "could not be compared" if compared.outcome == "unknown" else "was found worse"
    detail = " ".join(
        (
            f"This was tried, its answer {found}, and it was taken back.",
            *changes,
            *compared.explanations,
        )
    )
    return Trigger(kind="set_back", about="the answer", detail=detail)


def _describe_change(action: RefinementAction) -> str:
    why = f"{action.action_type} {action.fragment}: {action.justification}"
    asked = "".join(f" It was to do: {step.description}" for step in action.new_steps)
    return why + asked
