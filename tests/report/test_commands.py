"""What a page says to try next: a command for what stands out, as it can be typed."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from aeon.report.page.commands import find_ways
from tests.report.test_causes import PLANTED, examine, judged, more_work

NEXT = {
    "threshold": ["convergence.completeness=0.93", "limits.max_passes=4"],
    "criterion": [
        "task=write a guide. Every claim names its source.",
        "limits.max_passes=4",
        "convergence.criteria.cited=WORDS",
    ],
    "judge": ["roles.grader.model=NAME"],
    "slow step": ["roles.worker.model=NAME"],
    "repairs": ["roles.worker.model=NAME"],
    "rate limit": ["provider.max_concurrency="],
    "refused change": ["roles.planner.model=NAME", "inputs.NAME=..."],
    "blocked step": ["inputs.NAME=..."],
    "wasted pass": ["convergence.completeness=0.7"],
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_to_try_next_follows_what_stands_out(name: str, tmp_path: Path) -> None:
    record, causes = examine(tmp_path / "case", *PLANTED[name][:2])
    found = find_ways(record, [(way, cause.is_cause) for cause in causes for way in cause.ways])
    words = [word for _, command in found for word in shlex.split(command)]
    assert [
        each for each in NEXT[name] if not any(word.startswith(each) for word in words)
    ] == [], found
    blanks = [command.endswith(("=NAME", "=WORDS", '="..."')) for _, command in found]
    assert blanks == sorted(blanks), "what can be typed as it stands comes first"
    assert ("limits.max_passes" in str(words)) == ("limits.max_passes=2" in PLANTED[name][1])


def test_passes_at_the_end_that_gained_nothing_can_be_done_without(tmp_path: Path) -> None:
    later = [{"when": {"pass_number": 1}, **judged(0.5)}, judged(0.7)]
    refinements = [
        {"when": {"pass_number": 0}, "answer": {"actions": []}},
        *map(more_work, range(1, 9)),
    ]
    limits = ["limits.max_passes=4"]
    record, causes = examine(
        tmp_path / "case", {"convergence": later, "refinement": refinements}, limits
    )
    ways = [(way, False) for cause in causes for way in cause.ways]
    assert "limits.max_passes=2" in str(find_ways(record, ways))


def test_commands_stand_in_the_order_of_what_stands_out_each_once(tmp_path: Path) -> None:
    record, causes = examine(tmp_path / "case", *PLANTED["threshold"][:2])
    found = find_ways(record, [(way, cause.is_cause) for cause in causes for way in cause.ways])
    assert [command.rpartition(" ")[2] for _, command in found] == [
        "convergence.completeness=0.93",
        "limits.max_passes=4",
    ]
