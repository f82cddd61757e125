"""The words about a run, in lines and in the picture: for each event, and for its present state.
Pure functions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap

from pydantic_core import from_json

from aeon.cli.progress.view import RunView, was_called
from aeon.domain import events as e
from aeon.domain.assessment import ComparedWithEarlier, ConvergenceAssessment
from aeon.domain.checks import CheckOutcome, count_passed
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.refinement import RefinementRecord
from aeon.domain.report import SEVERITIES, ValidationIssue
from aeon.report.ending import describe_few_passes, open_questions
from aeon.report.scores import describe_repeats, read_scores
from aeon.report.words import (
    count_noun,
    format_clock,
    format_threshold,
    label_worker,
    list_names,
    one_line,
    round_down,
)
from aeon.store.cassette import Provenance

SIMULATED = (
    "SIMULATED: no model is called. Every plan, score and answer is made up.",
    "For a model: provider=openai, with OPENAI_API_KEY or OPENAI_BASE_URL set.",
)
_MOST_ROWS = 20
_REVIEWS = {"cross_phase": "plan and outputs", "execution_artifact": "an output"}
"""The subject of a review, where the type does not name it."""
_COMPARED: Mapping[ComparedWithEarlier, str] = {
    "better": "is better than",
    "as_good": "is as good as",
    "worse": "is worse than",
    "unknown": "could not be compared with",
}
_BANNER_WIDTH = 78


def banner(synthetic: bool, recording: Provenance | None = None) -> list[str]:
    """Return the first lines of a run that calls no model: that it is a recording, that it is
    simulated; none for others."""
    notices = list(SIMULATED) if synthetic else []
    if recording is not None:
        first = recording.first[:10]
        last = recording.last[:10]
        when = f"on {first}" if first == last else f"from {first} to {last}"
        who = one_line(recording.answered_by, 400)
        notices = [
            f"RECORDING, no model is called: answered {one_line(when)} by {who}.",
            *notices[:1],
            "A recording has no cost and no latency to show.",
        ]
    body = [line for notice in notices for line in wrap(notice, _BANNER_WIDTH)]
    rule = "=" * max(map(len, body), default=0)
    return [rule, *body, rule] if body else []


def lines(event: e.Event, view: RunView, *, brief: bool = False) -> list[str]:
    """Return the lines for an event, given the view that has processed it; none for an event that
    is not notable. `brief` leaves out what the picture shows: starts, and the steps of the plan."""
    if brief and isinstance(
        event, e.PhaseStarted | e.PhaseFinished | e.PassStarted | e.StepStarted
    ):
        return []
    clock = "" if view.recording else f"{format_clock(view.elapsed)}  "
    texts = (
        _of_run(event, view)
        or _of_steps(event, view)
        or _of_judgements(event, view)
        or _of_incidents(event)
    )
    if brief and isinstance(event, e.PlanMade):
        texts = texts[:1]
    return [clock + text for text in texts]


def _join(number: int, *parts: str) -> str:
    return "  ".join((f"pass {number}", *filter(None, parts)))


def _of_run(event: e.Event, view: RunView) -> list[str]:
    match event:
        case e.RunStarted():
            source = "recording" if view.recording else f"provider {event.provider}"
            return [f"run {event.run_id}  {source}  task: {one_line(event.task, 100)}"]
        case e.PhaseStarted():
            return [_join(event.pass_number, event.phase)]
        case e.PhaseFinished() if event.outcome != "done":
            return [_join(event.pass_number, event.phase, event.outcome)]
        case e.PassStarted():
            ready = f"ready: {list_names(event.ready)}" if event.ready else ""
            return [_join(event.pass_number, "started", f"TTL {event.ttl_remaining}", ready)]
        case e.PassFinished():
            end = "finished" if event.complete else "cut short"
            return [_join(event.pass_number, end, f"TTL {event.ttl_remaining}")]
    return []


def _of_steps(event: e.Event, view: RunView) -> list[str]:
    match event:
        case e.PlanMade(plan=plan):
            size = f"{count_noun(len(plan.steps), 'step')} in {count_noun(event.layers, 'layer')}"
            expected = f"about {count_noun(event.expected_calls, 'LLM cycle')} expected"
            few = describe_few_passes(
                plan, view.limits.max_passes, one_by_one=view.thresholds is None
            )
            return ["; ".join(filter(None, (f"plan  {size}, {expected}", few))), *_list_steps(plan)]
        case e.StepStarted(step=step):
            return [
                _join(event.pass_number, f"step {_number(step)}", f"{label_worker(step)}started")
            ]
        case e.StepFinished():
            return _end_of_step(event, view)
        case e.StepUnfolded(instances=made):
            named = f"step {one_line(event.step_id)}"
            return [_join(event.pass_number, named, count_noun(len(made), "item"))]
        case e.StepSkipped(step=step):
            skipped = f"skipped: {one_line(event.reason, 200)}"
            return [_join(event.pass_number, f"step {_number(step)}", skipped)]
        case e.ToolCalled():
            return [_end_of_tool(event, view)]
    return []


def _list_steps(plan: Plan) -> Iterator[str]:
    for step in plan.steps[:_MOST_ROWS]:
        yield f"  {_number(step)}  {label_worker(step)}{one_line(step.description, 100)}"
    if len(plan.steps) > _MOST_ROWS:
        yield f"  and {len(plan.steps) - _MOST_ROWS} more"


def _end_of_tool(event: e.ToolCalled, view: RunView) -> str:
    result = event.result
    outcome = "gave a result"
    if result.error_kind:
        outcome = f"{'failed' if was_called(result) else 'not called'} ({result.error_kind})"
    if result.cut:
        outcome += f", {result.cut:,} characters cut"
    took = "" if view.recording else f"{result.seconds:.1f}s"
    if result.replayed:
        outcome += ", replayed: it was not called again"
        took = ""
    target = _target(one_line(result.tool), event.step_id)
    step = view.steps.get(event.step_id)
    # The plan shows the arguments of a planned call.
    is_planned = step is None or step.step.tool is not None
    given = "" if is_planned else one_line(json.dumps(result.arguments, ensure_ascii=False), 80)
    return _join(event.site.pass_number, "tool", target, given, outcome, took)


def _count_issues(issues: Sequence[ValidationIssue]) -> str:
    severities = Counter(issue.severity for issue in issues)
    each = [f"{severities[one]} {one}" for one in reversed(SEVERITIES) if severities[one]]
    return f"{count_noun(len(issues), 'issue')} ({', '.join(each)})" if each else "no issues"


def _end_of_step(event: e.StepFinished, view: RunView) -> list[str]:
    step = event.step
    seconds = view.steps[event.step.step_id].seconds
    failed = step.status == "failed"
    reason = step.errors[-1] if step.errors and failed else step.clarity_reason
    took = "" if seconds is None or view.recording else f"{seconds:.1f}s"
    state = "abandoned" if step.incomplete else step.status
    parts = (state, step.clarity_state or "", took, one_line(reason or "", 200))
    ended = _join(event.pass_number, f"step {_number(step)}", *parts)
    # Cut first: an output may have megabytes.
    output = one_line((step.step_output or "")[:1600], 200)
    if failed or not output:
        return [ended]
    return [ended, _join(event.pass_number, "output", one_line(step.step_id), output)]


def _of_judgements(event: e.Event, view: RunView) -> list[str]:
    match event:
        case e.ProfileInferred(profile=profile, depth=depth):
            size = (
                f"depth {profile.reasoning_depth} of 5, "
                f"{profile.output_breadth}, {depth.reasoning_mode} reasoning"
            )
            found = "the default one, the task could not be profiled" if event.fallback else size
            return [f"profile  {found}  TTL {depth.allocated_ttl}"]
        case e.ProfileUpdated(transition=change):
            versions = f"version {change.from_version} -> {change.to_version}"
            ttl = f"TTL {change.ttl_before} -> {change.ttl_after}"
            return [
                _join(change.pass_number, "profile", versions, ttl, one_line(change.reason, 200))
            ]
        case e.Assessed(assessment=assessment):
            codes = ", ".join(assessment.reason_codes)
            verdict = "converged" if assessment.converged else f"not converged: {codes}"
            return [_join(event.pass_number, "convergence", _scores(assessment, view), verdict)]
        case e.Validated(report=report):
            what = _REVIEWS.get(report.artifact_type, report.artifact_type)
            return [_join(event.pass_number, f"review of {what}", _count_issues(report.issues))]
        case e.Refined(refinement=record):
            questions = [
                _join(event.pass_number, "question", one)
                for one in open_questions(record.questions)
            ]
            return [_join(event.pass_number, "refinement", _refinement(record)), *questions]
    return _of_answers(event, view)


def _of_answers(event: e.Event, view: RunView) -> list[str]:
    match event:
        case e.ChecksDone():
            return [_describe_checks(event)]
        case e.AnswerCompared():
            return [_describe_comparison(event, view)]
    return []


def _describe_checks(event: e.ChecksDone) -> str:
    failed = [_describe_failed(check) for check in event.checks if not check.passed]
    return _join(event.pass_number, "checks", f"{count_passed(event.checks)} passed", *failed)


def _describe_comparison(event: e.AnswerCompared, view: RunView) -> str:
    # In a mode without assessments the later answer is that of the run whose baseline this is.
    names = ("the changed answer", "the one before")
    if view.thresholds is None:
        names = ("the answer of the run", "the direct one")
    compared = f" {_COMPARED[event.comparison.outcome]} ".join(names)
    return _join(event.pass_number, "comparison", compared)


def _describe_failed(check: CheckOutcome) -> str:
    name = one_line(check.name)
    optional = "" if check.required else " (not required)"
    return f"{name}{optional}: {one_line(check.feedback, 200)}".rstrip(": ")


def _scores(assessment: ConvergenceAssessment, view: RunView) -> str:
    return "  ".join(
        f"{name} {round_down(score):.2f}{_remark_on(assessment, name, view)}"
        for name, score in read_scores(assessment).items()
    )


def _remark_on(assessment: ConvergenceAssessment, name: str, view: RunView) -> str:
    least = ""
    if view.thresholds:
        least = f"threshold {format_threshold(getattr(view.thresholds, name))}"
    remarks = "; ".join(filter(None, (least, describe_repeats(assessment, name))))
    return remarks and f" ({remarks})"


def _refinement(record: RefinementRecord) -> str:
    if not record.model_asked:
        return "nothing to change: one step, and no issue with it"
    changes = [f"{action.action_type} {one_line(action.fragment)}" for action in record.accepted]
    counts = {
        "refused": len(record.refused),
        "declined with a reason": len(record.declined),
        "not answered": len(record.unanswered),
    }
    return "; ".join(
        (list_names(changes) or "no change", *(f"{n} {what}" for what, n in counts.items() if n))
    )


def _of_incidents(event: e.Event) -> list[str]:
    match event:
        case e.AdvisoryRaised(advisory=one):
            label = "warning" if one.kind in ("unknown_tool", "memory_failure") else "advisory"
            return [
                _join(one.pass_number, label, _target(one.kind, one.step_id), one_line(one.message))
            ]
        case e.RepairFinished(record=one):
            after = f"{one.outcome} after {count_noun(one.attempts, 'attempt')}"
            return [_join(one.pass_number, "repair", _target(one.call, one.step_id), after)]
        case e.RetryScheduled():
            label = "retry"
            what = f"{one_line(event.error, 200)}, again in {event.seconds:.1f}s"
        case e.FallbackUsed():
            label = "fallback"
            what = (
                f"{event.endpoint} answers instead of {event.failed} ({one_line(event.error, 200)})"
            )
        case e.CallFailed():
            label = "call failed"
            what = f"{event.error}: {one_line(event.message, 200)}"
        case _:
            return []
    return [_join(event.site.pass_number, label, _target(event.call, event.site.step_id), what)]


def read_partly(text: str) -> str:
    """Return the output of a step so far: from its JSON, or a text that is not JSON unchanged."""
    start = text.find("{")
    if start < 0:
        return text
    try:
        # The JSON may stand in a fence of Markdown.
        answer = from_json(text[start:].rstrip("` \n"), allow_partial="trailing-strings")
    except ValueError:
        return ""
    output = answer.get("step_output", "")
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)


def describe_stop(view: RunView, seconds: float) -> list[str]:
    """Return the lines for a run that was asked to stop: its work under way, how long that may
    take, and the effect of a second Ctrl-C."""
    running = [
        f"step {one_line(one.step.step_id)}"
        for one in view.steps.values()
        if one.step.state == "running"
    ]
    waits = [*running, *(one.call for one in view.in_flight.values() if one.call != "step")]
    within = (
        f" Work that is under way has {seconds:.0f} s to end: {list_names(waits)}." if waits else ""
    )
    return [
        f"Stopping: nothing new is started.{within}",
        "Ctrl-C again ends at once, without waiting.",
    ]


def _number(step: PlanStep) -> str:
    return f"{step.step_index}/{step.total_steps} {one_line(step.step_id)}"


def _target(call: str, step_id: str | None) -> str:
    return f"{call} {one_line(step_id)}" if step_id else call
