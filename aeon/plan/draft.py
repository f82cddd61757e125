"""A plan to which actions are being applied, one by one. Private to `aeon.plan.deltas`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

from aeon.domain.graph import by_id
from aeon.domain.plan import Plan, PlanStep, Subplan
from aeon.domain.refinement import ActionType, RefinementAction

_PLANNED = ("description", "provides", "handoff_to_next", "tool", "agent", "arguments")
_RETRIED = {"status": "pending", "clarity_state": None, "errors": (), "incomplete": False}
_HELPFUL = ("pending", "running", "complete")


def is_changeable(step: PlanStep) -> bool:
    """Whether a step may still be changed: pending, or BLOCKED and not replaced."""
    return step.status == "pending" or (step.blocked and step.replaced_by is None)


def substep_id(parent_id: str, given: str) -> str:
    """The id of a subplan's step in the plan: `parent.sub`, whether it was given with the prefix or without."""
    return given if given.startswith(f"{parent_id}.") else f"{parent_id}.{given}"


def kind_of(action: RefinementAction) -> ActionType:
    """The effective type of an action: a REPLACE under the same id is a MODIFY."""
    new = action.new_step
    same_id = action.action_type == "REPLACE" and new is not None and new.step_id == action.target_step_id
    return "MODIFY" if same_id else action.action_type


@dataclass
class Draft:
    """The steps as they stand, in order. Mutable, and never seen outside one call of `apply_actions`.

    `heirs` says what dependents of a step that is gone depend on instead. `declared` holds what each action said its
    steps depend on, as (action's number, step, dependency); `rewritten` the steps whose dependencies an action set;
    `kinds` what was done to a step; `held` the steps that ones no longer pending depend on.
    """

    original: Mapping[str, PlanStep]
    steps: dict[str, PlanStep]
    held: frozenset[str]
    heirs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    declared: list[tuple[int, str, str]] = field(default_factory=list)
    rewritten: set[str] = field(default_factory=set)
    kinds: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan) -> Draft:
        """A draft that is the plan."""
        held = frozenset(d for step in plan.steps if step.status != "pending" for d in step.dependencies)
        return cls(original=by_id(plan.steps), steps=by_id(plan.steps), held=held)

    def knows(self, step_id: str) -> bool:
        """Whether an id is taken: by the plan as it was, or as it is becoming."""
        return step_id in self.original or step_id in self.steps

    def current(self, step_id: str) -> str:
        """The step that stands for this one now, if it was replaced by an earlier refinement."""
        while (step := self.original.get(step_id)) is not None and step.replaced_by is not None:
            step_id = step.replaced_by
        return step_id

    def apply(self, number: int, action: RefinementAction, subplans: Mapping[str, Subplan]) -> None:
        """Work in an action to which there is no objection."""
        kind, new = kind_of(action), cast(PlanStep, action.new_step)  # there where the action needs it
        if kind == "ADD":
            self._insert(number, new, len(self.steps))
            return
        target = self.steps[action.fragment]
        self.kinds.setdefault(target.step_id, []).append(kind)
        if kind == "MODIFY":
            # What was wrong with the old content is not wrong with the new.
            self._change(target.step_id, **_planned(new), **(_RETRIED if target.blocked else {"errors": ()}))
            self._set_dependencies(number, target.step_id, new.dependencies)
        elif kind == "REMOVE":
            self.heirs[target.step_id] = target.dependencies
            del self.steps[target.step_id]
            self._hand_over_substeps(target.step_id, target.parent_step_id)
        elif kind == "REPLACE":
            self._replace(number, target, new)
        elif kind == "STEP_MARK_INVALID":
            errors = (*target.errors, f"marked invalid: {action.justification}")
            self._change(target.step_id, status="invalid", errors=errors)
        else:
            self._decompose(number, target, subplans[target.step_id])

    def result(self) -> list[PlanStep]:
        """The steps, neither sorted nor renumbered yet; unchanged ones are those of the plan."""
        return [self.original[i] if step == self.original.get(i) else step for i, step in self.steps.items()]

    def settle(self) -> None:
        """Let parents wait for their substeps, and pending dependents let go of what was taken away."""
        for step in self.steps.values():
            parent = step.parent_step_id
            if parent in self.rewritten and parent in self.steps and step.status in _HELPFUL:
                self._add_dependencies(parent, (step.step_id,))
        for step_id, step in self.steps.items():
            if step.status == "pending":
                self._change(step_id, dependencies=tuple(dict.fromkeys(self._inherited(step.dependencies, set()))))

    def _replace(self, number: int, target: PlanStep, new: PlanStep) -> None:
        """A pending target is removed; an executed one becomes invalid."""
        place = list(self.steps).index(target.step_id) + 1
        self._insert(number, new, place, parent=target.parent_step_id)
        self.heirs[target.step_id] = (new.step_id,)
        self._hand_over_substeps(target.step_id, new.step_id)
        if target.status != "pending":
            clarity = None if target.blocked else target.clarity_state
            self._change(target.step_id, status="invalid", replaced_by=new.step_id, clarity_state=clarity)
            return
        del self.steps[target.step_id]
        for step_id, step in self.steps.items():
            if step.replaced_by == target.step_id:
                self._change(step_id, replaced_by=new.step_id)

    def _decompose(self, number: int, target: PlanStep, subplan: Subplan) -> None:
        """Insert the steps of a subplan before the target, which then depends on all of them (FR-009)."""
        parent_id = target.step_id
        if target.blocked:
            self._change(parent_id, **_RETRIED)
            self._set_dependencies(number, parent_id, target.dependencies)
        inherited = self.steps[parent_id].dependencies
        ids = {substep_id(parent_id, step.step_id) for step in subplan.substeps}
        for substep in subplan.substeps:
            mapped = tuple(m if (m := substep_id(parent_id, d)) in ids else d for d in substep.dependencies)
            step_id = substep_id(parent_id, substep.step_id)
            own = substep.model_copy(update={"step_id": step_id, "dependencies": mapped})
            self._insert(number, own, list(self.steps).index(parent_id), parent=parent_id)
            if ids.isdisjoint(mapped):
                declared = self.steps[step_id].dependencies
                self._change(step_id, dependencies=tuple(dict.fromkeys((*inherited, *declared))))
            self._add_dependencies(parent_id, (step_id,))

    def _insert(self, number: int, new: PlanStep, place: int, parent: str | None = None) -> None:
        step = PlanStep(step_id=new.step_id, description=new.description, parent_step_id=parent)
        items = list(self.steps.items())
        items.insert(place, (new.step_id, step.model_copy(update=_planned(new))))
        self.steps = dict(items)
        self.kinds[new.step_id] = ["ADD"]
        self._set_dependencies(number, new.step_id, new.dependencies)

    def _set_dependencies(self, number: int, step_id: str, dependencies: Iterable[str]) -> None:
        asked = tuple(dict.fromkeys(self.current(dependency) for dependency in dependencies))
        self._change(step_id, dependencies=asked)
        self.rewritten.add(step_id)
        self.declared += [(number, step_id, dependency) for dependency in asked]

    def _add_dependencies(self, step_id: str, more: Iterable[str]) -> None:
        self._change(step_id, dependencies=tuple(dict.fromkeys((*self.steps[step_id].dependencies, *more))))

    def _change(self, step_id: str, **fields: object) -> None:
        self.steps[step_id] = self.steps[step_id].model_copy(update=fields)

    def _hand_over_substeps(self, parent_id: str, new_parent_id: str | None) -> None:
        for step_id, step in self.steps.items():
            if step.parent_step_id == parent_id and is_changeable(step):
                self._change(step_id, parent_step_id=new_parent_id)

    def _inherited(self, dependencies: Iterable[str], seen: set[str]) -> Iterator[str]:
        """The dependencies, with what follows a step that is gone in its place."""
        for dependency in dependencies:
            if dependency not in self.heirs:
                yield dependency
            elif dependency not in seen:
                seen.add(dependency)
                yield from self._inherited(self.heirs[dependency], seen)


def _planned(new: PlanStep) -> dict[str, object]:
    """The fields of a step that a planner may set, except the dependencies."""
    return {name: getattr(new, name) for name in _PLANNED}
