"""A plan to which actions are applied one by one. Private to `aeon.plan.deltas`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import cast

from aeon.domain.graph import by_id, follow_replacements, nesting_level
from aeon.domain.plan import Plan, PlanStep, Subplan
from aeon.domain.refinement import ACTIONS, ActionType, RefinementAction

_PLANNED = ("description", "provides", "handoff_to_next", "tool", "agent", "arguments")
# Of a BLOCKED step: its output stays, and the retry is shown it.
_RETRIED = {"status": "pending", "clarity_state": None, "errors": (), "incomplete": False}
_HELPFUL = ("pending", "running", "complete")
_OF_PERSON: Mapping[str, object] = {"tool": None, "agent": "person", "arguments": None}
_TOGETHER = (
    {"ADD", "SUBPLAN_CREATE"},
    {"MODIFY", "SUBPLAN_CREATE"},
    {"STEP_MARK_INVALID", "REPLACE"},
)
"""The pairs of actions that one refinement may apply to the same step."""


def is_changeable(step: PlanStep) -> bool:
    """Whether a step may still be changed: pending, or BLOCKED and not replaced."""
    return step.status == "pending" or (step.blocked and step.replaced_by is None)


def substep_id(parent_id: str, given: str) -> str:
    """Return the id of a subplan's step in the plan, `parent.sub`, whether or not `given` has the
    prefix."""
    return given if given.startswith(f"{parent_id}.") else f"{parent_id}.{given}"


def kind_of(action: RefinementAction) -> ActionType:
    """Return the effective type of an action: a REPLACE with the same id is a MODIFY."""
    new = action.new_step
    if action.action_type == "REPLACE" and new is not None:
        return "MODIFY" if new.step_id == action.target_step_id else "REPLACE"
    return action.action_type


def leave_with_person(
    plan: Plan, actions: Iterable[RefinementAction]
) -> tuple[RefinementAction, ...]:
    """Return the actions such that none gives a step of a person to a model or a tool: the step
    that takes its place is the person's as well."""
    theirs = {step.step_id for step in plan.steps if step.is_for_person}
    return tuple(
        action.model_copy(update={"new_step": _new_step(action).model_copy(update=_OF_PERSON)})
        if action.new_steps and action.fragment in theirs
        else action
        for action in actions
    )


class Draft:
    """The steps with every valid action applied; `refused` has the reasons against the others.

    `heirs` replace steps that are gone, `handed_over` says which step took over their substeps.
    `held` are the dependencies of executed steps, `declared` those that actions name.
    """

    def __init__(
        self,
        plan: Plan,
        actions: Mapping[int, RefinementAction],
        subplans: Mapping[str, Subplan],
        max_depth: int,
    ) -> None:
        self._subplans = subplans
        self._max_depth = max_depth
        self.original = by_id(plan.steps)
        self.steps = by_id(plan.steps)
        self.held = {
            d for step in plan.steps if step.status != "pending" for d in step.dependencies
        }
        self.refused: dict[int, str] = {}
        self.heirs: dict[str, tuple[str, ...]] = {}
        self.handed_over: dict[str, str | None] = {}
        self.declared: list[tuple[int, str, str]] = []
        self.rewritten: set[str] = set()
        self.kinds: dict[str, list[str]] = {}
        # Decompositions last: an ADD or a MODIFY may make the step that they decompose.
        for number, action in sorted(actions.items(), key=lambda each: each[1].rule.decomposes):
            reason = self._object_to(action)
            if reason is None:
                self._apply(number, action)
            else:
                self.refused[number] = reason
        self._settle()

    def result(self) -> list[PlanStep]:
        """Return the steps, neither sorted nor renumbered; unchanged ones are the plan's own
        objects."""
        return [
            self.original[i] if step == self.original.get(i) else step
            for i, step in self.steps.items()
        ]

    def _object_to(self, action: RefinementAction) -> str | None:
        """Return the reason to refuse an action, judging by ids and status alone; references to
        other steps are not checked."""
        rule = ACTIONS[kind_of(action)]
        if rule.needs_target:
            reason = self._object_to_target(action)
            if reason:
                return reason
        for new in action.new_steps:
            if rule.adds and self._knows(new.step_id):
                return f"the id '{new.step_id}' is taken: a new step needs a new id"
            if not (new.step_id.strip() and new.description.strip()):
                return "the new step has no step_id or no description"
        return self._object_to_subplan(action.fragment) if rule.decomposes else None

    def _knows(self, step_id: str) -> bool:
        return step_id in self.original or step_id in self.steps

    def _object_to_target(self, action: RefinementAction) -> str | None:
        target = self.original.get(action.fragment) or self.steps.get(action.fragment)
        if target is None:
            return f"there is no step '{action.fragment}' in the plan"
        named = f"step '{target.step_id}'"
        kind = kind_of(action)
        rule = ACTIONS[kind]
        for earlier in self.kinds.get(target.step_id, ()):
            if {kind, earlier} not in _TOGETHER:
                return (
                    f"{named} has already been given to {earlier} in this refinement: "
                    "one change is enough"
                )
        if target.replaced_by is not None:
            instead = follow_replacements(self.original, target.step_id)
            return f"{named} is replaced by '{target.replaced_by}': change '{instead}' instead"
        if target.standing not in rule.targets:
            return f"{named} is {target.standing}: {rule.refusal}"
        if rule.retires and target.status == "pending":
            return self._object_to_retirement(target, kind)
        return None

    def _object_to_retirement(self, target: PlanStep, kind: ActionType) -> str | None:
        named = f"step '{target.step_id}'"
        if target.step_id in self.held:
            return f"{named} is pending, and a step already executed depends on it: it must stay"
        if kind == "REMOVE" and target.is_for_person:
            return f"{named} is left to a person: it must stay"
        return None

    def _object_to_subplan(self, parent_id: str) -> str | None:
        level = nesting_level(self.steps, parent_id) + 1
        subplan = self._subplans.get(parent_id)
        if level > self._max_depth:
            deeper = "deeper than refinement.max_nesting_depth allows; it needs manual intervention"
            return (
                f"step '{parent_id}' cannot be decomposed: its subplan would be level "
                f"{level}, {deeper}"
            )
        if subplan is None or subplan.parent_step_id != parent_id:
            return f"there is no subplan for step '{parent_id}'"
        ids = [substep_id(parent_id, step.step_id) for step in subplan.substeps]
        if len(set(ids)) < len(ids):
            return f"the subplan names an id twice: {', '.join(ids)}"
        if taken := [step_id for step_id in ids if self._knows(step_id)]:
            return f"the subplan's id '{taken[0]}' is taken: it needs new ids"
        return None

    def _apply(self, number: int, action: RefinementAction) -> None:
        kind = kind_of(action)
        if action.rule.needs_target:
            self.kinds.setdefault(action.fragment, []).append(kind)
        EFFECTS[kind](self, number, action)

    def _add(self, number: int, action: RefinementAction) -> None:
        self._insert(number, _new_step(action), len(self.steps))

    def _modify(self, number: int, action: RefinementAction) -> None:
        """Change the planned fields; errors of the old content are dropped."""
        target = self.steps[action.fragment]
        new = _new_step(action)
        self._change(
            target.step_id,
            **_select_planned_fields(new),
            **(_RETRIED if target.blocked else {"errors": ()}),
        )
        self._set_dependencies(number, target.step_id, new.dependencies)

    def _remove(self, _: int, action: RefinementAction) -> None:
        target = self.steps.pop(action.fragment)
        self.heirs[target.step_id] = target.dependencies
        self._hand_over_substeps(target.step_id, target.parent_step_id)

    def _mark_invalid(self, _: int, action: RefinementAction) -> None:
        target = self.steps[action.fragment]
        errors = (*target.errors, f"marked invalid: {action.justification}")
        self._change(target.step_id, status="invalid", errors=errors)

    def _settle(self) -> None:
        """Make parents depend on their substeps, and redirect pending dependents of removed
        steps."""
        for step in self.steps.values():
            parent = step.parent_step_id
            if parent in self.rewritten and parent in self.steps and step.status in _HELPFUL:
                self._add_dependencies(parent, (step.step_id,))
        for step_id, step in self.steps.items():
            if step.status == "pending":
                self._change(
                    step_id,
                    dependencies=tuple(dict.fromkeys(self._follow_heirs(step.dependencies, set()))),
                )

    def _replace(self, number: int, action: RefinementAction) -> None:
        """Replace the target: a pending one is removed, an executed one becomes invalid."""
        target = self.steps[action.fragment]
        new = _new_step(action)
        place = list(self.steps).index(target.step_id) + 1
        self._insert(number, new, place, parent=target.parent_step_id, stands_for=target)
        self.heirs[target.step_id] = (new.step_id,)
        self._hand_over_substeps(target.step_id, new.step_id)
        if target.status != "pending":
            clarity = None if target.blocked else target.clarity_state
            self._change(
                target.step_id, status="invalid", replaced_by=new.step_id, clarity_state=clarity
            )
            return
        del self.steps[target.step_id]
        for step_id, step in self.steps.items():
            if step.replaced_by == target.step_id:
                self._change(step_id, replaced_by=new.step_id)

    def _decompose(self, number: int, action: RefinementAction) -> None:
        """Insert the steps of a subplan before the target, which then depends on all of them
        (FR-009)."""
        parent_id = action.fragment
        target = self.steps[parent_id]
        subplan = self._subplans[parent_id]
        if target.blocked:
            self._change(parent_id, **_RETRIED)
            self._set_dependencies(number, parent_id, target.dependencies)
        inherited = self.steps[parent_id].dependencies
        ids = {substep_id(parent_id, step.step_id) for step in subplan.substeps}
        worker = _OF_PERSON if target.is_for_person else {}

        def find_id(given: str) -> str:
            own = substep_id(parent_id, given)
            return own if own in ids else given

        for substep in subplan.substeps:
            mapped = tuple(map(find_id, substep.dependencies))
            step_id = substep_id(parent_id, substep.step_id)
            own = substep.model_copy(update={"step_id": step_id, "dependencies": mapped, **worker})
            place = list(self.steps).index(parent_id)
            self._insert(number, own, place, parent=parent_id, stands_for=target)
            if ids.isdisjoint(mapped):
                declared = self.steps[step_id].dependencies
                self._change(step_id, dependencies=tuple(dict.fromkeys((*inherited, *declared))))
            self._add_dependencies(parent_id, (step_id,))

    def _insert(
        self,
        number: int,
        new: PlanStep,
        place: int,
        parent: str | None = None,
        stands_for: PlanStep | None = None,
    ) -> None:
        """Insert a new step. A step that replaces one from a plan file may use the same tools and
        has the same condition; the step and its substeps see the same inputs."""
        own = stands_for or new
        model = stands_for or self.steps.get(parent or "", new)
        step = PlanStep(
            step_id=new.step_id,
            description=new.description,
            parent_step_id=parent,
            inputs=model.inputs,
            tools=own.tools if new.agent else None,
            when=own.when,
        )
        items = list(self.steps.items())
        items.insert(place, (new.step_id, step.model_copy(update=_select_planned_fields(new))))
        self.steps = dict(items)
        self.kinds[new.step_id] = ["ADD"]
        self._set_dependencies(number, new.step_id, new.dependencies)

    def _set_dependencies(self, number: int, step_id: str, dependencies: Iterable[str]) -> None:
        asked = tuple(dict.fromkeys(follow_replacements(self.original, d) for d in dependencies))
        self._change(step_id, dependencies=asked)
        self.rewritten.add(step_id)
        self.declared += [(number, step_id, dependency) for dependency in asked]

    def _add_dependencies(self, step_id: str, more: Iterable[str]) -> None:
        self._change(
            step_id, dependencies=tuple(dict.fromkeys((*self.steps[step_id].dependencies, *more)))
        )

    def _change(self, step_id: str, **fields: object) -> None:
        self.steps[step_id] = self.steps[step_id].model_copy(update=fields)

    def _hand_over_substeps(self, parent_id: str, new_parent_id: str | None) -> None:
        self.handed_over[parent_id] = new_parent_id
        for step_id, step in self.steps.items():
            if step.parent_step_id == parent_id and is_changeable(step):
                self._change(step_id, parent_step_id=new_parent_id)

    def _follow_heirs(self, dependencies: Iterable[str], seen: set[str]) -> Iterator[str]:
        """Yield the dependencies, with each removed step replaced by its heirs."""
        for dependency in dependencies:
            if dependency not in self.heirs:
                yield dependency
            elif dependency not in seen:
                seen.add(dependency)
                yield from self._follow_heirs(self.heirs[dependency], seen)


def _new_step(action: RefinementAction) -> PlanStep:
    return cast(PlanStep, action.new_step)  # present if the action needs it


def _select_planned_fields(new: PlanStep) -> dict[str, object]:
    return {name: getattr(new, name) for name in _PLANNED}


EFFECTS: Mapping[ActionType, Callable[[Draft, int, RefinementAction], None]] = {
    "ADD": Draft._add,
    "MODIFY": Draft._modify,
    "REMOVE": Draft._remove,
    "REPLACE": Draft._replace,
    "SUBPLAN_CREATE": Draft._decompose,
    "STEP_MARK_INVALID": Draft._mark_invalid,
}
"""What each type of action, given its number, does to a draft."""
