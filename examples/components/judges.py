"""Judges of one's own, for `components.convergence` (docs/components.md)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from aeon.domain.assessment import ConvergenceAssessment
from aeon.domain.graph import answer_text
from aeon.domain.plan import Plan
from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse


class Judge(Protocol):
    """What the packaged judge offers, and so do these."""

    def assess(self, *evidence: Any, **more: Any) -> ConvergenceAssessment:
        """Judge the results of a plan."""


class Vote:
    """Three judges, or one for each of `models`: what most of them say counts."""

    def __init__(
        self,
        llm: LLMAdapter,
        build: Callable[[LLMAdapter], Judge],
        models: Sequence[str | None] = (None, None, None),
    ) -> None:
        self.cycles = len(models)  # an assessment costs so many LLM cycles
        self._judges = [build(WithModel(llm, model)) for model in models]

    def assess(
        self, validation_report, plan, steps, outputs, custom_criteria=None, **more
    ) -> ConvergenceAssessment:
        """The first assessment of the majority; where there is none, the task is not done."""
        evidence = (validation_report, plan, steps, outputs, custom_criteria)
        votes = [judge.assess(*evidence, **more) for judge in self._judges]
        done = [vote for vote in votes if vote.converged]
        not_done = [vote for vote in votes if not vote.converged]
        return done[0] if len(done) > len(not_done) else not_done[0]


class WithModel:
    """An adapter whose requests go to a model of their own; None is the configured one."""

    def __init__(self, llm: LLMAdapter, model: str | None) -> None:
        self._llm = llm
        self._model = model

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request."""
        if self._model is None:
            return self._llm.complete(request)
        parameters = replace(request.parameters, model=self._model)
        return self._llm.complete(replace(request, parameters=parameters))


class MustParse:
    """The packaged judge, and a check: a task is not done while its answer is no Python."""

    def __init__(self, llm: LLMAdapter, build: Callable[[LLMAdapter], Judge]) -> None:
        self._judge = build(llm)

    def assess(
        self, validation_report, plan: Plan, steps, outputs, custom_criteria=None, **more
    ) -> ConvergenceAssessment:
        """What the judge says, unless the check failed."""
        evidence = (validation_report, plan, steps, outputs, custom_criteria)
        judged = self._judge.assess(*evidence, **more)
        try:
            ast.parse(answer_text(plan))
        except SyntaxError as error:
            problem = f"The answer is no Python: {error}"
            missed = () if judged.converged else judged.reason_codes
            failed = {
                "converged": False,
                "reason_codes": (*missed, "no_python"),
                "detected_issues": (*judged.detected_issues, problem),
                "blocking_issues": (*judged.blocking_issues, problem),
            }
            return judged.model_copy(update=failed)
        return judged
