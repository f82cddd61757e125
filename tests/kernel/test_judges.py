"""Judges that vote, as a plug-in: a convergence engine of a person's own that takes several calls."""

import json
from pathlib import Path
from typing import Any

from aeon.convergence.engine import ConvergenceEngine
from aeon.domain.assessment import ConvergenceAssessment
from aeon.domain.events import Recorded
from aeon.files.jsonl import read_lines
from aeon.observability.cycle_log import CycleLog, plan_of
from aeon.supervisor.structured import StructuredCaller
from tests.kernel.build import TASK, kernel
from tests.support.scripted_model import ScriptedModel, assessment, unfinished


class ThreeJudges(ConvergenceEngine):
    """Asks three times; the majority decides."""

    cycles = 3

    def assess(self, *artefacts: Any, **given: Any) -> ConvergenceAssessment:
        votes = [super(ThreeJudges, self).assess(*artefacts, **given) for _ in range(self.cycles)]
        converged = sum(vote.converged for vote in votes) * 2 > len(votes)
        return next(vote for vote in votes if vote.converged == converged)


def test_the_majority_decides_and_each_judge_costs_a_cycle() -> None:
    model = ScriptedModel(convergence=[assessment(), unfinished(), assessment()])
    engine = kernel(model)
    engine.convergence_engine = ThreeJudges(model)
    outcome = engine.run(TASK)
    assert outcome.converged
    assert model.calls.count("convergence") == 3
    assert outcome.state.ttl_used == len(model.calls) - 1


def test_an_assessment_that_cannot_pay_all_judges_is_not_begun() -> None:
    model = ScriptedModel(convergence=assessment())
    engine = kernel(model, ttl=6)  # plan, validate, a, validate: two are left
    engine.convergence_engine = ThreeJudges(model)
    outcome = engine.run(TASK)
    assert outcome.termination_reason == "ttl_expired"
    assert "convergence" not in model.calls


def test_the_answer_of_each_judge_has_a_line_of_its_own(tmp_path: Path) -> None:
    votes, seen = [assessment(), unfinished(), assessment()], list[Recorded]()
    model = ScriptedModel(convergence=votes)
    engine = kernel(model, seen=seen)
    assert engine.stream
    engine.convergence_engine = ThreeJudges(
        model, structured=StructuredCaller(model, emit=engine.stream.emit)
    )
    outcome = engine.run(TASK)
    log = CycleLog(tmp_path / "cycles.jsonl", print)
    for recorded in seen:
        log(recorded)
    log.close()
    lines = list(read_lines(tmp_path / "cycles.jsonl"))
    judged = [line for line in lines if line["call"] == "convergence"]
    assert [json.loads(line["llm_output"]) for line in judged] == votes
    assert len({line["step_number"] for line in lines}) == len(lines) == len(model.calls)
    assert sum(line["usage"]["requests"] for line in lines) == len(model.calls)
    assert plan_of(lines, judged[-1]["sequence"]) == outcome.state.plan
