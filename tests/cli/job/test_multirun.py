"""The last line of a multirun's table, by how its jobs ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aeon.cli.job.multirun import Job, summary


def job(ended: str, converged: bool | None = None, *, status: int = 0, without: int = 0) -> Job:
    figures: dict[str, Any] = {"ended": ended, "converged": converged}
    return Job(0, {}, Path("/runs/0"), status, figures, without)


@pytest.mark.parametrize(
    ("jobs", "said"),
    [
        ((job("converged", True), job("stalled", False, status=3)), "2 jobs, 1 converged."),
        ((job("completed"), job("step_failed", status=3)), "2 jobs, 1 completed."),
        ((job("converged", True), job("completed")), "2 jobs, 1 converged, 1 completed."),
        ((Job(0, {}),), "1 job, 0 converged."),
        (
            (job("converged", True, without=1), job("stalled", False, status=3, without=1)),
            "2 jobs, 1 converged, 1 of them without a tool, a server or a review.",
        ),
    ],
)
def test_only_jobs_that_can_converge_are_counted_among_those_that_did(
    jobs: tuple[Job, ...], said: str
) -> None:
    last = summary(jobs, 0).splitlines()[-1]
    assert last == f"{said} Exit status 0, the worst of the jobs."
