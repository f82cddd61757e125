"""What the simulated worker and grader answer: profiles, step outputs, reviews and assessments."""

from __future__ import annotations

import json
import re
from typing import Any

from aeon.llm.prompts import to_json
from aeon.simulated.plan_answers import ADDED, CLARIFIED, SPECIFIC
from aeon.simulated.prompt_reading import excerpt
from aeon.simulated.scalar_values import MARK
from aeon.simulated.situation import SeenStep, Situation

_OUTPUT = re.compile(rf"^{re.escape(MARK)} Output of step (.*)", re.MULTILINE)
_TRIED = re.compile(r"attempt (\d{1,3})")


def task_profile(situation: Situation) -> dict[str, Any]:
    """A profile that affords the simulated plans; a small one for a character whose TTL is to expire."""
    known = situation.reading.objects("profile")
    if known:
        return _deeper(known[0])
    if situation.character.never_enough:
        return {**_profile(1, 0.8, 0.1, 2, situation), "output_breadth": "narrow", "confidence_requirement": "low"}
    draw = situation.draw("profile", situation.task)
    sufficiency = round(draw.uniform(0.45, 0.65), 2)
    return _profile(draw.choice((3, 4)), sufficiency, round(1 - sufficiency, 2), draw.randint(5, 8), situation)


def _profile(depth: int, sufficiency: float, ambiguity: float, steps: int, situation: Situation) -> dict[str, Any]:
    return {
        "raw_inference": f"{MARK} No model judged this task: {situation.task}",
        "reasoning_depth": depth,
        "information_sufficiency": sufficiency,
        "ambiguity_level": ambiguity,
        "expected_tool_usage": "none",
        "output_breadth": "moderate",
        "confidence_requirement": "medium",
        "dependency_complexity": max(0, steps - 1),
        "expected_step_count": steps,
    }


def _deeper(profile: dict[str, Any]) -> dict[str, Any]:
    """The profile one tier deeper, for an update (FR-NEW-003)."""
    depth, sufficiency = profile.get("reasoning_depth"), profile.get("information_sufficiency")
    changes: dict[str, Any] = {"raw_inference": f"{MARK} What was observed asks for more depth."}
    if isinstance(depth, int):
        changes["reasoning_depth"] = min(5, depth + 1)
    if isinstance(sufficiency, int | float):
        changes["information_sufficiency"] = round(max(0.0, sufficiency - 0.1), 2)
    return {**profile, **changes}


def step(situation: Situation) -> dict[str, Any]:
    """An output that names its step and what came in; BLOCKED where the seed's character says so."""
    index, total = situation.reading.position
    name = _step_name(situation, index)
    tried = _tried(situation)
    if index == min(2, total) and tried < situation.character.blocked_times and total > 0:
        return _blocked(name, tried + 1)
    unsure = situation.rng.random() < 0.15
    return {
        "step_output": _output(situation, name, index, total),
        "clarity_state": "PARTIALLY_CLEAR" if unsure else "CLEAR",
        "clarity_reason": f"{MARK} the usual case was assumed" if unsure else None,
        "handoff_to_next": None if index == total else f"{MARK} hand-off of step {name}",
    }


def _step_name(situation: Situation, index: int) -> str:
    if situation.request.site.step_id:
        return situation.request.site.step_id
    goal = situation.reading.goal
    outline = situation.reading.objects("outline")
    return next(
        (str(e["step_id"]) for e in outline if "step_id" in e and e.get("description") == goal), str(index or "?")
    )


def _tried(situation: Situation) -> int:
    """How often the step was BLOCKED before: the previous output says it, or the goal's clarifications."""
    before = situation.reading.text("previous_output")
    said = _TRIED.search(before) if before else None
    times = int(said[1]) if said else int(before is not None)
    return max(times, situation.reading.goal.count(CLARIFIED))


def _blocked(name: str, attempt: int) -> dict[str, Any]:
    return {
        "step_output": f"{MARK} Step {name} could not be finished (attempt {attempt}); what there is: a beginning.",
        "clarity_state": "BLOCKED",
        "clarity_reason": f"{MARK} it is not said which case is meant",
        "handoff_to_next": None,
    }


def _output(situation: Situation, name: str, index: int, total: int) -> str:
    place = f" ({index} of {total})" if total else ""
    lines = [f"{MARK} Output of step {name}{place}: {excerpt(_goal(situation), 100)}"]
    incoming = situation.reading.incoming
    lines += _came_in(incoming) if incoming else ["Nothing came in from earlier steps."]
    if index == total:
        lines.append(f"Here a model would have written the answer to: {situation.task}")
    return "\n".join(lines)


def _came_in(incoming: str) -> list[str]:
    """What came in: a line for each simulated output in it, or the beginning of what else it is."""
    outputs = [f"- {excerpt(line, 160)}" for line in _OUTPUT.findall(incoming)]
    return ["What came in:", *outputs] if outputs else [f"What came in: {excerpt(incoming, 200)}"]


def _goal(situation: Situation) -> str:
    return situation.reading.goal.removeprefix(MARK).strip() or situation.task


def semantic_validation(situation: Situation) -> dict[str, Any]:
    """The issues of a review: of changed steps, of a plan that has not run, or of the work so far."""
    changed = situation.reading.objects("changed_steps", "fragment")
    if changed:
        found = [_refusal(s) for s in changed if situation.character.refuses and s.get("step_id") == ADDED]
    elif not situation.started:
        found = _plan_issues(situation)
    else:
        found = _work_issues(situation)
    return {"issues": [{"issue_id": f"i{number}", **issue} for number, issue in enumerate(found, start=1)]}


def _refusal(step: dict[str, Any]) -> dict[str, Any]:
    return _issue("relevance", "CRITICAL", str(step["step_id"]), "serves nothing that the task asks for")


def _plan_issues(situation: Situation) -> list[dict[str, Any]]:
    candidates = [s for s in situation.live if SPECIFIC not in s.description and CLARIFIED not in s.description]
    if not situation.character.reviews or not candidates:
        return []
    about = candidates[min(len(candidates) - 1, 2)]
    issue = _issue("specificity", "MEDIUM", about.step_id, "does not say how much is wanted")
    changes = json.dumps({"description": f"{MARK} say how much is wanted"})
    return [{**issue, "proposed_repair": {"action": f"{MARK} reword", "target": about.step_id, "changes": changes}}]


def _work_issues(situation: Situation) -> list[dict[str, Any]]:
    blocked = [s for s in situation.live if s.blocked]
    found = [_issue("specificity", "HIGH", s.step_id, "could not be carried out as it is worded") for s in blocked]
    if situation.character.revises:
        found += [_issue("consistency", "MEDIUM", s.step_id, "its output is too thin") for s in _thin(situation)]
    pending = [s for s in situation.live if s.pending and SPECIFIC not in s.description]
    if situation.character.reviews and pending and situation.rng.random() < 0.15:
        about = situation.rng.choice(pending)
        found.append(_issue("relevance", "LOW", about.step_id, "might say more plainly what it is for"))
    return found


def _thin(situation: Situation) -> list[SeenStep]:
    """The first complete step, as long as no other has been put in its place."""
    replaced = any(step.step_id.endswith("-2") for step in situation.steps)
    return [] if replaced else [step for step in situation.live if step.status == "complete"][:1]


def _issue(kind: str, severity: str, step_id: str, what: str) -> dict[str, Any]:
    return {
        "description": f"{MARK} Step {step_id} {what}.",
        "type": kind,
        "severity": severity,
        "location": {"step_id": step_id, "artifact_reference": None},
        "proposed_repair": None,
    }


def convergence(situation: Situation) -> dict[str, Any]:
    """Scores that follow the share of finished steps, every criterion answered, every pair of artefacts judged."""
    done = situation.share == 1 and not situation.character.never_enough
    scores = _scores(situation, done)
    finished = sum(s.status == "complete" for s in situation.live)
    told = (
        f"{MARK} {finished} of {len(situation.live)} steps are complete." if situation.live else f"{MARK} No plan seen."
    )
    return {
        "explanation": told,
        "issues": [] if done else [_omission(situation, told)],
        "completeness_score": scores[0],
        "coherence_score": scores[1],
        "consistency_score": scores[2],
        "consistency_status": _pairs(situation, done),
        "criteria": [
            {"name": str(c["name"]), "met": done, "reason": f"{MARK} {'met' if done else 'not yet met'}"}
            for c in situation.reading.objects("criteria")
            if "name" in c
        ],
    }


def _scores(situation: Situation, done: bool) -> tuple[float, float, float]:
    rng = situation.rng
    if situation.character.never_enough:
        return round(rng.uniform(0.3, 0.6), 2), round(rng.uniform(0.5, 0.8), 2), round(rng.uniform(0.5, 0.8), 2)
    if done:
        better = 0.01 * sum(step.step_id.startswith("polish-") for step in situation.live)
        low, middle, high = (min(1.0, round(rng.uniform(0.96, 0.97) + better, 2)) for _ in range(3))
        return low, middle, high
    shaken = 0.25 if any(step.blocked for step in situation.live) else 0.0
    completeness = round(0.9 * situation.share, 2)
    return completeness, round(0.95 - shaken, 2), round(rng.uniform(0.9, 0.95) - shaken, 2)


def _omission(situation: Situation, told: str) -> dict[str, Any]:
    return {"kind": "omission", "description": told, "blocking": situation.character.never_enough}


def _pairs(situation: Situation, done: bool) -> list[dict[str, Any]]:
    memory = situation.reading.text("memory") is not None
    status = {
        "plan_steps": "consistent",
        "steps_answer": "consistent" if done else "inconsistent",
        "plan_answer": "consistent" if done else "inconsistent",
        "memory_answer": "consistent" if memory else "not_applicable",
    }
    asked = to_json(situation.request.schema)
    return [
        {"artifacts": pair, "status": said, "explanation": f"{MARK} {said}"}
        for pair, said in status.items()
        if f'"{pair}"' in asked
    ]
