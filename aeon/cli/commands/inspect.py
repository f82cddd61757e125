"""`aeon inspect RUN`: rebuilds the page of a run from its directory; `output=json` or
`output=text`: the findings about it; `output=cycles`: its LLM cycles, each with the whole plan it
saw."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from aeon.cli.terminal.output import open_page
from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.streams import put, warn
from aeon.domain.errors import ArtefactError, ConfigError
from aeon.domain.history import ExecutionHistory
from aeon.files.jsonl import read_lines
from aeon.files.secret_forms import find_masked_names, mask_variables
from aeon.observability.cycle_log import with_whole_plans
from aeon.report.bought import describe_bought
from aeon.report.diagnosis.finding import Finding
from aeon.report.diagnosis.next_commands import list_next_commands
from aeon.report.diagnosis.ranking import diagnose
from aeon.report.ending import describe_spent, headline, is_replay
from aeon.report.items import Item, find_critical, list_items
from aeon.report.page.baseline import view_baseline
from aeon.report.page.build import write_report
from aeon.report.page.passes import view_passes
from aeon.report.patterns import find_patterns
from aeon.report.record import Record, load_record
from aeon.report.scores import describe_repeats, read_scores
from aeon.report.words import escape_controls, one_line, relative_to_here, round_down

_MOST_ROUNDS = 100
_FACTS = {
    "run_id",
    "task",
    "synthetic",
    "converged",
    "termination_reason",
    "error",
    "scores",
    "assessed_pass",
    "checks",
    "bought",
    "open_issues",
    "baseline",
    "reason_codes",
    "explanation",
    "passes",
    "ttl",
    "usage",
    "timings",
}
"""The fields of a result about its end and its cost."""


def inspect(given: Namespace) -> int:
    """Write the page of a run and print its path, or print the findings about the run. Raises
    ConfigError for bad usage and a directory without a readable run, ArtefactError for a file that
    cannot be written."""
    try:
        if given.output == "cycles":
            put("\n".join(_write_cycles(given.run)))
            return DONE
        if given.output:
            put(_describe(load_record(given.run), as_json=given.output == "json"))
            return DONE
        path = make_page(given.run, given.page)
    except ArtefactError as error:
        raise ConfigError(error.message, hint=error.hint) from error
    put(str(relative_to_here(path.absolute())))
    if given.open:
        open_page(path)
    return DONE


def make_page(run: Path, to: Path | None = None) -> Path:
    """Write the page of a run, with the same values masked that the run masked; if a value is
    unknown, only the owner may read the page. Raises ArtefactError."""
    if unset := mask_variables(find_masked_names(run), os.environ):
        os.umask(0o077)
        warn(
            f"{', '.join(unset)} is not set: its value may be on the page, which only you can read"
        )
    return write_report(run, to=to)


def _write_cycles(run: Path) -> Iterator[str]:
    """Yield the lines of `cycles.jsonl` in the order of their numbers, each with its whole plan
    (FR-038)."""
    path = run / "cycles.jsonl"
    try:
        for line in with_whole_plans(read_lines(path)):
            yield json.dumps(line)
    except OSError as error:
        hint = "Name the directory of a run; observability.cycles=false writes no such file."
        raise ConfigError(f"{path} cannot be read: {error.strerror}", hint=hint) from error
    except (ValueError, LookupError, TypeError) as error:
        raise ConfigError(f"{path} holds no cycles of this version: {error}") from error


def _describe(record: Record, *, as_json: bool) -> str:
    """Describe the run: its key facts, the findings and, as JSON, all patterns."""
    result = record.result
    patterns = find_patterns(record)
    items = list_items(record)
    findings = diagnose(record, patterns, items, find_critical(items))
    ways = list_next_commands(record, patterns, findings)
    if as_json:
        facts = result.model_dump(mode="json", include=_FACTS)
        facts |= {"findings": [asdict(finding) for finding in findings], "next": ways}
        return json.dumps({**facts, "patterns": patterns.model_dump(mode="json")}, indent=2)
    lines = [one_line(result.task), f"{headline(result)} {describe_spent(result)}"]
    lines += filter(None, [describe_bought(result.bought)])
    lines += _describe_direct(record)
    lines += _describe_repeats(result.history)
    for finding in findings:
        lines += _describe_finding(finding)
    lines += _describe_rounds(record, items)
    lines += [f"{purpose}: {command}" for purpose, command in ways]
    return escape_controls("\n".join(lines))


def _describe_direct(record: Record) -> Iterator[str]:
    """Yield what the direct call took that the run was compared with, and the judge's words."""
    if direct := view_baseline(record, record.directory):
        yield f"One direct call: {direct.spent[0].lower()}{direct.spent[1:]}"
        for words in direct.report.explanations:
            yield f"  {one_line(words)}"
        if direct.page:
            yield f"  Its page: {relative_to_here(direct.page.absolute())}"


def _describe_repeats(history: ExecutionHistory) -> Iterator[str]:
    """Yield a line with the scores of each pass that was judged more than once."""
    for passed in history.passes:
        assessment = passed.evaluation_results.convergence
        if assessment and assessment.judgements > 1:
            scores = (
                f"{name} {round_down(score):.2f} ({describe_repeats(assessment, name)})"
                for name, score in read_scores(assessment).items()
            )
            yield f"pass {passed.pass_number}: {', '.join(scores)}"


def _describe_rounds(record: Record, items: Sequence[Item]) -> Iterator[str]:
    """Yield a line for each round in which a step called tools."""
    timed = not is_replay(record.result)
    lines = [
        f"step {one_line(step_id)}, pass {view.number}, {one.describe(timed=timed)}"
        for view in view_passes(record.result.history, items)
        for step_id, used in view.rounds.items()
        for one in used.rounds
    ]
    yield from lines[:_MOST_ROUNDS]
    if len(lines) > _MOST_ROUNDS:
        yield f"and {len(lines) - _MOST_ROUNDS} more rounds of tool calls, which the page shows"


def _describe_finding(finding: Finding) -> list[str]:
    texts = [text for text in (finding.evidence, finding.advice) if text]
    return [
        f"- {one_line(finding.title)}",
        *(f"  {one_line(text)}" for text in texts),
        *(f"  - {one_line(child.title)}" for child in finding.children),
    ]
