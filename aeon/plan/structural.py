"""The structure of a plan's steps: ids, references, cycles, sizes. No meaning is judged here (FR-014, FR-015, FR-083).

The tools are passed by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from aeon.domain.graph import ancestors, by_id, cycle_in, cycle_text, is_live, unneeded
from aeon.domain.plan import PlanStep
from aeon.domain.values import Value

MAX_NESTING_DEPTH = 5
_CYCLES_SHOWN = 10
_LONGEST_NAME = 100


class StructuralFinding(Value):
    """One structural fault of the steps, with what to do about it.

    `pointer` is a JSON pointer into the plan; `step_id` is None when it is about the plan as a whole.
    """

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
    """Find all structural faults of the steps; empty when there is none.

    Findings about single steps come in step order, then those about the whole. `max_steps` None is no limit; tools are
    checked only when `tool_names` is given. Of the cycles that share no step, at most ten are named.
    """
    if not steps:
        return (_whole("the plan has no steps: give at least one"),)
    return (
        *_too_many(steps, max_steps),
        *(finding for index, step in enumerate(steps) for finding in _check_attributes(index, step, tool_names)),
        *_repeated_ids(steps),
        *_bad_references(steps),
        *_cycles(steps),
        *_bad_nesting(steps, max_nesting_depth),
        *(_not_one_final(steps) if one_final_step else ()),
    )


def _short(name: str) -> str:
    """Shorten a name, so that many messages about a long name stay small."""
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."


def _name(step: PlanStep) -> str:
    return _short(step.step_id)


def _whole(message: str) -> StructuralFinding:
    return StructuralFinding(pointer="/steps", step_id=None, message=message)


def _at(index: int, field: str, step: PlanStep, message: str) -> StructuralFinding:
    return StructuralFinding(pointer=f"/steps/{index}/{field}", step_id=step.step_id, message=message)


def _too_many(steps: Sequence[PlanStep], max_steps: int | None) -> Iterator[StructuralFinding]:
    if max_steps is not None and len(steps) > max_steps:
        yield _whole(f"the plan has {len(steps)} steps, at most {max_steps} are allowed: merge or leave out steps")


def _check_attributes(index: int, step: PlanStep, tool_names: Collection[str] | None) -> Iterator[StructuralFinding]:
    if not step.step_id.strip():
        yield _at(index, "step_id", step, f"step {index + 1} has a blank step_id: give it one")
    if not step.description.strip():
        yield _at(index, "description", step, f"step '{_name(step)}' has no description: say what it does")
    if tool_names is not None and step.tool is not None and step.tool not in tool_names:
        known = ", ".join(sorted(tool_names)) or "there are none"
        message = f"step '{_name(step)}' uses the tool '{_short(step.tool)}', which does not exist (tools: {known})"
        yield _at(index, "tool", step, message)


def _repeated_ids(steps: Sequence[PlanStep]) -> Iterator[StructuralFinding]:
    counts = Counter(step.step_id for step in steps)
    seen: set[str] = set()
    for index, step in enumerate(steps):
        if step.step_id in seen:
            message = f"step_id '{_name(step)}' is used by {counts[step.step_id]} steps: ids must be unique"
            yield _at(index, "step_id", step, message)
        seen.add(step.step_id)


def _bad_references(steps: Sequence[PlanStep]) -> Iterator[StructuralFinding]:
    known = {step.step_id for step in steps}
    for index, step in enumerate(steps):
        for place, dependency in enumerate(step.dependencies):
            if dependency == step.step_id:
                message = f"step '{_name(step)}' depends on itself: remove that dependency"
            elif dependency not in known:
                message = (
                    f"step '{_name(step)}' depends on '{_short(dependency)}', which is not a step of the plan: "
                    "name a step_id of the plan, or remove the dependency"
                )
            else:
                continue
            yield _at(index, f"dependencies/{place}", step, message)


def _cycles(steps: Sequence[PlanStep]) -> Iterator[StructuralFinding]:
    edges: dict[str, list[str]] = {}
    position: dict[str, int] = {}
    for index, step in enumerate(steps):
        edges.setdefault(step.step_id, []).extend(d for d in step.dependencies if d != step.step_id)
        position.setdefault(step.step_id, index)
    for _ in range(_CYCLES_SHOWN):
        cycle = cycle_in(edges)
        if not cycle:
            return
        first = steps[position[cycle[0]]]
        message = f"the dependencies form a cycle: {cycle_text(cycle)}; remove one of these dependencies"
        yield _at(position[cycle[0]], "dependencies", first, message)
        edges = {one: [d for d in others if d not in cycle] for one, others in edges.items() if one not in cycle}


def _bad_nesting(steps: Sequence[PlanStep], max_nesting_depth: int) -> Iterator[StructuralFinding]:
    known = by_id(steps)
    circular = set(cycle_in({s.step_id: (s.parent_step_id,) for s in steps if s.parent_step_id is not None}))
    for index, step in enumerate(steps):
        if step.step_id in circular:
            message = f"step '{_name(step)}' is, by parent_step_id, a substep of itself"
        elif any(islice(ancestors(known, step.step_id), max_nesting_depth, None)):
            message = f"step '{_name(step)}' is nested in more than {max_nesting_depth} subplans, the most there may be"
        else:
            continue
        yield _at(index, "parent_step_id", step, message)


def _not_one_final(steps: Sequence[PlanStep]) -> Iterator[StructuralFinding]:
    final = unneeded(step for step in steps if is_live(step))
    if len(final) == 1:
        return
    named = ", ".join(step.step_id for step in final) or "none"
    yield _whole(
        f"the plan must end with exactly one step that no other depends on, it has {len(final)} ({named}): "
        "let one last step depend on the others"
    )
