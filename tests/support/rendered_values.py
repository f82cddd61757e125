"""The values that a packaged prompt was rendered from, read back from its text, for a server that sees nothing else."""

from __future__ import annotations

import json
import re
from typing import Any

_FENCE = re.compile(
    r"^(?:.*: )?<([a-z_]+)(-[a-z2-7]{12})(?: [^>\n]*)?>\n(.*?)\n</\1\2>",
    re.MULTILINE | re.DOTALL,
)
_POSITION = re.compile(r"You are executing step (\d+) of (\d+)\.")
_CONTEXT = re.compile(
    r"^Context from previous steps:\n(<.*>)\n(?:The steps of the plan|Steps of the plan|You are executing)",
    re.MULTILINE | re.DOTALL,
)
_PARENT = re.compile(r'^Decompose the step "([^"]+)"', re.MULTILINE)
_CLOSED = re.compile(r"changes to them are not applied: ([^\n]*)\.\n")
_REPAIRED = re.compile(r'The JSON is the answer to the call "(\w+)"')
# Variables by the label of their fence, where the two differ.
_VARIABLES = {"changed_steps": "changed"}
_AS_JSON = frozenset({"plan", "issues", "criteria", "changed_steps", "profile", "memory"})


def rendered_values(prompt: str) -> dict[str, Any]:
    """The template variables, as far as the simulated provider asks for them."""
    fences = {match[1]: match[3] for match in _FENCE.finditer(prompt)}
    bare = _FENCE.sub("", prompt)
    values = {
        _VARIABLES.get(n, n): json.loads(text) if n in _AS_JSON else text
        for n, text in fences.items()
    }
    values.pop("step", None)  # what a finished step was to do
    if "profile" in values:
        values["observed"] = {"profile": values.pop("profile")}
    if "changed" in values:
        values["artifact_type"] = "step"
    if position := _POSITION.search(bare):
        values["step"] = {
            "step_index": int(position[1]),
            "total_steps": int(position[2]),
            "description": values.get("step_goal", ""),
            "incoming_context": context[1] if (context := _CONTEXT.search(prompt)) else "",
        }
    if parent := _PARENT.search(bare):
        steps = values["plan"]["steps"]
        [values["parent"]] = [step for step in steps if step["step_id"] == parent[1]]
    if closed := _CLOSED.search(bare):
        values["closed_steps"] = closed[1].split(", ")
    if repaired := _REPAIRED.search(bare):
        values["call"] = repaired[1]
    return values
