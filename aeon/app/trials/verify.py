"""Small tasks run in both modes on the configured provider: the course of each run, and whether its
answer is right."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from aeon.app import process, rehearsal
from aeon.app.attendance import Attendance
from aeon.app.job import resolve_job
from aeon.app.process import Process
from aeon.app.record import Work
from aeon.app.run import Run
from aeon.config.settings import InteractionSettings, Settings
from aeon.domain.events import CallAnswered, PassStarted, PhaseFinished, Recorded
from aeon.domain.result import RunResult
from aeon.llm.extract import ExtractError, extract_json

Mode = Literal["adaptive", "core"]
MODES: tuple[Mode, ...] = ("adaptive", "core")
_LIST_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,2}[.)])\s+\S")
_TABLE_RULE = re.compile(r"[\s|:+-]*-[\s|:+-]*")
_CAPITALS = {"France": "Paris", "Japan": "Tokyo"}
_AMOUNTS = {"bread": "2", "milk": "1", "apples": "6"}
_MOST_THINGS = 10


def _has_the_sum(answer: str) -> bool:
    return re.search(r"(?<![\d.,])15(?:[.,]0+)?(?![\d.,]*\d)", answer) is not None


def _has_a_short_list(answer: str) -> bool:
    items = sum(_LIST_ITEM.match(line) is not None for line in answer.splitlines())
    return 0 < items <= _MOST_THINGS


def _is_the_json(answer: str) -> bool:
    try:
        return bool(extract_json(answer) == _CAPITALS)
    except ExtractError:
        return False


def _has_the_table(answer: str) -> bool:
    """Check whether a Markdown table has the three rows, each with its amount, below its header."""
    rows = [line.strip() for line in answer.splitlines() if line.count("|") > 1]
    cells = [
        [cell.strip().lower() for cell in row.strip("|").split("|")]
        for row in rows
        if not _TABLE_RULE.fullmatch(row)
    ]
    expected = [[item, amount] for item, amount in _AMOUNTS.items()]
    return cells[:1] == [["item", "amount"]] and cells[1:] == expected


@dataclass(frozen=True, slots=True)
class Task:
    """A small task. `is_right` checks an answer as far as a program can; None where it cannot."""

    text: str
    is_right: Callable[[str], bool] | None = None


TASKS = (
    Task("Calculate the sum of 5 and 10. Write it in digits.", _has_the_sum),
    Task("Name three rivers in Europe and the sea that each of them flows into."),
    Task(
        "Write a packing list of at most ten things for a weekend in the "
        "mountains, one thing a line, each line beginning with a dash.",
        _has_a_short_list,
    ),
    Task(
        "Answer with one JSON object that gives the capital of each country, "
        '{"France": ..., "Japan": ...}, and nothing else.',
        _is_the_json,
    ),
    Task(
        "Turn this into a table in Markdown with the "
        "columns item and amount: bread 2, milk 1, apples 6.",
        _has_the_table,
    ),
)
_LETTERS = {
    "PROFILE": "P",
    "PLAN": "L",
    "EXECUTE": "X",
    "RE_EXECUTE": "X",
    "EVALUATE": "E",
    "REFINE": "R",
}
LEGEND = (
    "phases: P profile, L plan, X execute, E evaluate, "
    "R refine (r: nothing called for it), | a new pass"
)
# A budget may end a run within a pass; REFINE is not reached by the pass that converges.
_ORDER: Mapping[Mode, re.Pattern[str]] = {
    "adaptive": re.compile(r"P\|L(E([Rr]((\|XE[Rr]P?)*(\|X(E([Rr]P?)?)?)?)?)?)?"),
    "core": re.compile(r"\|L(\|X)*"),
}


@dataclass(frozen=True, slots=True)
class Verified:
    """One run. `phases` as in `LEGEND`; of `answers` structured answers, `repaired` were not valid
    at first. `is_right`: whether the answer is, None where no program can tell, or there is none.
    """

    task: str
    mode: Mode
    phases: str
    answers: int
    repaired: int
    is_right: bool | None
    result: RunResult

    @property
    def in_order(self) -> bool:
        """Whether the phases came in the order that the mode prescribes."""
        return _ORDER[self.mode].fullmatch(self.phases) is not None

    @property
    def works(self) -> bool:
        """Whether it came to its end in order, whatever its answer is."""
        return self.in_order and self.result.termination_reason != "failed"


def run_tasks(settings: Mapping[Mode, Settings], environ: Mapping[str, str]) -> Iterator[Verified]:
    """Yield every task run in every mode, each run made when it is requested. All runs share
    `limits.max_cost`: no run is made after it is reached, or after one whose cost is unknown.
    Raises ConfigError."""
    spent = 0.0
    made = process.build_process(resolve_job(settings[MODES[0]], environ), environ)
    try:
        # Nobody is asked, and no question is deferred.
        of_all = {"provider": made.settings.provider, "interaction": InteractionSettings()}
        processes = {
            mode: made.with_settings(settings[mode].model_copy(update=of_all)) for mode in MODES
        }
        for shared in processes.values():
            rehearsal.check(shared)
        for task, mode in product(TASKS, MODES):
            shared = processes[mode]
            most = shared.settings.limits.max_cost
            if most is not None:
                if spent >= most:
                    return
                shared = _lower_cost(shared, most - spent)
            events: list[Recorded] = []
            result = Run(shared, Work(task.text, {})).to_end(Attendance(observers=[events.append]))
            cost = result.usage.total.cost
            # An unknown cost may be the whole budget.
            spent += math.inf if cost is None else cost
            yield _read_run(task, mode, events, result)
    finally:
        process.close_process(made)


def _lower_cost(shared: Process, most: float) -> Process:
    limits = shared.settings.limits.model_copy(update={"max_cost": most})
    return shared.with_settings(shared.settings.model_copy(update={"limits": limits}))


def _read_run(task: Task, mode: Mode, events: Sequence[Recorded], result: RunResult) -> Verified:
    answered = [
        one for one in events if isinstance(one.event, CallAnswered) and one.event.call != "repair"
    ]
    is_known = task.is_right is not None and result.answer and not result.synthetic
    return Verified(
        task=task.text,
        mode=mode,
        phases="".join(map(_letter, events)),
        answers=len(answered),
        repaired=len(result.repairs),
        is_right=task.is_right(result.answer) if task.is_right and is_known else None,
        result=result,
    )


def _letter(recorded: Recorded) -> str:
    event = recorded.event
    if isinstance(event, PhaseFinished):
        letter = _LETTERS[event.phase]
        return letter.lower() if event.outcome == "skipped" else letter
    return "|" if isinstance(event, PassStarted) else ""
