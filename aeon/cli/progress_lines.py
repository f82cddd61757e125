"""A run in plain lines: one for each thing worth knowing, and what is said at its end. Pure functions."""

from __future__ import annotations

import json
from collections import Counter
from textwrap import wrap

from aeon import events as e
from aeon.cli.progress_view import SCORES, RunView, StepView, clock, counted, one_line, was_called
from aeon.convergence.models import ConvergenceScores
from aeon.kernel.state import RefinementRecord
from aeon.plan.models import PlanStep
from aeon.store.cassette import Provenance
from aeon.validation.models import SEVERITIES

SIMULATED = (
    "SIMULATED: no model is called. Every plan, score and answer is made up.",
    "For a model: provider=openai, with OPENAI_API_KEY or OPENAI_BASE_URL set.",
)
_LISTED, _EXCERPT, _BANNER_WIDTH = 20, 800, 78
_WARNINGS = ("unknown_tool", "memory_failure")
_ENDS = {
    "converged": "Converged",
    "completed": "Completed",
    "step_failed": "Finished, but not every step is complete",
    "ttl_expired": "{unfinished}: the TTL is spent",
    "stalled": "{unfinished}: stalled, no step was ready and nothing changed",
    "interrupted": "Interrupted",
    "failed": "Failed",
}


def banner(synthetic: bool, recording: Provenance | None = None) -> list[str]:
    """What is said before anything else when no model will be called; else nothing."""
    said = [line for notice in notices(synthetic, recording) for line in wrap(notice, _BANNER_WIDTH)]
    rule = "=" * max(map(len, said), default=0)
    return [rule, *said, rule] if said else []


def notices(synthetic: bool, recording: Provenance | None) -> list[str]:
    """The sentences of a banner, the most important first: that it is a recording, that it is simulated."""
    if recording is None:
        return list(SIMULATED) if synthetic else []
    first, last = recording.first[:10], recording.last[:10]
    when = f"on {first}" if first == last else f"from {first} to {last}"
    return [
        f"RECORDING, no model is called: answered {one_line(when)} by {one_line(recording.answered_by, 400)}.",
        *SIMULATED[: 1 if synthetic else 0],
        "A recording has no cost and no latency to show.",
    ]


def lines(event: e.Event, view: RunView) -> list[str]:
    """The lines for an event, given the run it has already changed; none for what is not worth one."""
    head = "" if view.recording else f"{clock(view.elapsed)}  "
    return [f"{head}{line}" for line in _told(event, view)]


def summary(view: RunView) -> list[str]:
    """What is said when a run is over, however it ended."""
    return [headline(view), *(f"  {name:<8}  {text}" for name, text in facts(view))]


def facts(view: RunView) -> list[tuple[str, str]]:
    """What a run came to, as names and texts: scores, steps, TTL, tokens, notes, its first advisories."""
    rows = [
        ("scores", _scores(view.scores[-1]) if view.scores else ""),
        ("steps", ", ".join(f"{number} {state}" for state, number in view.counts().items())),
        ("TTL", _ttl(view)),
        ("tokens", _tokens(view)),
        ("notes", ", ".join(notes(view))),
    ]
    shown = [("advisory", one_line(text, 200)) for text in view.advisories[:_LISTED]]
    more = len(view.advisories) - len(shown)
    rest = [("advisory", f"and {more} more, in result.json")] if more else []
    return [*(row for row in rows if row[1]), *shown, *rest]


def headline(view: RunView) -> str:
    """How a run ended, in one line."""
    if view.finished is None:
        after = "" if view.recording else f" after {clock(view.elapsed)}"
        return f"Ended in {view.phase or 'preparation'}{after}"
    reason = view.finished.termination_reason
    end = _ENDS.get(reason, f"{{unfinished}}: limits.{reason} was reached")
    end = end.format(unfinished="Not converged" if view.evaluates else "Not completed")
    duration = "" if view.recording else f", {clock(view.elapsed)}"
    return f"{end} after {counted(view.finished.passes, 'pass')}{duration}"


def decisions(view: RunView) -> list[str]:
    """What the latest review found, the latest assessment came to and the latest refinement changed, as far as there
    are such."""
    validated, assessed, refined = view.validated, view.assessed, view.refined
    return [
        *([f"pass {validated.pass_number}  {_validation(validated)}"] if validated else []),
        *([f"pass {assessed.pass_number}  {_verdict(assessed)}"] if assessed else []),
        *([f"pass {refined.pass_number}  refinement: {_refinement(refined.refinement)}"] if refined else []),
    ]


def notes(view: RunView) -> list[str]:
    """How much went on beside the steps: repairs, retries, advisories, questions."""
    numbers = {
        "tool call": view.tool_calls,
        "repair": view.repairs,
        "retry": view.retries,
        "advisory": len(view.advisories),
        "question": view.questions,
    }
    return [counted(number, noun) for noun, number in numbers.items() if number]


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
            ready = f"  ready: {_listed(event.ready)}" if event.ready else ""
            return [f"pass {event.pass_number}  started  TTL {event.ttl_remaining}{ready}"]
        case e.PassFinished():
            end = "finished" if event.complete else "cut short"
            return [f"pass {event.pass_number}  {end}  TTL {event.ttl_remaining}"]
        case e.StepStarted() | e.StepFinished():
            return [_step(event, view), *_output(event)]
        case e.ToolStarted() | e.ToolCalled():
            return [_tool(event, view)]
        case _:
            return _noted(event)


def _noted(event: e.Event) -> list[str]:
    match event:
        case e.Validated():
            return [f"pass {event.pass_number}  {_validation(event)}"]
        case e.Assessed():
            return [f"pass {event.pass_number}  convergence  {_assessment(event)}"]
        case e.Refined():
            return [f"pass {event.pass_number}  refinement  {_refinement(event.refinement)}"]
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
    listed = [f"  {_numbered(step)}  {_by(step)}{one_line(step.description, 100)}" for step in steps[:_LISTED]]
    more = [f"  and {len(steps) - _LISTED} more"] if len(steps) > _LISTED else []
    return [f"plan  {size}, about {counted(event.expected_calls, 'LLM cycle')} expected", *listed, *more]


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


def step_rows(view: RunView) -> list[tuple[str, str]]:
    """Every step with how it was carried out and what it gave, in short, as names and texts."""
    views = list(view.steps.values())
    rows = [
        (one_line(v.step.step_id, 24), f"{v.state}{_way(v, view)}  {_gave(v.step)}".rstrip()) for v in views[:_LISTED]
    ]
    return [*rows, *([("...", f"and {len(views) - _LISTED} more, in history.json")] if len(views) > _LISTED else [])]


def _way(step: StepView, view: RunView) -> str:
    """How a step was carried out; in a recording perhaps by no model, as its banner says."""
    return "" if view.recording and step.way == "model" else f"  ({step.way})"


def _gave(step: PlanStep) -> str:
    said = step.errors[-1] if step.status == "failed" and step.errors else step.step_output
    return one_line((said or "")[:_EXCERPT], _EXCERPT // 8)


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
    return f"{head}  {came}{cut}" + ("" if view.recording else f"  {result.seconds:.1f}s")


def _validation(event: e.Validated) -> str:
    return f"validation of {event.report.artifact_type.replace('_', ' ')}  {_issues(event)}"


def _issues(event: e.Validated) -> str:
    issues = event.report.issues
    by_severity = Counter(issue.severity for issue in issues)
    found = (severity for severity in reversed(SEVERITIES) if by_severity[severity])
    of_each = ", ".join(f"{by_severity[severity]} {severity}" for severity in found)
    return f"{counted(len(issues), 'issue')} ({of_each})" if issues else "no issues"


def _assessment(event: e.Assessed) -> str:
    assessment = event.assessment
    if not assessment.evaluated:
        return f"unavailable: {', '.join(assessment.reason_codes)}"
    return f"{_scores(assessment.scores)}  {_verdict(event)}"


def _verdict(event: e.Assessed) -> str:
    assessment = event.assessment
    return "converged" if assessment.converged else f"not converged: {', '.join(assessment.reason_codes)}"


def _refinement(record: RefinementRecord) -> str:
    changes = [f"{action.action_type} {one_line(action.fragment)}" for action in record.accepted]
    said = _listed(changes) if changes else "no change"
    return said + (f"; {len(record.refused)} refused" if record.refused else "")


def _scores(scores: ConvergenceScores) -> str:
    values = ((name, scores[f"{name}_score"]) for name in SCORES)
    return "  ".join(f"{name} {value:.2f}" for name, value in values if value is not None)


def _ttl(view: RunView) -> str:
    if view.ttl_allocated is None or view.ttl_remaining is None:
        return ""
    return f"{view.ttl_allocated - view.ttl_remaining} of {view.ttl_allocated} LLM cycles used"


def _tokens(view: RunView) -> str:
    if not view.requests:
        return ""
    told = view.recording.usage if view.recording else "reported"
    return f"{view.tokens:,} in {counted(view.requests, 'request')}{'' if told == 'reported' else f' ({told})'}"


def _numbered(step: PlanStep) -> str:
    return f"{step.step_index}/{step.total_steps} {one_line(step.step_id)}"


def _target(call: str, step_id: str | None) -> str:
    return f"{call} {one_line(step_id)}" if step_id else call


def _listed(names: tuple[str, ...] | list[str]) -> str:
    shown = ", ".join(one_line(name) for name in names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown
