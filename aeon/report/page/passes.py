"""A run's passes on its page: each plan drawn, the changes of each refinement, and the outcome of
each issue."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from html import escape

from markupsafe import Markup

from aeon.domain.assessment import ConvergenceAssessment
from aeon.domain.history import ExecutionHistory, ExecutionPass
from aeon.domain.plan import PlanStep
from aeon.domain.refinement import RefinementAction, RefinementRecord, StepChange
from aeon.domain.report import ValidationIssue
from aeon.report.items import Item
from aeon.report.page.graph import draw_plan
from aeon.report.page.rounds import StepRounds, view_rounds
from aeon.report.patterns import COMPARED
from aeon.report.scores import describe_repeats, steps_carried_out
from aeon.report.words import shorten

_LONGEST = 2_000
"""Characters of a text of a model outside the list of calls, which has all of it."""
_MOST_WORDS = 400
_ORDINARY = ("pending", "complete", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of a refinement, accepted or refused (`refusal` gives the reason). `answers` are
    the issues that it answers, with their severity, `differences` the changed fields of each step,
    with removed and added text."""

    kind: str
    target: str
    reason: str
    refusal: str = ""
    answers: tuple[tuple[str, str], ...] = ()
    differences: tuple[tuple[str, str, Markup], ...] = ()


@dataclass(frozen=True, slots=True)
class Fate:
    """An issue of a review, and its outcome."""

    number: int
    issue: ValidationIssue
    outcome: str
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassView:
    """A pass: its steps, assessment and changes. `links` has the anchor of a step's request,
    `rounds` those of steps that called tools; `changed` has the steps that the previous refinement
    changed."""

    number: int
    record: ExecutionPass
    steps: tuple[PlanStep, ...]
    links: Mapping[str, str]
    changed: frozenset[str]
    changes: tuple[Change, ...]
    assessment: ConvergenceAssessment | None
    assessed_by: str | None
    rounds: Mapping[str, StepRounds]
    seconds: float

    @property
    def drawing(self) -> Markup:
        """The pass's plan, drawn each time: those of a long run are large together."""
        return draw_plan(self.steps, self.links, self.changed)

    def remark_on(self, name: str) -> str:
        """Return how far the judgements of a score went apart, in brackets; empty for a single
        one."""
        repeats = describe_repeats(self.assessment, name)
        return repeats and f" ({repeats})"


def view_passes(history: ExecutionHistory, items: Sequence[Item]) -> list[PassView]:
    """Return every pass of a run; `items` are its requests and tool calls."""
    by_pass: defaultdict[int, list[Item]] = defaultdict(list)
    for item in items:
        by_pass[item.pass_number].append(item)
    views = []
    changed: frozenset[str] = frozenset()
    for record in history.passes:
        views.append(_view_pass(record, by_pass[record.pass_number], changed))
        made = record.refinement.changes if record.refinement else ()
        changed = frozenset(change.step_id for change in made if change.after is not None)
    return views


def _view_pass(record: ExecutionPass, items: Sequence[Item], changed: frozenset[str]) -> PassView:
    judged = [item.key for item in items if item.kind == "convergence"]
    return PassView(
        number=record.pass_number,
        record=record,
        steps=tuple(steps_carried_out(record)),
        links={item.step_id: item.key for item in items if item.step_id},
        changed=changed,
        changes=tuple(_changes(record)),
        assessment=record.evaluation_results.convergence,
        assessed_by=judged[-1] if judged else None,
        rounds=view_rounds(record.execution_results, items),
        seconds=record.timing_information.duration_seconds,
    )


def _changes(record: ExecutionPass) -> Iterator[Change]:
    refinement = record.refinement
    report = record.evaluation_results.validation_report
    if refinement is None:
        return
    issues = {issue.issue_id: issue for issue in report.issues} if report else {}
    left = {change.step_id: change for change in refinement.changes}
    for action in refinement.accepted:
        named = [left.pop(step) for step in _steps_about(action) if step in left]
        yield _change_of(action, issues, differences=tuple(_differences(named)))
    if left:
        differences = tuple(_differences(list(left.values())))
        yield Change(kind="FOLLOWS", target="", reason="", differences=differences)
    for refused in refinement.refused:
        yield _change_of(refused.action, issues, refusal=shorten(refused.reason))


def _steps_about(action: RefinementAction) -> list[str]:
    """The steps that an action names."""
    new = action.new_step.step_id if action.new_step else None
    return sorted({name for name in (action.target_step_id, action.fragment, new) if name})


def _change_of(
    action: RefinementAction,
    issues: Mapping[str, ValidationIssue],
    *,
    refusal: str = "",
    differences: tuple[tuple[str, str, Markup], ...] = (),
) -> Change:
    return Change(
        kind=action.action_type,
        target=action.fragment,
        reason=shorten(action.justification),
        refusal=refusal,
        answers=tuple(
            (name, issues[name].severity if name in issues else "")
            for name in sorted(action.answers)
        ),
        differences=differences,
    )


def _differences(changes: Sequence[StepChange]) -> Iterator[tuple[str, str, Markup]]:
    replaced = {change.after.replaced_by: change.before for change in changes if change.after}
    for change in changes:
        earlier = change.before or replaced.get(change.step_id)
        for name in COMPARED:
            before, after = (_show_field(step, name) for step in (earlier, change.after))
            if before != after:
                yield change.step_id, name, compare_words(before, after)


def _show_field(step: PlanStep | None, name: str) -> str:
    """Return a field of a step as text; empty for a status without meaning for the plan."""
    value = getattr(step, name) if step else None
    if isinstance(value, tuple):
        return ", ".join(value)
    if value is None or (name == "status" and value in _ORDINARY):
        return ""
    return str(value)


def compare_words(before: str, after: str) -> Markup:
    """Return the text after a change, with removed words as `<del>` and added ones as `<ins>`."""
    old = shorten(before).split()
    new = shorten(after).split()
    if not old or not new or len(old) + len(new) > 2 * _MOST_WORDS:
        return Markup(f"{_mark('del', old)} {_mark('ins', new)}".strip())
    parts = []
    for kind, old_from, old_to, new_from, new_to in SequenceMatcher(
        a=old, b=new, autojunk=False
    ).get_opcodes():
        if kind == "equal":
            parts.append(escape(" ".join(old[old_from:old_to])))
        else:
            parts += [_mark("del", old[old_from:old_to]), _mark("ins", new[new_from:new_to])]
    return Markup(" ".join(filter(None, parts)))


def _mark(tag: str, words: Sequence[str]) -> str:
    return f"<{tag}>{escape(' '.join(words))}</{tag}>" if words else ""


def find_fates(history: ExecutionHistory) -> list[Fate]:
    """Return every issue of every review, gravest last assessed first, with the response of the
    following refinement."""
    return [
        Fate(record.pass_number, issue, *_describe_fate(issue.issue_id, record.refinement))
        for record in history.passes
        if (report := record.evaluation_results.validation_report) is not None
        for issue in report.issues
    ]


def _describe_fate(issue: str, refinement: RefinementRecord | None) -> tuple[str, str]:
    """Return the outcome of an issue, and the planner's words on it."""
    if refinement is None:
        return "no refinement followed", ""
    for action in refinement.accepted:
        if issue in action.answers:
            return "answered", f"{action.action_type} {action.fragment}"
    for refused in refinement.refused:
        if issue in refused.action.answers:
            return "change refused", shorten(refused.reason, 400)
    for declined in refinement.declined:
        if issue == declined.issue_id:
            return "declined", shorten(declined.reason, 400)
    for action in refinement.accepted:
        if issue in action.overrides_issues:
            return "overridden", f"{action.action_type} {action.fragment}"
    return "not answered", ""
