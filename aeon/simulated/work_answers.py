"""The answers of the simulated worker and grader: profiles, step outputs, reviews and
assessments."""

from __future__ import annotations

import json
import re

from aeon.domain.values import JsonObject
from aeon.schema.json_schema import enum_of
from aeon.simulated.plan_answers import ADDED, CLARIFIED, SPECIFIC
from aeon.simulated.situation import MARK, SimulatedCall, excerpt

_ATTEMPT = re.compile(r"attempt (\d{1,3})")
_OPENING = re.compile(r'^<(\w+)-[a-z2-7]{12} step="([^"\n]*)">$', re.MULTILINE)
_CLOSING = re.compile(r"^</\w+-[a-z2-7]{12}>$", re.MULTILINE)


def task_profile(situation: SimulatedCall) -> JsonObject:
    """Make a profile that affords the simulated plans; a small one if the behaviour lets the TTL
    expire."""
    if observed := situation.variables.get("observed"):
        before = observed["profile"]  # one tier deeper, for an update (FR-NEW-003)
        reason = f"{MARK} What was observed asks for more depth."
        return {
            **before,
            "raw_inference": reason,
            "reasoning_depth": min(5, before["reasoning_depth"] + 1),
        }
    is_small = situation.behaviour.never_enough
    draw = situation.draw("profile", situation.task)
    sufficiency = 0.8 if is_small else round(draw.uniform(0.45, 0.65), 2)
    steps = 2 if is_small else draw.randint(5, 8)
    return {
        "raw_inference": f"{MARK} No model judged this task: {situation.task}",
        "reasoning_depth": 1 if is_small else draw.choice((3, 4)),
        "information_sufficiency": sufficiency,
        "ambiguity_level": round(1 - sufficiency, 2),
        "expected_tool_usage": "none",
        "output_breadth": "narrow" if is_small else "moderate",
        "confidence_requirement": "low" if is_small else "medium",
        "dependency_complexity": steps - 1,
        "expected_step_count": steps,
    }


def step(situation: SimulatedCall) -> JsonObject:
    """Make an output that names its step and its input; BLOCKED if the seed's behaviour says so."""
    shown = situation.step
    index = shown.get("step_index", 0)
    total = shown.get("total_steps", 0)
    name = shown.get("step_id") or situation.request.site.step_id or "?"
    attempts = _count_attempts(situation)
    is_second = total and index == min(2, total)
    if is_second and attempts < situation.behaviour.blocked_times:
        return {
            "step_output": f"{MARK} Step {name} could not be finished (attempt {attempts + 1}); "
            "what there is: a beginning.",
            "clarity_state": "BLOCKED",
            "clarity_reason": f"{MARK} it is not said which case is meant",
        }
    is_guess = situation.rng.random() < 0.15
    return {
        "step_output": _write_output(situation, f"{name} ({index} of {total})" if total else name),
        "clarity_state": "PARTIALLY_CLEAR" if is_guess else "CLEAR",
        "clarity_reason": f"{MARK} the usual case was assumed" if is_guess else None,
        "handoff_to_next": None if index == total else f"{MARK} hand-off of step {name}",
    }


def direct(situation: SimulatedCall) -> JsonObject:
    """Make an answer that names its task."""
    return {
        "working": None,
        "answer": f"{MARK} Here a model would have written the answer to: {situation.task}",
    }


def comparison(_: SimulatedCall) -> JsonObject:
    """Return no preference: nobody judged the answers."""
    return {
        "checked": None,
        "explanation": f"{MARK} No model compared these answers.",
        "better": "neither",
    }


def _count_attempts(situation: SimulatedCall) -> int:
    """Count how often the step was BLOCKED, from its previous output or the clarifications of its
    description."""
    number = _ATTEMPT.search(situation.variables.get("previous_output") or "")
    clarified = str(situation.step.get("description") or "").count(CLARIFIED)
    return max(int(number[1]) if number else 0, clarified)


def _write_output(situation: SimulatedCall, name: str) -> str:
    shown = situation.step
    description = str(shown.get("description") or situation.task).removeprefix(MARK).strip()
    incoming = excerpt(_without_tags(shown.get("incoming_context") or "nothing"), 200)
    output = f"{MARK} Output of step {name}: {excerpt(description, 100)}\nWhat came in: {incoming}"
    if shown.get("step_index", 0) == shown.get("total_steps", 0):
        output += f"\nHere a model would have written the answer to: {situation.task}"
    return output


def _without_tags(context: str) -> str:
    opened = _OPENING.sub(lambda tag: f"{tag[1].capitalize()} of step {tag[2]}:", context)
    return _CLOSING.sub("", opened)


def semantic_validation(situation: SimulatedCall) -> JsonObject:
    """Make the issues of a review: of changed steps, of a plan that has not run, or of the work so
    far."""
    if situation.variables.get("artifact_type") == "step":
        changed = [change["step_id"] for change in situation.variables.get("changed", ())]
        refused = situation.behaviour.refuses_addition and ADDED in changed
        found = (
            [_issue("relevance", "CRITICAL", ADDED, "serves nothing that the task asks for")]
            if refused
            else []
        )
    else:
        found = _review_work(situation) if situation.is_started else _review_plan(situation)
    return {
        "issues": [
            {"issue_id": f"i{number}", **issue} for number, issue in enumerate(found, start=1)
        ]
    }


def _review_plan(situation: SimulatedCall) -> list[JsonObject]:
    candidates = [
        s
        for s in situation.live
        if SPECIFIC not in s.description and CLARIFIED not in s.description
    ]
    if not situation.behaviour.reviews_plan or not candidates:
        return []
    about = candidates[:2][-1].step_id
    issue = _issue("specificity", "MEDIUM", about, "does not say how much is wanted")
    changes = json.dumps({"description": f"{MARK} say how much is wanted"})
    return [
        {
            **issue,
            "proposed_repair": {"action": f"{MARK} reword", "target": about, "changes": changes},
        }
    ]


def _review_work(situation: SimulatedCall) -> list[JsonObject]:
    found = [
        _issue("specificity", "HIGH", step.step_id, "could not be carried out as it is worded")
        for step in situation.select("BLOCKED")
    ]
    if situation.behaviour.revises_output and not any(
        step.step_id.endswith("-2") for step in situation.steps
    ):
        first = situation.select("complete")[:1]
        found += [
            _issue("consistency", "MEDIUM", step.step_id, "its output is too thin")
            for step in first
        ]
    return found


def _issue(kind: str, severity: str, step_id: str, what: str) -> JsonObject:
    return {
        "description": f"{MARK} Step {step_id} {what}.",
        "type": kind,
        "severity": severity,
        "location": {"step_id": step_id},
    }


def convergence(situation: SimulatedCall) -> JsonObject:
    """Make scores that follow the share of finished steps, with every criterion and every pair of
    artefacts judged."""
    live = situation.live
    never_enough = situation.behaviour.never_enough
    is_done = situation.share == 1 and not never_enough
    completeness, coherence, consistency = _scores(situation, is_done)
    finished = (
        f"{len(situation.select('complete'))} of {len(live)} steps are complete"
        if live
        else "There is no plan"
    )
    omission = {
        "kind": "omission",
        "description": f"{MARK} {finished}.",
        "blocking": never_enough,
    }
    verdict = f"{MARK} {'met' if is_done else 'not yet met'}"
    criteria = [criterion["name"] for criterion in situation.variables.get("criteria", ())]
    return {
        "checked": None,
        "explanation": f"{MARK} {finished}.",
        "issues": [] if is_done else [omission],
        "completeness_score": completeness,
        "coherence_score": coherence,
        "consistency_score": consistency,
        "consistency_status": _compare_pairs(situation, is_done),
        "criteria": [{"name": name, "met": is_done, "reason": verdict} for name in criteria],
    }


def _scores(situation: SimulatedCall, is_done: bool) -> tuple[float, float, float]:
    if is_done:
        score = min(1.0, round(0.97 + 0.01 * situation.count_steps("more-"), 2))
        return score, score, score
    if situation.behaviour.never_enough:
        drawn = situation.rng.uniform(0.3, 0.6)
        return round(drawn, 2), round(drawn + 0.2, 2), round(drawn + 0.2, 2)
    shaken = 0.25 if situation.select("BLOCKED") else 0.0
    return round(0.9 * situation.share, 2), round(0.95 - shaken, 2), round(0.92 - shaken, 2)


def _compare_pairs(situation: SimulatedCall, is_done: bool) -> list[JsonObject]:
    statuses: dict[str, str] = dict.fromkeys(
        enum_of(situation.request.schema, "artifacts"), "consistent"
    )
    for pair in statuses:
        if pair.endswith("_answer") and not is_done:
            statuses[pair] = "inconsistent"
    if "memory_answer" in statuses:
        statuses["memory_answer"] = (
            "consistent" if situation.variables.get("memory") else "not_applicable"
        )
    return [
        {"artifacts": pair, "status": each, "explanation": f"{MARK} {each}"}
        for pair, each in statuses.items()
    ]
