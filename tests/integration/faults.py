"""Answers that come to nothing, and a run that makes every kind of call."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.integration.wire import worked
from tests.support import scripted_model as scripted
from tests.support.openai_server import Answer, Completion, Received, Script

FAULTS: dict[str, Answer] = {
    "null": Completion(None),
    "empty": "",
    "refusal": Completion(None, refusal="I would rather not."),
    "filter": Completion(None, finish_reason="content_filter"),
    "length": Completion('{"cut', finish_reason="length"),
    "bad JSON": "this is no JSON",
    "schema violated": {"nonsense": True},
}
CALLS = (
    "task_profile",
    "plan",
    "semantic_validation",
    "refinement",
    "subplan",
    "step",
    "tool_arguments",
    "convergence",
)


def healthy(*, is_core: bool = False) -> dict[str, Script]:
    """A run of three steps, with a tool whose arguments are asked for, and unless `is_core` with a first step that is
    blocked and gets a subplan. No answer depends on what was asked before."""
    decompose = scripted.refinement(scripted.action("SUBPLAN_CREATE", "a"))
    return {
        "task_profile": scripted.profile(expected_tool_usage="minimal", expected_step_count=3),
        "plan": scripted.plan(
            "a", scripted.planned("b", "a", tool="calculator"), scripted.planned("c", "b")
        ),
        "semantic_validation": scripted.report(),
        "refinement": lambda request: (
            decompose if "blocked_step" in request.user else scripted.refinement()
        ),
        "subplan": {"subplan_goal": "in detail", "substeps": [scripted.planned("x")]},
        "step": worked if is_core else _carry_out,
        "tool_arguments": {"expression": "20 + 22"},
        "convergence": lambda request: (
            scripted.assessment() if "Work on: do c" in request.user else scripted.unfinished()
        ),
        "direct": {"working": None, "answer": "The whole answer."},
        "repair": "nothing useful",
    }


def _carry_out(request: Received) -> dict[str, Any]:
    answer = worked(request)
    is_first = answer["step_output"] == "Work on: do a" and "a.x" not in request.user
    return scripted.blocked() if is_first else answer


class Recorder:
    """A script that notes what was asked, and whether the answer was one."""

    def __init__(self, script: dict[str, Script], faulty: Callable[[Received], Answer | None]):
        self._script, self._faulty = script, faulty
        self._lock = threading.Lock()
        self.answered: Counter[str] = Counter()
        self.unanswered: Counter[str] = Counter()
        self.names: Counter[str] = Counter()

    @property
    def script(self) -> dict[str, Script]:
        """What the server answers."""
        return dict.fromkeys(self._script, self._answer)

    def _answer(self, request: Received) -> Answer:
        fault = self._faulty(request)
        noted = self.answered if fault is None and request.name != "repair" else self.unanswered
        with self._lock:
            noted[json.dumps(request.body, sort_keys=True)] += 1
            self.names[request.name] += 1
        scripted = self._script[request.name]
        return fault if fault is not None else scripted(request) if callable(scripted) else scripted
