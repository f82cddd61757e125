"""What the controller's decisions are worth, without a model: tasks of a known quality, a worker that improves or
spoils with known chances, a judge and checks with known errors, all through the real kernel.

    python benchmarks/controller.py [--tasks 1000] [--seed 1] [--arm "passes, gate"] [--judge 0.75] [--noise 0.1]

Prints a table, an arm a line: the mean true quality of the answer that is given, how often the answer is better and
worse than the first one, the share of answers that are good, and calls. True quality is a number in [0, 1]: judge,
comparisons and checks see it with their errors, and the kernel sees only what these say.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from itertools import count
from math import nan
from random import Random
from typing import Any, TypeVar
from unittest.mock import patch

from aeon.convergence.comparison import Candidate
from aeon.domain.assessment import (
    ConvergenceAssessment,
    ConvergenceScores,
    ConvergenceSettings,
    Preferred,
)
from aeon.domain.checks import CheckOutcome, RubricCheck
from aeon.domain.errors import PlanError
from aeon.domain.history import StepResult
from aeon.domain.plan import Plan, PlanStep, Subplan
from aeon.domain.profile import DEFAULT_PROFILE, TaskProfile
from aeon.domain.refinement import RefinementAction
from aeon.domain.report import SemanticValidationReport
from aeon.domain.request import CallSite
from aeon.execution.gate import AnswerGate
from aeon.execution.outcome import Worked
from aeon.execution.samples import Sampler
from aeon.execution.settings import ExecutionSettings, Mode
from aeon.execution.steps import StepExecutor
from aeon.execution.threads import Workers
from aeon.kernel.orchestrator import Orchestrator
from aeon.kernel.settings import RunOptions
from aeon.plan.settings import RefinementSettings
from aeon.plan.transitions import finish_step
from aeon.refinement.refiner import Refiner

T = TypeVar("T")
GOOD = 0.8
"""The true quality from which on an answer is good: what the judge's threshold is meant for."""
REVIEWED = SemanticValidationReport(validation_id="r", artifact_type="cross_phase")


@dataclass(frozen=True)
class Chances:
    """What is known of worker, judge and checks. `judge` is the chance that a comparison names the better answer,
    `noise` the deviation of a score, `coverage` the chance that a check finds an answer out that is not good."""

    improves: float = 0.35
    spoils: float = 0.30
    judge: float = 0.75
    noise: float = 0.1
    coverage: float = 0.8


@dataclass(frozen=True)
class Arm:
    """A configuration of the controller."""

    name: str
    mode: Mode = "adaptive"
    samples: int = 1
    select: Any = "first"
    gate: bool = False
    patience: int | None = None
    best: bool = False
    checks: bool = False
    oracle: bool = False


BUDGET = 24
ARMS = (
    Arm("single", "single"),
    Arm("6 samples, in pairs", "single", 6, "pairwise"),
    Arm("16 samples, by checks", "single", 16, "check", checks=True),
    Arm("passes"),
    Arm("passes, best", best=True),
    Arm("passes, gate, latest", gate=True),
    Arm("passes, gate", gate=True, best=True),
    Arm("passes, gate, patience", gate=True, patience=2, best=True),
    Arm("passes, checks", checks=True, best=True),
    Arm("passes, checks, gate, patience", checks=True, gate=True, patience=3, best=True),
    Arm("passes, oracle", oracle=True, best=True),
)


class World:
    """One task: the true quality of each answer to it, and what is seen of that."""

    def __init__(self, seed: int, chances: Chances, *, oracle: bool) -> None:
        self.random = Random(seed)
        self.chances = chances
        self.oracle = oracle
        self.mean = self.random.betavariate(4, 2)
        self.qualities: dict[str, float] = {}
        self.calls = 0
        self._numbers = count()

    def answer(self, before: str | None) -> str:
        """A new answer: one of its own, or one changed from that before."""
        text = f"answer {next(self._numbers)}"
        self.qualities[text] = self._draw(before)
        self.calls += 1
        return text

    def _draw(self, before: str | None) -> float:
        if before is None:
            quality = self.random.gauss(self.mean, 0.15)
        else:
            change = self.random.random()
            size = self.random.uniform(0, 0.3)
            quality = self.qualities[before]
            if change < self.chances.improves:
                quality += size
            elif change < self.chances.improves + self.chances.spoils:
                quality -= size
        return min(1.0, max(0.0, quality))

    def score(self, text: str) -> float:
        """What the judge says of an answer."""
        self.calls += 1
        noise = 0.0 if self.oracle else self.random.gauss(0, self.chances.noise)
        return min(1.0, max(0.0, self.qualities[text] + noise))

    def prefer(self, first: str, second: str) -> Preferred:
        """Which of two answers the judge prefers."""
        self.calls += 1
        difference = self.qualities[first] - self.qualities[second]
        if abs(difference) < 0.02:
            return Preferred(better=self.random.choice(("first", "second", "neither")))
        is_right = self.oracle or self.random.random() < self.chances.judge
        return Preferred(better="first" if (difference > 0) == is_right else "second")

    def passes_check(self, text: str) -> bool:
        """Whether a check passes an answer: it never finds fault with a good one."""
        is_found_out = self.random.random() < self.chances.coverage
        return self.qualities[text] >= GOOD or not is_found_out


class Parts:
    """The components of a run in a world, by their published interfaces."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.call = "step"
        self.has_tools = False
        self.rubrics: Mapping[str, RubricCheck] = {}
        self._drafts = count()
        self._latest: str | None = None
        self._found: dict[str, bool] = {}

    def infer_task_profile(self, *_: object) -> TaskProfile:
        return DEFAULT_PROFILE

    def allocate_ttl(self, *_: object) -> int:
        return BUDGET

    def update_task_profile(self, *_: object) -> None:
        return None

    def generate_plan(self, task: str, _: object = None) -> Plan:
        return Plan(goal="g", task=task, steps=(self._make_step(),))

    def _make_step(self) -> PlanStep:
        return PlanStep(step_id=f"draft{next(self._drafts)}", description="d", agent="llm")

    def refine_plan(self, plan: Plan, *_: object) -> list[RefinementAction]:
        self.world.calls += 1
        live = [step for step in plan.steps if step.replaced_by is None]
        return [
            RefinementAction(
                action_type="REPLACE",
                target_step_id=live[-1].step_id,
                new_step=self._make_step(),
                justification="It may be better.",
                semantic_validation_input=(),
            )
        ]

    def create_subplan(self, parent_step: PlanStep, *_: object) -> Subplan:
        raise PlanError(f"step {parent_step.step_id!r} is one piece of work: it is not decomposed")

    def validate(self, *_: object, **__: object) -> SemanticValidationReport:
        self.world.calls += 1
        return REVIEWED

    def assess(self, _: object, plan: Plan, *__: object, **___: object) -> ConvergenceAssessment:
        score = self.world.score(self._answer_of(plan))
        converged = score >= GOOD
        return ConvergenceAssessment(
            converged=converged,
            reason_codes=("complete",) if converged else ("incomplete",),
            scores=ConvergenceScores(
                completeness_score=score, coherence_score=1.0, consistency_score=1.0
            ),
        )

    def _answer_of(self, plan: Plan) -> str:
        done = [step for step in plan.steps if step.status == "complete" and not step.replaced_by]
        return str(done[-1].step_output)

    def cost(self, *_: object) -> int:
        return 1

    def count_rounds(self, *_: object) -> int:
        return 0

    def recall(self) -> Mapping[str, Any]:
        return {}

    def context(self, _: object) -> str:
        return ""

    def name_work(self, _: object, __: int) -> str:
        return self.call

    def settle_steps(self, plan: Any, _: object) -> Any:
        return plan

    def find_missing_tools(self, _: object) -> Iterator[tuple[str, str]]:
        return iter(())

    def work(self, step: PlanStep, situation: Any) -> Worked:
        replaced = [one for one in situation.plan.steps if one.replaced_by == step.step_id]
        before = replaced[-1].step_output if replaced else None
        text = self.world.answer(before)
        result = StepResult(step_id=step.step_id, step_output=text, clarity_state="CLEAR")
        return Worked(finish_step(step, result), result)

    def questions(self, _: str, earlier: Candidate, later: Candidate) -> Any:
        return (
            lambda: self.world.prefer(earlier.text, later.text),
            lambda: self.world.prefer(later.text, earlier.text),
        )

    def check_step(self, _: Plan, step: PlanStep) -> tuple[CheckOutcome, ...]:
        return self._check(str(step.step_output))

    def run(self, _: Plan, answer: str, __: CallSite) -> tuple[CheckOutcome, ...]:
        return self._check(answer)

    def _check(self, answer: str) -> tuple[CheckOutcome, ...]:
        if answer not in self._found:
            self._found[answer] = self.world.passes_check(answer)
        return (CheckOutcome(name="tests", type="python", passed=self._found[answer]),)


class PromptWorkers(Workers):
    """Works where it is asked to: nothing here waits for a server, and a thread for each call takes
    longer than what the kernel decides."""

    def submit(self, work: Callable[[], T]) -> Future[T]:
        done: Future[T] = Future()
        try:
            done.set_result(work())
        except Exception as error:
            done.set_exception(error)
        return done


@dataclass(frozen=True)
class Ended:
    """What came of a run: true qualities of the first and the given answer, and calls."""

    first: float
    given: float
    calls: int


def run_task(arm: Arm, seed: int, chances: Chances) -> Ended:
    """One task through the real kernel."""
    world = World(seed, chances, oracle=arm.oracle)
    parts = Parts(world)
    execution = ExecutionSettings(samples=arm.samples, select=arm.select, max_parallel=1)
    sampler = Sampler(execution, comparer=parts, check=parts.check_step)  # type: ignore[arg-type]
    options = RunOptions(
        mode=arm.mode,
        execution=execution,
        base_ttl=BUDGET,
        convergence=ConvergenceSettings(completeness=GOOD, patience=arm.patience),
        takes_best=arm.best,
    )
    refinement = RefinementSettings(max_attempts_total=100, max_attempts_per_fragment=100)
    kernel = Orchestrator(
        None,  # type: ignore[arg-type]
        parts,
        parts,  # type: ignore[arg-type]
        parts,  # type: ignore[arg-type]
        parts,
        executor=StepExecutor(parts, sampler=sampler if arm.samples > 1 else None),  # type: ignore[arg-type]
        refiner=Refiner(parts, parts, refinement),  # type: ignore[arg-type]
        gate=AnswerGate(parts) if arm.gate else None,  # type: ignore[arg-type]
        options=options,
        **({"checks": parts} if arm.checks and arm.samples == 1 else {}),
    )
    outcome = kernel.run("task")
    given = outcome.answer.strip()
    return Ended(world.qualities["answer 0"], world.qualities.get(given, nan), world.calls)


def run_arm(job: tuple[Arm, int, int, Chances]) -> list[Ended]:
    """All tasks of one arm."""
    arm, tasks, seed, chances = job
    with patch("aeon.kernel.run.Workers", PromptWorkers):
        return [run_task(arm, seed * 1_000_003 + number, chances) for number in range(tasks)]


def describe(arm: Arm, ended: Sequence[Ended]) -> str:
    """A line of the table."""
    better = sum(one.given > one.first + 1e-9 for one in ended)
    worse = sum(one.given < one.first - 1e-9 for one in ended)
    mean = sum(one.given for one in ended) / len(ended)
    good = sum(one.given >= GOOD for one in ended) / len(ended)
    calls = sum(one.calls for one in ended) / len(ended)
    ratio = f"{better / worse:.1f}" if worse else "-"
    shares = f"{better / len(ended):.1%} | {worse / len(ended):.1%} | {ratio}"
    return f"| {arm.name} | {mean:.3f} | {good:.1%} | {shares} | {calls:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--arm", action="append", choices=[arm.name for arm in ARMS])
    for name, chance in vars(Chances()).items():
        parser.add_argument(f"--{name}", type=float, default=chance)
    given = parser.parse_args()
    chances = Chances(**{name: getattr(given, name) for name in vars(Chances())})
    print("| arm | mean quality | good | better than the first | worse | ratio | calls |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    arms = [arm for arm in ARMS if not given.arm or arm.name in given.arm]
    jobs = [(arm, given.tasks, given.seed, chances) for arm in arms]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for arm, ended in zip(arms, pool.map(run_arm, jobs), strict=True):
            print(describe(arm, ended), flush=True)


if __name__ == "__main__":
    main()
