"""Whether a changed answer is accepted: compared with the one before it, by the grader and blind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aeon.convergence.comparison import Candidate, Comparer
from aeon.domain.assessment import AnswerComparison, settle_comparison
from aeon.domain.checks import CheckOutcome
from aeon.domain.errors import LLMError, ValidationError, go_on_without
from aeon.domain.graph import answer_text, is_answer_complete
from aeon.domain.history import EvaluationResults, StepResult
from aeon.domain.plan import Plan
from aeon.domain.refinement import RefinementRecord
from aeon.plan.triggers import Trigger
from aeon.refinement.models import Budget

_SHOWN = {"name", "passed", "feedback"}
_CYCLES = 2  # both orders


@dataclass(frozen=True, slots=True)
class AcceptedAnswer:
    """The answer in force, with what was found about it, and what it is set back to."""

    plan: Plan
    results: Mapping[str, StepResult]
    evaluation: EvaluationResults

    @property
    def text(self) -> str:
        """The answer itself."""
        return answer_text(self.plan)


class Gate:
    """Compares a changed answer with the one before it (`refinement.accept=not_worse`), and any two
    answers to a task."""

    def __init__(self, comparer: Comparer) -> None:
        self._comparer = comparer

    def compare_changed(
        self,
        earlier: AcceptedAnswer,
        plan: Plan,
        checks: Sequence[CheckOutcome],
        budget: Budget,
    ) -> AnswerComparison | None:
        """The answer of a plan against the earlier one; None where there is nothing to compare: the
        same answer, or one that is not whole yet. Raises what ends the run."""
        later = answer_text(plan)
        if not is_answer_complete(plan) or later == earlier.text:
            return None
        before = _show(earlier.text, earlier.evaluation.checks)
        return self.compare(plan.task, before, _show(later, checks), budget)

    def compare(
        self, task: str, earlier: Candidate, later: Candidate, budget: Budget
    ) -> AnswerComparison:
        """Two answers, in both orders. What cannot be had, or not be paid, is `unknown`. Raises what
        ends the run."""
        if not budget.affordable(_CYCLES):
            return AnswerComparison(outcome="unknown", later=later.text)
        questions = self._comparer.questions(task, earlier, later)
        try:
            answers = [budget.call("comparison", question) for question in questions]
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
