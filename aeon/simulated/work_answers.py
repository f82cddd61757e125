"""What the simulated worker and grader answer: profiles, step outputs, reviews and assessments."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from aeon.schema.json_schema import enum_of
from aeon.simulated.plan_answers import ADDED, CLARIFIED, SPECIFIC
from aeon.simulated.situation import Situation
from aeon.simulated.texts import MARK, excerpt

_OUTPUT = re.compile(rf"^{re.escape(MARK)} Output of step (.*)", re.MULTILINE)
_ATTEMPT = re.compile(r"attempt (\d{1,3})")


def task_profile(situation: Situation) -> dict[str, Any]:
    """A profile that affords the simulated plans; a small one for a character whose TTL is to expire."""
    observed = situation.variables.get("observed")
    if observed:
        return _deepen(observed["profile"])
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


def _deepen(profile: Mapping[str, Any]) -> dict[str, Any]:
    """The profile one tier deeper, for an update (FR-NEW-003)."""
    return {
        **profile,
        "raw_inference": f"{MARK} What was observed asks for more depth.",
        "reasoning_depth": min(5, profile["reasoning_depth"] + 1),
        "information_sufficiency": round(max(0.0, profile["information_sufficiency"] - 0.1), 2),
    }


def step(situation: Situation) -> dict[str, Any]:
    """An output that names its step and what came in; BLOCKED where the seed's character says so."""
    index, total = situation.step.get("step_index", 0), situation.step.get("total_steps", 0)
    name = situation.step.get("step_id") or situation.request.site.step_id or "?"
    attempts = _count_attempts(situation)
    if total and index == min(2, total) and attempts < situation.character.blocked_times:
        return _block(name, attempts + 1)
    is_unsure = situation.rng.random() < 0.15
    return {
        "step_output": _output(situation, name, index, total),
        "clarity_state": "PARTIALLY_CLEAR" if is_unsure else "CLEAR",
        "clarity_reason": f"{MARK} the usual case was assumed" if is_unsure else None,
        "handoff_to_next": None if index == total else f"{MARK} hand-off of step {name}",
    }


def _count_attempts(situation: Situation) -> int:
    """How often the step was BLOCKED before: its previous output says it, or the clarifications of its description."""
    before = situation.variables.get("previous_output") or ""
    number = _ATTEMPT.search(before)
    times = int(number[1]) if number else int(bool(before))
    return max(times, str(situation.step.get("description")).count(CLARIFIED))


def _block(name: str, attempt: int) -> dict[str, Any]:
    return {
        "step_output": f"{MARK} Step {name} could not be finished (attempt {attempt}); what there is: a beginning.",
        "clarity_state": "BLOCKED",
        "clarity_reason": f"{MARK} it is not said which case is meant",
        "handoff_to_next": None,
    }


def _output(situation: Situation, name: str, index: int, total: int) -> str:
    goal = str(situation.step.get("description") or situation.task).removeprefix(MARK).strip()
    place = f" ({index} of {total})" if total else ""
    lines = [f"{MARK} Output of step {name}{place}: {excerpt(goal, 100)}"]
    incoming = situation.step.get("incoming_context") or ""
    outputs = [f"- {excerpt(line, 160)}" for line in _OUTPUT.findall(incoming)]
    if outputs:
        lines += ["What came in:", *outputs]
    else:
        lines.append(f"What came in: {excerpt(incoming, 200)}" if incoming else "Nothing came in from earlier steps.")
    if index == total:
        lines.append(f"Here a model would have written the answer to: {situation.task}")
    return "\n".join(lines)


def semantic_validation(situation: Situation) -> dict[str, Any]:
    """The issues of a review: of changed steps, of a plan that has not run, or of the work so far."""
    if situation.variables.get("artifact_type") == "step":
        changed = [change["step_id"] for change in situation.variables.get("changed", ())]
        refused = situation.character.refuses and ADDED in changed
        found = [_issue("relevance", "CRITICAL", ADDED, "serves nothing that the task asks for")] if refused else []
    elif not situation.is_started:
        found = _review_plan(situation)
    else:
        found = _review_work(situation)
    return {"issues": [{"issue_id": f"i{number}", **issue} for number, issue in enumerate(found, start=1)]}


def _review_plan(situation: Situation) -> list[dict[str, Any]]:
    candidates = [s for s in situation.live if SPECIFIC not in s.description and CLARIFIED not in s.description]
    if not situation.character.reviews or not candidates:
        return []
    about = candidates[min(len(candidates) - 1, 2)]
    issue = _issue("specificity", "MEDIUM", about.step_id, "does not say how much is wanted")
    changes = json.dumps({"description": f"{MARK} say how much is wanted"})
    return [{**issue, "proposed_repair": {"action": f"{MARK} reword", "target": about.step_id, "changes": changes}}]


def _review_work(situation: Situation) -> list[dict[str, Any]]:
    blocked, character = situation.select("BLOCKED"), situation.character
    found = [_issue("specificity", "HIGH", s.step_id, "could not be carried out as it is worded") for s in blocked]
    if character.revises and not any(step.step_id.endswith("-2") for step in situation.steps):
        first = situation.select("complete")[:1]
        found += [_issue("consistency", "MEDIUM", s.step_id, "its output is too thin") for s in first]
    pending = [s for s in situation.select("pending") if SPECIFIC not in s.description]
    if character.reviews and pending and situation.rng.random() < 0.15:
        about = situation.rng.choice(pending)
        found.append(_issue("relevance", "LOW", about.step_id, "might say more plainly what it is for"))
    return found


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
    character, live = situation.character, situation.live
    is_done = situation.share == 1 and not character.never_enough
    completeness, coherence, consistency = _scores(situation, is_done)
    finished = f"{len(situation.select('complete'))} of {len(live)} steps are complete"
    explanation = f"{MARK} {finished if live else 'There is no plan'}."
    omission = {"kind": "omission", "description": explanation, "blocking": character.never_enough}
    return {
        "explanation": explanation,
        "issues": [] if is_done else [omission],
        "completeness_score": completeness,
        "coherence_score": coherence,
        "consistency_score": consistency,
        "consistency_status": _compare_pairs(situation, is_done),
        "criteria": [
            {"name": criterion["name"], "met": is_done, "reason": f"{MARK} {'met' if is_done else 'not yet met'}"}
            for criterion in situation.variables.get("criteria", ())
        ],
    }


def _scores(situation: Situation, is_done: bool) -> tuple[float, float, float]:
    """Completeness, coherence, consistency."""
    rng = situation.rng
    if situation.character.never_enough:
        return round(rng.uniform(0.3, 0.6), 2), round(rng.uniform(0.5, 0.8), 2), round(rng.uniform(0.5, 0.8), 2)
    if is_done:
        score = min(1.0, round(rng.uniform(0.96, 0.97) + 0.01 * situation.count_steps("polish-"), 2))
        return score, score, score
    shaken = 0.25 if situation.select("BLOCKED") else 0.0
    return round(0.9 * situation.share, 2), round(0.95 - shaken, 2), round(rng.uniform(0.9, 0.95) - shaken, 2)


def _compare_pairs(situation: Situation, is_done: bool) -> list[dict[str, Any]]:
    """The pairs of artefacts that the schema asks for, each with its status."""
    memory = "consistent" if situation.variables.get("memory") else "not_applicable"
    with_answer = "consistent" if is_done else "inconsistent"
    pairs = enum_of(situation.request.schema, "artifacts")
    statuses = {pair: with_answer if pair.endswith("_answer") else "consistent" for pair in pairs}
    if "memory_answer" in statuses:
        statuses["memory_answer"] = memory
    return [
        {"artifacts": pair, "status": status, "explanation": f"{MARK} {status}"} for pair, status in statuses.items()
    ]
