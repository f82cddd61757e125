"""A run in plain lines: one for each thing worth knowing."""

from __future__ import annotations

import json

from aeon.cli.progress.view import RunView, was_called
from aeon.cli.progress.words import MOST_ROWS, excerpt, format_scores, open_questions, refinement, validation, verdict
from aeon.cli.terminal.text import count_noun, format_clock, list_names, one_line, tool_label
from aeon.domain import events as e
from aeon.domain.plan import PlanStep
from aeon.domain.tool_result import ToolResult

_WARNINGS = ("unknown_tool", "memory_failure")


def lines(event: e.Event, view: RunView) -> list[str]:
    """The lines for an event, given the view that has taken it in; none for an event that is not worth one."""
    head = "" if view.recording else f"{format_clock(view.elapsed)}  "
    for write in (_of_run, _of_steps, _of_judgements, _of_incidents):
        if texts := write(event, view):
            return [head + text for text in texts]
    return []


def _line(number: int, *parts: str) -> str:
    return "  ".join((f"pass {number}", *filter(None, parts)))


def _of_run(event: e.Event, view: RunView) -> list[str]:
    match event:
        case e.RunStarted():
            source = "recording" if view.recording else f"provider {event.provider}"
            return [f"run {event.run_id}  {source}  task: {one_line(event.task, 100)}"]
        case e.PhaseStarted():
            return [_line(event.pass_number, event.phase)]
        case e.PhaseFinished() if event.outcome != "done":
            return [_line(event.pass_number, event.phase, event.outcome)]
        case e.PassStarted():
            ready = f"ready: {list_names(event.ready)}" if event.ready else ""
            return [_line(event.pass_number, "started", f"TTL {event.ttl_remaining}", ready)]
        case e.PassFinished():
            end = "finished" if event.complete else "cut short"
            return [_line(event.pass_number, end, f"TTL {event.ttl_remaining}")]
    return []


def _of_steps(event: e.Event, view: RunView) -> list[str]:
    match event:
        case e.PlanMade():
            return _plan(event)
        case e.StepStarted(step=step):
            return [_line(event.pass_number, f"step {_numbered(step)}", f"{tool_label(step.tool)}started")]
        case e.StepFinished():
            return _finished(event, view)
        case e.ToolStarted():
            arguments = excerpt(json.dumps(event.arguments, ensure_ascii=False), 120)
            tool = _target(one_line(event.tool), event.step_id)
            return [_line(event.site.pass_number, "tool", tool, "asked for", arguments)]
        case e.ToolCalled(result=result):
            tool = _target(one_line(result.tool), event.step_id)
            return [_line(event.site.pass_number, "tool", tool, *_result(result, view))]
    return []


def _plan(event: e.PlanMade) -> list[str]:
    steps = event.plan.steps
    size = f"{count_noun(len(steps), 'step')} in {count_noun(event.layers, 'layer')}"
    rows = [
        f"  {_numbered(step)}  {tool_label(step.tool)}{one_line(step.description, 100)}" for step in steps[:MOST_ROWS]
    ]
    more = [f"  and {len(steps) - MOST_ROWS} more"] if len(steps) > MOST_ROWS else []
    return [f"plan  {size}, about {count_noun(event.expected_calls, 'LLM cycle')} expected", *rows, *more]


def _finished(event: e.StepFinished, view: RunView) -> list[str]:
    step, seconds = event.step, view.steps[event.step.step_id].seconds
    reason = step.errors[-1] if step.errors and step.status == "failed" else step.clarity_reason
    parts = (
        "abandoned" if step.incomplete else step.status,
        step.clarity_state or "",
        "" if seconds is None or view.recording else f"{seconds:.1f}s",
        one_line(reason or "", 200),
    )
    output = "" if step.status == "failed" else excerpt(step.step_output, 200)
    ended = _line(event.pass_number, f"step {_numbered(step)}", *parts)
    return [ended, *([_line(event.pass_number, "output", one_line(step.step_id), output)] if output else [])]


def _result(result: ToolResult, view: RunView) -> tuple[str, str]:
    failure = f"{'failed' if was_called(result) else 'not called'} ({result.error_kind})"
    outcome = failure if result.error_kind else "gave a result"
    cut = f", {result.cut:,} characters cut" if result.cut else ""
    if result.replayed:
        return f"{outcome}{cut}, replayed: it was not called again", ""
    return f"{outcome}{cut}", "" if view.recording else f"{result.seconds:.1f}s"


def _of_judgements(event: e.Event, view: RunView) -> list[str]:
    match event:
        case e.ProfileInferred():
            return [_profile(event)]
        case e.ProfileUpdated(transition=change):
            versions = f"version {change.from_version} -> {change.to_version}"
            ttl = f"TTL {change.ttl_before} -> {change.ttl_after}"
            return [_line(change.pass_number, "profile", versions, ttl, one_line(change.reason, 200))]
        case e.Validated():
            return [_line(event.pass_number, validation(event))]
        case e.Assessed(assessment=assessment):
            unavailable = f"unavailable: {', '.join(assessment.reason_codes)}"
            scores = format_scores(assessment.scores, view.conditions.thresholds)
            found = (scores, verdict(event)) if assessment.evaluated else (unavailable,)
            return [_line(event.pass_number, "convergence", *found)]
        case e.Refined(refinement=record):
            questions = [_line(event.pass_number, "question", one) for one in open_questions(record.questions)]
            return [_line(event.pass_number, "refinement", refinement(record)), *questions]
    return []


def _profile(event: e.ProfileInferred) -> str:
    profile, depth = event.profile, event.depth
    if event.fallback:
        return f"profile  the default one, the task could not be profiled  TTL {depth.allocated_ttl}"
    size = f"depth {profile.reasoning_depth} of 5, {profile.output_breadth}, {depth.reasoning_mode} reasoning"
    return f"profile  {size}  TTL {depth.allocated_ttl}"


def _of_incidents(event: e.Event, _: RunView) -> list[str]:
    match event:
        case e.AdvisoryRaised(advisory=one):
            label = "warning" if one.kind in _WARNINGS else "advisory"
            return [_line(one.pass_number, label, _target(one.kind, one.step_id), one_line(one.message))]
        case e.RepairFinished(record=record):
            after = f"{record.outcome} after {count_noun(record.attempts, 'attempt')}"
            return [_line(record.pass_number, "repair", _target(record.call, record.step_id), after)]
        case e.RetryScheduled():
            label, what = "retry", f"{event.error}, again in {event.seconds:.1f}s"
        case e.FallbackUsed():
            label = "fallback"
            what = f"{event.endpoint} answers instead of {event.failed} ({one_line(event.error, 200)})"
        case e.CallFailed():
            label, what = "call failed", f"{event.error}: {one_line(event.message, 200)}"
        case _:
            return []
    return [_line(event.site.pass_number, label, _target(event.call, event.site.step_id), what)]


def _numbered(step: PlanStep) -> str:
    return f"{step.step_index}/{step.total_steps} {one_line(step.step_id)}"


def _target(call: str, step_id: str | None) -> str:
    return f"{call} {one_line(step_id)}" if step_id else call
