"""The plan of every line of `cycles.jsonl`: written as what changed, and rebuilt whole."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aeon.domain import events as e
from aeon.domain.plan import FollowUpQuestion, Plan, PlanStep, plan_one_step, renumber_steps
from aeon.domain.request import CallSite
from aeon.files.jsonl import read_lines
from aeon.observability import plan_delta
from aeon.observability.cycle_log import CycleLog, plan_at, plan_of, with_whole_plans
from aeon.observability.plan_delta import PlanDifference, state_after
from tests.observability.support import PLAN, Story, chain_run, feed, logged, realistic_run


def plans_of(told: tuple[e.Recorded, ...] | list[e.Recorded]) -> dict[int, Plan | None]:
    return {r.event.site.cycle: r.event.plan for r in told if isinstance(r.event, e.CycleStarted)}


def test_the_plan_of_every_cycle_can_be_rebuilt(tmp_path: Path) -> None:
    told = realistic_run()
    lines = logged(tmp_path, told)
    assert {cycle: plan_at(lines, cycle) for cycle in plans_of(told)} == plans_of(told)


def test_a_cycle_that_is_not_there_or_builds_on_one_that_is_not_is_a_lookup_error(
    tmp_path: Path,
) -> None:
    lines = logged(tmp_path, realistic_run())
    with pytest.raises(LookupError, match="no cycle 99"):
        plan_at(lines, 99)
    with pytest.raises(LookupError, match="the plan of cycle 5 builds on line 4, which is missing"):
        plan_at([line for line in lines if line["step_number"] != 4], 5)


def test_the_journal_grows_linearly_with_the_run(tmp_path: Path) -> None:
    sizes = []
    for length in (40, 80):
        (folder := tmp_path / str(length)).mkdir()
        logged(folder, chain_run(length))
        sizes.append((folder / "cycles.jsonl").stat().st_size)
    assert sizes[1] < 2.1 * sizes[0]


def test_an_added_step_costs_itself_and_not_the_whole_plan(tmp_path: Path) -> None:
    steps = tuple(PlanStep(step_id=f"s{n}", description="d") for n in range(100))
    longer = renumber_steps((*steps[:50], PlanStep(step_id="new", description="d"), *steps[50:]))
    story = Story()
    story.call("refinement", "REFINE", 1, Plan(goal="g", steps=renumber_steps(steps)))
    story.call("step", "EXECUTE", 2, Plan(goal="g", steps=longer))
    state = logged(tmp_path, story.told)[1]["plan_state"]
    assert state["order"] == {"start": 50, "removed": 0, "inserted": ["new"]}
    assert state["steps"] == [{"step_id": "new", "fields": {"description": "d"}}]


def test_the_plan_of_a_batch_is_written_once_before_any_of_its_steps_ends(tmp_path: Path) -> None:
    story = Story()
    story.call("refinement", "REFINE", 1, PLAN)
    steps = [step.model_copy(update={"status": "running"}) for step in PLAN.steps[:3]]
    running = PLAN.model_copy(update={"steps": (*steps, *PLAN.steps[3:])})
    for step in running.steps[:3]:
        story.dispatch("step", "EXECUTE", 1, running, step.step_id)
    log = CycleLog(tmp_path / "cycles.jsonl", print, "delta")
    feed(log, story.told)
    first, batch = read_lines(tmp_path / "cycles.jsonl")
    log.close()
    assert (batch["call"], batch["cycle"], batch["step_id"], batch["step_number"]) == (
        "batch",
        None,
        None,
        2,
    )
    assert batch["plan_state"]["base"] == first["step_number"]
    assert plan_of([first, batch], batch["sequence"]) == running
    lines = list(read_lines(tmp_path / "cycles.jsonl"))[2:]
    assert [line["step_number"] for line in lines] == [3, 4, 5]
    nothing: dict[str, Any] = {"goal": None, "task": None, "questions": None, "subplans": None}
    nothing |= {"order": None, "steps": []}
    assert [line["plan_state"] for line in lines] == [{"kind": "delta", "base": 2, **nothing}] * 3


def test_a_cycle_that_is_alone_carries_its_plan_itself(tmp_path: Path) -> None:
    assert "batch" not in {line["call"] for line in logged(tmp_path, realistic_run())}


def whole(*lines: dict[str, Any]) -> list[Plan]:
    """The plans of lines that each hold one."""
    assert {line["plan_state"]["kind"] for line in lines} == {"full"}
    return [Plan.model_validate(line["plan_state"]["plan"]) for line in lines]


def plan_of_steps(count: int) -> Plan:
    steps = tuple(PlanStep(step_id=f"s{n}", description="d") for n in range(count))
    return Plan(goal="g", steps=steps)


def batch(tmp_path: Path, plan: Plan, form: Any = "auto") -> list[dict[str, Any]]:
    """The lines of two steps that are dispatched together, of which the second ends first."""
    story = Story()
    sites = [story.dispatch("step", "EXECUTE", 1, plan, step_id) for step_id in ("s0", "s1")]
    for site in reversed(sites):
        ended = plan.step(site.step_id)
        story.tell(e.StepFinished(pass_number=1, cycle=site.cycle, step=ended), site)
    log = CycleLog(tmp_path / "cycles.jsonl", pytest.fail, form)
    feed(log, story.told)
    log.close()
    return list(read_lines(tmp_path / "cycles.jsonl"))


@pytest.mark.parametrize(
    ("form", "steps", "is_whole"),
    [
        ("auto", 49, True),
        ("auto", 50, False),
        ("full", 50, True),
        ("delta", 2, False),
    ],
)
def test_below_fifty_steps_every_line_has_its_whole_plan(
    tmp_path: Path, form: str, steps: int, is_whole: bool
) -> None:
    """FR-038: a snapshot at the cycle's start, which `jq .plan_state` shows."""
    plan = plan_of_steps(steps)
    lines = batch(tmp_path, plan, form)
    if is_whole:
        assert whole(*lines) == [plan, plan]
    else:
        assert [line["plan_state"]["kind"] for line in lines] == ["full", "delta", "delta"]
        assert [plan_of(lines, line["sequence"]) for line in lines] == [plan] * 3


def test_a_plan_that_grows_beyond_that_builds_on_no_line_before(tmp_path: Path) -> None:
    story = Story()
    story.call("plan", "PLAN", 0)
    for count in (49, 50, 51, 49, 50):
        story.call("step", "EXECUTE", 1, plan_of_steps(count))
    log = CycleLog(tmp_path / "cycles.jsonl", pytest.fail)
    feed(log, story.told)
    log.close()
    first, *lines = read_lines(tmp_path / "cycles.jsonl")
    assert first["plan_state"] is None
    kinds = [line["plan_state"]["kind"] for line in lines]
    assert kinds == ["full", "full", "delta", "full", "full"]
    assert [len(plan_of(lines, each["sequence"]).steps) for each in lines] == [49, 50, 51, 49, 50]


@pytest.mark.parametrize("form", ["full", "delta"])
def test_lines_stand_in_the_order_of_their_numbers_once_the_run_is_over(
    tmp_path: Path, form: str
) -> None:
    numbers = [line["step_number"] for line in batch(tmp_path, plan_of_steps(2), form)]
    assert numbers == sorted(numbers)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("form", ["full", "delta"])
def test_the_full_form_can_be_had_of_any_file(tmp_path: Path, form: str) -> None:
    plan = plan_of_steps(3)
    lines = batch(tmp_path, plan, form)
    made = list(with_whole_plans(reversed(lines)))
    assert whole(*made) == [plan, plan]
    assert [line["call"] for line in made] == ["step", "step"]
    assert [line["step_id"] for line in made] == ["s0", "s1"]


def test_a_line_that_builds_on_none_has_no_full_form(tmp_path: Path) -> None:
    _, *others = batch(tmp_path, plan_of_steps(3), "delta")
    with pytest.raises(LookupError, match="the plan of line 2 builds on line 1, which is missing"):
        list(with_whole_plans(others))


def steps_strategy() -> st.SearchStrategy[tuple[PlanStep, ...]]:
    step = st.builds(
        PlanStep,
        step_id=st.sampled_from([*"abcdefgh"]),
        description=st.sampled_from(["-", "one", "two"]),
        status=st.sampled_from(["pending", "running", "complete", "failed"]),
        dependencies=st.lists(st.sampled_from([*"abc"]), max_size=2).map(tuple),
        step_output=st.none() | st.text(max_size=5),
        arguments=st.none() | st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
        agent=st.sampled_from([None, "llm"]),
        incomplete=st.booleans(),
    )
    return st.lists(step, max_size=6, unique_by=lambda s: s.step_id).map(tuple).map(renumber_steps)


questions = st.lists(
    st.builds(FollowUpQuestion, question=st.just("why?"), assumption=st.text(max_size=3)),
    max_size=2,
)
plans = st.builds(
    Plan,
    goal=st.sampled_from(["", "g", "h"]),
    task=st.sampled_from(["", "t"]),
    steps=steps_strategy(),
    questions=questions.map(tuple),
)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.lists(st.none() | plans, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_any_sequence_of_plans_is_rebuilt_whatever_order_the_cycles_end_in(
    tmp_path_factory: pytest.TempPathFactory, sequence: list[Plan | None], rng: random.Random
) -> None:
    story = Story()
    sites = [story.dispatch("step", "EXECUTE", 1, plan) for plan in sequence]
    rng.shuffle(sites)
    for site in sites:
        story.ends(site, "step")
    lines = logged(tmp_path_factory.mktemp("run"), story.told)
    assert {cycle: plan_at(lines, cycle) for cycle in plans_of(story.told)} == dict(
        enumerate(sequence, start=1)
    )


batches = st.lists(st.lists(st.none() | plans, min_size=1, max_size=4), min_size=1, max_size=5)


def told_in_batches(of: list[list[Plan | None]], rng: random.Random) -> Story:
    """Batches one after the other; the calls of each are dispatched in order and end in any order."""
    story = Story()
    for batch in of:
        sites = [story.dispatch("step", "EXECUTE", 1, plan) for plan in batch]
        rng.shuffle(sites)
        for site in sites:
            story.ends(site, "step")
    return story


def told_interleaved(of: list[list[Plan | None]], rng: random.Random) -> Story:
    """The same calls, some of them dispatched while earlier ones are under way."""
    story = Story()
    open_: list[CallSite] = []
    for plan in (plan for batch in of for plan in batch):
        open_.append(story.dispatch("step", "EXECUTE", 1, plan))
        while open_ and rng.random() < 0.5:
            story.ends(open_.pop(rng.randrange(len(open_))), "step")
    return story


@pytest.mark.slow
@pytest.mark.parametrize("told", [told_in_batches, told_interleaved])
@settings(max_examples=25, deadline=None)
@given(of=batches, rng=st.randoms(use_true_random=False))
def test_of_a_run_that_was_killed_every_line_that_is_there_is_rebuilt(
    tmp_path_factory: pytest.TempPathFactory,
    told: Callable[[list[list[Plan | None]], random.Random], Story],
    of: list[list[Plan | None]],
    rng: random.Random,
) -> None:
    story = told(of, rng)
    plans_told = {
        r.sequence: r.event.plan for r in story.told if isinstance(r.event, e.CycleStarted)
    }
    lines = logged(tmp_path_factory.mktemp("run"), story.told)
    assert sorted(line["step_number"] for line in lines) == list(range(1, len(lines) + 1))
    for length in range(1, len(lines) + 1):
        there = lines[:length]
        rebuilt = {line["sequence"]: plan_of(there, line["sequence"]) for line in there}
        assert rebuilt == {sequence: plans_told[sequence] for sequence in rebuilt}


@settings(max_examples=25, deadline=None)
@given(batches, st.randoms(use_true_random=False))
def test_the_plans_of_the_lines_do_not_depend_on_the_order_the_cycles_end_in(
    tmp_path_factory: pytest.TempPathFactory, of: list[list[Plan | None]], rng: random.Random
) -> None:
    def states() -> dict[int, Any]:
        lines = logged(tmp_path_factory.mktemp("run"), told_in_batches(of, rng).told)
        return {line["sequence"]: line["plan_state"] for line in lines}

    assert states() == states()


def test_a_plan_that_several_cycles_share_is_not_compared_with_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = plan_one_step("x")
    assert state_after((3, plan), plan.model_copy()) == PlanDifference(base=3)
    monkeypatch.delattr(plan_delta, "plan_change")
    assert state_after((3, plan), plan) == PlanDifference(base=3)
