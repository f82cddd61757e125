"""A finding about a run, its remedies, and the record that detectors examine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from aeon.domain.assessment import ConvergenceAssessment
from aeon.domain.history import ExecutionPass
from aeon.domain.plan import PlanStep
from aeon.domain.result import SIMULATED_LINE, RunResult
from aeon.report.items import Item
from aeon.report.patterns import Patterns
from aeon.report.record import Record
from aeon.report.scores import Blocker, find_deciding_pass

UNCONVERGED = 3
"""The exit status of a run that came to its end and did not converge."""
WORDS = 320
"""The most characters of a model's words in a finding."""
Rank = Literal["cause", "doubt", "cost"]
RANKS: tuple[Rank, ...] = ("cause", "doubt", "cost")


@dataclass(frozen=True, slots=True)
class Remedy:
    """A suggestion to try next: its purpose, and the overrides to type for it. The run resumes from
    its stored answers, unless everything is requested `anew`, or another `program` is run, such as
    doctor."""

    purpose: str
    overrides: tuple[str, ...] = ()
    anew: bool = False
    program: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One observation about a run. `title` is a sentence; names in it stand between backticks.
    `rank`: a `cause` kept the run from converging, a `doubt` makes its answer less certain, a
    `cost` took tokens, money or time. `weight`, 0 to 100, orders findings of one rank. `evidence`
    are the model's words or figures, `advice` what a person could change, `anchor` the place on the
    page with details, `links` further places with their names. `children` follow from this one."""

    title: str
    rank: Rank
    weight: float
    evidence: str = ""
    advice: str = ""
    anchor: str = ""
    links: tuple[tuple[str, str], ...] = ()
    remedies: tuple[Remedy, ...] = ()
    children: tuple[Finding, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A recorded run for detectors: its record, its patterns, its requests and tool calls in order
    of time, and those of them on its critical path."""

    record: Record
    patterns: Patterns
    items: Sequence[Item]
    critical: Sequence[Item]

    @property
    def result(self) -> RunResult:
        """The result of the run."""
        return self.record.result

    @property
    def passes(self) -> tuple[ExecutionPass, ...]:
        """The passes, pass 0 first."""
        return self.result.history.passes

    @property
    def ended_well(self) -> bool:
        """Whether the run converged or completed."""
        return self.result.exit_status == 0

    @property
    def is_unconverged(self) -> bool:
        """Whether the run ended without an error or a stop, and did not converge."""
        return self.result.exit_status == UNCONVERGED

    @cached_property
    def last_steps(self) -> dict[str, PlanStep]:
        """The steps of the plan at the end, by id."""
        return {step.step_id: step for step in self.passes[-1].steps} if self.passes else {}

    @cached_property
    def deciding_pass(self) -> int:
        """The pass with the assessment of the run's answer; 0 without one."""
        return find_deciding_pass(self.result)

    @cached_property
    def open_blockers(self) -> tuple[Blocker, ...]:
        """The blockers of convergence in the assessment of the run's answer."""
        if self.ended_well:
            return ()
        return tuple(blocker for blocker in self.patterns.blockers if blocker.at_end)

    @cached_property
    def answers(self) -> dict[int, str]:
        """The answer of each pass, by its number, without the line that marks a simulated one;
        blank ones are empty."""
        return {
            one.pass_number: one.answer.removeprefix(SIMULATED_LINE).strip() for one in self.passes
        }

    @cached_property
    def judged_texts(self) -> dict[int, tuple[str, ...]]:
        """The judged text of each pass, by its number: the answer, or without one the outputs of
        the steps."""
        texts: dict[int, tuple[str, ...]] = {}
        for one in self.passes:
            answer = self.answers[one.pass_number]
            outputs = tuple(step.step_output for step in one.steps if step.step_output)
            texts[one.pass_number] = (answer,) if answer else outputs
        return texts

    @cached_property
    def assessments(self) -> dict[int, ConvergenceAssessment]:
        """The assessments that a model gave, by pass."""
        given = (
            (one.pass_number, one.evaluation_results.convergence)
            for one in self.passes
            if one.evaluation_results.convergence is not None
        )
        return {number: assessment for number, assessment in given if assessment.evaluated}

    @cached_property
    def judge_calls(self) -> dict[int, str]:
        """The anchor of the judge's request, by pass."""
        return {item.pass_number: item.key for item in self.items if item.kind == "convergence"}

    @cached_property
    def step_calls(self) -> dict[str, str]:
        """The anchor of the last request or tool call of each step."""
        return {item.step_id: item.key for item in self.items if item.step_id and item.key}

    @property
    def is_done(self) -> bool:
        """Whether every step of the plan at the end is complete or replaced."""
        steps = self.last_steps.values()
        return all(step.is_done or step.replaced_by is not None for step in steps)

    def rank_of(self, otherwise: Rank) -> Rank:
        """Return `cause` for a run that did not converge, else `otherwise`."""
        return otherwise if self.ended_well else "cause"


Find = Callable[[Evidence], Iterable[Finding]]
"""A detector: reads a recorded run, yields what it finds, or nothing."""


def name_passes(numbers: Iterable[int]) -> str:
    """`pass 2`, `passes 1 and 3`, `passes 2 to 5`."""
    named = sorted(set(numbers))
    if len(named) > 2 and named == list(range(named[0], named[-1] + 1)):
        return f"passes {named[0]} to {named[-1]}"
    *first, last = map(str, named)
    return f"passes {', '.join(first)} and {last}" if first else f"pass {last}"


def join_names(names: Sequence[str], most: int = 4) -> str:
    """Names as code, in a sentence: `a`; `a` and `b`; `a`, `b` and 3 more."""
    shown = [f"`{name}`" for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most} more"
    *first, last = shown
    return f"{', '.join(first)} and {last}" if first else last


def as_percent(share: float) -> str:
    """A share in [0, 1] as `62 %`."""
    return f"{100 * share:.0f} %"
