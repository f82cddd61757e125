"""How much of a run's prompts repeats the beginning of an earlier prompt of the same run, as prefix caches reward.

    python benchmarks/prompts.py

Prints JSON: for each run, and for all of them (`total`), the characters of the prompts of pass 2 and later, how many
of them repeat a prefix sent before (`repeated`), and their share (`share`). A prompt is its messages, one after the
other. The runs: the recordings in examples/cassettes of more than one pass, replayed in the order of their calls; with
the simulated provider, the largest task of `benchmarks/calls.py` in adaptive and in core mode, and a chain of steps.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import yaml
from calls import TASKS, scenario

from aeon import Aeon
from aeon.domain.events import CallAnswered, Recorded
from aeon.domain.request import LLMRequest
from aeon.store.cassette import read

ROOT = Path(__file__).resolve().parents[1]
RECORDINGS = ("rest-api", "web-architecture")
LARGEST = TASKS[list(TASKS)[-1]]
CHAIN = (4, "broad", {f"part-{n}": [f"part-{n - 1}"] if n > 1 else [] for n in range(1, 11)})
SIMULATED = {
    "adaptive": ("adaptive", LARGEST),
    "core": ("core", LARGEST),
    "chain": ("adaptive", CHAIN),
}


def repeated_prefixes(requests: Iterable[LLMRequest]) -> dict[str, float]:
    """The characters of prompts from pass 2 on, those that repeat a prefix of an earlier prompt, and their share."""
    characters, repeated = 0, 0
    earlier: list[str] = []
    for request in requests:
        prompt = "\n".join(message.content for message in request.messages)
        if request.site.pass_number >= 2:
            characters += len(prompt)
            repeated += max(
                (len(os.path.commonprefix([prompt, other])) for other in earlier), default=0
            )
        earlier.append(prompt)
    return _summary(characters, repeated)


def _summary(characters: float, repeated: float) -> dict[str, float]:
    share = round(repeated / characters, 3) if characters else 0.0
    return {"characters": characters, "repeated": repeated, "share": share}


def requests_of(overrides: list[str], task: str) -> list[LLMRequest]:
    """Every request of a run, in the order of dispatch."""
    requests: list[LLMRequest] = []

    def collect(recorded: Recorded) -> None:
        if isinstance(recorded.event, CallAnswered):
            requests.append(recorded.event.request)

    with Aeon.from_config([*overrides, "progress=none"], environ={}) as aeon:
        aeon.run(task, observers=[collect])
    return sorted(requests, key=lambda request: (request.site.sequence, request.site.attempt))


def recorded_requests(name: str) -> list[LLMRequest]:
    """What the replay of a recording asks, with the prompts of today."""
    path = ROOT / "examples" / "cassettes" / f"{name}.aeon"
    task = read(path).origin["task"]
    return requests_of(["store.mode=replay", f"store.path={path}", "store.match=order"], task)


def simulated_requests(name: str) -> list[LLMRequest]:
    """What a run of that name asks the simulated provider."""
    mode, work = SIMULATED[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scenario.yaml"
        path.write_text(yaml.safe_dump(scenario(*work)), encoding="utf-8")
        overrides = ["provider=simulated", f"provider.scenario={path}", f"mode={mode}", "store=off"]
        return requests_of(overrides, "design a web application")


def measure() -> dict[str, dict[str, float]]:
    """The summary of each run, and of all of them."""
    runs = {name: repeated_prefixes(recorded_requests(name)) for name in RECORDINGS}
    runs |= {f"simulated-{name}": repeated_prefixes(simulated_requests(name)) for name in SIMULATED}
    total = {key: sum(run[key] for run in runs.values()) for key in ("characters", "repeated")}
    return {**runs, "total": _summary(total["characters"], total["repeated"])}


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))
