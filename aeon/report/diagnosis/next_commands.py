"""The commands to suggest after a run: one list for the card, the lines of a terminal, the page and
`aeon inspect`."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from aeon.domain.report import SEVERITIES, Severity, reaches
from aeon.domain.result import RunResult
from aeon.domain.values import show_address
from aeon.report.diagnosis.finding import Finding, Remedy
from aeon.report.diagnosis.ranking import diagnose, is_sound, list_remedies
from aeon.report.diagnosis.work import GO_ON
from aeon.report.ending import (
    Points,
    ask_for_more,
    asks_again,
    is_replay,
    is_resumable,
    is_under_way,
    list_ways_to_answer,
    open_questions,
    raise_limits,
)
from aeon.report.items import find_critical, list_items
from aeon.report.patterns import Patterns, find_patterns
from aeon.report.record import Record, load_record
from aeon.report.words import command_of, relative_to_here

_log = logging.getLogger(__name__)
_LONGEST_TASK = 400
_MOST = 5
_BLANK = '="..."'  # stays as it is: quotes tell that a text belongs there
_TEXTS = ("++convergence.criteria.", "++inputs.")
_LOST = ("review_lost", "comparison_lost")
_OPEN_ENDS = ("failed", "interrupted", "step_failed")
_latest: tuple[RunResult, Points] | None = None


def find_next_commands(result: RunResult, directory: Path) -> Points:
    """Return the commands to suggest, each with its purpose, for a run with its directory; none
    where its journals cannot be examined."""
    known = _latest
    if known is not None and known[0] is result:
        return known[1]
    try:
        record = load_record(directory, result)
        patterns = find_patterns(record)
        items = list_items(record)
        findings = diagnose(record, patterns, items, find_critical(items))
        return list_next_commands(record, patterns, findings)
    except Exception:  # the run is over: whatever fails here has not failed it
        _log.debug("no next commands", exc_info=True)
        return []


def remember_next_commands(result: RunResult, commands: Points) -> None:
    """Cache the commands of the run whose page was made last, so that `find_next_commands` need not
    read its journals."""
    global _latest
    _latest = (result, commands)


def list_next_commands(record: Record, patterns: Patterns, findings: Sequence[Finding]) -> Points:
    """Return the commands to suggest, each with its purpose, at most five: the one that mends the
    known faults, the remedies of the findings in their order, then those of the end alone, without
    repetition. After a recording, the task for the user's own model; after a sound run without
    remedies, a higher threshold."""
    result = record.result
    if is_replay(result):
        command = command_of([f"task={result.task}", *_list_besides_recording(record)])
        own = [("To run it with a model of your own", command)]
        return own if len(result.task) <= _LONGEST_TASK else []
    if is_under_way(result):
        return []
    if result.waits_for:
        return list_ways_to_answer(record.directory)
    remedies = list_remedies(record, patterns, findings)
    found: dict[str, str] = {}
    for remedy in (*_mend_faults(result), *remedies, *_list_ways_of_end(result, remedies)):
        if command := _command(record, remedy):
            found.setdefault(remedy.purpose, command)
    if not found and is_sound(record, findings):
        return ask_for_more(result, record.directory)
    return list(found.items())[:_MOST]


def _list_ways_of_end(result: RunResult, remedies: Sequence[Remedy]) -> Iterator[Remedy]:
    """Return the commands for an end whatever its cause."""
    raised = raise_limits(result)
    is_cut = "pending" in result.steps_left.values()
    if raised and (is_cut or raised[0].startswith("refinement.")):
        yield Remedy("To continue with higher limits", tuple(raised))
    if not result.exit_status and any(one.kind in _LOST for one in result.degraded):
        yield Remedy("To ask again for what was lost", ("store.retry_unusable=all",))
    is_silent = result.configuration["interaction"]["kind"] == "none"
    if is_silent and open_questions(result.follow_up_questions):
        yield Remedy("To answer the questions", (*raised, "interaction=ask"))
    is_open = result.termination_reason in _OPEN_ENDS or asks_again(result)
    if is_open and not remedies and is_resumable(result):
        yield GO_ON


def _mend_faults(result: RunResult) -> Iterator[Remedy]:
    """Return the remedy for the known faults of a converged answer, unless it has been tried."""
    severities = [issue.severity for issue in result.open_issues if issue.severity]
    if not result.converged or not severities:
        return
    gravest = min(max(severities, key=SEVERITIES.index), "HIGH", key=SEVERITIES.index)
    tried: Severity | None = result.configuration["convergence"].get("open_severity")
    if tried is None or not (reaches(gravest, tried) or _is_mended(result)):
        asked = (f"convergence.open_severity={gravest}", *_allow_passes(result))
        yield Remedy("To mend the known faults", asked)


def _allow_passes(result: RunResult) -> Iterator[str]:
    """Yield the override that leaves a pass to mend in, and one to spare, after the run's last."""
    most = result.configuration["limits"]["max_passes"]
    needed = result.history.overall_statistics.total_passes + 2
    if most is not None and most < needed:
        yield f"limits.max_passes={needed}"


def _is_mended(result: RunResult) -> bool:
    """Check whether passes followed a converged answer: faults are mended once in a run."""
    assessments = (one.evaluation_results.convergence for one in result.history.passes[:-1])
    return any(one is not None and one.converged for one in assessments)


def _command(record: Record, remedy: Remedy) -> str:
    """Return the command for a remedy: resuming the run where that is possible, else its own
    command line changed."""
    given, blanks = _part_blanks(remedy.overrides)
    if is_resumable(record.result) and not remedy.anew and not remedy.program:
        start = command_of((f"resume={relative_to_here(record.directory)}", *given))
        return " ".join((start, *blanks))
    if not record.overrides and not remedy.program:  # it was started in Python
        return f"run it again with {' '.join(remedy.overrides)}" if remedy.overrides else ""
    return " ".join((_start_anew(record, remedy, given), *blanks))


def _part_blanks(overrides: Sequence[str]) -> tuple[list[str], list[str]]:
    """Separate complete overrides from those that a person has to fill in first."""
    blanks = [text for text in overrides if text.endswith(_BLANK)]
    return [text for text in overrides if text not in blanks], blanks


def _start_anew(record: Record, remedy: Remedy, given: Sequence[str]) -> str:
    """Return the command line of the run, or of another program, with these overrides."""
    python = command_of(())
    command = command_of((*_list_unchanged(record, remedy), *given))
    return command.replace(python, f"{python} {remedy.program}".rstrip(), 1)


def _list_unchanged(record: Record, remedy: Remedy) -> list[str]:
    """Return the typed overrides of the run that stay the same."""
    changed = {text.partition("=")[0] for text in remedy.overrides}
    has_task = not remedy.program and "task" not in changed
    left_out = ("hydra.",) if has_task else ("hydra.", "task", "resume=")
    return [
        text
        for text in list_typed_overrides(record)
        if not text.startswith(left_out) and text.lstrip("+").partition("=")[0] not in changed
    ]


def _list_besides_recording(record: Record) -> list[str]:
    """Return the typed overrides of a replay that are not about its recording or how it is shown."""
    left_out = ("hydra.", "task", "resume=", "store", "progress")
    typed = list_typed_overrides(record)
    return [text for text in typed if not text.lstrip("+").startswith(left_out)]


def list_typed_overrides(record: Record) -> list[str]:
    """Return the typed overrides: texts unquoted, and addresses without their keys."""
    typed = [_as_typed(text, record.result.task) for text in record.overrides]
    named = ("task", "resume=", "store.mode=replay", "store=replay", "plan_file=")
    has_task = any(text.startswith(named) for text in typed)
    if typed and not is_replay(record.result) and not has_task:
        typed.insert(0, f"task={record.result.task}")  # it was given in Python
    return typed


def _as_typed(text: str, task: str) -> str:
    key, sign, value = text.partition("=")
    if key == "task":
        return f"{key}{sign}{task}"
    if "observability.sinks" in key:
        return f"{key}{sign}..."  # which may be an address with a key in it
    unquoted = _unquote(value)
    if key.endswith("base_url") and value:
        return f"{key}{sign}{show_address(unquoted)}"
    if key.startswith(_TEXTS) and unquoted != value:
        return f"{key.removeprefix('++')}{sign}{unquoted}"
    return text


def _unquote(value: str) -> str:
    """Return the text of a value that is quoted in Hydra's grammar; another value unchanged."""
    if len(value) < 2 or value[0] != value[-1] or value[0] not in "'\"":
        return value
    return value[1:-1].replace(f"\\{value[0]}", value[0])
