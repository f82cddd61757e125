"""What a run left behind, without clock values, run ids, its parent and paths: equal for equal answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from aeon.files.jsonl import read_lines

CLOCK = {
    "time",
    "timestamp",
    "start_time",
    "end_time",
    "seconds",
    "duration_seconds",
    "total_time_seconds",
    "timings",
    "run_id",
    "execution_id",
    "parent",
}


def artefacts(directory: Path) -> dict[str, Any]:
    """The artefacts of a finished run, the journals in the order of dispatch."""
    return {
        "answer.md": (directory / "answer.md").read_text(encoding="utf-8"),
        "result.json": timeless(json.loads((directory / "result.json").read_bytes())),
        "history.json": timeless(json.loads((directory / "history.json").read_bytes())),
        "events.jsonl": journal(directory / "events.jsonl"),
        "cycles.jsonl": journal(directory / "cycles.jsonl"),
    }


def journal(path: Path) -> list[Any]:
    lines = sorted(read_lines(path), key=lambda line: (line["sequence"], line.get("part", 0)))
    return [timeless(line) for line in lines]


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: timeless(item) for name, item in value.items() if name not in CLOCK}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def differences(one: Any, other: Any, path: str = "") -> list[str]:
    """Where two values part, for a message that can be read."""
    if isinstance(one, dict) and isinstance(other, dict):
        names = sorted({*one, *other}, key=str)
        return [
            line for n in names for line in differences(one.get(n), other.get(n), f"{path}/{n}")
        ]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [line for i, (a, b) in pairs for line in differences(a, b, f"{path}/{i}")]
    return [] if one == other else [f"{path}: {str(one)[:200]} != {str(other)[:200]}"]
