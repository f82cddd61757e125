"""`aeon runs [DIR]` lists runs under a folder, or those asked for; `aeon runs prune` removes some, after a question."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import TypeAdapter

from aeon.cli.terminal.questions import at_terminal
from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.streams import put, say, warn
from aeon.domain.assessment import SCORE_CODES
from aeon.domain.errors import ConfigError
from aeon.report.runs import Listed, find_runs, remove_run
from aeon.report.runs_selection import Selection
from aeon.report.words import command_of, count_noun, one_line, relative_to_here, round_down

_WIDEST = 120
_MOST = 20
_MOST_LISTED = 50
_MOST_ROWS = 1_000_000
_MOST_DAYS = 100_000
_OPTIONS = ("where", "since", "task~", "limit", "output")
_OPTIONS_HINT = "There are where=, since=, task~=, limit= and output=json."
_SCORES = f"Scores: {', '.join(SCORE_CODES)}."


def runs(arguments: Sequence[str]) -> int:
    """List or remove runs. Raises ConfigError for bad usage, and when a question cannot be asked."""
    if arguments[:1] == ["prune"]:
        return _prune(arguments[1:])
    options, rest = _options(arguments)
    parser = argparse.ArgumentParser(prog="aeon runs", add_help=False)
    parser.add_argument("directory", type=Path, nargs="?", default=Path(), metavar="DIR")
    folder = _folder(parser.parse_args(rest).directory)
    found = find_runs(folder)
    selection = Selection(
        where=options.get("where"), since=options.get("since"), task=options.get("task~")
    )
    selected = selection.select(found, datetime.now(UTC))
    limit = _limit(options)
    if options.get("output") == "json":
        dumped = TypeAdapter(list[Listed]).dump_python(selected[:limit], mode="json")
        put(json.dumps(dumped, indent=2))
    else:
        put("\n".join(_table(selected[: limit or _MOST_LISTED], found, folder)))
        _tell_rest(selected, found, limit or _MOST_LISTED)
    return DONE


def _options(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The options by name, `task~` also without its equals sign, and what is none."""
    options: dict[str, str] = {}
    rest: list[str] = []
    for text in arguments:
        key, equals, value = text.partition("=")
        if key in _OPTIONS and equals:
            options[key] = value
        elif text.startswith("task~"):
            options["task~"] = text.removeprefix("task~")
        else:
            rest.append(text)
    if options.get("output", "json") != "json":
        raise ConfigError(f"output={options['output']}: there is json")
    return options, rest


def _limit(options: Mapping[str, str]) -> int | None:
    text = options.get("limit")
    if text is None:
        return None
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) <= _MOST_ROWS:
        raise ConfigError(f"limit={text}: a number from 1 to {_MOST_ROWS:,}")
    return int(text)


def _folder(given: Path) -> Path:
    folder = given.expanduser().absolute()
    if not folder.is_dir():
        hint = "`aeon runs outputs`" if "=" not in given.name else _OPTIONS_HINT
        raise ConfigError(f"{given}: there is no such folder", hint=hint)
    return folder


def _table(shown: Sequence[Listed], found: Sequence[Listed], folder: Path) -> Iterator[str]:
    """The runs below a header, two lines each; or that there are none."""
    if not shown:
        where = relative_to_here(folder)
        yield f"No run in {where} fits." if found else f"There are no runs in {where}."
        return
    yield "run  started"
    yield _row("ended by", "scores", "cost", "size") + "task"
    for run in shown:
        yield from _describe(run)


def _tell_rest(selected: Sequence[Listed], found: Sequence[Listed], limit: int) -> None:
    """What the columns mean, and how many runs are not shown."""
    if not selected:
        return
    shown = min(limit, len(selected))
    of = f" of {len(selected)}" if shown < len(selected) else ""
    fit = f" that fit, of {len(found)}" if len(selected) < len(found) else ""
    more = f" limit={len(selected)} shows all." if of else ""
    say(f"{shown}{of} {'run' if len(selected) == 1 else 'runs'}{fit}. {_SCORES}{more}")


def _row(end: str, scores: str, cost: str, size: str) -> str:
    return f"  {end:<13}  {scores:<14}  {cost:<11}  {size:>7}  "


def _describe(run: Listed) -> Iterator[str]:
    width = min(shutil.get_terminal_size().columns, _WIDEST)
    scores = " ".join(f"{round_down(score):.2f}" for score in run.scores.values())
    cost = "unknown" if run.cost is None else f"{run.cost:.4f}"
    facts = _row(
        one_line(run.ended), scores or "-", "simulated" if run.synthetic else cost, _size(run.bytes)
    )
    started = f"{run.started.astimezone():%Y-%m-%d %H:%M}"
    yield f"{one_line(str(relative_to_here(run.directory)))}  {started}"
    yield facts + one_line(run.task, max(20, width - len(facts)))
    if run.is_resumable:
        yield f"  To go on: {command_of((f'resume={relative_to_here(run.directory)}',))}"


def _size(number: float) -> str:
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:.0f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"


def _prune(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="aeon runs prune", add_help=False)
    parser.add_argument("--keep", type=int, metavar="N")
    parser.add_argument("--older-than", type=int, metavar="DAYS")
    parser.add_argument("--yes", action="store_true")
    parser.add_argument("directory", type=Path, nargs="?", default=Path(), metavar="DIR")
    given = parser.parse_args(list(arguments))
    folder = _folder(given.directory)
    keep, days = given.keep or 0, min(given.older_than or 0, _MOST_DAYS)
    if (given.keep is None and given.older_than is None) or keep < 0 or days < 0:
        hint = "`aeon runs prune --keep 20`, or `--older-than 30` (days)"
        raise ConfigError("which runs may go?", hint=hint)
    removed = _find_removable(find_runs(folder), keep, days)
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


def _find_removable(found: Sequence[Listed], keep: int, days: int) -> list[Listed]:
    """The runs beyond the newest ones, older than so many days, that no program writes to and that no run which was
    stopped stands on."""
    before = datetime.now(UTC) - timedelta(days=days)
    old = [run for run in found[keep:] if run.started <= before and not run.may_go_on]
    stopped = [run for run in found if run not in old and (run.is_resumable or run.may_go_on)]
    needed = {path for run in stopped for path in run.stands_on}
    return [run for run in old if run.directory not in needed]


def _is_agreed(removed: Sequence[Listed], what: str) -> bool:
    """Whether the person at the terminal agrees. Raises ConfigError where there is none."""
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
        warn(f"{place} stays, for what is not of the run: {one_line(own[0].name)}")
