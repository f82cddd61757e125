"""What the simulated planner answers: plans, subplans and refinements."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from aeon.simulated.situation import ShownStep, Situation
from aeon.simulated.texts import MARK, excerpt

CLARIFIED = "clarified:"
SPECIFIC = "made specific:"
ADDED = "cross-check"
_MOST_POLISH = 4

_WORK = {
    "gather": "Gather what is given, and what has to be assumed, for",
    "facts": "Collect the facts that matter for",
    "limits": "Name the limits and conditions of",
    "draft": "Draft the main part of",
    "first-half": "Work out the first half of",
    "second-half": "Work out the second half of",
    "risks": "Find what could go wrong with",
    "examples": "Make examples for",
    "checks": "Check the parts against each other for",
    "merge": "Bring the parts together for",
    "answer": "Write the complete answer to",
}
_SHAPES: tuple[dict[str, tuple[str, ...]], ...] = (
    {"gather": (), "draft": ("gather",), "risks": ("gather",), "answer": ("draft", "risks")},
    {
        "gather": (),
        "first-half": ("gather",),
        "second-half": ("gather",),
        "risks": ("gather",),
        "answer": ("first-half", "second-half", "risks"),
    },
    {"gather": (), "draft": ("gather",), "risks": ("gather",), "merge": ("draft", "risks"), "answer": ("merge",)},
    {
        "gather": (),
        "draft": ("gather",),
        "risks": ("gather",),
        "examples": ("draft",),
        "checks": ("draft", "risks"),
        "answer": ("examples", "checks"),
    },
    {
        "gather": (),
        "first-half": ("gather",),
        "second-half": ("gather",),
        "risks": ("gather",),
        "merge": ("first-half", "second-half"),
        "checks": ("second-half", "risks"),
        "answer": ("merge", "checks"),
    },
    {"facts": (), "limits": (), "answer": ("facts", "limits")},
)


def plan(situation: Situation) -> dict[str, Any]:
    """A plan of three to seven steps in two to four layers that ends with one step and names the task."""
    shape = situation.draw("plan", situation.task).choice(_SHAPES)
    steps = [
        _step(
            step_id,
            f"{MARK} {_WORK[step_id]}: {situation.task}",
            dependencies,
            None if step_id == "answer" else f"{MARK} what {step_id} found, in short",
        )
        for step_id, dependencies in shape.items()
    ]
    return {"goal": f"{MARK} A complete answer to: {situation.task}", "steps": steps}


def subplan(situation: Situation) -> dict[str, Any]:
    """Two or three substeps that prepare the step that is to be decomposed; the last needs the others."""
    parent = situation.variables.get("parent") or {}
    subject = excerpt((parent.get("description") or situation.task).removeprefix(MARK).strip(), 80)
    names = ("first-part", "second-part") + (("comparison",) if situation.rng.random() < 0.5 else ())
    steps = [
        _step(
            name,
            f"{MARK} Prepare the {name.replace('-', ' ')} ({CLARIFIED} the usual case) of: {subject}",
            names[:2] if name == "comparison" else (),
        )
        for name in names
    ]
    return {"subplan_goal": f"{MARK} What is needed for: {subject}", "substeps": steps}


def refinement(situation: Situation) -> dict[str, Any]:
    """Changes to the pending and BLOCKED steps of the plan, and new ids for executed ones that must be replaced."""
    changes = _change_work(situation) if situation.is_started else _change_plan(situation)
    closed = situation.variables.get("closed_steps", ())
    changes = [change for change in changes if change["target_step_id"] not in closed]
    return {
        "actions": changes,
        "declined_issues": _decline_issues(situation, changes),
        "questions": _ask_questions(situation),
    }


def _decline_issues(situation: Situation, changes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The grave issues that no change answers, each with a reason."""
    answered = {issue_id for change in changes for issue_id in change["addresses_issues"]}
    grave = [i["issue_id"] for i in situation.variables.get("issues", ()) if i["severity"] in ("HIGH", "CRITICAL")]
    reason = f"{MARK} nothing better is known"
    return [{"issue_id": issue_id, "reason": reason} for issue_id in grave if issue_id not in answered]


def _change_plan(situation: Situation) -> list[dict[str, Any]]:
    """The last look at a plan before it runs: the step that the review named is made specific, and a check is added."""
    character = situation.character
    if character.never_enough:
        return _extend(situation, "more", "Add what is still missing")
    if not character.reviews:
        return []
    reviewed = [step for step in situation.select("pending") if step.step_id in situation.issues][:2]
    changes = [_make_specific(situation, step) for step in reviewed]
    grows = character.refuses or situation.draw("grows", situation.task).random() < 0.5
    return [*changes, *_add_cross_check(situation, changes)] if grows else changes


def _make_specific(situation: Situation, step: ShownStep) -> dict[str, Any]:
    description = f"{step.description} ({SPECIFIC} at most five points, each with its reason)"
    return _modify(situation, step, "says how much is wanted", description=description)


def _add_cross_check(situation: Situation, changes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A new step beside the others that the final step then needs too; nothing when there is no single final step."""
    changed = {change["target_step_id"] for change in changes}
    final = [step for step in situation.final if step.status == "pending" and step.step_id not in changed]
    if len(final) != 1 or len(situation.live) < 2 or situation.has_step(ADDED):
        return []
    first = next(step for step in situation.live if step.step_id != final[0].step_id)
    added = _step(ADDED, f"{MARK} Look at it from the other side: {situation.task}", (first.step_id,))
    needs = [*final[0].dependencies, ADDED]
    return [
        _change(situation, "ADD", None, added, "a second look makes the answer safer"),
        _modify(situation, final[0], "needs the second look", dependencies=needs),
    ]


def _change_work(situation: Situation) -> list[dict[str, Any]]:
    changes = [change for step in situation.live for change in _mend(situation, step)]
    lost = [
        step for step in situation.steps if step.status in ("failed", "invalid") and not step.raw.get("replaced_by")
    ]
    changes += _replace(situation, lost, "it could not be used")
    if situation.character.revises:
        found = [s for s in situation.select("complete") if s.step_id in situation.issues]
        originals = [step for step in found if not step.step_id.endswith("-2")]
        changes += _replace(situation, originals, "the review found it wanting")
    if situation.character.never_enough:
        return [*changes, *_extend(situation, "more", "Add what is still missing")]
    if not changes and situation.share == 1 and situation.count_steps("polish-") < _MOST_POLISH:
        return _extend(situation, "polish", "Go over the answer once more")
    return changes


def _mend(situation: Situation, step: ShownStep) -> list[dict[str, Any]]:
    """What is done about a BLOCKED step, and about a pending one that the review named."""
    is_blocked, remedy = step.status == "BLOCKED", situation.character.on_blocked
    if is_blocked and remedy == "MODIFY":
        description = f"{step.description} ({CLARIFIED} take the usual case and say so)"
        return [_modify(situation, step, "states an assumption", description=description)]
    if is_blocked and remedy == "SUBPLAN_CREATE":
        return [_change(situation, "SUBPLAN_CREATE", step.step_id, None, "too large to be done in one go")]
    if step.status == "pending" and step.step_id in situation.issues and SPECIFIC not in step.description:
        return [_make_specific(situation, step)]
    return []


def _replace(situation: Situation, steps: Iterable[ShownStep], reason: str) -> list[dict[str, Any]]:
    """A new step, without a tool, in place of each that has none yet."""
    changes = []
    for step in steps:
        new_id = f"{step.step_id}-2"
        if not situation.has_step(new_id):
            fresh = {**_repeat(step), "step_id": new_id, "tool": None, "arguments": None}
            change = _change(situation, "REPLACE", step.step_id, fresh, reason)
            changes.append({**change, "inconsistency_detected": True})
    return changes


def _extend(situation: Situation, name: str, work: str) -> list[dict[str, Any]]:
    """A new final step behind the present ones."""
    if not situation.live:
        return []
    number = situation.count_steps(f"{name}-") + 1
    needs = tuple(step.step_id for step in situation.final)
    added = _step(f"{name}-{number}", f"{MARK} {work} ({number}): {situation.task}", needs)
    return [_change(situation, "ADD", None, added, "the answer still lacks something")]


def _ask_questions(situation: Situation) -> list[dict[str, Any]]:
    """One question: "strict" asks before the plan runs, "stuck" about its BLOCKED step."""
    blocked = [step.step_id for step in situation.select("BLOCKED")]
    character = situation.character
    asks = (character.refuses and not situation.is_started) or (character.on_blocked == "nothing" and blocked)
    if not asks or (situation.variables.get("plan") or {}).get("questions"):
        return []
    question = f"{MARK} Which case is meant in: {situation.task}"
    step_id = blocked[0] if blocked else None
    return [{"question": question, "assumption": f"{MARK} the usual one", "step_id": step_id}]


def _modify(situation: Situation, step: ShownStep, reason: str, **changes: Any) -> dict[str, Any]:
    return _change(situation, "MODIFY", step.step_id, {**_repeat(step), **changes}, reason)


def _change(
    situation: Situation, action: str, target: str | None, step: dict[str, Any] | None, reason: str
) -> dict[str, Any]:
    issues = list(situation.issues.get(target, ())) if target else []
    return {
        "action_type": action,
        "target_step_id": target,
        "new_step": step,
        "justification": f"{MARK} {reason}",
        "addresses_issues": issues,
        "overrides_issues": issues[:1] if action == "MODIFY" and situation.rng.random() < 0.2 else [],
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
