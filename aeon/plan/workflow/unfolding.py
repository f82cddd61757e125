"""Updates a plan as its steps end, as its file says: skipped steps, an instance for each item of a
list, and repeated steps."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any

from aeon.domain.errors import PlanError
from aeon.domain.graph import by_id, follow_replacements
from aeon.domain.history import StepResult
from aeon.domain.plan import ForEach, Plan, PlanStep, Repeat, renumber_steps
from aeon.domain.values import JsonMapping, JsonObject
from aeon.plan.transitions import fail_step, with_error
from aeon.plan.workflow.conditions import (
    Named,
    find_named,
    find_value,
    holds,
    is_due,
    settle_conditions,
)
from aeon.plan.workflow.references import fill_item, resolve_text

_INSTANCE = re.compile(r"(?s)(.+)\[(\d+)\]")


@dataclass(frozen=True)
class Settlement:
    """The values for settling a plan: `results` are outputs by step id, `inputs` values. With
    `in_order`, steps run whatever came before them."""

    results: JsonMapping
    inputs: JsonMapping
    max_steps: int
    in_order: bool = False

    def settle(self, plan: Plan) -> Plan:
        """Return the plan with all conditions, lists and repetitions settled that can be evaluated
        now."""
        plan = self._repeat(plan)
        while True:
            settled = settle_conditions(plan, self.results, self.inputs, in_order=self.in_order)
            unfolded = self._unfold(settled)
            if unfolded is plan:
                return plan
            plan = unfolded

    def _look_up(self, steps: Mapping[str, PlanStep], named: Named) -> Any:
        return find_value(named, steps, self.results, self.inputs)

    def _unfold(self, plan: Plan) -> Plan:
        for step in plan.steps:
            if step.for_each is None or step.status != "pending":
                continue
            steps = by_id(plan.steps)
            named = find_items_name(step.for_each.items)
            # A list among the inputs is known from the start.
            if is_due(step, steps, in_order=self.in_order) or (
                named.kind == "input" and step.when is None
            ):
                return self._unfold_step(plan, step, step.for_each, named)
        return plan

    def _unfold_step(self, plan: Plan, step: PlanStep, each: ForEach, named: Named) -> Plan:
        try:
            items = self._find_items(by_id(plan.steps), named, each.items)
            if len(plan.steps) - 1 + len(items) > self.max_steps:
                limit = f"execution.max_steps={self.max_steps}"
                raise PlanError(
                    f"`for_each: {each.items}` has {len(items)} items: more than {limit}"
                )
            instances = tuple(
                self._make_instance(step, each, number, item) for number, item in enumerate(items)
            )
            taken = {other.step_id for other in plan.steps}
            if clash := next((one.step_id for one in instances if one.step_id in taken), None):
                raise PlanError(f"`for_each: {each.items}`: the step '{clash}' already exists")
        except PlanError as error:
            return plan.with_steps(fail_step(step, error.message))
        if not instances:
            # Its condition, if it has one, holds.
            return plan.with_steps(step.model_copy(update={"status": "skipped", "when": None}))
        return _exchange(plan, step, instances)

    def _find_items(self, steps: Mapping[str, PlanStep], named: Named, text: str) -> list[Any]:
        if named.kind == "step":
            source = steps.get(follow_replacements(steps, named.name))
            # Without the list there is nothing to do.
            if source is not None and source.status == "skipped":
                return []
        return _read_list(self._look_up(steps, named), text)

    def _make_instance(self, step: PlanStep, each: ForEach, number: int, item: Any) -> PlanStep:
        def fill(text: str) -> str:
            filled = fill_item(text, each.name, item)
            return resolve_text(
                filled if isinstance(filled, str) else json.dumps(filled), self.inputs
            )

        fields = {
            "step_id": f"{step.step_id}[{number}]",
            "description": fill(step.description),
            "handoff_to_next": step.handoff_to_next and fill(step.handoff_to_next),
            "arguments": fill_item(step.arguments, each.name, item),
            "when": None,
            "for_each": None,
        }
        return step.model_copy(update=fields)

    def _repeat(self, plan: Plan) -> Plan:
        steps = by_id(plan.steps)
        settled = [
            self._repeat_step(step, step.repeat, steps)
            for step in plan.steps
            if step.repeat is not None and step.status == "complete"
        ]
        return plan.with_steps(*settled)

    def _repeat_step(
        self, step: PlanStep, repeat: Repeat, steps: Mapping[str, PlanStep]
    ) -> PlanStep:
        try:
            if holds(repeat.until, lambda named: self._look_up(steps, named)):
                return step
        except PlanError as error:
            return fail_step(step, error.message)
        reason = f"`{repeat.until}` does not hold"
        done = repeat.done + 1
        if done >= repeat.at_most:
            return with_error(step, f"repeated {repeat.at_most} times, but {reason}")
        fields = {
            "status": "pending",
            "clarity_state": None,
            "clarity_reason": reason,
            "repeat": repeat.model_copy(update={"done": done}),
        }
        return step.model_copy(update=fields)


def settle_inputs(plan: Plan, inputs: JsonMapping, max_steps: int) -> Plan:
    """Return the plan with the conditions and lists settled that depend on inputs alone. Raises
    PlanError naming the first step that fails by that."""
    settled = Settlement({}, inputs, max_steps).settle(plan)
    failed = next((step for step in settled.steps if step.status == "failed"), None)
    if failed is not None:
        raise PlanError(f"step {failed.step_id}: {failed.errors[-1]}")
    return settled


def find_items_name(text: str) -> Named:
    """Return the name in `for_each`. Raises PlanError for anything but one input or output."""
    found = find_named(text)
    if len(found) != 1 or found[0].text != text.strip():
        allowed = "`inputs.NAME` or `steps.ID.output`, with a path"
        raise PlanError(f"`for_each: {text}` must name one list: {allowed}")
    return found[0]


def collect_outputs(
    results: Mapping[str, StepResult],
    read: Callable[[StepResult], Any],
    named: Set[str] | None = None,
) -> JsonObject:
    """Return the values of the existing outputs by step id; those of a step's instances also as a
    list, with null for missing ones. With `named`, only outputs of these steps are read."""
    outputs: JsonObject = {}
    groups: dict[str, dict[int, Any]] = {}
    for name, result in results.items():
        match = _INSTANCE.fullmatch(name)
        group = match[1] if match else name
        if named is not None and named.isdisjoint((name, group)):
            continue
        if result.error is None:
            outputs[name] = read(result)
        if match:
            groups.setdefault(group, {})[int(match[2])] = outputs.get(name)
    lists = {
        name: [found.get(number) for number in range(max(found) + 1)]
        for name, found in groups.items()
    }
    return {**lists, **outputs}


def _read_list(value: Any, text: str) -> list[Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise PlanError(f"`for_each: {text}` is a text that is no JSON") from None
    if not isinstance(value, list | tuple):
        raise PlanError(f"`for_each: {text}` is no list")
    return list(value)


def _exchange(plan: Plan, step: PlanStep, instances: tuple[PlanStep, ...]) -> Plan:
    """Return the plan with a step replaced by its instances, also in the dependencies of others."""
    ids = tuple(instance.step_id for instance in instances)
    steps: list[PlanStep] = []
    for other in plan.steps:
        if other.step_id == step.step_id:
            steps += instances
        elif step.step_id in other.dependencies:
            mapped = (
                name
                for dependency in other.dependencies
                for name in (ids if dependency == step.step_id else (dependency,))
            )
            steps.append(other.model_copy(update={"dependencies": tuple(mapped)}))
        else:
            steps.append(other)
    return plan.model_copy(update={"steps": renumber_steps(tuple(steps))})
