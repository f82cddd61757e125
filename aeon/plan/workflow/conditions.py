"""Conditions of steps, `when:` in a workflow file: expressions over inputs and outputs of earlier
steps, evaluated by simpleeval. `len` is the only function, and Python objects are out of reach."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from aeon.domain.errors import PlanError
from aeon.domain.graph import by_id, follow_replacements
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.values import JsonMapping
from aeon.plan.transitions import fail_step
from aeon.plan.workflow.references import follow_path

MAX_CHARACTERS = 2_000
_CONSTANTS = {"true": True, "false": False, "null": None}
_FUNCTIONS: dict[str, Callable[..., Any]] = {"len": len}
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod, ast.Not, ast.USub, ast.And, ast.Or)
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn)
_PARTS = (ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Compare, ast.Constant, ast.List, ast.Load)
_ALLOWED = (
    "comparisons, and, or, not, in, + - * / %, len(...), "
    "true, false, null, texts, numbers and lists"
)
_NAMES = "`inputs.NAME` or `steps.ID.output`, with a path: `steps.ID.output.KEY`, `inputs.NAME[0]`"


class Named(NamedTuple):
    """A name in a condition: an input, or the output of a step; `path` leads into it."""

    kind: Literal["input", "step"]
    name: str
    path: tuple[str, ...]
    text: str


def find_named(condition: str) -> list[Named]:
    """Return the names in a condition. Raises PlanError for one that cannot be parsed."""
    return list(_walk(_parse(condition)))


def holds(condition: str, look_up: Callable[[Named], Any]) -> bool:
    """Evaluate a condition, getting the value of each name from `look_up`. Raises PlanError if that
    fails."""
    # Takes time, and few plans have conditions.
    from simpleeval import EvalWithCompoundTypes, InvalidExpression

    evaluator = EvalWithCompoundTypes(functions=_FUNCTIONS, names=_CONSTANTS)
    evaluator.operators = {**evaluator.operators, ast.Mod: _find_remainder}

    def find(node: ast.expr) -> Any:
        return look_up(_read_name(node))

    evaluator.nodes[ast.Attribute] = evaluator.nodes[ast.Subscript] = find
    parsed = _parse(condition)
    try:
        value = evaluator.eval(condition, previously_parsed=parsed)
    except (InvalidExpression, ArithmeticError, TypeError, ValueError, RecursionError) as error:
        raise PlanError(f"`when: {condition}` cannot be evaluated: {error}") from None
    if not isinstance(value, bool):
        shown = json.dumps(value, ensure_ascii=False, default=str)[:200]
        raise PlanError(f"`when: {condition}` gives {shown}, not true or false")
    return value


def settle_conditions(
    plan: Plan, results: JsonMapping, inputs: JsonMapping, *, in_order: bool
) -> Plan:
    """Return the plan with those steps skipped whose condition is false.

    A condition is evaluated once the steps it depends on are complete, skipped or left to a person;
    with `in_order`, where steps run whatever came before, once they have ended. `results` are
    outputs by step id. A step whose condition cannot be evaluated fails.
    """
    steps = by_id(plan.steps)
    for step in plan.steps:
        if step.when is None or step.status != "pending":
            continue
        if is_due(step, steps, in_order=in_order):
            steps[step.step_id] = _settle(step, steps, results, inputs)
    return plan.with_steps(*steps.values())


def describe_skip(step: PlanStep) -> str:
    """Return the reason why a step was skipped."""
    if step.when is None and step.for_each:
        return f"there are no items: {step.for_each.items}"
    return f"its condition does not hold: {step.when}"


def read_skipped(step: PlanStep) -> list[Any] | None:
    """Return the output of a skipped step: an empty list for a step with a list, else null."""
    return [] if step.for_each else None


def is_due(step: PlanStep, steps: Mapping[str, PlanStep], *, in_order: bool) -> bool:
    """Whether the steps that a step depends on let it continue: with `in_order` after any end."""
    before = [steps[name] for name in step.dependencies if name in steps]
    if in_order:
        return all(other.status not in ("pending", "running") for other in before)
    return all(other.is_done or other.unfinished for other in before)


def _settle(
    step: PlanStep,
    steps: Mapping[str, PlanStep],
    results: JsonMapping,
    inputs: JsonMapping,
) -> PlanStep:
    try:
        is_met = holds(step.when or "true", lambda named: find_value(named, steps, results, inputs))
    except PlanError as error:
        return fail_step(step, error.message)
    return step if is_met else step.model_copy(update={"status": "skipped"})


def find_value(
    named: Named,
    steps: Mapping[str, PlanStep],
    results: JsonMapping,
    inputs: JsonMapping,
) -> Any:
    """Return the input or output that a condition names; for a skipped step null, or an empty list
    if it had no items. Raises PlanError if there is none."""
    if named.kind == "input":
        if named.name not in inputs:
            raise PlanError(f"`{named.text}`: no such input")
        return follow_path(named.name, inputs[named.name], named.path, named.text)
    name = follow_replacements(steps, named.name)
    step = steps.get(name)
    if step is not None and step.status == "skipped":
        return read_skipped(step)
    if name not in results:
        raise PlanError(f"`{named.text}`: step `{name}` has no output")
    return follow_path(name, results[name], named.path, named.text)


def _find_remainder(one: Any, other: Any) -> Any:
    """Return the remainder of numbers; with a text, `%` would be formatting, which can fill the
    memory."""
    if isinstance(one, str):
        raise TypeError("% is for numbers")
    return one % other


def _parse(condition: str) -> ast.expr:
    if len(condition) > MAX_CHARACTERS:
        raise PlanError(f"`when` has more than {MAX_CHARACTERS} characters")
    try:
        return ast.parse(condition.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        why = error.msg if isinstance(error, SyntaxError) else str(error)
        raise PlanError(f"`when: {condition}` cannot be read: {why}") from None


def _walk(node: ast.AST) -> Iterator[Named]:
    """Yield the names in an expression. Raises PlanError for parts that a condition may not
    have."""
    if isinstance(node, ast.Attribute | ast.Subscript):
        yield _read_name(node)
        return
    if isinstance(node, ast.Name) and node.id not in _CONSTANTS:
        raise PlanError(f"`when`: `{node.id}` names nothing: write {_NAMES}")
    if isinstance(node, ast.Call):
        _check_call(node)
        for argument in node.args:
            yield from _walk(argument)
        return
    if not isinstance(node, (*_PARTS, *_OPERATORS, *_COMPARISONS, ast.Name)):
        text = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
        raise PlanError(f"`when`: `{text}` is not allowed in a condition: {_ALLOWED}")
    for part in ast.iter_child_nodes(node):
        yield from _walk(part)


def _check_call(node: ast.Call) -> None:
    is_known = isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS
    if not is_known or node.keywords or len(node.args) != 1:
        raise PlanError(
            f"`when`: `{ast.unparse(node)}` is a call that a condition may not make: {_ALLOWED}"
        )


def _read_name(node: ast.expr) -> Named:
    """Return the input or output that an expression names. Raises PlanError if it names none."""
    text = ast.unparse(node)
    parts: list[str] = []
    inner = node
    while isinstance(inner, ast.Attribute | ast.Subscript):
        if isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
        elif isinstance(inner.slice, ast.Constant) and isinstance(inner.slice.value, str | int):
            parts.append(str(inner.slice.value))
        else:
            raise PlanError(f"`when`: `{text}` names nothing: write {_NAMES}")
        inner = inner.value
    root = inner.id if isinstance(inner, ast.Name) else ""
    first, *path = reversed(parts)
    if root == "inputs":
        return Named("input", first, tuple(path), text)
    if root == "steps" and path[:1] == ["output"]:
        return Named("step", first, tuple(path[1:]), text)
    raise PlanError(f"`when`: `{text}` names nothing: write {_NAMES}")
