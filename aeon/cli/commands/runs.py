"""`aeon runs [DIR]` lists the runs under a folder, or a selection; `aeon runs prune` removes some,
after asking."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import TypeAdapter

from aeon.cli.terminal.questions import at_terminal
from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.streams import put, say, warn
from aeon.cli.terminal.width import fit_rows, terminal_width
from aeon.domain.assessment import SCORE_CODES
from aeon.domain.errors import ConfigError
from aeon.report.runs import Listed, find_runs, remove_run
from aeon.report.runs_selection import Selection
from aeon.report.words import (
    answer_command,
    command_of,
    count_noun,
    one_line,
    relative_to_here,
    round_down,
)

_MOST = 20
_LEAST_OF_TASK = 20
_MOST_LISTED = 50
_MOST_DAYS = 100_000  # many more would leave the range of dates
_SCORES = f"Scores: {', '.join(SCORE_CODES)}."


def runs(given: Namespace) -> int:
    """List runs. Raises ConfigError for a missing folder, and for a condition or a time that cannot
    be read."""
    folder = _find_folder(given.dir)
    found = find_runs(folder)
    selection = Selection(where=given.where, since=given.since, task=given.task)
    selected = selection.select(found, datetime.now(UTC))
    if given.output == "json":
        dumped = TypeAdapter(list[Listed]).dump_python(selected[: given.limit], mode="json")
        put(json.dumps(dumped, indent=2))
        return DONE
    limit = given.limit or _MOST_LISTED
    put("\n".join(_table(selected[:limit], found, folder)))
    _tell_rest(selected, found, limit)
    return DONE


def _find_folder(given: Path) -> Path:
    folder = given.expanduser().absolute()
    if not folder.is_dir():
        raise ConfigError(f"{given}: there is no such folder", hint="`aeon runs outputs`")
    return folder


def _table(shown: Sequence[Listed], found: Sequence[Listed], folder: Path) -> Iterator[str]:
    """Yield the runs below a header, two lines each; or that there are none."""
    if not shown:
        here = relative_to_here(folder)
        where = "this folder" if here == Path() else here
        yield f"No run in {where} matches." if found else f"There are no runs in {where}."
        return
    yield "run  started"
    yield _row("ended by", "scores", "cost", "size") + "task"
    # Of several runs that resume one, the newest is the one to look at.
    resumed_in = {path: run.directory for run in reversed(found) for path in run.stands_on}
    for run in shown:
        yield from _describe(run, resumed_in.get(run.directory))


def _tell_rest(selected: Sequence[Listed], found: Sequence[Listed], limit: int) -> None:
    """Print what the columns mean, and how many runs are not shown."""
    if not selected:
        return
    shown = min(limit, len(selected))
    of = f" of {len(selected)}" if shown < len(selected) else ""
    fit = f", selected from {len(found)}" if len(selected) < len(found) else ""
    more = f" limit={len(selected)} shows all." if of else ""
    say(f"{shown}{of} {'run' if len(selected) == 1 else 'runs'}{fit}. {_SCORES}{more}")


def _row(end: str, scores: str, cost: str, size: str) -> str:
    return f"  {end:<13}  {scores:<14}  {cost:<11}  {size:>7}  "


def _describe(run: Listed, resumed_in: Path | None = None) -> Iterator[str]:
    scores = " ".join(f"{round_down(score):.2f}" for score in run.scores.values())
    cost = "unknown" if run.cost is None else f"{run.cost:.4f}"
    facts = _row(
        one_line(run.ended), scores or "-", "simulated" if run.synthetic else cost, _size(run.bytes)
    )
    started = f"{run.started.astimezone():%Y-%m-%d %H:%M}"
    yield f"{one_line(str(relative_to_here(run.directory)))}  {started}"
    yield from _add_task(facts, one_line(run.task), terminal_width())
    if run.is_resumable and resumed_in:
        yield f"  Resumed in {one_line(str(relative_to_here(resumed_in)))}"
    elif run.is_resumable and run.waits_for:
        waits = f"Waits for {count_noun(run.waits_for, 'answer')}"
        yield f"  {waits}: {answer_command(run.directory)}"
    elif run.is_resumable:
        yield f"  To resume: {command_of((f'resume={relative_to_here(run.directory)}',))}"


def _add_task(facts: str, task: str, width: int | None) -> Iterator[str]:
    """Yield the facts and the task: whole in a pipe, else cut to the terminal's width, on a second
    line where there is no room after them."""
    if width is None:
        yield facts + task
    elif len(facts) + min(len(task), _LEAST_OF_TASK) <= width:
        yield facts + one_line(task, width - len(facts))
    else:
        yield fit_rows(facts.rstrip(), 4)
        yield f"    {one_line(task, width - 4)}"


def _size(number: float) -> str:
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:.0f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"


def prune(given: Namespace) -> int:
    """Remove runs. Raises ConfigError for bad usage, and when nobody can be asked."""
    folder = _find_folder(given.dir)
    _require_bounds(given.keep, given.older_than)
    days = min(given.older_than or 0, _MOST_DAYS)
    removed = _find_removable(find_runs(folder), given.keep or 0, days)
    if not removed:
        put("There is nothing to remove.")
        return DONE
    what = f"{count_noun(len(removed), 'run')}, {_size(sum(run.bytes for run in removed))}"
    if not given.yes and not _is_agreed(removed, what):
        put("Nothing was removed.")
        return DONE
    for run in removed:
        _remove(run, folder)
    put(f"Removed {what}.")
    return DONE


def _require_bounds(*given: int | None) -> None:
    bounds = [number for number in given if number is not None]
    if not bounds or min(bounds) < 0:
        hint = "`aeon runs prune --keep 20`, or `--older-than 30` (days)"
        raise ConfigError("which runs shall be removed?", hint=hint)


def _find_removable(found: Sequence[Listed], keep: int, days: int) -> list[Listed]:
    """List the runs beyond the newest `keep`, older than `days`, that no program writes to and that
    no stopped run depends on."""
    before = datetime.now(UTC) - timedelta(days=days)
    # `found` has the newest first.
    old = [run for run in found[keep:] if run.started <= before and not run.may_go_on]
    needed = _find_needed(run for run in found if run not in old)
    return [run for run in old if run.directory not in needed]


def _is_agreed(removed: Sequence[Listed], what: str) -> bool:
    """Ask the person at the terminal for agreement. Raises ConfigError where there is no
    terminal."""
    if not at_terminal():
        problem = f"{what} would be removed, and nobody can be asked"
        raise ConfigError(problem, hint="--yes removes without asking.")
    more = [f"and {len(removed) - _MOST} more"] if len(removed) > _MOST else []
    say("\n".join([*(line for run in removed[:_MOST] for line in _describe(run)), *more]))
    say(f"Remove {what}? It cannot be undone. [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _remove(run: Listed, folder: Path) -> None:
    try:
        own = remove_run(run, folder)
    except OSError as error:
        problem = f"{run.directory}: cannot be removed: {error.strerror or error}"
        raise ConfigError(problem) from None
    if own:
        place = relative_to_here(run.directory)
        warn(f"{place} stays, since it holds files of your own: {one_line(own[0].name)}")


def _find_needed(remaining: Iterable[Listed]) -> set[Path]:
    """Return the directories of the runs that stopped, resumable runs depend on."""
    stopped = (run for run in remaining if run.is_resumable or run.may_go_on)
    return {path for run in stopped for path in run.stands_on}
