"""A model whose answers a test writes down, call by call."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aeon.domain.request import LLMRequest, LLMResponse, Usage
from aeon.llm.schemas import load_packaged_schemas
from aeon.schema.json_schema import enum_of

PAIRS = enum_of(load_packaged_schemas().wire("convergence").schema, "artifacts")
Answer = Mapping[str, Any] | str | Exception | Callable[[LLMRequest], Any]


class ScriptedModel:
    """Answers each call from its list, in order; the last answer of a list is given for ever.

    An answer is a value (sent as JSON), a text (sent as it is), an exception (raised), or a function of the request
    that gives one of these.
    """

    def __init__(self, **answers: Answer | Sequence[Answer]) -> None:
        given = {**defaults(), **answers}
        self._answers = {
            call: list(a) if isinstance(a, list | tuple) else [a] for call, a in given.items()
        }
        self._lock = threading.Lock()
        self.requests: list[LLMRequest] = []

    def complete(self, request: LLMRequest) -> LLMResponse:
        with self._lock:
            self.requests.append(request)
            script = self._answers[request.call]
            answer = script.pop(0) if len(script) > 1 else script[0]
        if callable(answer):
            answer = answer(request)
        if isinstance(answer, Exception):
            raise answer
        text = answer if isinstance(answer, str) else json.dumps(answer)
        return LLMResponse(
            text=text, usage=Usage(input_tokens=10, output_tokens=5, requests=1), model="scripted"
        )

    @property
    def calls(self) -> list[str]:
        """The names of the calls made so far, steps as step:ID."""
        return [f"step:{r.site.step_id}" if r.call == "step" else r.call for r in self.requests]

    def prompts(self, call: str) -> list[str]:
        """The whole prompt of each request of a call."""
        return ["\n".join(m.content for m in r.messages) for r in self.requests if r.call == call]


def defaults() -> dict[str, Any]:
    """A run that converges in one pass: a plan of one step, nothing to complain of."""
    return {
        "task_profile": profile(),
        "plan": plan("only"),
        "semantic_validation": report(),
        "refinement": refinement(),
        "step": worked,
        "direct": {"working": None, "answer": "The whole answer."},
        "comparison": {"checked": None, "explanation": "Both do.", "better": "neither"},
        "convergence": assessment(),
        "repair": "nothing useful",
    }


def profile(depth: int = 3, **fields: Any) -> dict[str, Any]:
    return {
        "raw_inference": f"depth {depth}",
        "reasoning_depth": depth,
        "information_sufficiency": 0.8,
        "ambiguity_level": 0.2,
        "expected_tool_usage": "none",
        "output_breadth": "narrow",
        "confidence_requirement": "low",
        "dependency_complexity": 0,
        "expected_step_count": 1,
        **fields,
    }


def planned(step_id: str, *dependencies: str, **fields: Any) -> dict[str, Any]:
    return {
        "step_id": step_id,
        "description": f"do {step_id}",
        "dependencies": list(dependencies),
        "provides": [],
        "handoff_to_next": None,
        "tool": None,
        "arguments": None,
        **fields,
    }


def plan(*steps: str | dict[str, Any]) -> dict[str, Any]:
    return {"goal": "the goal", "steps": [planned(s) if isinstance(s, str) else s for s in steps]}


def worked(request: LLMRequest) -> dict[str, Any]:
    """A step done well; its output names it."""
    return clear(f"output of {request.site.step_id}")


def clear(output: Any, handoff: str | None = None) -> dict[str, Any]:
    return {
        "step_output": output,
        "clarity_state": "CLEAR",
        "clarity_reason": None,
        "handoff_to_next": handoff,
    }


def blocked(output: str = "half", reason: str = "what is meant?") -> dict[str, Any]:
    return {
        "step_output": output,
        "clarity_state": "BLOCKED",
        "clarity_reason": reason,
        "handoff_to_next": None,
    }


def issue(
    issue_id: str = "i1", step_id: str | None = None, severity: str = "MEDIUM", **fields: Any
) -> dict[str, Any]:
    return {
        "issue_id": issue_id,
        "description": f"{issue_id} is wrong",
        "type": "specificity",
        "severity": severity,
        "location": {"step_id": step_id, "artifact_reference": None} if step_id else None,
        "proposed_repair": None,
        **fields,
    }


def report(*issues: dict[str, Any]) -> dict[str, Any]:
    return {"issues": list(issues)}


def assessment(
    completeness: float = 1.0, coherence: float = 1.0, consistency: float = 1.0, **fields: Any
) -> dict[str, Any]:
    return {
        "explanation": "as it stands",
        "issues": [],
        "completeness_score": completeness,
        "coherence_score": coherence,
        "consistency_score": consistency,
        "consistency_status": [
            {"artifacts": pair, "status": "consistent", "explanation": "they agree"}
            for pair in PAIRS
        ],
        "criteria": [],
        **fields,
    }


def unfinished(completeness: float = 0.3) -> dict[str, Any]:
    return assessment(completeness)


def refinement(
    *actions: dict[str, Any],
    questions: Sequence[dict[str, Any]] = (),
    declined: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """`declined` maps the id of an issue to the reason why it needs no change."""
    reasons = [
        {"issue_id": issue_id, "reason": reason} for issue_id, reason in (declined or {}).items()
    ]
    return {"actions": list(actions), "declined_issues": reasons, "questions": list(questions)}


def action(
    action_type: str, target: str | None = None, new_step: Any = None, **fields: Any
) -> dict[str, Any]:
    return {
        "justification": "it helps",
        "action_type": action_type,
        "target_step_id": target,
        "new_step": new_step,
        "addresses_issues": [],
        "overrides_issues": [],
        "inconsistency_detected": False,
        **fields,
    }


def modify(step_id: str, *dependencies: str, **fields: Any) -> dict[str, Any]:
    return action(
        "MODIFY",
        step_id,
        planned(step_id, *dependencies, description=f"do {step_id} better"),
        **fields,
    )


def add(step_id: str, *dependencies: str, **fields: Any) -> dict[str, Any]:
    return action("ADD", None, planned(step_id, *dependencies), **fields)
