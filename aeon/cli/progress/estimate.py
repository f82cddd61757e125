"""Estimates the remaining seconds of a run. Pure: from the seconds of its calls so far, and the
rest of its plan."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from math import ceil
from statistics import fmean

from aeon.cli.progress.view import RunView, StepView
from aeon.domain.errors import PlanError
from aeon.domain.graph import layers

_EVALUATION = ("semantic_validation", "convergence")
_LEAST_SECONDS = 0.5


def seconds_left(view: RunView, now: datetime) -> float | None:
    """Estimate the seconds until the plan is done once and assessed, if no step is repeated; None
    while no step has been measured, in a replay, and when the estimate is exceeded."""
    steps = view.took.get("step")
    if not steps or view.recording or view.stopped:
        return None
    each = fmean(steps)
    judging = _seconds_of_judging(view)
    batch = [one for one in view.steps.values() if one.state in ("running", "queued")]
    expected = ceil(len(batch) / view.parallel) * each
    seconds = max(0.0, expected - _seconds_elapsed(batch, now))
    if batch:
        seconds += judging
    elif view.batch_ended:
        seconds += max(0.0, judging - (now - view.batch_ended).total_seconds())
    seconds += sum(ceil(size / view.parallel) * each + judging for size in _sizes_of_batches(view))
    return seconds if seconds >= _LEAST_SECONDS else None


def _seconds_elapsed(batch: Iterable[StepView], now: datetime) -> float:
    """Return how long the step that was started first has been running."""
    running = (one for one in batch if one.started and one.state == "running")
    return max(((now - one.started).total_seconds() for one in running if one.started), default=0.0)


def _seconds_of_judging(view: RunView) -> float:
    """Return the seconds of judging in one pass: its evaluation, and the average refinement of the
    passes so far."""
    if view.thresholds is None:
        return 0.0
    others = [seconds for call, found in view.took.items() if call != "step" for seconds in found]
    seconds = sum(fmean(view.took.get(call) or others or [0.0]) for call in _EVALUATION)
    return seconds + (view.refining_seconds / view.passes_done if view.passes_done else 0.0)


def _sizes_of_batches(view: RunView) -> list[int]:
    """Return how many steps each following pass executes: a layer of the pending steps, in core
    mode one step."""
    if view.plan is None or view.thresholds is None:
        return [1 for one in view.steps.values() if one.state == "pending"]
    done = ("running", "queued", "complete", "replaced", "skipped")
    left = tuple(one.step for one in view.steps.values() if one.state not in done)
    with suppress(PlanError):
        return list(map(len, layers(view.plan.model_copy(update={"steps": left}))))
    return []
