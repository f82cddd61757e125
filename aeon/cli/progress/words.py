"""The words that lines and picture share: who answers, what was decided, what happened beside. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from textwrap import wrap

from aeon.cli.progress.view import SCORES, RunView, StepView
from aeon.cli.terminal.text import clock, counted, one_line, rounded_down
from aeon.domain import events as e
from aeon.domain.assessment import ConvergenceScores, ConvergenceThresholds
from aeon.domain.plan import FollowUpQuestion, PlanStep
from aeon.domain.refinement import RefinementRecord
from aeon.domain.report import SEVERITIES
from aeon.store.cassette import Provenance

SIMULATED = (
    "SIMULATED: no model is called. Every plan, score and answer is made up.",
    "For a model: provider=openai, with OPENAI_API_KEY or OPENAI_BASE_URL set.",
)
_LISTED, _EXCERPT, _BANNER_WIDTH = 20, 800, 78


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


def cut_short(view: RunView) -> str:
    """Where a run stood that was not ended, but left by an error."""
    after = "" if view.recording else f" after {clock(view.elapsed)}"
    return f"Ended in {view.phase or 'preparation'}{after}"


def decisions(view: RunView) -> list[str]:
    """What the latest review found, the latest assessment came to and the latest refinement changed, as far as there
    are such."""
    validated, assessed, refined = view.validated, view.assessed, view.refined
    return [
        *([f"pass {validated.pass_number}  {validation(validated)}"] if validated else []),
        *([f"pass {assessed.pass_number}  {verdict(assessed)}"] if assessed else []),
        *([f"pass {refined.pass_number}  refinement: {refinement(refined.refinement)}"] if refined else []),
    ]


def notes(view: RunView) -> list[str]:
    """How much went on beside the steps: repairs, retries, advisories, questions."""
    numbers = {
        "tool call": view.tool_calls,
        "repair": view.repairs,
        "retry": view.retries,
        "advisory": len(view.advisories),
        "question": len({one.question for one in view.questions}),
    }
    return [counted(number, noun) for noun, number in numbers.items() if number]


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


def validation(event: e.Validated) -> str:
    """What a review found: how many issues of which severity."""
    return f"validation of {event.report.artifact_type.replace('_', ' ')}  {_issues(event)}"


def _issues(event: e.Validated) -> str:
    issues = event.report.issues
    by_severity = Counter(issue.severity for issue in issues)
    found = (severity for severity in reversed(SEVERITIES) if by_severity[severity])
    of_each = ", ".join(f"{by_severity[severity]} {severity}" for severity in found)
    return f"{counted(len(issues), 'issue')} ({of_each})" if issues else "no issues"


def verdict(event: e.Assessed) -> str:
    """Whether an assessment let the run converge, or why not."""
    assessment = event.assessment
    return "converged" if assessment.converged else f"not converged: {', '.join(assessment.reason_codes)}"


def refinement(record: RefinementRecord) -> str:
    """What a refinement changed."""
    if not record.model_asked:
        return "nothing to change: one step, and no issue with it"
    changes = [f"{action.action_type} {one_line(action.fragment)}" for action in record.accepted]
    said = listed(changes) if changes else "no change"
    counts = {
        "refused": len(record.refused),
        "declined with a reason": len(record.declined),
        "not answered": len(record.unanswered),
    }
    return "; ".join((said, *(f"{count} {what}" for what, count in counts.items() if count)))


def scored(scores: ConvergenceScores, thresholds: ConvergenceThresholds | None) -> str:
    """The scores, each with the threshold that it needs, where that is known."""
    given = ((name, scores[f"{name}_score"]) for name in SCORES)
    said = (
        f"{name} {rounded_down(score):.2f}{_needed(name, thresholds)}" for name, score in given if score is not None
    )
    return "  ".join(said)


def _needed(name: str, thresholds: ConvergenceThresholds | None) -> str:
    return f" of {getattr(thresholds, name):.2f}" if thresholds else ""


def remarks(view: RunView) -> list[tuple[str, str]]:
    """What went on beside the steps, as names and texts: how much, and the first advisories."""
    rows = [("notes", ", ".join(notes(view)))] if notes(view) else []
    shown = [("advisory", one_line(text, 200)) for text in view.advisories[:_LISTED]]
    more = len(view.advisories) - len(shown)
    return [*rows, *shown, *([("advisory", f"and {more} more, in result.json")] if more else [])]


def stopping(view: RunView, seconds: float) -> list[str]:
    """What is said once the run was asked to stop: what it waits for, how long, and what a second Ctrl-C does."""
    waits = under_way(view)
    within = f" Work that is under way has {seconds:.0f} s to end: {listed(waits)}." if waits else ""
    return [f"Stopping: nothing new is started.{within}", "Ctrl-C again ends at once, and waits for nothing."]


def under_way(view: RunView) -> list[str]:
    """The steps and the other calls that are being carried out."""
    running = [f"step {one_line(step.step.step_id)}" for step in view.steps.values() if step.state == "running"]
    return [*running, *(call for call in view.in_flight.values() if call != "step")]


def open_questions(questions: Iterable[FollowUpQuestion]) -> list[str]:
    """The questions without an answer, each once, with what is assumed meanwhile."""
    open_ones = (one for one in questions if one.answer is None)
    texts = (f"{one.question.rstrip()} (assumed: {one.assumption.strip().rstrip('.')})" for one in open_ones)
    return [one_line(text, 400) for text in dict.fromkeys(texts)]


def listed(names: tuple[str, ...] | list[str]) -> str:
    """The first eight names, and how many more there are."""
    shown = ", ".join(one_line(name) for name in names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown
