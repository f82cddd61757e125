"""What the simulated planner answers: plans, subplans and refinements."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from aeon.simulated.situation import MARK, ShownStep, Situation, excerpt

CLARIFIED = "clarified:"
SPECIFIC = "made specific:"
ADDED = "cross-check"

_WORK = {
    "gather": "Gather what is given, and what has to be assumed, for",
    "facts": "Collect the facts that matter for",
    "limits": "Name the limits and conditions of",
    "draft": "Draft the main part of",
    "risks": "Find what could go wrong with",
    "examples": "Make examples for",
    "checks": "Check the parts against each other for",
    "merge": "Bring the parts together for",
    "answer": "Write the complete answer to",
}
_BEGINNING: dict[str, tuple[str, ...]] = {"gather": (), "draft": ("gather",), "risks": ("gather",)}
_SHAPES: tuple[dict[str, tuple[str, ...]], ...] = (
    {**_BEGINNING, "answer": ("draft", "risks")},
    {**_BEGINNING, "merge": ("draft", "risks"), "answer": ("merge",)},
    {**_BEGINNING, "examples": ("draft",), "checks": ("draft", "risks"), "answer": ("examples", "checks")},
    {"facts": (), "limits": (), "answer": ("facts", "limits")},
)


def plan(situation: Situation) -> dict[str, Any]:
    """A plan of three to six steps in two to four layers that ends with one step and names the task."""
    shape = situation.draw("plan", situation.task).choice(_SHAPES)
    steps = []
    for step_id, needs in shape.items():
        handoff = None if step_id == "answer" else f"{MARK} what {step_id} found, in short"
        steps.append(_step(step_id, f"{MARK} {_WORK[step_id]}: {situation.task}", needs, handoff))
    return {"goal": f"{MARK} A complete answer to: {situation.task}", "steps": steps}


def subplan(situation: Situation) -> dict[str, Any]:
    """Two substeps that prepare the step that is to be decomposed, and one that needs both."""
    parent = situation.variables.get("parent") or {}
    subject = excerpt((parent.get("description") or situation.task).removeprefix(MARK).strip(), 80)
    shape = {"first-part": (), "second-part": (), "comparison": ("first-part", "second-part")}
    steps = [
        _step(name, f"{MARK} Prepare the {name.replace('-', ' ')} ({CLARIFIED} the usual case) of: {subject}", needs)
        for name, needs in shape.items()
    ]
    return {"subplan_goal": f"{MARK} What is needed for: {subject}", "substeps": steps}


def refinement(situation: Situation) -> dict[str, Any]:
    """Changes to the pending and BLOCKED steps of the plan, new ids for executed ones that must be replaced, and a
    reason for each grave issue that no change answers."""
    changes = _change_work(situation) if situation.is_started else _change_plan(situation)
    closed = situation.variables.get("closed_steps", ())
    changes = [change for change in changes if change["target_step_id"] not in closed]
    answered = {issue_id for change in changes for issue_id in change["addresses_issues"]}
    grave = [i["issue_id"] for i in situation.variables.get("issues", ()) if i["severity"] in ("HIGH", "CRITICAL")]
    reason = f"{MARK} nothing better is known"
    return {
        "actions": changes,
        "declined_issues": [{"issue_id": each, "reason": reason} for each in grave if each not in answered],
        "questions": _ask_questions(situation),
    }


def _change_plan(situation: Situation) -> list[dict[str, Any]]:
    """The last look at a plan before it runs: the step that the review named is made specific, and a check is added."""
    character = situation.character
    if character.never_enough:
        return _extend(situation)
    if not character.reviews:
        return []
    reviewed = [step for step in situation.select("pending") if step.step_id in situation.issues]
    changes = [_make_specific(situation, step) for step in reviewed]
    return [*changes, *_add_cross_check(situation, changes)] if character.refuses else changes


def _make_specific(situation: Situation, step: ShownStep) -> dict[str, Any]:
    description = f"{step.description} ({SPECIFIC} at most five points, each with its reason)"
    return _modify(situation, step, "says how much is wanted", description=description)


def _add_cross_check(situation: Situation, changes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A new step beside the others that the final step then needs too; nothing when there is no single final step."""
    changed = {change["target_step_id"] for change in changes}
    final = [step for step in situation.final if step.status == "pending" and step.step_id not in changed]
    if len(final) != 1 or len(situation.live) < 2 or situation.count_steps(ADDED):
        return []
    first = next(step for step in situation.live if step.step_id != final[0].step_id)
    added = _step(ADDED, f"{MARK} Look at it from the other side: {situation.task}", (first.step_id,))
    needs = [*final[0].dependencies, ADDED]
    return [
        _change(situation, "ADD", None, added, "a second look makes the answer safer"),
        _modify(situation, final[0], "needs the second look", dependencies=needs),
    ]


def _change_work(situation: Situation) -> list[dict[str, Any]]:
    character = situation.character
    changes = [change for step in situation.live for change in _mend(situation, step)]
    lost = [s for s in situation.steps if s.status in ("failed", "invalid") and not s.raw.get("replaced_by")]
    changes += _replace(situation, lost, "it could not be used")
    if character.revises:
        complete = [s for s in situation.select("complete") if not s.step_id.endswith("-2")]
        found = [s for s in complete if s.step_id in situation.issues]
        changes += _replace(situation, found, "the review found it wanting")
    return [*changes, *_extend(situation)] if character.never_enough else changes


def _mend(situation: Situation, step: ShownStep) -> list[dict[str, Any]]:
    """What is done about a BLOCKED step, and about a pending one that the review named."""
    remedy = situation.character.on_blocked if step.status == "BLOCKED" else None
    if remedy == "MODIFY":
        description = f"{step.description} ({CLARIFIED} take the usual case and say so)"
        return [_modify(situation, step, "states an assumption", description=description)]
    if remedy == "SUBPLAN_CREATE":
        return [_change(situation, "SUBPLAN_CREATE", step.step_id, None, "too large to be done in one go")]
    if step.status == "pending" and step.step_id in situation.issues and SPECIFIC not in step.description:
        return [_make_specific(situation, step)]
    return []


def _replace(situation: Situation, steps: Iterable[ShownStep], reason: str) -> list[dict[str, Any]]:
    """A new step, without a tool, in place of each that has none yet."""
    changes = []
    for step in steps:
        new_id = f"{step.step_id}-2"
        if not situation.count_steps(new_id):
            fresh = {**_repeat(step), "step_id": new_id, "tool": None, "arguments": None}
            change = _change(situation, "REPLACE", step.step_id, fresh, reason)
            changes.append({**change, "inconsistency_detected": True})
    return changes


def _extend(situation: Situation) -> list[dict[str, Any]]:
    """A new final step behind the present ones."""
    if not situation.live:
        return []
    number = situation.count_steps("more-") + 1
    needs = [step.step_id for step in situation.final]
    added = _step(f"more-{number}", f"{MARK} Add what is still missing ({number}): {situation.task}", needs)
    return [_change(situation, "ADD", None, added, "the answer still lacks something")]


def _ask_questions(situation: Situation) -> list[dict[str, Any]]:
    """One question: "strict" asks before the plan runs, "stuck" about its BLOCKED step."""
    blocked = [step.step_id for step in situation.select("BLOCKED")]
    character = situation.character
    asks = (character.refuses and not situation.is_started) or (character.on_blocked == "nothing" and blocked)
    if not asks or (situation.variables.get("plan") or {}).get("questions"):
        return []
    question = f"{MARK} Which case is meant in: {situation.task}"
    return [{"question": question, "assumption": f"{MARK} the usual one", "step_id": blocked[0] if blocked else None}]


def _modify(situation: Situation, step: ShownStep, reason: str, **changes: Any) -> dict[str, Any]:
    return _change(situation, "MODIFY", step.step_id, {**_repeat(step), **changes}, reason)


def _change(
    situation: Situation, action: str, target: str | None, step: dict[str, Any] | None, reason: str
) -> dict[str, Any]:
    return {
        "action_type": action,
        "target_step_id": target,
        "new_step": step,
        "justification": f"{MARK} {reason}",
        "addresses_issues": situation.issues.get(target or "", []),
        "overrides_issues": [],
        "inconsistency_detected": False,
    }


def _repeat(step: ShownStep) -> dict[str, Any]:
    """The step in the shape that a plan or an action gives it."""
    arguments = step.raw.get("arguments")
    shape = _step(step.step_id, step.description, step.dependencies, step.raw.get("handoff_to_next"))
    return {
        **shape,
        "provides": list(step.raw.get("provides") or shape["provides"]),
        "tool": step.raw.get("tool"),
        "arguments": None if arguments is None else json.dumps(arguments),
    }


def _step(step_id: str, description: str, needs: Iterable[str], handoff: str | None = None) -> dict[str, Any]:
    """A new step; never one with a tool, which would be called with made-up arguments."""
    return {
        "step_id": step_id,
        "description": description,
        "dependencies": list(needs),
        "provides": [f"{step_id} notes" if step_id != "answer" else "answer"],
        "handoff_to_next": handoff,
        "tool": None,
        "arguments": None,
    }
