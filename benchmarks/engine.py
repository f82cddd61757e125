"""What the engine itself costs: CPU per structured call, and wall time over the critical path.

    python benchmarks/engine.py [--latency 0.1] [--width 8] [--layers 3] [--repeat 5]

A model that answers at once, or after `latency` seconds, stands in for the provider; a plan of `layers` layers of
`width` steps is run to its end. The critical path is the least that any engine could take: the calls that wait for each
other, times the latency. Ratios of one run on one machine mean something; single times do not.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any

from aeon.adaptive.heuristics import AdaptiveDepth
from aeon.convergence.engine import ConvergenceEngine
from aeon.domain.request import LLMRequest, LLMResponse
from aeon.execution.settings import ExecutionSettings
from aeon.execution.steps import StepExecutor
from aeon.execution.worker import StepWorker
from aeon.kernel.orchestrator import Orchestrator
from aeon.kernel.settings import RunOptions
from aeon.llm.schemas import load_packaged_schemas
from aeon.plan.recursive import RecursivePlanner
from aeon.schema.json_schema import enum_of
from aeon.supervisor.structured import StructuredCaller
from aeon.validation.semantic import SemanticValidator

SCORES = ("completeness_score", "coherence_score", "consistency_score")
SCHEMA = load_packaged_schemas().wire("convergence").schema
PAIRS = [
    {"artifacts": pair, "status": "consistent", "explanation": ""}
    for pair in enum_of(SCHEMA, "artifacts")
]


class Answering:
    """A model that says what is needed to run a layered plan to its end, each answer after `latency` seconds."""

    def __init__(self, width: int, layers: int, latency: float) -> None:
        self.calls = 0
        self._latency = latency
        self._steps = width * layers
        self._done = 0
        self._answers: dict[str, Any] = {
            "task_profile": {
                "raw_inference": "as given",
                "reasoning_depth": 5,
                "information_sufficiency": 0.1,
                "ambiguity_level": 0.5,
                "expected_tool_usage": "none",
                "output_breadth": "broad",
                "confidence_requirement": "high",
                "dependency_complexity": self._steps,
                "expected_step_count": self._steps,
            },
            "plan": {"goal": "a plan of layers", "steps": planned(width, layers)},
            "semantic_validation": {"issues": []},
            "refinement": {"actions": [], "questions": []},
        }

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request."""
        if self._latency:
            time.sleep(self._latency)
        self.calls += 1
        return LLMResponse(
            text=json.dumps(self._answers.get(request.call) or self._varying(request.call))
        )

    def _varying(self, call: str) -> dict[str, Any]:
        if call == "step":
            self._done += 1
            output = "An output of a few hundred characters. " * 8
            return {
                "step_output": output,
                "clarity_state": "CLEAR",
                "clarity_reason": None,
                "handoff_to_next": None,
            }
        score = 1.0 if self._done >= self._steps else 0.5
        scores = dict.fromkeys(SCORES, score)
        return {
            "explanation": "counted",
            "issues": [],
            **scores,
            "consistency_status": PAIRS,
            "criteria": [],
        }


def planned(width: int, layers: int) -> list[dict[str, Any]]:
    """Steps in layers, each depending on the whole layer before it."""
    return [
        {
            "step_id": f"s{layer}-{number}",
            "description": "One piece of work",
            "dependencies": [f"s{layer - 1}-{n}" for n in range(width)] if layer else [],
            "provides": [],
            "handoff_to_next": None,
            "tool": None,
            "arguments": None,
        }
        for layer in range(layers)
        for number in range(width)
    ]


def kernel(model: Answering, width: int) -> Orchestrator:
    """A kernel on that model."""
    structured = StructuredCaller(model)
    return Orchestrator(
        model,
        ConvergenceEngine(model, structured=structured),
        SemanticValidator(model, structured=structured),
        RecursivePlanner(model, structured=structured),
        AdaptiveDepth(model, structured=structured),
        executor=StepExecutor(StepWorker(model, structured=structured)),
        options=RunOptions(execution=ExecutionSettings(max_parallel=width)),
    )


def run(width: int, layers: int, latency: float) -> tuple[float, float, int]:
    """One run: CPU seconds, wall seconds, calls."""
    model = Answering(width, layers, latency)
    engine = kernel(model, width)
    cpu, wall = time.process_time(), time.perf_counter()
    outcome = engine.run("a task")
    assert outcome.converged, outcome.termination_reason
    return time.process_time() - cpu, time.perf_counter() - wall, model.calls


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--latency", type=float, default=0.1)
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    run(args.width, args.layers, 0)
    at_once = [run(args.width, args.layers, 0) for _ in range(args.repeat)]
    calls = at_once[0][2]
    cpu = statistics.median(cpu / calls for cpu, _, calls in at_once) * 1000
    print(f"{calls} calls, {args.layers} layers of {args.width} steps")
    print(f"CPU per structured call, model aside: {cpu:.2f} ms (median of {args.repeat})")
    in_a_row = (
        4 + 3 * args.layers
    )  # profile, plan, validate, refine; then execute, validate, converge in each layer
    waited = [run(args.width, args.layers, args.latency)[1] for _ in range(args.repeat)]
    ratio = statistics.median(waited) / (in_a_row * args.latency)
    print(
        f"wall time over critical path at {args.latency:g} s a call: {ratio:.3f} (median of {args.repeat})"
    )


if __name__ == "__main__":
    main()
