"""A run in plain lines: one for each thing worth knowing."""

from __future__ import annotations

import json

from aeon.cli.progress.view import RunView, was_called
from aeon.cli.progress.words import listed, open_questions, refinement, scored, validation, verdict
from aeon.cli.terminal.text import clock, counted, one_line
from aeon.domain import events as e
from aeon.domain.plan import PlanStep

_LISTED, _EXCERPT = 20, 800
_WARNINGS = ("unknown_tool", "memory_failure")


def lines(event: e.Event, view: RunView) -> list[str]:
    """The lines for an event, given the run it has already changed; none for what is not worth one."""
    head = "" if view.recording else f"{clock(view.elapsed)}  "
    return [f"{head}{line}" for line in _told(event, view)]


def _told(event: e.Event, view: RunView) -> list[str]:
    match event:
        case e.RunStarted():
            by = "recording" if view.recording else f"provider {event.provider}"
            return [f"run {event.run_id}  {by}  task: {one_line(event.task, 100)}"]
        case e.PhaseStarted():
            return [f"pass {event.pass_number}  {event.phase}"]
        case e.PhaseFinished() if event.outcome != "done":
            return [f"pass {event.pass_number}  {event.phase}  {event.outcome}"]
        case e.ProfileInferred():
            return [_profile(event)]
        case e.ProfileUpdated(transition=change):
            versions = f"version {change.from_version} -> {change.to_version}"
            ttl = f"TTL {change.ttl_before} -> {change.ttl_after}"
            return [f"pass {change.pass_number}  profile  {versions}  {ttl}  {one_line(change.reason, 200)}"]
        case e.PlanMade():
            return _plan(event)
        case e.PassStarted():
            ready = f"  ready: {listed(event.ready)}" if event.ready else ""
            return [f"pass {event.pass_number}  started  TTL {event.ttl_remaining}{ready}"]
        case e.PassFinished():
            end = "finished" if event.complete else "cut short"
            return [f"pass {event.pass_number}  {end}  TTL {event.ttl_remaining}"]
        case e.StepStarted() | e.StepFinished():
            return [_step(event, view), *_output(event)]
        case e.ToolStarted() | e.ToolCalled():
            return [_tool(event, view)]
        case _:
            return _noted(event, view)


def _noted(event: e.Event, view: RunView) -> list[str]:
    match event:
        case e.Validated():
            return [f"pass {event.pass_number}  {validation(event)}"]
        case e.Assessed():
            return [f"pass {event.pass_number}  convergence  {_assessment(event, view)}"]
        case e.Refined():
            head, asked = f"pass {event.pass_number}", open_questions(event.refinement.questions)
            return [
                f"{head}  refinement  {refinement(event.refinement)}",
                *(f"{head}  question  {one}" for one in asked),
            ]
        case e.AdvisoryRaised(advisory=advisory):
            what = f"{_target(advisory.kind, advisory.step_id)}  {one_line(advisory.message)}"
            label = "warning" if advisory.kind in _WARNINGS else "advisory"
            return [f"pass {advisory.pass_number}  {label}  {what}"]
        case e.RepairFinished(record=record):
            after = f"{record.outcome} after {counted(record.attempts, 'attempt')}"
            return [f"pass {record.pass_number}  repair  {_target(record.call, record.step_id)}  {after}"]
        case e.RetryScheduled():
            what = f"{event.error}, again in {event.seconds:.1f}s"
            return [f"pass {event.site.pass_number}  retry  {_target(event.call, event.site.step_id)}  {what}"]
        case e.FallbackUsed():
            what = f"{event.endpoint} answers in place of {event.failed} ({one_line(event.error, 200)})"
            return [f"pass {event.site.pass_number}  fallback  {_target(event.call, event.site.step_id)}  {what}"]
        case e.CallFailed():
            what = f"{event.error}: {one_line(event.message, 200)}"
            return [f"pass {event.site.pass_number}  call failed  {_target(event.call, event.site.step_id)}  {what}"]
        case _:
            return []


def _profile(event: e.ProfileInferred) -> str:
    profile, depth = event.profile, event.depth
    if event.fallback:
        return f"profile  the default one, the task could not be profiled  TTL {depth.allocated_ttl}"
    said = f"depth {profile.reasoning_depth} of 5, {profile.output_breadth}, {depth.reasoning_mode} reasoning"
    return f"profile  {said}  TTL {depth.allocated_ttl}"


def _plan(event: e.PlanMade) -> list[str]:
    steps = event.plan.steps
    size = f"{counted(len(steps), 'step')} in {counted(event.layers, 'layer')}"
    rows = [f"  {_numbered(step)}  {_by(step)}{one_line(step.description, 100)}" for step in steps[:_LISTED]]
    more = [f"  and {len(steps) - _LISTED} more"] if len(steps) > _LISTED else []
    return [f"plan  {size}, about {counted(event.expected_calls, 'LLM cycle')} expected", *rows, *more]


def _step(event: e.StepStarted | e.StepFinished, view: RunView) -> str:
    step = event.step
    head = f"pass {event.pass_number}  step {_numbered(step)}"
    if isinstance(event, e.StepStarted):
        return f"{head}  {_by(step)}started"
    seconds = None if view.recording else view.steps[step.step_id].seconds
    reason = step.errors[-1] if step.errors and step.status == "failed" else step.clarity_reason
    parts = [
        head,
        "abandoned" if step.incomplete else step.status,
        step.clarity_state or "",
        "" if seconds is None else f"{seconds:.1f}s",
        one_line(reason or "", 200),
    ]
    return "  ".join(filter(None, parts))


def _by(step: PlanStep) -> str:
    return f"[{one_line(step.tool)}] " if step.tool else ""


def _output(event: e.StepStarted | e.StepFinished) -> list[str]:
    """What a step gave, whichever way it was carried out: the beginning of it, the rest is in the artefacts."""
    output = one_line((event.step.step_output or "")[:_EXCERPT], _EXCERPT // 4)
    if isinstance(event, e.StepStarted) or not output or event.step.status == "failed":
        return []
    return [f"pass {event.pass_number}  output  {one_line(event.step.step_id)}  {output}"]


def _tool(event: e.ToolStarted | e.ToolCalled, view: RunView) -> str:
    """A tool when it is asked for, with its arguments, and what came of it: it may take long, or never end."""
    name = event.tool if isinstance(event, e.ToolStarted) else event.result.tool
    head = f"pass {event.site.pass_number}  tool  {_target(one_line(name), event.step_id)}"
    if isinstance(event, e.ToolStarted):
        return f"{head}  asked for  {one_line(json.dumps(event.arguments, ensure_ascii=False)[:_EXCERPT], 120)}"
    result = event.result
    failed = "failed" if was_called(result) else "not called"
    came = f"{failed} ({result.error_kind})" if result.error_kind else "gave a result"
    cut = f", {result.cut:,} characters cut" if result.cut else ""
    if result.replayed:
        return f"{head}  {came}{cut}, replayed: it was not called again"
    return f"{head}  {came}{cut}" + ("" if view.recording else f"  {result.seconds:.1f}s")


def _assessment(event: e.Assessed, view: RunView) -> str:
    assessment = event.assessment
    if not assessment.evaluated:
        return f"unavailable: {', '.join(assessment.reason_codes)}"
    return f"{scored(assessment.scores, view.conditions.thresholds)}  {verdict(event)}"


def _numbered(step: PlanStep) -> str:
    return f"{step.step_index}/{step.total_steps} {one_line(step.step_id)}"


def _target(call: str, step_id: str | None) -> str:
    return f"{call} {one_line(step_id)}" if step_id else call
