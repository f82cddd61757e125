"""A chat completions server of fixed latency, for benchmarks.

Every task gets a plan of 10 steps in 3 layers, PLANS times in a row, and converges with its last step.

    python benchmarks/stub_server.py PLANS LATENCY_SECONDS     prints its port; GET /stats tells what arrived and when

The answer follows from the request's schema name and from `TASK-<number>` in its prompt, which counts assessments.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections import Counter
from typing import Any

LAYERS = (4, 3, 3)
PAIRS = ("plan_steps", "steps_answer", "plan_answer", "memory_answer")
SCORES = ("completeness_score", "coherence_score", "consistency_score")
TASK = re.compile(r"TASK-(\d+)")
PROFILE = {
    "raw_inference": "as given",
    "reasoning_depth": 5,
    "information_sufficiency": 0.2,
    "ambiguity_level": 0.2,
    "expected_tool_usage": "none",
    "output_breadth": "broad",
    "confidence_requirement": "high",
    "dependency_complexity": 40,
    "expected_step_count": 50,
}
STEP = {
    "step_output": "found: " + "detail " * 20,
    "clarity_state": "CLEAR",
    "clarity_reason": None,
    "handoff_to_next": None,
}


def planned(plans: int) -> list[dict[str, Any]]:
    """Steps in layers; each but the first layer's depends on two of the layer before it."""
    steps: list[dict[str, Any]] = []
    before: list[str] = []
    for size in LAYERS * plans:
        layer = [f"s{len(steps) + number + 1}" for number in range(size)]
        for number, step_id in enumerate(layer):
            needs = (
                [before[(number + offset) % len(before)] for offset in range(2)] if before else []
            )
            steps.append(
                {
                    "step_id": step_id,
                    "description": f"Do part {step_id} of the work and report what was found.",
                    "dependencies": needs,
                    "provides": [],
                    "handoff_to_next": None,
                    "tool": None,
                    "arguments": None,
                }
            )
        before = layer
    return steps


class Answers:
    """What each call is answered, and what has arrived."""

    def __init__(self, plans: int) -> None:
        self.arrivals: list[float] = []
        self.replies: list[float] = []
        self.prompts: list[str] = []
        self._assessed: Counter[str] = Counter()
        self._last = len(LAYERS) * plans
        self._plan = {"goal": "layers of work", "steps": planned(plans)}

    def of(self, body: dict[str, Any]) -> dict[str, Any]:
        """The completion of one request."""
        prompt = "".join(message["content"] for message in body["messages"])
        value = self._value(body["response_format"]["json_schema"]["name"].lower(), prompt)
        tokens = len(prompt) // 4
        return {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": json.dumps(value)},
                }
            ],
            "usage": {
                "prompt_tokens": tokens,
                "completion_tokens": 50,
                "total_tokens": tokens + 50,
            },
        }

    def _value(self, call: str, prompt: str) -> dict[str, Any]:
        match call:
            case "plan":
                return self._plan
            case "step":
                return STEP
            case "task_profile":
                return PROFILE
            case "semantic_validation":
                return {"issues": []}
            case "convergence":
                return self._assessment(TASK.findall(prompt)[0])
        return {"actions": [], "questions": [], "declined_issues": []}

    def _assessment(self, task: str) -> dict[str, Any]:
        self._assessed[task] += 1
        score = 0.98 if self._assessed[task] >= self._last else 0.5
        pairs = [
            {"artifacts": pair, "status": "consistent", "explanation": "agree"} for pair in PAIRS
        ]
        scores = {**dict.fromkeys(SCORES, 0.98), "completeness_score": score}
        return {
            "explanation": "counted",
            "issues": [],
            **scores,
            "consistency_status": pairs,
            "criteria": [],
        }


async def serve(plans: int, latency: float) -> None:
    """Serve until killed; the port is printed when the server listens."""
    answers = Answers(plans)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await _head(reader):
            arrived = time.time()
            if b" /stats" in head:
                data = json.dumps(
                    {"arrivals": answers.arrivals, "replies": answers.replies}
                ).encode()
            else:
                length = int(re.findall(rb"(?i)content-length: *(\d+)", head)[0])
                body = json.loads(await reader.readexactly(length))
                answers.arrivals.append(arrived)
                data = json.dumps(answers.of(body)).encode()
                await asyncio.sleep(max(0.0, latency - (time.time() - arrived)))
                answers.replies.append(time.time())
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                % len(data)
            )
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, limit=2**24)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2])))
