"""What a run leaves behind, made of its outcome."""

from __future__ import annotations

from typing import Any

import pytest

from aeon.app.record import find_overrun
from aeon.domain.result import Overrun, Timings, TokenUsage
from aeon.llm.stack.limits import LimitSettings

USED = TokenUsage(requests=7, total_tokens=2052, cost=0.51)
TIMINGS = Timings(start_time="", end_time="", total_seconds=3.21)


@pytest.mark.parametrize(
    ("reason", "limits", "found"),
    [
        ("max_tokens", {"max_tokens": 2000}, Overrun(cap=2000, used=2052)),
        ("max_cost", {"max_cost": 0.5}, Overrun(cap=0.5, used=0.51)),
        ("max_seconds", {"max_seconds": 3}, Overrun(cap=3, used=3.2)),
    ],
)
def test_a_cap_is_overrun_by_what_was_under_way(
    reason: Any, limits: dict[str, Any], found: Overrun
) -> None:
    assert find_overrun(reason, LimitSettings(**limits), USED, TIMINGS) == found


@pytest.mark.parametrize(
    ("reason", "limits", "used"),
    [
        ("max_tokens", {"max_tokens": 2052}, USED),  # reached, and not overrun
        ("max_seconds", {"max_seconds": 3.2}, USED),  # by less than is shown
        ("max_llm_calls", {"max_llm_calls": 6}, USED),  # counted before they go out
        ("max_cost", {"max_cost": 0.1}, TokenUsage(cost=None)),  # nobody knows
        (
            "converged",
            {"max_tokens": 5},
            USED,
        ),  # what the last call took ends no run that converged
    ],
)
def test_a_cap_that_was_not_overrun_or_did_not_end_the_run_is_none(
    reason: Any, limits: dict[str, Any], used: TokenUsage
) -> None:
    assert find_overrun(reason, LimitSettings(**limits), used, TIMINGS) is None
