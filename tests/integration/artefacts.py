"""Whole runs with written artefacts, on a scripted model or the simulated one, and what of them may not differ."""

from __future__ import annotations

import copy
import json
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from aeon.app.aeon import Aeon
from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse
from aeon.domain.result import RunResult
from aeon.files.jsonl import read_lines

CLOCKS = {
    "time",
    "timestamp",
    "start_time",
    "end_time",
    "duration_seconds",
    "total_time_seconds",
    "total_seconds",
    "seconds",
    "seconds_by_call",
    "seconds_by_phase",
}
IDENTITIES = {"run_id", "execution_id"}


class Late:
    """A model whose answers take a random time, so that parallel ones arrive in any order."""

    def __init__(self, model: LLMAdapter, seed: int, most_seconds: float = 0.01) -> None:
        self._model, self._random, self._most = model, random.Random(seed), most_seconds
        self._lock = threading.Lock()

    def complete(self, request: LLMRequest) -> LLMResponse:
        with self._lock:
            seconds = self._random.random() * self._most
        time.sleep(seconds)
        return self._model.complete(request)


def run(
    directory: Path, *overrides: str, model: LLMAdapter | None = None, task: str = "make tea"
) -> RunResult:
    """A run into a directory; `model` takes the place of the simulated provider."""
    directory.mkdir(parents=True, exist_ok=True)
    aeon = copy.copy(_aeon(*overrides))
    if model is not None:
        aeon._process = replace(aeon._process, adapter=model)
    return aeon.run(task, inputs={"note": "mind the milk"}, directory=directory)


@cache
def _aeon(*overrides: str) -> Aeon:
    return Aeon.from_config(
        ("provider=simulated", "provider.retry.initial_seconds=0", *overrides), environ={}
    )


def documents(directory: Path) -> dict[str, Any]:
    """Everything that a run wrote, journals sorted by their numbers, without clocks and identities."""
    whole = {
        name: json.loads((directory / f"{name}.json").read_bytes())
        for name in ("result", "history")
    }
    whole["result"]["configuration"]["execution"].pop("max_parallel")
    whole["result"]["hashes"].pop("configuration")
    return {
        **{name: timeless(value) for name, value in whole.items()},
        "answer": (directory / "answer.md").read_text(encoding="utf-8"),
        "events": timeless(_sorted(directory / "events.jsonl", "sequence", "part")),
        "cycles": timeless(_sorted(directory / "cycles.jsonl", "step_number")),
    }


def _sorted(path: Path, *keys: str) -> list[dict[str, Any]]:
    return sorted(read_lines(path), key=lambda line: [line[key] for key in keys])


def timeless(value: Any) -> Any:
    """A JSON value without clocks and identities, at any depth."""
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if k not in CLOCKS | IDENTITIES}
    return (
        [timeless(inner) for inner in value]
        if isinstance(value, Sequence) and not isinstance(value, str)
        else value
    )
