"""Draws several answers to one step concurrently and chooses one of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Event
from typing import Protocol

from aeon.convergence.comparison import CYCLES_OF_A_COMPARISON, Candidate, Comparer
from aeon.domain.assessment import AnswerComparison, settle_comparison
from aeon.domain.checks import CheckOutcome, weight_passed
from aeon.domain.errors import (
    AeonError,
    LLMError,
    StopRequested,
    ValidationError,
    go_on_without,
)
from aeon.domain.graph import is_only_final
from aeon.domain.history import AdvisoryKind, SampleRecord
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.request import CallName, CallSite, at_site
from aeon.execution.outcome import Worked
from aeon.execution.settings import ExecutionSettings
from aeon.execution.threads import Workers, as_done
from aeon.schema.equality import canonical, is_same


class Dispatcher(Protocol):
    """What a step needs from its run to make several calls: each is announced, and none starts once
    the run is ending."""

    def announce(self, site: CallSite, call: str, *, plan: Plan | None = None) -> None:
        """Announce a call; `plan` is the plan at the start of its batch."""

    def is_ending(self) -> bool:
        """Whether nothing new may start."""


CheckSample = Callable[[Plan, PlanStep], Sequence[CheckOutcome]]


@dataclass(frozen=True, slots=True)
class Sample:
    """One numbered answer to a step, with the outcomes of its checks."""

    number: int
    worked: Worked
    checks: tuple[CheckOutcome, ...] = ()

    @property
    def text(self) -> str:
        """The answer's text."""
        return self.worked.result.step_output or ""

    @property
    def candidate(self) -> Candidate:
        """The answer in the form used in comparisons."""
        return Candidate.of(self.text, self.checks)

    @property
    def is_usable(self) -> bool:
        """Whether it can be chosen, which means that it completes the step."""
        return self.worked.step.status == "complete"

    @property
    def passes(self) -> bool:
        """Whether no required check failed."""
        return not any(check.blocks for check in self.checks)


class Sampler:
    """Draws the samples of a step and chooses one as `execution.select` says. `check` runs the
    configured checks on an answer; without it, no check counts as passed."""

    def __init__(
        self,
        settings: ExecutionSettings,
        *,
        comparer: Comparer | None = None,
        check: CheckSample | None = None,
    ) -> None:
        self._settings = settings
        self._comparer = comparer
        self._check = check

    def count_cycles(self, step: PlanStep, plan: Plan) -> int:
        """Return the TTL cycles of a step's samples, comparisons included; 1 for a step without
        samples."""
        settings = self._settings
        is_sampled = settings.sample_steps == "all" or is_only_final(step, plan)
        if step.tool is not None or not is_sampled:
            return 1
        return settings.cycles_of_samples

    def draw(
        self,
        ask: Callable[[], Worked],
        sites: Sequence[CallSite],
        dispatcher: Dispatcher,
        call: CallName,
        plan: Plan,
    ) -> tuple[Worked, AeonError | None]:
        """Return the chosen one of several answers to a `call`, and the error that must end the
        run, if any. `sites` are the numbered places of all calls; the first is announced already.
        Raises what `ask` raises if no answer is usable."""
        count = self._count_samples(len(sites))
        numbered = [replace(site, sample=number) for number, site in enumerate(sites[:count])]
        drawn, failure = self._ask_all(ask, numbered, dispatcher, call, plan)
        usable = [sample for sample in drawn if sample.is_usable]
        if not usable:
            if failure is not None or not drawn:
                raise failure or StopRequested("the run ended before an answer was there")
            return drawn[0].worked, None
        left = () if failure or dispatcher.is_ending() else sites[count:]
        chosen, reason = self._choose(usable, left, dispatcher, plan)
        record = SampleRecord(
            asked=len(drawn),
            usable=len(usable),
            chosen=chosen.number,
            select=self._settings.select,
            reason=reason,
        )
        result = chosen.worked.result.model_copy(update={"samples": record})
        remarks = (*chosen.worked.remarks, *_remark_lost(chosen, drawn, usable))
        return replace(chosen.worked, result=result, remarks=remarks), failure

    def _count_samples(self, sites: int) -> int:
        if self._settings.select != "pairwise":
            return sites
        # Of n samples, n - 1 comparisons leave one.
        return (sites + CYCLES_OF_A_COMPARISON) // (1 + CYCLES_OF_A_COMPARISON)

    def _ask_all(
        self,
        ask: Callable[[], Worked],
        sites: Sequence[CallSite],
        dispatcher: Dispatcher,
        call: CallName,
        plan: Plan,
    ) -> tuple[list[Sample], AeonError | None]:
        """Return the samples in order, and the error that ended the drawing early. With
        `select=check`, drawing stops once a sample passes."""
        workers = Workers(min(len(sites), self._settings.max_parallel))
        drawn: list[Sample] = []
        failure: AeonError | None = None
        is_over = Event()

        def draw_one(site: CallSite) -> Sample | None:
            if is_over.is_set() or dispatcher.is_ending():
                return None
            if site.sample:
                dispatcher.announce(site, call, plan=plan)
            try:
                with at_site(site):
                    worked = ask()
                    sample = Sample(site.sample, worked, self._run_checks(worked, plan))
            except AeonError:
                # A cap, a stop or the store: stop drawing; the samples so far count.
                is_over.set()
                raise
            if self._is_found(sample):
                is_over.set()
            return sample

        futures = [workers.submit(partial(draw_one, site)) for site in sites]
        for future in as_done(futures, dispatcher.is_ending, 0):
            try:
                sample = future.result()
            except AeonError as error:
                failure = failure or error
                continue
            if sample is not None:
                drawn.append(sample)
        workers.close()
        return sorted(drawn, key=lambda sample: sample.number), failure

    def _run_checks(self, worked: Worked, plan: Plan) -> tuple[CheckOutcome, ...]:
        if self._check is None or worked.step.status != "complete":
            return ()
        return tuple(self._check(plan, worked.step))

    def _is_found(self, sample: Sample) -> bool:
        return (
            self._settings.select == "check"
            and sample.is_usable
            and bool(sample.checks)
            and sample.passes
        )

    def _choose(
        self,
        usable: Sequence[Sample],
        sites: Sequence[CallSite],
        dispatcher: Dispatcher,
        plan: Plan,
    ) -> tuple[Sample, str]:
        match self._settings.select:
            case "check":
                return choose_by_checks(usable)
            case "vote":
                return choose_by_vote(usable)
            case "pairwise" if sites:
                return self._choose_in_pairs(usable, sites, dispatcher, plan)
            case _:
                return usable[0], "the first that could be used"

    def _choose_in_pairs(
        self,
        usable: Sequence[Sample],
        sites: Sequence[CallSite],
        dispatcher: Dispatcher,
        plan: Plan,
    ) -> tuple[Sample, str]:
        """Return the winner of a knock-out. Of two that are equally good or cannot be compared, the
        one with the lower number stays."""
        left = iter(sites)
        standing = list(usable)
        compared = 0
        while len(standing) > 1:
            winners = standing[2 * (len(standing) // 2) :]
            for first, second in zip(standing[::2], standing[1::2], strict=False):
                orders = (next(left), next(left))
                outcome = self._compare(first, second, orders, dispatcher, plan)
                compared += outcome is not None
                is_better = outcome is not None and outcome.outcome == "better"
                winners.append(second if is_better else first)
            standing = sorted(winners, key=lambda sample: sample.number)
        return standing[0], f"the winner of {compared} comparisons in pairs"

    def _compare(
        self,
        first: Sample,
        second: Sample,
        sites: tuple[CallSite, CallSite],
        dispatcher: Dispatcher,
        plan: Plan,
    ) -> AnswerComparison | None:
        if self._comparer is None or is_same(first.text, second.text):
            return None
        questions = self._comparer.questions(plan.task, first.candidate, second.candidate)
        answers = []
        try:
            for site, question in zip(sites, questions, strict=True):
                dispatcher.announce(site, "comparison", plan=plan)
                with at_site(site):
                    answers.append(question())
        except (LLMError, ValidationError) as error:
            go_on_without(error)
            return None
        return settle_comparison(*answers)


def _remark_lost(
    chosen: Sample, drawn: Sequence[Sample], usable: Sequence[Sample]
) -> Iterator[tuple[AdvisoryKind, str]]:
    lost = len(drawn) - len(usable)
    if lost:
        step_id = chosen.worked.step.step_id
        yield "lost_samples", f"Step {step_id}: {lost} of {len(drawn)} answers could not be used"


def choose_by_checks(samples: Sequence[Sample]) -> tuple[Sample, str]:
    """Return the first sample that passes all required checks; otherwise the one with the greatest
    weight of passed checks, the lowest number among equals."""
    best = max(samples, key=lambda one: (one.passes, weight_passed(one.checks), -one.number))
    return best, "checks passed" if best.passes else "no sample passed the required checks"


def choose_by_vote(samples: Sequence[Sample]) -> tuple[Sample, str]:
    """Return the first sample of the most frequent answer; among equally frequent ones, of the
    answer that came first."""
    keys = [canonical(sample.text) for sample in samples]
    ((winner, votes),) = Counter(keys).most_common(1)
    return samples[keys.index(winner)], f"{votes} of {len(samples)} votes"
