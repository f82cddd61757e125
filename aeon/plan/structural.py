"""The structure of a plan's steps: ids, references, cycles, sizes (FR-014, FR-015, FR-083)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice

from aeon.domain.graph import ancestors, by_id, cycle_in, cycle_text, find_unneeded, is_live
from aeon.domain.plan import PlanStep
from aeon.domain.values import Value

MAX_NESTING_DEPTH = 5
MOST_TIMES_TOO_LARGE = 10
"""Plans with more than this many times `execution.max_steps` steps are refused unread."""
_CYCLES_SHOWN = 10
_MAX_ID = 200


class StructuralFinding(Value):
    """One structural fault; `pointer` is a JSON pointer, `step_id` is None for a fault of the whole
    plan."""

    pointer: str
    step_id: str | None
    message: str


def check_steps(
    steps: Sequence[PlanStep],
    *,
    max_steps: int | None = None,
    one_final_step: bool = False,
    tool_names: Collection[str] | None = None,
    max_nesting_depth: int = MAX_NESTING_DEPTH,
) -> tuple[StructuralFinding, ...]:
    """Find all structural faults of the steps, in step order; tools are checked only if
    `tool_names` is given."""
    if not steps:
        return (_whole("the plan has no steps: give at least one"),)
    found: list[StructuralFinding] = []
    if max_steps is not None and len(steps) > max_steps:
        allowed = f"at most {max_steps} are allowed: merge or leave out steps"
        found.append(_whole(f"the plan has {len(steps)} steps, {allowed}"))
    counts = Counter(step.step_id for step in steps)
    known = by_id(steps)
    seen: set[str] = set()
    for index, step in enumerate(steps):
        faults = [*_faults_of(step, tool_names), *_faults_of_dependencies(step, known)]
        if step.step_id in seen:
            message = (
                f"step_id '{step.step_id}' is used by {counts[step.step_id]} "
                "steps: ids must be unique"
            )
            faults.append(("step_id", message))
        seen.add(step.step_id)
        faults += _faults_of_nesting(step, known, max_nesting_depth)
        found += (
            StructuralFinding(
                pointer=f"/steps/{index}/{place}", step_id=step.step_id, message=message
            )
            for place, message in faults
        )
    return (*found, *_cycles(steps), *(_not_one_final(steps) if one_final_step else ()))


def _faults_of_nesting(
    step: PlanStep, known: Mapping[str, PlanStep], max_depth: int
) -> Iterator[tuple[str, str]]:
    name = f"step '{step.step_id}'"
    around: list[str] = []
    if step.parent_step_id is not None:
        around += islice(ancestors(known, step.step_id), max_depth + 1)
    if len(around) > max_depth:
        message = f"is nested in more than {max_depth} subplans, the most there may be"
        yield "parent_step_id", f"{name} {message}"
    outermost = known.get(around[-1]) if around else step
    if outermost is not None and outermost.parent_step_id == step.step_id:
        yield "parent_step_id", f"{name} is nested in itself"


def _faults_of(step: PlanStep, tool_names: Collection[str] | None) -> Iterator[tuple[str, str]]:
    # A long id repeated in many messages would cost the square of its length.
    name = f"step '{step.step_id[:_MAX_ID]}'"
    if not step.step_id.strip():
        yield "step_id", "a step has a blank step_id: give it one"
    elif not step.step_id.isprintable():
        # Prompts name steps in their own sentences, outside fences.
        message = f"step {step.step_id[:_MAX_ID]!r} has line breaks or control characters in its id"
        yield "step_id", f"{message}: leave them out"
    if not step.description.strip():
        yield "description", f"{name} has no description: say what it does"
    if tool_names is not None and step.tool is not None and step.tool not in tool_names:
        there_are = ", ".join(sorted(tool_names)) or "there are none"
        message = f"uses the tool '{step.tool}', which does not exist (tools: {there_are})"
        yield "tool", f"{name} {message}"


def _faults_of_dependencies(step: PlanStep, known: Collection[str]) -> Iterator[tuple[str, str]]:
    name = f"step '{step.step_id[:_MAX_ID]}'"
    for place, dependency in enumerate(step.dependencies):
        if dependency == step.step_id:
            yield f"dependencies/{place}", f"{name} depends on itself: remove that dependency"
        elif dependency not in known:
            yield (
                f"dependencies/{place}",
                f"{name} depends on '{dependency}', which is not a step of the plan: "
                "name a step_id of the plan, or remove the dependency",
            )


def _cycles(steps: Sequence[PlanStep]) -> Iterator[StructuralFinding]:
    position = {step.step_id: index for index, step in enumerate(steps)}
    edges = {step.step_id: [d for d in step.dependencies if d != step.step_id] for step in steps}
    for _ in range(_CYCLES_SHOWN):
        cycle = cycle_in(edges)
        if not cycle:
            return
        message = (
            f"the dependencies form a loop: {cycle_text(cycle)}; remove one of these dependencies"
        )
        pointer = f"/steps/{position[cycle[0]]}/dependencies"
        yield StructuralFinding(pointer=pointer, step_id=cycle[0], message=message)
        edges = _leave_out(edges, frozenset(cycle))


def _leave_out(edges: Mapping[str, list[str]], cut: frozenset[str]) -> dict[str, list[str]]:
    return {
        step_id: [d for d in dependencies if d not in cut]
        for step_id, dependencies in edges.items()
        if step_id not in cut
    }


def _whole(message: str) -> StructuralFinding:
    return StructuralFinding(pointer="/steps", step_id=None, message=message)


def _not_one_final(steps: Sequence[PlanStep]) -> Iterator[StructuralFinding]:
    final = find_unneeded(steps, is_live)
    if len(final) != 1:
        named = ", ".join(step.step_id for step in final) or "none"
        yield _whole(
            "the plan must end with exactly one step that no other depends on, it has "
            f"{len(final)} ({named}): "
            "let one last step depend on the others"
        )
