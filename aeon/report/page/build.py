"""A run as one page, `report.html`: how it ended and why, its scores, plans, calls and issues."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from aeon.domain.assessment import LOW_SCORE_CODES, SCORE_CODES, ConvergenceAssessment
from aeon.domain.checks import CheckOutcome
from aeon.domain.history import ExecutionHistory
from aeon.domain.report import SEVERITIES
from aeon.domain.result import RunResult
from aeon.domain.values import JsonObject
from aeon.observability.artefacts import replace_file
from aeon.report.bought import describe_bought
from aeon.report.diagnosis.finding import name_passes
from aeon.report.diagnosis.next_commands import (
    list_next_commands,
    list_typed_overrides,
    remember_next_commands,
)
from aeon.report.diagnosis.ranking import diagnose
from aeon.report.ending import REPORT, describe_samples, headline, is_replay, scores, tone
from aeon.report.given import list_changed_settings
from aeon.report.html import render_markdown, render_page, render_part
from aeon.report.items import Item, find_critical, list_items
from aeon.report.page.answers import (
    find_better_pass,
    find_final_pass,
    view_answers,
    view_first_and_last,
)
from aeon.report.page.baseline import view_baseline
from aeon.report.page.calls import TextTable, describe_items, pack
from aeon.report.page.charts import draw_scores, draw_timeline, find_floor
from aeon.report.page.commands import command_again, commands_of_calls
from aeon.report.page.files import list_files
from aeon.report.page.graph import sign_of
from aeon.report.page.passes import PassView, find_fates, view_passes
from aeon.report.page.why import explain_end
from aeon.report.partial import is_under_way
from aeon.report.patterns import Patterns, find_patterns
from aeon.report.record import Record, load_record
from aeon.report.scores import read_scores
from aeon.report.words import (
    CALLS,
    STATES,
    command_of,
    count_noun,
    format_threshold,
    format_took,
    program,
    round_down,
    shorten,
)

_HELPERS = {
    "sign_of": sign_of,
    "shorten": shorten,
    "count_noun": count_noun,
    "name_passes": name_passes,
    "describe_samples": describe_samples,
    "render_markdown": render_markdown,
    "took": format_took,
    "in_full": format_threshold,
}


def write_report(directory: Path, result: RunResult | None = None, to: Path | None = None) -> Path:
    """Write the page of a run's directory into it, or to the file `to`; `result` is the run's
    result, if at hand. Raises ArtefactError for a directory that cannot be read and a file that
    cannot be written."""
    path = to or directory / REPORT
    replace_file(
        path,
        draw_report(load_record(directory, result), path.parent),
        "--output FILE writes the page elsewhere.",
    )
    return path


def draw_report(record: Record, folder: Path | None = None) -> bytes:
    """Render the page of a run for a `folder`: by default the run's directory."""
    with record.hold_requests():
        return _draw(record, folder)


def _draw(record: Record, folder: Path | None) -> bytes:
    result = record.result
    texts = TextTable()
    items = list_items(record)
    patterns = find_patterns(record)
    critical = [] if is_replay(result) else find_critical(items)
    views = view_passes(result.history, items)
    calls = describe_items(items, critical, texts)
    helpers = {**_HELPERS, "is_replay": is_replay(result)}
    *earlier, last = views
    answers = view_answers(result)
    # Most lines of a pass are those of the pass before: in a long run each is written once.
    passes = [
        texts.add(render_part("pass", one=one, is_under_way=False, **helpers)) for one in earlier
    ]
    packed = {
        "calls": calls,
        "passes": passes,
        "answers": {one.number: one.text for one in answers},
        "labels": _make_labels(record, views, texts),
        "lines": texts.lines,
    }
    findings = diagnose(record, patterns, items, critical)
    commands = list_next_commands(record, patterns, findings)
    remember_next_commands(result, commands)
    return render_page(
        "report",
        {**_data(record, patterns, views), "packed": pack(packed)},
        **helpers,
        **_end(record, patterns),
        **_details(record, patterns),
        files=list_files(record, folder or record.directory),
        findings=findings,
        ways=commands,
        passes=views,
        last=render_part("pass", one=last, is_under_way=is_under_way(result), **helpers),
        answers=answers,
        bought=describe_bought(result.bought),
        first_and_last=view_first_and_last(result),
        direct=view_baseline(record, folder or record.directory),
        timeline=draw_timeline(items, critical, by_order=is_replay(result)) if items else None,
        waited=share_waited(critical, items),
        kinds=_list_kinds(items),
        seen={name: sorted({str(item[name]) for item in calls}) for name in ("pass", "kind")},
    )


def _list_kinds(items: list[Item]) -> dict[str, None]:
    """Return the kinds of the items, in their order, and `failed` where one failed."""
    return dict.fromkeys([*(one.kind for one in items), *("failed" for one in items if one.failed)])


def _data(record: Record, patterns: Patterns, views: list[PassView]) -> JsonObject:
    """Return the data that the page's script reads before anything is unpacked."""
    return {
        "run": record.result.run_id,
        "timed": not is_replay(record.result),
        "passes": _assessments(views),
        "thresholds": patterns.thresholds,
        "program": program(),
        "command": command_again(record),
        **commands_of_calls(record),
        "names": CALLS,
        "low": {name: low for name, (_, low) in SCORE_CODES.items()},
    }


def _details(record: Record, patterns: Patterns) -> JsonObject:
    named = dict.fromkeys(name for one in patterns.assessed for name in one.criteria)
    return {
        "charts": _charts(patterns),
        "fates": find_fates(record.result.history),
        "severities": SEVERITIES[::-1],
        "issue_counts": _count_issues(record.result),
        "patterns": patterns,
        "changed": list(list_changed_settings(record.result)),
        "inputs": _inputs(record),
        "models": _name_models(record.result),
        "facts": _provenance(record),
        "hashes": _hashes(record),
        "started": command_of(list_typed_overrides(record)) if record.overrides else "",
        "score_names": tuple(SCORE_CODES),
        "criteria_by_pass": {
            name: [one.criteria.get(name) for one in patterns.assessed] for name in named
        },
        "check_state": _describe_state,
        "checks_by_pass": _tabulate_checks(record.result.history),
        "states": STATES,
        "call_names": CALLS,
    }


def _name_own_time(result: RunResult) -> str:
    """Return the words beside seconds in a resumed run: its calls and tokens are those of the runs
    before too, which took their own time."""
    has_stored = result.parent is not None and result.parent.saved.model_calls
    return " of this run" if has_stored and not is_replay(result) else ""


def _end(record: Record, patterns: Patterns) -> JsonObject:
    result = record.result
    total = record.result.usage.total
    cost = "unknown" if total.cost is None else f"{total.cost:.4f}".rstrip("0").rstrip(".") or "0"
    of_run = _name_own_time(result)
    figures = {
        "passes": str(result.passes),
        "calls": f"{total.requests:,}",
        "tokens": f"{total.total_tokens:,}",
        "time" + of_run: "–" if is_replay(result) else format_took(result.timings.total_seconds),
        "cost": "–" if is_replay(result) else cost,
        "TTL": f"{result.ttl.used} of {result.ttl.allocated}",
    }
    bars = [(name, score, bar, round_down(score)) for name, score, bar in scores(result)]
    return {
        "result": result,
        "verdict": headline(result),
        "why": explain_end(result, patterns),
        "figures": figures,
        "bars": bars,
        "of_run": of_run,
        "criteria": result.history.final_convergence.criteria
        if result.history.final_convergence
        else (),
        "recording": Path(result.parent.path).name if result.parent else "a recording",
        "checks": result.checks,
        "answer": render_markdown(result.answer),
        "final_pass": find_final_pass(result),
        "better": find_better_pass(result, patterns),
        "tone": tone(result),
    }


class CheckTable(NamedTuple):
    """The result of each check in each pass; None where it did not run."""

    passes: tuple[int, ...]
    rows: dict[str, list[CheckOutcome | None]]


def _describe_state(check: CheckOutcome) -> str:
    failed = "failed" if check.measured else "not measured"
    state = "passed" if check.passed else failed
    return state if check.required else f"{state}, not required"


def _tabulate_checks(history: ExecutionHistory) -> CheckTable:
    """Return the passes that were checked, and by the name of each check its result in each of
    them."""
    checked = {
        record.pass_number: {one.name: one for one in record.evaluation_results.checks}
        for record in history.passes
        if record.evaluation_results.checks
    }
    names = dict.fromkeys(name for found in checked.values() for name in found)
    rows = {name: [found.get(name) for found in checked.values()] for name in names}
    return CheckTable(tuple(checked), rows)


def _make_labels(record: Record, views: list[PassView], texts: TextTable) -> JsonObject:
    """Return the content of a label for a judged answer (docs/calibrate.md): the task, its inputs,
    and the answer of each pass."""
    judged = [one for one in views if one.assessment is not None and one.assessment.evaluated]
    return {
        "task": texts.add(record.result.task),
        "inputs": {name: texts.add(text) for name, text in _inputs(record).items()},
        "answers": {one.number: texts.add(one.record.answer) for one in judged},
    }


def _assessments(passes: list[PassView]) -> list[JsonObject]:
    """Return the scores, criteria and issues behind each verdict, for the sliders and for the
    calibration of the judge."""
    found = []
    for one in passes:
        assessment = one.assessment
        if assessment is None or not assessment.evaluated:
            continue
        issues = assessment.metadata.get("issues") or ()
        found.append(
            {
                "pass": one.number,
                "call": one.assessed_by,
                "scores": read_scores(assessment),
                "criteria": [[criterion.name, criterion.met] for criterion in assessment.criteria],
                "blocking": [issue["kind"] for issue in issues if issue["blocking"]],
                "converged": assessment.converged,
                "codes": assessment.reason_codes,
                "otherwise": _codes_without_scores(assessment),
            }
        )
    return found


def _codes_without_scores(assessment: ConvergenceAssessment) -> list[str]:
    """Return what failed independently of the thresholds: criteria and blocking issues."""
    return [
        code
        for code in assessment.reason_codes
        if not assessment.converged and code not in LOW_SCORE_CODES
    ]


def _count_issues(result: RunResult) -> dict[str, int]:
    """Count the issues that the reviews found, by severity, gravest first, then by type."""
    found = [
        issue
        for record in result.history.passes
        if (report := record.evaluation_results.validation_report) is not None
        for issue in report.issues
    ]
    severities = Counter(issue.severity for issue in found)
    types = Counter(issue.type for issue in found)
    return {
        **{name: severities[name] for name in SEVERITIES[::-1] if severities[name]},
        **dict(types.most_common()),
    }


def _charts(patterns: Patterns) -> list[tuple[str, float, Any]]:
    by_name = {
        name: [one for one in patterns.assessed if name in one.scores]
        for name in patterns.thresholds
    }
    given = [one.scores[name] for name, passes in by_name.items() for one in passes]
    floor = find_floor([*given, *patterns.thresholds.values()])
    return [
        (name, bar, draw_scores(name, by_name[name], bar, floor))
        for name, bar in patterns.thresholds.items()
        if by_name[name]
    ]


def share_waited(critical: list[Item], items: list[Item]) -> list[tuple[str, float]]:
    """Return the seconds on the critical path by kind of call, most first; waits for a retry, which
    a call spans, apart."""
    spent: defaultdict[str, float] = defaultdict(float)
    for item in critical:
        spent[item.kind] += item.end - item.start
        for wait in () if item.kind == "wait" else items:
            if (
                wait.kind == "wait"
                and wait.step_id == item.step_id
                and item.start <= wait.start < wait.end <= item.end
            ):
                spent[wait.label.partition(":")[0]] += wait.end - wait.start
                spent[item.kind] -= wait.end - wait.start
    return sorted(spent.items(), key=lambda one: -one[1])


def _name_models(result: RunResult) -> list[tuple[str, str]]:
    """Return each model that answered, with its roles."""
    roles: defaultdict[str, list[str]] = defaultdict(list)
    for role, models in result.provider.models.items():
        for model in models:
            roles[model].append("judge" if role == "grader" else role)
    return [(model, ", ".join(names)) for model, names in roles.items()]


def _inputs(record: Record) -> dict[str, str]:
    inputs = record.origin.get("inputs")
    return (
        {str(name): str(text) for name, text in inputs.items()} if isinstance(inputs, dict) else {}
    )


def _provenance(record: Record) -> list[tuple[str, str]]:
    result = record.result
    facts = {
        "run": result.run_id,
        "directory": str(record.directory.absolute()),
        "from, to": f"{result.timings.start_time[:19]}, {result.timings.end_time[:19]} UTC",
        "provider": result.provider.kind,
        "address": result.provider.model_dump(mode="json")["base_url"] or "",
        "endpoints": ", ".join(
            f"{name}: {number}" for name, number in result.provider.endpoints.items()
        ),
        "answered from": result.parent.path if result.parent else "",
        "saved": count_noun(result.parent.saved.model_calls, "call") if result.parent else "",
        "unpriced": ", ".join(result.usage.unpriced),
        "findings": " ".join(result.provider.findings),
        "components of your own": "; ".join(_own_components(result)),
    }
    return [(name, text) for name, text in facts.items() if text]


def _own_components(result: RunResult) -> Iterator[str]:
    for name, own in (result.configuration.get("components") or {}).items():
        if own is not None:
            yield f"{name}: {own if isinstance(own, str) else json.dumps(own, ensure_ascii=False)}"


def _hashes(record: Record) -> dict[str, str]:
    """Return the versions of the programs, and the hashes of the inputs, prompts and schemas."""
    result = record.result
    given = result.hashes.model_dump(exclude={"inputs"})
    return {
        **result.versions,
        **{f"hash of {name}": value for name, value in given.items()},
        **{f"hash of input {name}": value for name, value in result.hashes.inputs.items()},
    }
