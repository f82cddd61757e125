"""The phrases that lines and picture share: notices, decisions, notes, questions. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from textwrap import wrap

from aeon.cli.progress.view import SCORES, RunView, StepView
from aeon.cli.terminal.text import count_noun, format_clock, list_names, one_line, round_down
from aeon.domain import events as e
from aeon.domain.assessment import ConvergenceScores, ConvergenceThresholds
from aeon.domain.plan import FollowUpQuestion
from aeon.domain.refinement import RefinementRecord
from aeon.domain.report import SEVERITIES
from aeon.store.cassette import Provenance

SIMULATED = (
    "SIMULATED: no model is called. Every plan, score and answer is made up.",
    "For a model: provider=openai, with OPENAI_API_KEY or OPENAI_BASE_URL set.",
)
MOST_ROWS = 20
_BANNER_WIDTH = 78


def banner(synthetic: bool, recording: Provenance | None = None) -> list[str]:
    """The lines before all others of a run that calls no model; none for another."""
    body = [line for notice in notices(synthetic, recording) for line in wrap(notice, _BANNER_WIDTH)]
    rule = "=" * max(map(len, body), default=0)
    return [rule, *body, rule] if body else []


def notices(synthetic: bool, recording: Provenance | None) -> list[str]:
    """The sentences of a banner, the most important first: that the run is a recording, that it is simulated."""
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
    """Where a run stood that an error has ended."""
    after = "" if view.recording else f" after {format_clock(view.elapsed)}"
    return f"Ended in {view.phase or 'preparation'}{after}"


def decisions(view: RunView) -> list[str]:
    """The latest review, assessment and refinement, as far as there are any."""
    validated, assessed, refined = view.validated, view.assessed, view.refined
    return [
        *([f"pass {validated.pass_number}  {validation(validated)}"] if validated else []),
        *([f"pass {assessed.pass_number}  {verdict(assessed)}"] if assessed else []),
        *([f"pass {refined.pass_number}  refinement: {refinement(refined.refinement)}"] if refined else []),
    ]


def notes(view: RunView) -> list[str]:
    """How many tool calls, repairs, retries, advisories and questions there were."""
    numbers = {
        "tool call": view.tool_calls,
        "repair": view.repairs,
        "retry": view.retries,
        "advisory": len(view.advisories),
        "question": len({one.question for one in view.questions}),
    }
    return [count_noun(number, noun) for noun, number in numbers.items() if number]


def step_rows(view: RunView) -> list[tuple[str, str]]:
    """The steps, each with how it was carried out and the beginning of its output, as names and texts."""
    views = list(view.steps.values())
    rows = [(one_line(one.step.step_id, 24), _step_row(one, view)) for one in views[:MOST_ROWS]]
    return [*rows, *([("...", f"and {len(views) - MOST_ROWS} more, in history.json")] if views[MOST_ROWS:] else [])]


def _step_row(one: StepView, view: RunView) -> str:
    # A recording need not come from a model: its banner names who answered.
    way = "" if view.recording and one.way == "model" else f"  ({one.way})"
    step = one.step
    output = step.errors[-1] if step.status == "failed" and step.errors else step.step_output
    return f"{one.state}{way}  {excerpt(output, 100)}".rstrip()


def excerpt(text: str | None, limit: int) -> str:
    """The beginning of a text that may be long, on one line."""
    return one_line((text or "")[: limit * 8], limit)


def validation(event: e.Validated) -> str:
    """The artefact of a review, and the number of its issues by severity."""
    issues = event.report.issues
    severities = Counter(issue.severity for issue in issues)
    each = ", ".join(f"{severities[one]} {one}" for one in reversed(SEVERITIES) if severities[one])
    found = f"{count_noun(len(issues), 'issue')} ({each})" if issues else "no issues"
    return f"validation of {event.report.artifact_type.replace('_', ' ')}  {found}"


def verdict(event: e.Assessed) -> str:
    """Whether an assessment let the run converge, or why not."""
    assessment = event.assessment
    return "converged" if assessment.converged else f"not converged: {', '.join(assessment.reason_codes)}"


def refinement(record: RefinementRecord) -> str:
    """The accepted actions of a refinement, and how many issues and actions were left."""
    if not record.model_asked:
        return "nothing to change: one step, and no issue with it"
    changes = [f"{action.action_type} {one_line(action.fragment)}" for action in record.accepted]
    counts = {
        "refused": len(record.refused),
        "declined with a reason": len(record.declined),
        "not answered": len(record.unanswered),
    }
    rest = (f"{count} {what}" for what, count in counts.items() if count)
    return "; ".join((list_names(changes) or "no change", *rest))


def format_scores(scores: ConvergenceScores, thresholds: ConvergenceThresholds | None) -> str:
    """The scores, each with its threshold where there is one."""
    given = {name: scores[f"{name}_score"] for name in SCORES}
    bars = {name: f" of {getattr(thresholds, name):.2f}" if thresholds else "" for name in SCORES}
    return "  ".join(
        f"{name} {round_down(score):.2f}{bars[name]}" for name, score in given.items() if score is not None
    )


def remarks(view: RunView) -> list[tuple[str, str]]:
    """The notes and the first advisories of a run, as names and texts."""
    rows = [("notes", ", ".join(notes(view)))] if notes(view) else []
    rows += [("advisory", one_line(text, 200)) for text in view.advisories[:MOST_ROWS]]
    more = len(view.advisories) - MOST_ROWS
    return [*rows, *([("advisory", f"and {more} more, in result.json")] if more > 0 else [])]


def stopping(view: RunView, seconds: float) -> list[str]:
    """The lines for a run that was asked to stop: what it waits for, how long, and what a second Ctrl-C does."""
    running = [f"step {one_line(one.step.step_id)}" for one in view.steps.values() if one.state == "running"]
    waits = [*running, *(call for call in view.in_flight.values() if call != "step")]
    within = f" Work that is under way has {seconds:.0f} s to end: {list_names(waits)}." if waits else ""
    return [f"Stopping: nothing new is started.{within}", "Ctrl-C again ends at once, and waits for nothing."]


def open_questions(questions: Iterable[FollowUpQuestion]) -> list[str]:
    """The questions without an answer, each once, with the assumption made meanwhile."""
    texts = (
        f"{one.question.rstrip()} (assumed: {one.assumption.strip().rstrip('.')})"
        for one in questions
        if one.answer is None
    )
    return [one_line(text, 400) for text in dict.fromkeys(texts)]
