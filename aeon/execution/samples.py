"""Draws several answers to one step concurrently and chooses one of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from threading import Event
from typing import NamedTuple, Protocol, TypeVar

from aeon.convergence.comparison import CYCLES_OF_A_COMPARISON, Candidate, Comparer
from aeon.domain.assessment import settle_comparison
from aeon.domain.checks import CheckOutcome, weight_passed
from aeon.domain.errors import (
    AeonError,
    LLMError,
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

    def check_end(self) -> None:
        """Raise the error that ends the run if nothing new may start."""


CheckSample = Callable[[Plan, PlanStep], Sequence[CheckOutcome]]
T = TypeVar("T")
_FIRST = "the first that could be used"
_SHARE_OF_GRACE = 0.8
"""A step has to return what it has before its run stops waiting for it."""
_POLL_SECONDS = 0.05


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


class SampleChoice(NamedTuple):
    """The sample that was chosen and why; how many comparisons there were and how many of them
    could not be used; and the error that cut the choosing short, which must end the run."""

    sample: Sample
    reason: str
    comparisons: int = 0
    lost: int = 0
    failure: AeonError | None = None


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
        Raises what `ask` raises, or what ends the run, if no answer is usable."""
        count = self._count_samples(len(sites))
        numbered = [replace(site, sample=number) for number, site in enumerate(sites[:count])]
        drawn, failure = self._ask_all(ask, numbered, dispatcher, call, plan)
        usable = [sample for sample in drawn if sample.is_usable]
        if not usable:
            if failure is not None:
                raise failure
            if drawn:
                return drawn[0].worked, None
            dispatcher.check_end()
            raise AssertionError("samples are only left out when the run is ending")
        left = () if failure else sites[count:]
        choice = self._choose(usable, left, dispatcher, plan)
        chosen = choice.sample
        record = SampleRecord(
            asked=len(drawn),
            usable=len(usable),
            chosen=chosen.number,
            select=self._settings.select,
            reason=choice.reason,
        )
        result = chosen.worked.result.model_copy(update={"samples": record})
        remarks = (
            *chosen.worked.remarks,
            *self._remark_unasked(chosen, count),
            *_remark_lost(choice, drawn, usable),
        )
        return replace(chosen.worked, result=result, remarks=remarks), failure or choice.failure

    def _remark_unasked(self, chosen: Sample, count: int) -> Iterator[tuple[AdvisoryKind, str]]:
        wanted = self._settings.samples
        if count < wanted:
            step_id = chosen.worked.step.step_id
            allowed = f"budget and limits allowed {count} of {wanted} answers"
            yield "lost_samples", f"Step {step_id}: {allowed}"

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
        for future in self._as_done(futures, dispatcher):
            try:
                sample = future.result()
            except AeonError as error:
                failure = failure or error
                continue
            if sample is not None:
                drawn.append(sample)
        workers.close()
        return sorted(drawn, key=lambda sample: sample.number), failure

    def _as_done(self, futures: Sequence[Future[T]], dispatcher: Dispatcher) -> Iterator[Future[T]]:
        grace_seconds = _SHARE_OF_GRACE * self._settings.grace_seconds
        return as_done(futures, dispatcher.is_ending, grace_seconds, _POLL_SECONDS)

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
    ) -> SampleChoice:
        match self._settings.select:
            case "check":
                return SampleChoice(*choose_by_checks(usable))
            case "vote":
                return SampleChoice(*choose_by_vote(usable))
            case "pairwise" if sites:
                return self._choose_in_pairs(usable, sites, dispatcher, plan)
            case _:
                return SampleChoice(usable[0], _FIRST)

    def _choose_in_pairs(
        self,
        usable: Sequence[Sample],
        sites: Sequence[CallSite],
        dispatcher: Dispatcher,
        plan: Plan,
    ) -> SampleChoice:
        """Return the winner of a knock-out. Of two that are equally good or cannot be compared, the
        one with the lower number stays. If something ends the run meanwhile, the choice is the
        first that no other has beaten."""
        left = iter(sites)
        standing = list(usable)
        outcomes: Counter[str] = Counter()
        failure: AeonError | None = None
        workers = Workers(1)
        try:
            for first, second in _pair_off(standing):
                if dispatcher.is_ending():
                    break
                orders = (next(left), next(left))
                outcome = self._compare(first, second, orders, dispatcher, plan, workers)
                outcomes[outcome] += 1
                if outcome != "abandoned":
                    standing.remove(first if outcome == "better" else second)
        except AeonError as error:
            failure = error
        workers.close()
        lost = outcomes["lost"]
        ties = outcomes["as_good"]
        compared = outcomes["better"] + outcomes["worse"] + ties
        reason = _describe_knock_out(len(standing), compared, ties, lost)
        return SampleChoice(standing[0], reason, compared + lost, lost, failure)

    def _compare(
        self,
        first: Sample,
        second: Sample,
        sites: tuple[CallSite, CallSite],
        dispatcher: Dispatcher,
        plan: Plan,
        workers: Workers,
    ) -> str:
        """Return the outcome for the second sample: that of a comparison, `same` if none is needed,
        `lost` if it could not be used, `abandoned` if the run ends first. Raises errors that must
        end the run."""
        if self._comparer is None or is_same(first.text, second.text):
            return "same"
        questions = self._comparer.questions(plan.task, first.candidate, second.candidate)

        def ask() -> str:
            answers = []
            for site, question in zip(sites, questions, strict=True):
                if dispatcher.is_ending():
                    return "abandoned"
                dispatcher.announce(site, "comparison", plan=plan)
                with at_site(site):
                    answers.append(question())
            later_second, later_first = answers
            return settle_comparison(later_second, later_first).outcome

        try:
            for future in self._as_done([workers.submit(ask)], dispatcher):
                return future.result()
        except (LLMError, ValidationError) as error:
            go_on_without(error)
            return "lost"
        return "abandoned"


def _pair_off(standing: Sequence[Sample]) -> Iterator[tuple[Sample, Sample]]:
    """Yield the pairs of a knock-out, round after round; the caller removes one of each pair."""
    while len(standing) > 1:
        yield from zip(standing[::2], standing[1::2], strict=False)


def _describe_knock_out(standing: int, compared: int, ties: int, lost: int) -> str:
    clauses = [_describe_standing(standing, compared, ties)]
    if ties:
        clauses.append(f"{_count_comparisons(ties)} {'was a tie' if ties == 1 else 'were ties'}")
    if lost:
        clauses.append(f"{_count_comparisons(lost)} could not be used")
    return "; ".join(clauses)


def _describe_standing(standing: int, compared: int, ties: int) -> str:
    if ties == compared:
        return _FIRST
    of_pairs = f"{_count_comparisons(compared)} in pairs"
    if standing > 1:
        return f"the first of {standing} left after {of_pairs}"
    return f"not beaten in {of_pairs}" if ties else f"the winner of {of_pairs}"


def _count_comparisons(number: int) -> str:
    return f"{number} comparison{'' if number == 1 else 's'}"


def _remark_lost(
    choice: SampleChoice, drawn: Sequence[Sample], usable: Sequence[Sample]
) -> Iterator[tuple[AdvisoryKind, str]]:
    step_id = choice.sample.worked.step.step_id
    lost = len(drawn) - len(usable)
    if lost:
        yield "lost_samples", f"Step {step_id}: {lost} of {len(drawn)} answers could not be used"
    if choice.lost:
        comparisons = f"{choice.lost} of {choice.comparisons} comparisons"
        yield "lost_comparisons", f"Step {step_id}: {comparisons} could not be used"


def choose_by_checks(samples: Sequence[Sample]) -> tuple[Sample, str]:
    """Return the first sample that passes all required checks; otherwise the one with the greatest
    weight of passed checks, the lowest number among equals."""
    best = max(samples, key=lambda one: (one.passes, weight_passed(one.checks), -one.number))
    if not best.checks:
        return best, f"{_FIRST}; no check ran on it"
    return best, "checks passed" if best.passes else "no sample passed the required checks"


def choose_by_vote(samples: Sequence[Sample]) -> tuple[Sample, str]:
    """Return the first sample of the most frequent answer; among equally frequent ones, of the
    answer that came first. An empty answer has no vote where there is another."""
    voting = [sample for sample in samples if sample.text.strip()] or samples
    keys = [canonical(sample.text) for sample in voting]
    ((winner, votes),) = Counter(keys).most_common(1)
    empty = len(samples) - len(voting)
    found = f"; {empty} of {len(samples)} answers were empty" if empty else ""
    return voting[keys.index(winner)], f"{votes} of {len(voting)} votes{found}"
