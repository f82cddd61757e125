"""What the simulated planner answers: plans, subplans and refinements."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from aeon.simulated.prompt_reading import excerpt
from aeon.simulated.scalar_values import MARK
from aeon.simulated.situation import SeenStep, Situation

CLARIFIED = "clarified:"
SPECIFIC = "made specific:"
ADDED = "cross-check"
_MORE = "more"
_POLISH = "polish"
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
    parents = situation.reading.objects("step", "parent")
    parent = parents[0] if parents else {}
    subject = excerpt(_without_mark(str(parent.get("description") or situation.task)), 80)
    names = ("first-part", "second-part") + (("comparison",) if situation.rng.random() < 0.5 else ())
    steps = [
        _step(name, f"{MARK} Prepare the {name.replace('-', ' ')} ({CLARIFIED} the usual case) of: {subject}", needs)
        for name, needs in ((name, names[:2] if name == "comparison" else ()) for name in names)
    ]
    return {"subplan_goal": f"{MARK} What is needed for: {subject}", "substeps": steps}


def refinement(situation: Situation) -> dict[str, Any]:
    """Changes to the pending and BLOCKED steps of the plan, and new ids for executed ones that must be replaced."""
    changes = _later(situation) if situation.started else _before(situation)
    open_changes = [c for c in changes if c["target_step_id"] not in situation.closed]
    declined = _declined(situation, open_changes)
    return {"actions": open_changes, "declined_issues": declined, "questions": _questions(situation)}


def _declined(situation: Situation, changes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The grave issues that no change answers, each with a reason."""
    answered = {issue_id for change in changes for issue_id in change["addresses_issues"]}
    grave = (i for i in situation.reading.objects("issues") if i.get("severity") in ("HIGH", "CRITICAL"))
    open_ids = [i["issue_id"] for i in grave if isinstance(i.get("issue_id"), str) and i["issue_id"] not in answered]
    return [{"issue_id": issue_id, "reason": f"{MARK} nothing better is known"} for issue_id in open_ids]


def _before(situation: Situation) -> list[dict[str, Any]]:
    """The last look at a plan before it runs: the step that the review named is made specific, and a check is added."""
    character = situation.character
    if character.never_enough:
        return _grown(situation)
    if not character.reviews or not situation.steps:
        return []
    changes = [_specific(situation, step) for step in _reviewed(situation)]
    grows = character.refuses or situation.draw("grows", situation.task).random() < 0.5
    return [*changes, *_cross_check(situation, changes)] if grows else changes


def _reviewed(situation: Situation) -> list[SeenStep]:
    return [step for step in situation.live if step.pending and step.step_id in situation.issues][:2]


def _specific(situation: Situation, step: SeenStep) -> dict[str, Any]:
    description = f"{step.description} ({SPECIFIC} at most five points, each with its reason)"
    return _change(
        "MODIFY", step.step_id, new_step(step, description=description), "says how much is wanted", situation
    )


def _cross_check(situation: Situation, changes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A new step beside the others that the final step then needs too; nothing when there is no single final step."""
    changed = {change["target_step_id"] for change in changes}
    final = [step for step in situation.final if step.pending and step.step_id not in changed]
    if len(final) != 1 or len(situation.live) < 2 or _has(situation, ADDED):
        return []
    first = next(step for step in situation.live if step.step_id != final[0].step_id)
    added = _step(ADDED, f"{MARK} Look at it from the other side: {situation.task}", (first.step_id,))
    needs = [*final[0].dependencies, ADDED]
    return [
        _change("ADD", None, added, "a second look makes the answer safer", situation),
        _change("MODIFY", final[0].step_id, new_step(final[0], dependencies=needs), "needs the second look", situation),
    ]


def _later(situation: Situation) -> list[dict[str, Any]]:
    changes = [change for step in situation.live for change in _mended(situation, step)]
    changes += [_replaced(situation, step, "it could not be used") for step in _lost(situation)]
    if situation.character.revises:
        changes += [_replaced(situation, step, "the review found it wanting") for step in _wanting(situation)]
    if situation.character.never_enough:
        return [*changes, *_grown(situation)]
    if not changes and situation.share == 1 and _count(situation, _POLISH) < _MOST_POLISH:
        return _extended(situation, _POLISH, "Go over the answer once more")
    return changes


def _mended(situation: Situation, step: SeenStep) -> list[dict[str, Any]]:
    """What is done about a BLOCKED step, and about a pending one that the review named."""
    if step.blocked and situation.character.on_blocked == "MODIFY":
        description = f"{step.description} ({CLARIFIED} take the usual case and say so)"
        return [
            _change("MODIFY", step.step_id, new_step(step, description=description), "states an assumption", situation)
        ]
    if step.blocked and situation.character.on_blocked == "SUBPLAN_CREATE":
        return [_change("SUBPLAN_CREATE", step.step_id, None, "too large to be done in one go", situation)]
    if step.pending and step.step_id in situation.issues and SPECIFIC not in step.description:
        return [_specific(situation, step)]
    return []


def _lost(situation: Situation) -> list[SeenStep]:
    """Steps that failed or were declared invalid, that nothing replaces yet."""
    gone = [step for step in situation.steps if step.status in ("failed", "invalid") and not step.blocked]
    return [step for step in gone if not step.replaced and not _has(situation, _next_id(step))]


def _wanting(situation: Situation) -> list[SeenStep]:
    """Executed steps that the review named, the first time."""
    named = [s for s in situation.live if s.status == "complete" and s.step_id in situation.issues]
    return [step for step in named if not _has(situation, _next_id(step)) and not step.step_id.endswith("-2")]


def _replaced(situation: Situation, step: SeenStep, reason: str) -> dict[str, Any]:
    fresh = {**new_step(step, step_id=_next_id(step)), "tool": None, "arguments": None}
    return {**_change("REPLACE", step.step_id, fresh, reason, situation), "inconsistency_detected": True}


def _grown(situation: Situation) -> list[dict[str, Any]]:
    return _extended(situation, _MORE, "Add what is still missing") if situation.live else []


def _extended(situation: Situation, name: str, work: str) -> list[dict[str, Any]]:
    """A new final step behind the present ones."""
    number = _count(situation, name) + 1
    needs = tuple(step.step_id for step in situation.final)
    added = _step(f"{name}-{number}", f"{MARK} {work} ({number}): {situation.task}", needs)
    return [_change("ADD", None, added, "the answer still lacks something", situation)]


def _questions(situation: Situation) -> list[dict[str, Any]]:
    character = situation.character
    asks = character.refuses if not situation.started else any(step.blocked for step in situation.live)
    if not asks or situation.reading.text("questions") or not (character.refuses or character.on_blocked == "nothing"):
        return []
    blocked = next((step.step_id for step in situation.live if step.blocked), None)
    question = f"{MARK} Which case is meant in: {situation.task}"
    return [{"question": question, "assumption": f"{MARK} the usual one", "step_id": blocked}]


def _change(
    action: str, target: str | None, step: dict[str, Any] | None, why: str, situation: Situation
) -> dict[str, Any]:
    issues = list(situation.issues.get(target, ())) if target else []
    return {
        "action_type": action,
        "target_step_id": target,
        "new_step": step,
        "justification": f"{MARK} {why}",
        "addresses_issues": issues,
        "overrides_issues": issues[:1] if action == "MODIFY" and situation.rng.random() < 0.2 else [],
        "inconsistency_detected": False,
    }


def new_step(step: SeenStep, **changes: Any) -> dict[str, Any]:
    """The step in the shape that a plan or an action gives it, with changes."""
    arguments = step.raw.get("arguments")
    shape = _step(step.step_id, step.description, step.dependencies, step.raw.get("handoff_to_next"))
    shape["provides"] = list(step.raw.get("provides") or shape["provides"])
    shape["tool"] = step.raw.get("tool")
    shape["arguments"] = arguments if arguments is None or isinstance(arguments, str) else json.dumps(arguments)
    return {**shape, **changes}


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


def _has(situation: Situation, step_id: str) -> bool:
    return any(step.step_id == step_id for step in situation.steps)


def _count(situation: Situation, name: str) -> int:
    return sum(step.step_id.startswith(f"{name}-") for step in situation.steps)


def _next_id(step: SeenStep) -> str:
    return f"{step.step_id}-2"


def _without_mark(text: str) -> str:
    return text.removeprefix(MARK).strip()
