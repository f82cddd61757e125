"""What is said of the time that a run takes yet."""

from datetime import datetime, timedelta

import pytest

from aeon.cli.progress.estimate import seconds_left
from aeon.cli.progress.view import RunView
from aeon.domain import events as e
from aeon.domain.plan import Plan, renumber_steps
from aeon.store.cassette import Provenance
from tests.cli.progress.test_progress import THRESHOLDS, drawn, seen, until
from tests.observability.support import START, Story, realistic_run, step

# A step takes 1.7 s (0.1 + 1.5 + 0.1), a call of its own 1.6 s: by the clock of the stories.
STEP, CALL = 1.7, 1.6
PLAN = Plan(
    goal="g",
    steps=renumber_steps(
        (
            step("a"),
            *(step(f"b{n}", "a") for n in range(5)),
            step("c", *(f"b{n}" for n in range(5))),
        )
    ),
)


def first_pass() -> Story:
    """A plan of three layers, of one, five and one steps, whose first step runs."""
    story = Story()
    story.tell(e.RunStarted(run_id="r", task="t", provider="openai", synthetic=False))
    story.call("plan", "PLAN", 0)
    story.tell(e.PlanMade(plan=PLAN, layers=3, expected_calls=9))
    story.tell(e.PassStarted(pass_number=1, ttl_remaining=9, ready=("a",)))
    site = story.dispatch("step", "EXECUTE", 1, PLAN, "a")
    story.tell(
        e.StepStarted(
            pass_number=1,
            cycle=site.cycle,
            step=PLAN.step("a").model_copy(update={"status": "running"}),
        )
    )
    return story


def after_first_step() -> Story:
    story = first_pass()
    done = PLAN.step("a").model_copy(update={"status": "complete"})
    story.tell(e.StepFinished(pass_number=1, cycle=1, step=done), after=STEP)
    return story


def left(view: RunView, after: float = 0) -> float | None:
    return seconds_left(view, (view.now or START) + timedelta(seconds=after))


def test_nothing_is_estimated_before_a_step_was_measured() -> None:
    view = seen(first_pass().told, RunView(thresholds=THRESHOLDS))
    assert left(view) is None
    assert all(" left" not in line for line in drawn(view, 80))


def test_what_is_left_is_the_judging_of_this_pass_and_the_layers_to_come() -> None:
    for parallel, batches in ((8, 1 + 1), (5, 1 + 1), (2, 3 + 1)):
        view = seen(after_first_step().told, RunView(thresholds=THRESHOLDS, parallel=parallel))
        judging = 2 * CALL  # neither a review nor scores are measured yet: as long as other calls
        assert left(view) == pytest.approx(batches * STEP + 3 * judging)
        assert left(view, after=1) == pytest.approx(batches * STEP + 3 * judging - 1)
        assert left(view, after=60) == pytest.approx(batches * STEP + 2 * judging)
    assert any("about 20 s left" in line for line in drawn(view, 80))


def test_in_core_mode_each_step_is_a_pass_and_nothing_is_judged() -> None:
    assert left(seen(after_first_step().told)) == pytest.approx(6 * STEP)


def test_what_steps_under_way_have_taken_is_taken_off() -> None:
    view = seen(until(realistic_run(), e.StepStarted, 4), RunView(thresholds=THRESHOLDS))
    first, later = left(view), left(view, after=1)
    assert first is not None
    assert later == pytest.approx(first - 1)


def test_refinements_are_expected_as_often_as_they_were() -> None:
    view = seen(until(realistic_run(), e.PassFinished), RunView(thresholds=THRESHOLDS))
    assert view.refining_seconds == pytest.approx(CALL, abs=0.1)
    assert view.passes_done == 1


def test_answers_from_a_store_are_not_measured() -> None:
    story = first_pass()
    done = PLAN.step("a").model_copy(update={"status": "complete"})
    story.tell(e.StepFinished(pass_number=1, cycle=1, step=done), after=0.001)
    assert left(seen(story.told, RunView(thresholds=THRESHOLDS))) is None


def test_a_replay_and_a_run_that_stops_have_no_estimate() -> None:
    view = seen(
        after_first_step().told, RunView(recording=Provenance(answered_by="m", first="", last=""))
    )
    assert left(view) is None
    view = seen(after_first_step().told)
    view.stopped = datetime.now(START.tzinfo)
    assert left(view) is None
