"""The dependencies of a plan: order, cycles, layers, ready steps, final steps. A dependency on a
step outside the plan orders nothing and is never complete."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush

from aeon.domain.errors import PlanError
from aeon.domain.plan import Plan, PlanStep

EVALUATION_CYCLES = 2
"""LLM cycles of a pass's evaluation: its validation and its assessment."""


def cycle_in(dependencies: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Return the ids along one cycle, starting with the one that the mapping names first, each
    depending on the next; empty if there is no cycle."""
    try:
        TopologicalSorter(dependencies).prepare()
    except CycleError as error:
        along = list(reversed(error.args[1]))[:-1]
        first = along.index(next(filter(set(along).__contains__, dependencies)))
        return tuple(along[first:] + along[:first])
    return ()


def find_cycle(steps: Sequence[PlanStep]) -> tuple[str, ...]:
    """Return the ids along one cycle of dependencies, like `cycle_in`; empty if there is none."""
    return cycle_in({step.step_id: step.dependencies for step in steps})


def cycle_text(cycle: Sequence[str]) -> str:
    """Describe a cycle: `a depends on b, b depends on a`; for one step, `a depends on itself`."""
    if len(cycle) == 1:
        return f"{cycle[0]} depends on itself"
    return ", ".join(
        f"{one} depends on {other}"
        for one, other in zip(cycle, (*cycle[1:], *cycle[:1]), strict=True)
    )


def sort_by_dependencies(steps: Sequence[PlanStep]) -> tuple[PlanStep, ...]:
    """Put every step after its dependencies, otherwise in the given order (FR-015). Raises
    PlanError for a cycle."""
    sorter = _sorter(steps)
    waiting: list[int] = []
    order: list[PlanStep] = []
    while sorter.is_active():
        for index in sorter.get_ready():
            heappush(waiting, index)
        index = heappop(waiting)  # the first in the given order
        order.append(steps[index])
        sorter.done(index)
    return tuple(order)


def layers(plan: Plan) -> tuple[tuple[str, ...], ...]:
    """Return the step ids by layer, each in plan order: a layer depends only on earlier ones."""
    sorter = _sorter(plan.steps)
    found: list[tuple[str, ...]] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        found.append(tuple(plan.steps[index].step_id for index in ready))
        sorter.done(*ready)
    return tuple(found)


def count_passes(plan: Plan, *, one_by_one: bool = False) -> int:
    """Return the fewest passes that the pending steps take: one for each step of their longest
    chain, or with `one_by_one` one for each step. A step with a condition may be skipped, and
    counts none. Raises PlanError for a cycle."""
    counted = {step.step_id for step in find_pending_steps(plan) if step.when is None}
    if one_by_one:
        return len(counted)
    passes: dict[str, int] = {}
    for step in sort_by_dependencies(plan.steps):
        before = max((passes.get(name, 0) for name in step.dependencies), default=0)
        passes[step.step_id] = before + (step.step_id in counted)
    return max(passes.values(), default=0)


def _sorter(steps: Sequence[PlanStep]) -> TopologicalSorter[int]:
    """Return a prepared sorter over positions: integers keep the given order, and unknown ids are
    dropped."""
    position = {step.step_id: index for index, step in enumerate(steps)}
    sorter = TopologicalSorter(
        {
            index: [position[d] for d in step.dependencies if d in position]
            for index, step in enumerate(steps)
        }
    )
    try:
        sorter.prepare()
    except CycleError:
        message = f"the dependencies form a loop: {cycle_text(find_cycle(steps))}"
        raise PlanError(message, hint="Remove one of these dependencies.") from None
    return sorter


def by_id(steps: Iterable[PlanStep]) -> dict[str, PlanStep]:
    """Return the steps by id, in order; of steps with the same id, the last."""
    return {step.step_id: step for step in steps}


def follow_replacements(steps: Mapping[str, PlanStep], step_id: str) -> str:
    """Return the id of the step that stands for a step by now: its replacement's replacement, and
    so on."""
    while step_id in steps and (after := steps[step_id].replaced_by) is not None:
        step_id = after
    return step_id


def is_live(step: PlanStep) -> bool:
    """Whether a step still counts: not replaced, not skipped and not permanently invalid. A BLOCKED
    step counts, because it may be retried."""
    if step.status == "skipped" or step.replaced_by is not None:
        return False
    return step.status != "invalid" or step.blocked


def ready_steps(plan: Plan) -> tuple[PlanStep, ...]:
    """Return the pending steps whose dependencies are all complete, skipped, or left to a person,
    in plan order (FR-065, FR-087)."""
    settled = {step.step_id for step in plan.steps if step.is_done or step.unfinished}
    return tuple(step for step in find_pending_steps(plan) if settled.issuperset(step.dependencies))


def find_pending_steps(plan: Plan) -> tuple[PlanStep, ...]:
    """Return the steps still to be executed, ready or not, in plan order."""
    return tuple(step for step in plan.steps if step.status == "pending")


def final_steps(plan: Plan) -> tuple[PlanStep, ...]:
    """Return the live steps that no live step depends on, in plan order."""
    return find_unneeded(plan.steps, is_live)


def is_only_final(step: PlanStep, plan: Plan) -> bool:
    """Whether a plan ends with this step and no other."""
    return [final.step_id for final in final_steps(plan)] == [step.step_id]


def is_answer_complete(plan: Plan) -> bool:
    """Whether all final steps of the plan are complete."""
    return all(step.status == "complete" for step in final_steps(plan))


def is_answer_awaited(plan: Plan) -> bool:
    """Whether a final step of the plan is still pending, and nothing has gone wrong."""
    live = [step for step in plan.steps if is_live(step)]
    is_smooth = all(step.status in ("pending", "complete") for step in live)
    return is_smooth and not is_answer_complete(plan)


def find_shared_steps(plan: Plan, step_ids: Collection[str]) -> list[PlanStep]:
    """Return those of `step_ids` that are complete and whose output at least two steps depend
    on."""
    users = Counter(
        dependency for step in plan.steps if is_live(step) for dependency in step.dependencies
    )
    return [
        step
        for step in plan.steps
        if step.step_id in step_ids and step.status == "complete" and users[step.step_id] > 1
    ]


def answer_steps(plan: Plan) -> tuple[PlanStep, ...]:
    """Return the complete steps that no complete step depends on, in plan order: their outputs are
    the answer."""
    return find_unneeded(plan.steps, lambda step: step.status == "complete")


def answer_text(plan: Plan) -> str:
    """Join the outputs of the answer steps with blank lines; this text is assessed and returned."""
    return "\n\n".join(step.step_output for step in answer_steps(plan) if step.step_output)


def find_unneeded(
    steps: Iterable[PlanStep], counts: Callable[[PlanStep], bool]
) -> tuple[PlanStep, ...]:
    """Return the steps that count and that no step that counts depends on, in order. What depends
    on a skipped step also depends on that one's dependencies."""
    steps = tuple(steps)
    counted = [step for step in steps if counts(step)]
    needed = {dependency for step in counted for dependency in step.dependencies}
    # Backwards, so that one skipped step leads to another: plans are in order.
    for step in reversed(steps):
        if step.status == "skipped" and step.step_id in needed:
            needed.update(step.dependencies)
    return tuple(step for step in counted if step.step_id not in needed)


def nesting_level(steps: Mapping[str, PlanStep], step_id: str) -> int:
    """Return how deep a step is nested in subplans: 0 at the top level, 1 in the first subplan
    (FR-009, FR-083)."""
    return sum(1 for _ in ancestors(steps, step_id))


def ancestors(steps: Mapping[str, PlanStep], step_id: str) -> Iterator[str]:
    """Yield the ids of the steps that contain a step, nearest first. Raises KeyError for an unknown
    step."""
    parent = steps[step_id].parent_step_id
    seen = {step_id}
    while parent is not None and parent not in seen:  # a faulty plan may lead back to itself
        yield parent
        seen.add(parent)
        parent = steps[parent].parent_step_id if parent in steps else None


def count_expected_calls(plan: Plan) -> int:
    """Estimate the LLM cycles of a plan: n + 4L + 2 for n steps in L layers (FR-029). Raises
    PlanError for a cycle."""
    by_layer = EVALUATION_CYCLES + 2  # plus its refinement, with the validation of the changes
    return len(plan.steps) + by_layer * len(layers(plan)) + 2


def current_outputs(steps: Sequence[PlanStep]) -> dict[str, str]:
    """Return the output of every step that has one and was not replaced."""
    return {
        s.step_id: s.step_output
        for s in steps
        if s.step_output is not None and s.replaced_by is None
    }


def transitive_dependencies(steps: Sequence[PlanStep]) -> dict[str, set[str]]:
    """Return for each step all its direct and indirect dependencies; unknown ones and cycles are
    tolerated."""
    known = by_id(steps)
    found: dict[str, set[str]] = {step_id: set() for step_id in known}
    for step_id, seen in found.items():
        waiting = [step_id]
        while waiting:
            new = {d for d in known[waiting.pop()].dependencies if d in known} - seen
            seen |= new
            waiting += new
    return found
