"""Requests as structured calls make them: the variables of their templates, schemas, and a text for the prompt."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, get_args

from aeon.domain.request import CallName, CallSite, LLMRequest, Message
from aeon.files.resources import resource_root

CALLS: tuple[CallName, ...] = tuple(call for call in get_args(CallName) if call != "tool_arguments")
"""The calls that are answered without a script."""
TASK = "design a web application with user authentication"
SECTIONS = {
    "type": "object",
    "properties": {
        "sections": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/section"}}
    },
    "required": ["sections"],
    "$defs": {
        "section": {
            "type": "object",
            "required": ["title"],
            "properties": {"title": {"type": "string"}},
        }
    },
}


@cache
def schema_of(call: CallName) -> dict[str, Any]:
    """The schema of a call; a repair is made for a plan."""
    name = "plan" if call == "repair" else call
    return dict(
        json.loads((resource_root() / "schemas" / f"{name}.json").read_text(encoding="utf-8"))
    )


def request(
    call: CallName, *parts: str | dict[str, Any], schema: dict[str, Any] | None = None, **site: Any
) -> LLMRequest:
    """A request whose user message is made of `parts`, those that are mappings being its variables too."""
    variables = {
        name: value for part in parts if isinstance(part, dict) for name, value in part.items()
    }
    text = "\n".join(
        part if isinstance(part, str) else json.dumps(part, ensure_ascii=False) for part in parts
    )
    messages = (Message("system", "Answer with JSON."), Message("user", text))
    form = schema_of(call) if schema is None else schema
    return LLMRequest(call, messages, form, site=CallSite(**site), variables=variables)


def a_step(step_id: str, *needs: str, status: str = "pending", **more: Any) -> dict[str, Any]:
    """A step as prompts show it."""
    return {
        "step_id": step_id,
        "description": f"Do {step_id}",
        "dependencies": list(needs),
        "status": status,
        **more,
    }


def blocked(step_id: str, *needs: str, **more: Any) -> dict[str, Any]:
    """A step that came back BLOCKED."""
    return a_step(step_id, *needs, status="BLOCKED", **more)


def of_task(task: str = TASK) -> dict[str, Any]:
    """The task as templates get it."""
    return {"task": task}


def of_plan(*steps: dict[str, Any]) -> dict[str, Any]:
    """The plan as templates get it."""
    return {"plan": {"goal": "A goal", "steps": list(steps), "questions": [], "subplans": []}}


def of_issues(*step_ids: str) -> dict[str, Any]:
    """One issue at each of the steps."""
    issues = [
        {"issue_id": f"i{n}", "severity": "MEDIUM", "location": {"step_id": s}}
        for n, s in enumerate(step_ids, start=1)
    ]
    return {"issues": issues}


def of_step(
    index: int,
    total: int,
    goal: str = "Draft it",
    incoming: str = "",
    previous: str | None = None,
    step_id: str = "s",
) -> dict[str, Any]:
    """A step to carry out, and what came of it before."""
    step = {
        "step_id": step_id,
        "step_index": index,
        "total_steps": total,
        "description": goal,
        "incoming_context": incoming,
    }
    return {"step": step, "previous_output": previous}


class SeedRow(NamedTuple):
    """What the documentation says of the runs of a seed, by its last digit."""

    digit: str
    name: str
    ending: str
    summary: str


def table_of_seeds() -> list[SeedRow]:
    """The table of seeds in docs/scenarios.md."""
    page = (Path(__file__).parents[2] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    _, _, table = page.partition("| last digit |")
    lines = table.partition("\n\n")[0].splitlines()[2:]
    return [SeedRow(*(cell.strip() for cell in line.strip("|").split("|"))) for line in lines]
