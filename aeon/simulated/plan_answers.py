"""The answers of the simulated planner: plans, subplans and refinements."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from aeon.domain.values import JsonMapping, JsonObject
from aeon.files.fast_yaml import read_yaml
from aeon.simulated.situation import MARK, ShownStep, SimulatedCall, excerpt

CLARIFIED = "clarified:"
SPECIFIC = "made specific:"
ADDED = "cross-check"


def plan(situation: SimulatedCall) -> JsonObject:
    """Make a plan of three to six steps in two to four layers that ends with one step and names the
    task."""
    known = _load_shapes()
    shape = situation.draw("plan", situation.task).choice(known["shapes"])
    steps = []
    for step_id, needs in shape.items():
        step = _step(step_id, f"{MARK} {known['work'][step_id]}: {situation.task}", needs)
        if step_id != "answer":
            step["handoff_to_next"] = f"{MARK} what {step_id} found, in short"
        steps.append(step)
    return {"goal": f"{MARK} A complete answer to: {situation.task}", "steps": steps}


@cache
def _load_shapes() -> JsonMapping:
    shapes: JsonMapping = read_yaml(Path(__file__).parent / "plans.yaml")
    return shapes


def subplan(situation: SimulatedCall) -> JsonObject:
    """Make two substeps that prepare the decomposed step, and one that depends on both."""
    parent = situation.variables.get("parent") or {}
    subject = excerpt((parent.get("description") or situation.task).removeprefix(MARK).strip(), 80)
    shape = {"first-part": (), "second-part": (), "comparison": ("first-part", "second-part")}
    steps = [
        _step(
            name,
            f"{MARK} Prepare the {name.replace('-', ' ')} ({CLARIFIED} the usual case) "
            f"of: {subject}",
            needs,
        )
        for name, needs in shape.items()
    ]
    return {"subplan_goal": f"{MARK} What is needed for: {subject}", "substeps": steps}


def refinement(situation: SimulatedCall) -> JsonObject:
    """Propose changes to the plan's steps, and a reason for each grave issue without a change."""
    closed = situation.variables.get("closed_steps", ())
    changes = [change for change in _propose(situation) if change["target_step_id"] not in closed]
    answered = {issue_id for change in changes for issue_id in change["addresses_issues"]}
    declined = [
        {"issue_id": issue["issue_id"], "reason": f"{MARK} nothing better is known"}
        for issue in situation.variables.get("issues", ())
        if issue["severity"] in ("HIGH", "CRITICAL") and issue["issue_id"] not in answered
    ]
    questions = _ask_questions(situation)
    return {"actions": changes, "declined_issues": declined, "questions": questions}


def _propose(situation: SimulatedCall) -> list[JsonObject]:
    behaviour = situation.behaviour
    is_started = situation.is_started
    changes = _change_steps(situation) if is_started or behaviour.reviews_plan else []
    is_done = is_started and situation.share == 1
    if behaviour.never_enough or (is_done and not changes):
        changes += _extend(situation)
    if behaviour.refuses_addition and not is_started:
        changes += _add_cross_check(situation, changes)
    return changes


def _change_steps(situation: SimulatedCall) -> list[JsonObject]:
    found = (_change_step(situation, step) for step in situation.steps)
    return [change for change in found if change is not None]


def _change_step(situation: SimulatedCall, step: ShownStep) -> JsonObject | None:
    if step.status == "BLOCKED":
        return _unblock(situation, step)
    if step.status == "pending":
        return _make_specific(situation, step)
    return _replace(situation, step)


def _unblock(situation: SimulatedCall, step: ShownStep) -> JsonObject | None:
    match situation.behaviour.on_blocked:
        case "SUBPLAN_CREATE":
            reason = "too large to be done in one go"
            return _change(situation, "SUBPLAN_CREATE", step.step_id, None, reason)
        case "MODIFY":
            words = f"{CLARIFIED} take the usual case and say so"
            return _reword(situation, step, words, "states an assumption")
    return None


def _make_specific(situation: SimulatedCall, step: ShownStep) -> JsonObject | None:
    if step.step_id not in situation.issues or SPECIFIC in step.description:
        return None
    words = f"{SPECIFIC} at most five points, each with its reason"
    return _reword(situation, step, words, "says how much is wanted")


def _reword(situation: SimulatedCall, step: ShownStep, words: str, reason: str) -> JsonObject:
    reworded = {**_repeat(step), "description": f"{step.description} ({words})"}
    return _change(situation, "MODIFY", step.step_id, reworded, reason)


def _replace(situation: SimulatedCall, step: ShownStep) -> JsonObject | None:
    new_id = f"{step.step_id}-2"
    is_lost = step.status in ("failed", "invalid") and not step.raw.get("replaced_by")
    is_thin = step.status == "complete" and step.step_id in situation.issues
    is_revised = situation.behaviour.revises_output and not step.step_id.endswith("-2")
    if not (is_lost or (is_thin and is_revised)) or situation.count_steps(new_id):
        return None
    fresh = {**_repeat(step), "step_id": new_id, "tool": None, "arguments": None}
    change = _change(situation, "REPLACE", step.step_id, fresh, "it could not be used as it is")
    return {**change, "inconsistency_detected": True}


def _add_cross_check(situation: SimulatedCall, changes: Sequence[JsonObject]) -> list[JsonObject]:
    changed = {change["target_step_id"] for change in changes}
    final = [
        step for step in situation.final if step.status == "pending" and step.step_id not in changed
    ]
    if len(final) != 1 or len(situation.live) < 2 or situation.count_steps(ADDED):
        return []
    first = next(step for step in situation.live if step.step_id != final[0].step_id)
    added = _step(
        ADDED, f"{MARK} Look at it from the other side: {situation.task}", (first.step_id,)
    )
    needing = {**_repeat(final[0]), "dependencies": [*final[0].dependencies, ADDED]}
    return [
        _change(situation, "ADD", None, added, "a second look makes the answer safer"),
        _change(situation, "MODIFY", final[0].step_id, needing, "needs the second look"),
    ]


def _extend(situation: SimulatedCall) -> list[JsonObject]:
    number = situation.count_steps("more-") + 1
    needs = [step.step_id for step in situation.final]
    added = _step(
        f"more-{number}", f"{MARK} Add what is still missing ({number}): {situation.task}", needs
    )
    return (
        [_change(situation, "ADD", None, added, "the answer still lacks something")]
        if situation.live
        else []
    )


def _ask_questions(situation: SimulatedCall) -> list[JsonObject]:
    behaviour = situation.behaviour
    blocked = [step.step_id for step in situation.select("BLOCKED")]
    is_stuck = behaviour.on_blocked == "nothing" and bool(blocked)
    is_strict = behaviour.refuses_addition and not situation.is_started
    if not (is_stuck or is_strict) or situation.plan.get("questions"):
        return []
    return [
        {
            "question": f"{MARK} Which case is meant in: {situation.task}",
            "assumption": f"{MARK} the usual one",
            "step_id": blocked[0] if blocked else None,
        }
    ]


def _change(
    situation: SimulatedCall,
    action: str,
    target: str | None,
    step: JsonObject | None,
    reason: str,
) -> JsonObject:
    return {
        "action_type": action,
        "target_step_id": target,
        "new_step": step,
        "justification": f"{MARK} {reason}",
        "addresses_issues": situation.issues.get(target or "", []),
        "inconsistency_detected": False,
    }


def _repeat(step: ShownStep) -> JsonObject:
    arguments = step.raw.get("arguments")
    same = _step(step.step_id, step.description, step.dependencies)
    return {
        **same,
        "provides": list(step.raw.get("provides") or same["provides"]),
        "handoff_to_next": step.raw.get("handoff_to_next"),
        "tool": step.raw.get("tool"),
        "arguments": None if arguments is None else json.dumps(arguments),
    }


def _step(step_id: str, description: str, needs: Iterable[str]) -> JsonObject:
    """Make a new step, always without a tool, which would be called with invented arguments."""
    return {
        "step_id": step_id,
        "description": description,
        "dependencies": list(needs),
        "provides": ["answer" if step_id == "answer" else f"{step_id} notes"],
        "tool": None,
    }
