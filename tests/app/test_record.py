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
        ("max_tokens", {"max_tokens": 2000}, Overrun(limit="max_tokens", cap=2000, used=2052)),
        ("max_cost", {"max_cost": 0.5}, Overrun(limit="max_cost", cap=0.5, used=0.51)),
        ("max_seconds", {"max_seconds": 3}, Overrun(limit="max_seconds", cap=3, used=3.2)),
        ("completed", {"max_cost": 0.5}, Overrun(limit="max_cost", cap=0.5, used=0.51)),
        (
            "max_cost",
            {"max_tokens": 5, "max_cost": 0.5},
            Overrun(limit="max_cost", cap=0.5, used=0.51),
        ),
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
        ("converged", {}, USED),
    ],
)
def test_a_cap_that_was_not_overrun_is_none(
    reason: Any, limits: dict[str, Any], used: TokenUsage
) -> None:
    assert find_overrun(reason, LimitSettings(**limits), used, TIMINGS) is None
