"""Small tasks run in both modes on the configured provider, and what each run showed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Literal

from aeon.app import process, rehearsal
from aeon.app.record import Work
from aeon.app.run import Run
from aeon.app.wiring import Surroundings
from aeon.config.settings import Settings
from aeon.domain.events import CallAnswered, PassStarted, PhaseFinished, Recorded
from aeon.domain.result import RunResult

Mode = Literal["adaptive", "core"]
MODES: tuple[Mode, ...] = ("adaptive", "core")
TASKS = (
    "Calculate the sum of 5 and 10.",
    "Name three rivers in Europe and the sea that each of them flows into.",
    "Write a packing list of at most ten things for a weekend in the mountains.",
    "Compare tea and coffee as a morning drink in one short paragraph, and recommend one of them.",
    "Turn this into a table with the columns item and amount: bread 2, milk 1, apples 6.",
)
_LETTERS = {
    "PROFILE": "P",
    "PLAN": "L",
    "EXECUTE": "X",
    "RE_EXECUTE": "X",
    "EVALUATE": "E",
    "REFINE": "R",
}
LEGEND = "phases: P profile, L plan, X execute, E evaluate, R refine (r: nothing called for it), | a new pass"
# A budget may end a run within a pass; REFINE is not reached by the pass that converges.
_ORDER: Mapping[Mode, re.Pattern[str]] = {
    "adaptive": re.compile(r"P\|L(E([Rr]((\|XE[Rr]P?)*(\|X(E([Rr]P?)?)?)?)?)?)?"),
    "core": re.compile(r"\|L(\|X)*"),
}


@dataclass(frozen=True, slots=True)
class Verified:
    """One run. `phases` as in `LEGEND`; `answers` structured answers came, `repaired` of them not valid at first."""

    task: str
    mode: Mode
    phases: str
    answers: int
    repaired: int
    result: RunResult

    @property
    def in_order(self) -> bool:
        """Whether the phases came in the order that the mode prescribes."""
        return _ORDER[self.mode].fullmatch(self.phases) is not None

    @property
    def works(self) -> bool:
        """Whether it came to its end in order; whether the answer is any good, a person judges."""
        return self.in_order and self.result.termination_reason != "failed"


def run_tasks(
    settings: Mapping[Mode, Settings], environ: Mapping[str, str], tasks: Sequence[str] = TASKS
) -> Iterator[Verified]:
    """Every task in every mode, each run made as it is asked for. `limits.max_cost` is for all of them together: no run
    is made after it, or after one whose cost is not known. Raises ConfigError."""
    spent = 0.0
    made = process.build_process(settings[MODES[0]], environ)
    with ExitStack() as leaving:
        leaving.callback(process.close_process, made)
        of_mode = {
            mode: settings[mode].model_copy(update={"provider": made.settings.provider})
            for mode in MODES
        }
        processes = {mode: replace(made, settings=of_mode[mode]) for mode in MODES}
        for shared in processes.values():
            rehearsal.check(shared)
        for task in tasks:
            for mode in MODES:
                shared = processes[mode]
                if (most := shared.settings.limits.max_cost) is not None:
                    if spent >= most:
                        return
                    limits = shared.settings.limits.model_copy(update={"max_cost": most - spent})
                    shared = replace(
                        shared, settings=shared.settings.model_copy(update={"limits": limits})
                    )
                events: list[Recorded] = []
                result = Run(shared, Work(task, {})).to_end(Surroundings(observers=[events.append]))
                cost = result.usage.total.cost
                spent += (
                    math.inf if cost is None else cost
                )  # what is not known may be all there was
                answered = [
                    one
                    for one in events
                    if isinstance(one.event, CallAnswered) and one.event.call != "repair"
                ]
                phases = "".join(map(_letter, events))
                yield Verified(task, mode, phases, len(answered), len(result.repairs), result)


def _letter(recorded: Recorded) -> str:
    event = recorded.event
    if isinstance(event, PhaseFinished):
        letter = _LETTERS[event.phase]
        return letter.lower() if event.outcome == "skipped" else letter
    return "|" if isinstance(event, PassStarted) else ""
