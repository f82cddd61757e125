"""A plan to which actions are being applied, one by one. Private to `aeon.plan.deltas`.

Every edge knows which action made it, so that what is wrong with the whole can be traced to an action. Mutable, and
never seen outside one call of `apply_actions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aeon.domain.graph import by_id
from aeon.domain.plan import Plan, PlanStep, Subplan

OWN = -1
"""The number of edges that the plan had before."""

_PLANNED = ("description", "provides", "handoff_to_next", "tool", "agent", "arguments")
_RETRIED = {"status": "pending", "clarity_state": None, "errors": (), "incomplete": False}
_HELPFUL = ("pending", "running", "complete")


def planned_fields(new: PlanStep) -> dict[str, Any]:
    """The fields of a step that a planner may set, except the dependencies."""
    return {name: getattr(new, name) for name in _PLANNED}


def is_changeable(step: PlanStep) -> bool:
    """Whether a step may still be changed: pending, or BLOCKED and not replaced."""
    return step.status == "pending" or (step.blocked and step.replaced_by is None)


def substep_id(parent_id: str, given: str) -> str:
    """The id of a subplan's step in the plan: `parent.sub`, whether it was given with the prefix or without."""
    prefix = f"{parent_id}."
    return given if given.startswith(prefix) else prefix + given


@dataclass
class Draft:
    """The steps as they stand, in order, and their edges: step -> dependency -> number of the action that made it.

    `heirs` says what follows a step that dependents must let go of: the replacing step's id, or None where it was
    removed and they inherit its dependencies. `declared` holds what each action said its steps depend on, `written`
    which action gave a step its dependencies, `kinds` what was done to a step, `held` the steps that ones no longer
    pending depend on.
    """

    original: Mapping[str, PlanStep]
    steps: dict[str, PlanStep]
    order: list[str]
    edges: dict[str, dict[str, int]]
    heirs: dict[str, tuple[int, str | None]] = field(default_factory=dict)
    declared: list[tuple[int, str, str]] = field(default_factory=list)
    written: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, list[str]] = field(default_factory=dict)
    held: frozenset[str] = frozenset()

    @classmethod
    def of(cls, plan: Plan) -> Draft:
        """A draft that is the plan."""
        steps = by_id(plan.steps)
        edges = {step_id: dict.fromkeys(step.dependencies, OWN) for step_id, step in steps.items()}
        held = frozenset(d for step in plan.steps if step.status != "pending" for d in step.dependencies)
        return cls(original=steps, steps=dict(steps), order=list(steps), edges=edges, held=held)

    def knows(self, step_id: str) -> bool:
        """Whether an id is taken: by the plan as it was, or as it is becoming."""
        return step_id in self.original or step_id in self.steps

    def add(self, number: int, new: PlanStep) -> None:
        """Add a new step at the end."""
        self._insert(number, new, len(self.order))

    def modify(self, number: int, target: PlanStep, new: PlanStep) -> None:
        """Replace the content of a step; a BLOCKED step becomes pending and keeps its output for the retry."""
        # What was wrong with the old content is not wrong with the new.
        renewed = _RETRIED if target.blocked else {"errors": ()}
        self.steps[target.step_id] = target.model_copy(update={**planned_fields(new), **renewed})
        self._set_dependencies(number, target.step_id, new.dependencies)

    def remove(self, number: int, target: PlanStep) -> None:
        """Remove the step; its substeps move to its own parent."""
        self.heirs[target.step_id] = (number, None)
        del self.steps[target.step_id]
        self._hand_over_substeps(target.step_id, target.parent_step_id)

    def replace(self, number: int, target: PlanStep, new: PlanStep) -> None:
        """Put a new step in the place of the target. A pending target is removed; an executed one becomes invalid."""
        self._insert(number, new, self.order.index(target.step_id) + 1, parent=target.parent_step_id)
        self.heirs[target.step_id] = (number, new.step_id)
        self._hand_over_substeps(target.step_id, new.step_id)
        if target.status == "pending":
            del self.steps[target.step_id]
            self._point_replaced(target.step_id, new.step_id)
            return
        clarity = {"clarity_state": None} if target.blocked else {}
        gone = {"status": "invalid", "replaced_by": new.step_id, **clarity}
        self.steps[target.step_id] = target.model_copy(update=gone)

    def mark_invalid(self, target: PlanStep, reason: str) -> None:
        """Mark an executed step as invalid; its output stays."""
        errors = (*target.errors, f"marked invalid: {reason}")
        self.steps[target.step_id] = target.model_copy(update={"status": "invalid", "errors": errors})

    def decompose(self, number: int, target: PlanStep, subplan: Subplan) -> None:
        """Insert the steps of a subplan before the target, which then depends on all of them (FR-009)."""
        parent_id = target.step_id
        if target.blocked:
            self.steps[parent_id] = target.model_copy(update=_RETRIED)
            self._set_dependencies(number, parent_id, target.dependencies)
        inherited = {dependency: max(number, made) for dependency, made in self.edges[parent_id].items()}
        ids = {substep_id(parent_id, step.step_id) for step in subplan.substeps}
        for substep in subplan.substeps:
            step_id = substep_id(parent_id, substep.step_id)
            mapped = tuple(m if (m := substep_id(parent_id, d)) in ids else d for d in substep.dependencies)
            own = substep.model_copy(update={"step_id": step_id, "dependencies": mapped})
            self._insert(number, own, self.order.index(parent_id), parent=parent_id)
            if ids.isdisjoint(mapped):
                self.edges[step_id] = {**inherited, **self.edges[step_id]}
            self.edges[parent_id][step_id] = number

    def settle(self) -> None:
        """Make the edges final: parents wait for substeps, pending dependents let go of what was taken away."""
        for step_id, step in self.steps.items():
            parent = step.parent_step_id
            if parent in self.written and parent in self.steps and step.status in _HELPFUL:
                self.edges[parent].setdefault(step_id, self._edge_owner(self.written[parent], parent, step_id))
        for step_id, step in self.steps.items():
            if step.status == "pending" and not self.heirs.keys().isdisjoint(self.edges[step_id]):
                self.edges[step_id] = self._inherit_edges(self.edges[step_id])

    def result(self) -> list[PlanStep]:
        """The steps with their dependencies, neither sorted nor renumbered yet; unchanged ones are shared."""
        return [self._finish_step(self.steps[step_id]) for step_id in self.order if step_id in self.steps]

    @property
    def numbers(self) -> set[int]:
        """The numbers of all that made an edge, `OWN` for the plan itself."""
        return {OWN, *(made for step_id in self.steps for made in self.edges[step_id].values())}

    def _finish_step(self, step: PlanStep) -> PlanStep:
        dependencies = tuple(self.edges[step.step_id])
        if tuple(dict.fromkeys(step.dependencies)) != dependencies:
            step = step.model_copy(update={"dependencies": dependencies})
        before = self.original.get(step.step_id)
        return before if before is not None and step == before else step

    def _insert(self, number: int, new: PlanStep, place: int, parent: str | None = None) -> None:
        step = PlanStep(step_id=new.step_id, description=new.description)
        self.steps[new.step_id] = step.model_copy(update={**planned_fields(new), "parent_step_id": parent})
        self.order.insert(place, new.step_id)
        self.kinds[new.step_id] = ["ADD"]
        self._set_dependencies(number, new.step_id, new.dependencies)

    def _set_dependencies(self, number: int, step_id: str, dependencies: Iterable[str]) -> None:
        asked = list(dict.fromkeys(self.current(dependency) for dependency in dependencies))
        self.edges[step_id] = {dependency: self._edge_owner(number, step_id, dependency) for dependency in asked}
        self.written[step_id] = number
        self.declared += [(number, step_id, dependency) for dependency in asked]

    def current(self, step_id: str) -> str:
        """The step that stands for this one now, if it was replaced by an earlier refinement."""
        seen = {step_id}
        while (step := self.original.get(step_id)) is not None and step.replaced_by is not None:
            step_id = step.replaced_by
            if step_id in seen:
                break
            seen.add(step_id)
        return step_id

    def _hand_over_substeps(self, parent_id: str, new_parent_id: str | None) -> None:
        for step_id, step in self.steps.items():
            if step.parent_step_id == parent_id and is_changeable(step):
                self.steps[step_id] = step.model_copy(update={"parent_step_id": new_parent_id})

    def _point_replaced(self, old_id: str, new_id: str) -> None:
        for step_id, step in self.steps.items():
            if step.replaced_by == old_id:
                self.steps[step_id] = step.model_copy(update={"replaced_by": new_id})

    def _edge_owner(self, number: int, step_id: str, dependency: str) -> int:
        """The number of the action that made an edge, or `OWN` if the plan had the edge before."""
        had = step_id in self.original and dependency in self.original[step_id].dependencies
        return OWN if had else number

    def _inherit_edges(self, edges: Mapping[str, int]) -> dict[str, int]:
        """The edges with every removed or replaced dependency exchanged for what follows it, in its place."""
        settled: dict[str, int] = {}
        seen: set[str] = set()
        waiting = list(edges.items())[::-1]
        while waiting:
            dependency, made = waiting.pop()
            if dependency not in self.heirs:
                settled[dependency] = min(made, settled.get(dependency, made))
            elif dependency not in seen:
                seen.add(dependency)
                number, heir = self.heirs[dependency]
                followers = self.edges[dependency] if heir is None else {heir: number}
                waiting += [(d, max(made, m)) for d, m in list(followers.items())[::-1]]
        return settled
