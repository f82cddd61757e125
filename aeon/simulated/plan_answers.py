"""What the simulated planner answers: plans, subplans and refinements."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from aeon.simulated.situation import MARK, ShownStep, SimulatedCall, excerpt

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
    {"facts": (), "limits": (), "answer": ("facts", "limits")},
    {**_BEGINNING, "answer": ("draft", "risks")},
    {**_BEGINNING, "merge": ("draft", "risks"), "answer": ("merge",)},
    {
        **_BEGINNING,
        "examples": ("draft",),
        "checks": ("draft", "risks"),
        "answer": ("examples", "checks"),
    },
)


def plan(situation: SimulatedCall) -> dict[str, Any]:
    """A plan of three to six steps in two to four layers that ends with one step and names the task."""
    shape = situation.draw("plan", situation.task).choice(_SHAPES)
    steps = []
    for step_id, needs in shape.items():
        handoff = None if step_id == "answer" else f"{MARK} what {step_id} found, in short"
        steps.append(_step(step_id, f"{MARK} {_WORK[step_id]}: {situation.task}", needs, handoff))
    return {"goal": f"{MARK} A complete answer to: {situation.task}", "steps": steps}


def subplan(situation: SimulatedCall) -> dict[str, Any]:
    """Two substeps that prepare the step that is to be decomposed, and one that needs both."""
    parent = situation.variables.get("parent") or {}
    subject = excerpt((parent.get("description") or situation.task).removeprefix(MARK).strip(), 80)
    shape = {"first-part": (), "second-part": (), "comparison": ("first-part", "second-part")}
    steps = [
        _step(
            name,
            f"{MARK} Prepare the {name.replace('-', ' ')} ({CLARIFIED} the usual case) of: {subject}",
            needs,
        )
        for name, needs in shape.items()
    ]
    return {"subplan_goal": f"{MARK} What is needed for: {subject}", "substeps": steps}


def refinement(situation: SimulatedCall) -> dict[str, Any]:
    """Changes to the steps of the plan, and a reason for each grave issue that no change answers."""
    character, changes = situation.character, []
    if situation.is_started or character.reviews:
        changes = [change for step in situation.steps for change in _change_step(situation, step)]
    if character.never_enough or (not changes and situation.is_started and situation.share == 1):
        changes += _extend(situation)
    if character.refuses and not situation.is_started:
        changes += _add_cross_check(situation, changes)
    closed = situation.variables.get("closed_steps", ())
    changes = [change for change in changes if change["target_step_id"] not in closed]
    answered = {issue_id for change in changes for issue_id in change["addresses_issues"]}
    grave = [
        i["issue_id"]
        for i in situation.variables.get("issues", ())
        if i["severity"] in ("HIGH", "CRITICAL")
    ]
    reason = f"{MARK} nothing better is known"
    return {
        "actions": changes,
        "declined_issues": [
            {"issue_id": each, "reason": reason} for each in grave if each not in answered
        ],
        "questions": _ask_questions(situation),
    }


def _change_step(situation: SimulatedCall, step: ShownStep) -> list[dict[str, Any]]:
    character, is_named = situation.character, step.step_id in situation.issues
    if step.status == "BLOCKED" and character.on_blocked == "SUBPLAN_CREATE":
        return [
            _change(
                situation, "SUBPLAN_CREATE", step.step_id, None, "too large to be done in one go"
            )
        ]
    if step.status == "BLOCKED" and character.on_blocked == "MODIFY":
        clarified = {
            "description": f"{step.description} ({CLARIFIED} take the usual case and say so)"
        }
        return [
            _change(
                situation,
                "MODIFY",
                step.step_id,
                {**_repeat(step), **clarified},
                "states an assumption",
            )
        ]
    if step.status == "pending" and is_named and SPECIFIC not in step.description:
        specific = {
            "description": f"{step.description} ({SPECIFIC} at most five points, each with its reason)"
        }
        return [
            _change(
                situation,
                "MODIFY",
                step.step_id,
                {**_repeat(step), **specific},
                "says how much is wanted",
            )
        ]
    is_lost = step.status in ("failed", "invalid") and not step.raw.get("replaced_by")
    is_wanting = (
        character.revises
        and is_named
        and step.status == "complete"
        and not step.step_id.endswith("-2")
    )
    new_id = f"{step.step_id}-2"
    if not (is_lost or is_wanting) or situation.count_steps(new_id):
        return []
    fresh = {**_repeat(step), "step_id": new_id, "tool": None, "arguments": None}
    change = _change(situation, "REPLACE", step.step_id, fresh, "it could not be used as it is")
    return [{**change, "inconsistency_detected": True}]


def _add_cross_check(
    situation: SimulatedCall, changes: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
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


def _extend(situation: SimulatedCall) -> list[dict[str, Any]]:
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


def _ask_questions(situation: SimulatedCall) -> list[dict[str, Any]]:
    blocked = [step.step_id for step in situation.select("BLOCKED")]
    character = situation.character
    asks = (character.refuses and not situation.is_started) or (
        character.on_blocked == "nothing" and blocked
    )
    if not asks or (situation.variables.get("plan") or {}).get("questions"):
        return []
    question = f"{MARK} Which case is meant in: {situation.task}"
    return [
        {
            "question": question,
            "assumption": f"{MARK} the usual one",
            "step_id": blocked[0] if blocked else None,
        }
    ]


def _change(
    situation: SimulatedCall,
    action: str,
    target: str | None,
    step: dict[str, Any] | None,
    reason: str,
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
    arguments = step.raw.get("arguments")
    shape = _step(
        step.step_id, step.description, step.dependencies, step.raw.get("handoff_to_next")
    )
    return {
        **shape,
        "provides": list(step.raw.get("provides") or shape["provides"]),
        "tool": step.raw.get("tool"),
        "arguments": None if arguments is None else json.dumps(arguments),
    }


def _step(
    step_id: str, description: str, needs: Iterable[str], handoff: str | None = None
) -> dict[str, Any]:
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
