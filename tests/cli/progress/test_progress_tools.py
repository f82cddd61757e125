"""What is shown of tools, outputs and missing tools, in lines and in the picture."""

from __future__ import annotations

import io
import re

import pytest

from aeon.domain import events as e
from aeon.domain.checks import ToolErrorKind, ToolResult
from aeon.domain.history import Advisory, AdvisoryKind
from aeon.domain.plan import Plan, PlanStep, renumber_steps
from aeon.domain.request import CallSite
from tests.cli.progress.test_progress import Terminal, drawn, seen, shown_by
from tests.observability.support import Story

STEPS = renumber_steps(
    (
        PlanStep(step_id="sum", description="add", tool="calculator", arguments={}),
        PlanStep(step_id="lost", description="look", tool="oracle"),
        PlanStep(step_id="found", description="buy", tool="prices"),
        PlanStep(step_id="say", description="say it", agent="llm"),
    )
)


def told(reason: str = "completed", step_id: str = "sum") -> Story:
    story = Story()
    story.tell(e.RunStarted(run_id="r", task="t", provider="openai", synthetic=False))
    story.tell(e.PlanMade(plan=Plan(goal="g", steps=STEPS), layers=1, expected_calls=3))
    for step in STEPS:
        ended = step.model_copy(
            update={"status": "complete", "step_output": f"gave {step.step_id}"}
        )
        if step.step_id == "found":
            ended = ended.model_copy(update={"tool": "price"})
        story.tell(
            e.StepStarted(
                pass_number=1, cycle=1, step=step.model_copy(update={"status": "running"})
            )
        )
        if step.step_id in ("sum", "found"):
            called(story, step.step_id, "calculator" if step.step_id == "sum" else "price")
        story.tell(e.StepFinished(pass_number=1, cycle=1, step=ended))
    advise(story, "fallback_step", "lost")
    advise(story, "repaired_step", "found")
    story.tell(
        e.RunFinished(
            termination_reason=reason, converged=False, passes=4, ttl_used=3, ttl_allocated=9
        )
    )
    return story


def called(story: Story, step_id: str, tool: str, **failure: str) -> None:
    story.tell(
        e.ToolStarted(
            site=CallSite(pass_number=1), step_id=step_id, tool=tool, arguments={"text": "\x1b[2J"}
        )
    )
    result = ToolResult(
        tool=tool, arguments={"text": "\x1b[2J"}, output=1, text="1", seconds=0.1, **failure
    )
    story.tell(e.ToolCalled(site=CallSite(pass_number=1), step_id=step_id, result=result))


def advise(story: Story, kind: AdvisoryKind, step_id: str) -> None:
    story.tell(
        e.AdvisoryRaised(advisory=Advisory(kind=kind, message="m", pass_number=1, step_id=step_id))
    )


@pytest.mark.parametrize("kind", ["plain", "live"])
def test_every_step_is_shown_with_its_way_and_its_output(kind: str) -> None:
    stream = Terminal() if kind == "live" else io.StringIO()
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown_by(kind, told().told, stream))
    if kind == "plain":  # the picture shows what is under way
        assert "step 1/4 sum  [calculator] started" in text
        assert "step 4/4 say  started" in text
    for name in ("sum", "lost", "found", "say"):
        assert f"output  {name}  gave {name}" in text
    assert "advisory  fallback_step lost  m" in text
    assert "advisory  repaired_step found  m" in text


def test_lines_tell_each_call_of_a_tool_and_nothing_steers_the_terminal() -> None:
    story = told()
    called(story, "sum", "calculator", error="broke", error_kind="raised")
    text = shown_by("plain", story.told)
    assert "tool  calculator sum  gave a result  0.1s" in text
    assert "tool  calculator sum  failed (raised)  0.1s" in text
    assert "\x1b" not in text


def test_a_tool_that_was_not_called_again_is_said_to_be_replayed() -> None:
    story = told()
    result = ToolResult(
        tool="calculator", arguments={}, output=1, text="1", seconds=3, replayed=True
    )
    story.tell(e.ToolCalled(site=CallSite(pass_number=1), step_id="sum", result=result))
    text = shown_by("plain", story.told)
    assert "tool  calculator sum  gave a result, replayed: it was not called again\n" in text


@pytest.mark.parametrize("kind", ["refused", "unknown", "invalid_arguments"])
def test_a_tool_that_was_not_called_is_neither_shown_as_called_nor_counted(
    kind: ToolErrorKind,
) -> None:
    story = Story()
    story.tell(e.PlanMade(plan=Plan(goal="g", steps=STEPS), layers=1, expected_calls=3))
    called(story, "sum", "calculator", error="no", error_kind=kind)
    text = shown_by("plain", story.told)
    assert f"tool  calculator sum  not called ({kind})" in text
    assert "  called" not in text
    assert "failed" not in text


def test_a_name_with_markup_in_it_is_shown_as_it_is() -> None:
    story = Story()
    step = PlanStep(step_id="[bold]x[/bold]", description="d", status="complete", step_output="o")
    story.tell(e.RunStarted(run_id="r", task="t", provider="openai", synthetic=False))
    story.tell(e.PlanMade(plan=Plan(goal="g", steps=(step,)), layers=1, expected_calls=1))
    story.tell(e.StepFinished(pass_number=1, cycle=1, step=step))
    assert "[bold]x[/bold]" in shown_by("live", story.told, Terminal())
    assert any("[bold]x[/bold]" in line for line in drawn(seen(story.told), 80))


@pytest.mark.parametrize("width", [40, 60, 100])
def test_a_call_that_is_under_way_is_shown_at_its_step_until_it_is_over(width: int) -> None:
    told_first = told().told
    started = next(
        i for i, recorded in enumerate(told_first) if isinstance(recorded.event, e.ToolStarted)
    )
    under_way, over = (seen(told_first[: started + more]) for more in (1, 2))
    (row,) = [line for line in drawn(under_way, width) if " sum " in line and "pass" not in line]
    assert "tool calculator  add" in row
    assert not any("tool calculator  add" in line for line in drawn(over, width))


def test_a_call_that_a_stop_abandons_is_not_shown_as_under_way() -> None:
    story = Story()
    story.tell(e.PlanMade(plan=Plan(goal="g", steps=STEPS), layers=1, expected_calls=3))
    story.tell(e.StepStarted(pass_number=1, cycle=0, step=STEPS[0]))
    story.tell(
        e.ToolStarted(site=CallSite(pass_number=1), step_id="sum", tool="calculator", arguments={})
    )
    story.tell(
        e.StepFinished(
            pass_number=1, cycle=0, step=STEPS[0].model_copy(update={"incomplete": True})
        )
    )
    assert seen(story.told).steps["sum"].calling == {}


def test_a_tool_step_that_takes_no_cycle_is_no_call_in_flight() -> None:
    story = Story()
    story.tell(
        e.CycleStarted(site=CallSite(pass_number=1, sequence=7), call="tool", ttl_remaining=5)
    )
    assert seen(story.told).in_flight == {}
