"""The detectors of a run in one table, and their findings ranked: causes first, each with its
consequences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from aeon.domain.result import RunResult
from aeon.report.diagnosis import costs, judging, work
from aeon.report.diagnosis.finding import RANKS, UNCONVERGED, Evidence, Find, Finding, Remedy
from aeon.report.ending import SMALL_GAP
from aeon.report.items import Item
from aeon.report.patterns import Patterns
from aeon.report.record import Record
from aeon.report.scores import SCORE_OF, Blocker
from aeon.report.words import round_down

_MOST = 8


@dataclass(frozen=True, slots=True)
class Detector:
    """A detector by its name, and the detectors whose findings, if there are any, explain its own.
    A finding that `repeats_headline` of the page stands below another one only with evidence or
    advice."""

    name: str
    find: Find
    follows: frozenset[str] = frozenset()
    repeats_headline: bool = False


_BROKEN = frozenset({"broken schema"})
_GIVEN = frozenset({"failure", "blank input"})
_LOST = _BROKEN | {"failure", "missing assessment"}
_STEPS = _GIVEN | {"blocked step", "failed step", "missing tool"}
_CAUSES = _STEPS | {
    "broken schema",
    "missing assessment",
    "noise",
    "undone work",
    "contradiction",
    "repeated issue",
    "eaten budget",
    "failed check",
    "unmet criterion",
    "blocking issue",
    "refused change",
}
DETECTORS: tuple[Detector, ...] = (
    Detector("broken schema", costs.find_broken_schemas),
    Detector("failure", work.find_failure, _BROKEN),
    Detector("open question", work.find_open_questions),
    Detector("blank input", work.find_blank_inputs),
    Detector("blocked step", work.find_blocked_steps, _GIVEN | {"missing tool"}),
    Detector("failed step", work.find_failed_steps, _GIVEN | _BROKEN),
    Detector("missing tool", work.find_missing_tools),
    Detector("server down", work.find_servers_down, frozenset({"missing tool"})),
    Detector("lost review", work.find_lost_reviews, _LOST),
    Detector("missing assessment", judging.find_missing_assessments, _BROKEN | {"failure"}),
    Detector("noise", judging.find_noise),
    Detector("undone work", work.find_undone_work, _BROKEN | {"noise"}),
    Detector("contradiction", judging.find_contradictions),
    Detector("repeated issue", work.find_repeated_issues, _BROKEN),
    Detector("eaten budget", costs.find_eaten_budget, frozenset({"limit"})),
    Detector("failed check", judging.find_failed_checks, _STEPS),
    Detector("unmet criterion", judging.find_unmet_criteria, _STEPS),
    Detector("blocking issue", judging.find_blocking_issues, _STEPS),
    Detector("refused change", work.find_refused_changes, _STEPS),
    Detector("limit", costs.find_limit, _CAUSES | {"low score", "fall"}, repeats_headline=True),
    Detector("left to a person", work.find_left_to_a_person, _CAUSES | {"low score", "limit"}),
    Detector(
        "low score", judging.find_low_scores, _CAUSES | {"limit", "fall"}, repeats_headline=True
    ),
    Detector("stall", work.find_stall, _CAUSES | {"low score", "fall"}, repeats_headline=True),
    Detector("unreached step", work.find_unreached_steps, _CAUSES | {"limit", "low score"}),
    Detector("denied score", judging.find_denied_scores),
    Detector("fallback endpoint", costs.find_fallback_endpoints),
    Detector("waits", costs.find_waits),
    Detector("repairs", costs.find_repairs),
    Detector("slow request", costs.find_slow_item, frozenset({"waits", "eaten budget"})),
    Detector("pass without gain", costs.find_passes_without_gain, _CAUSES | {"low score", "fall"}),
    Detector("set back", costs.find_set_back_passes, _CAUSES | {"low score", "fall"}),
    Detector("fall", judging.find_falls, _CAUSES),
    Detector(
        "large share", costs.find_large_shares, frozenset({"eaten budget", "waits", "slow request"})
    ),
    Detector("default profile", work.find_default_profile),
)


def diagnose(
    record: Record, patterns: Patterns, items: Sequence[Item], critical: Sequence[Item]
) -> list[Finding]:
    """Return the findings of a run, the gravest first, at most eight; consequences of a cause are
    among its children."""
    evidence = Evidence(record=record, patterns=patterns, items=items, critical=critical)
    found = [(each, finding) for each in DETECTORS for finding in each.find(evidence)]
    return rank(found)[:_MOST]


def list_remedies(record: Record, patterns: Patterns, findings: Sequence[Finding]) -> list[Remedy]:
    """Return the remedies in the order of the findings, and last the thresholds that would accept a
    near miss. Mending a finding mends its consequences, and in a run with a cause no remedy is
    offered for doubts and costs: the cause comes first."""
    has_cause = any(finding.rank == "cause" for finding in findings)
    remedies: list[Remedy] = []
    for finding in findings:
        if has_cause and finding.rank != "cause":
            continue
        remedies += finding.remedies or [
            remedy for child in finding.children for remedy in child.remedies
        ]
    return [*remedies, *_accept_answer(record, patterns)]


def is_sound(record: Record, findings: Sequence[Finding]) -> bool:
    """Check whether a run converged, and nothing makes its answer less certain."""
    return record.result.converged and all(finding.rank == "cost" for finding in findings)


def _accept_answer(record: Record, patterns: Patterns) -> Iterator[Remedy]:
    """Return thresholds that the scores reach, where nothing else is missing, the gaps are small,
    and no earlier pass with another answer reaches them: the resumed run would end with it."""
    result = record.result
    if result.exit_status != UNCONVERGED or not _is_done(result):
        return
    lower = _lower_thresholds([blocker for blocker in patterns.blockers if blocker.at_end])
    earlier = _find_earlier_reaching(patterns, lower)
    if lower and (earlier is None or result.history.passes[earlier].answer == result.answer):
        overrides = tuple(f"convergence.{name}={score:g}" for name, score in lower.items())
        yield Remedy("To accept the answer as it is", overrides)


def _lower_thresholds(still_open: Sequence[Blocker]) -> dict[str, float]:
    """Return the thresholds that the scores reach; none where one is too far below, or another
    blocker remains."""
    reached = {str(blocker.score): _reach_threshold(blocker) for blocker in still_open}
    lower = {name: score for name, score in reached.items() if score is not None}
    return lower if len(lower) == len(still_open) else {}


def _find_earlier_reaching(patterns: Patterns, lower: Mapping[str, float]) -> int | None:
    """Return the first pass before the last that would have converged with these lower
    thresholds."""
    for one in patterns.assessed[:-1]:
        is_reached = all(one.scores.get(name, 0.0) >= score for name, score in lower.items())
        if is_reached and {SCORE_OF.get(code) for code in one.missed} <= lower.keys():
            return one.pass_number
    return None


def _is_done(result: RunResult) -> bool:
    steps = result.history.passes[-1].steps if result.history.passes else ()
    return all(step.is_done or step.replaced_by is not None for step in steps)


def _reach_threshold(blocker: Blocker) -> float | None:
    """Return the threshold that the score reaches; None for a blocker that is not a score or too
    far below."""
    if blocker.kind != "score" or blocker.last is None or blocker.threshold is None:
        return None
    reached = round_down(blocker.last)
    is_close = round(blocker.threshold - reached, 6) <= SMALL_GAP
    return reached if is_close else None


def rank(found: Sequence[tuple[Detector, Finding]]) -> list[Finding]:
    """Return findings by rank and weight, each under the first one before it that explains it."""
    ordered = sorted(found, key=lambda one: (RANKS.index(one[1].rank), -one[1].weight))
    roots: list[tuple[str, Finding]] = []
    for detector, finding in ordered:
        parent = _find_parent(roots, detector)
        if parent is None:
            roots.append((detector.name, finding))
            continue
        if detector.repeats_headline and not finding.evidence and not finding.advice:
            continue
        name, cause = roots[parent]
        roots[parent] = (name, replace(cause, children=(*cause.children, finding)))
    return [finding for _, finding in roots]


def _find_parent(roots: Sequence[tuple[str, Finding]], detector: Detector) -> int | None:
    places = (place for place, (name, _) in enumerate(roots) if name in detector.follows)
    return next(places, None)
