"""Requests as the packaged prompts make them, without the prompts: fences, sentences, schemas."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, get_args

from aeon.domain.request import CallName, CallSite, LLMRequest, Message
from aeon.files.resources import resource_root
from aeon.llm.prompts import fence

CALLS: tuple[CallName, ...] = tuple(call for call in get_args(CallName) if call != "tool_arguments")
"""The calls that are answered without a script."""
TASK = "design a web application with user authentication"
SECTIONS = {
    "type": "object",
    "properties": {"sections": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/section"}}},
    "required": ["sections"],
    "$defs": {"section": {"type": "object", "required": ["title"], "properties": {"title": {"type": "string"}}}},
}


@cache
def schema_of(call: CallName) -> dict[str, Any]:
    """The schema of a call; a repair is made for a plan."""
    name = "plan" if call == "repair" else call
    return dict(json.loads((resource_root() / "schemas" / f"{name}.json").read_text(encoding="utf-8")))


def request(call: CallName, *parts: str, schema: dict[str, Any] | None = None, **site: Any) -> LLMRequest:
    """A request whose user message is made of `parts`."""
    messages = (Message("system", "Answer with JSON."), Message("user", "\n".join(parts)))
    return LLMRequest(call, messages, schema_of(call) if schema is None else schema, site=CallSite(**site))


def a_step(step_id: str, *needs: str, status: str = "pending", **more: Any) -> dict[str, Any]:
    """A step as prompts show it."""
    return {"step_id": step_id, "description": f"Do {step_id}", "dependencies": list(needs), "status": status, **more}


def blocked(step_id: str, *needs: str, **more: Any) -> dict[str, Any]:
    """A step that came back BLOCKED."""
    return a_step(step_id, *needs, status="invalid", clarity_state="BLOCKED", **more)


def task_text(task: str = TASK) -> str:
    """The task as prompts show it."""
    return fence(task, "task")


def plan_text(*steps: dict[str, Any]) -> str:
    """The plan as prompts show it."""
    return fence(json.dumps({"goal": "A goal", "steps": list(steps)}), "plan")


def issues_text(*step_ids: str) -> str:
    """One issue at each of the steps."""
    issues = [{"issue_id": f"i{n}", "location": {"step_id": s}} for n, s in enumerate(step_ids, start=1)]
    return fence(json.dumps(issues), "issues")


def step_text(index: int, total: int, goal: str = "Draft it", incoming: str = "", previous: str | None = None) -> str:
    """The prompt of a step: the four sentences of FR-090, and what came of it before."""
    context = fence(incoming, "context") if incoming else "none"
    lines = [
        f"You are executing step {index} of {total}.",
        f"Incoming context from previous steps: {context}.",
        f"Your goal for this step: {goal}.",
        "You should prepare handoff for the next step as: a summary.",
    ]
    return "\n".join([*lines, *([fence(previous, "previous_output")] if previous is not None else [])])
