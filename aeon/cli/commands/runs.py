"""`aeon runs [DIR]` lists the runs under a folder; `aeon runs prune` removes some of them, after a question."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import TypeAdapter

from aeon.cli.terminal.questions import at_terminal
from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.streams import put, say, warn
from aeon.domain.errors import ConfigError
from aeon.report.runs import Listed, find_runs, remove_run
from aeon.report.words import command_of, count_noun, one_line, relative_to_here, round_down

_WIDEST, _MOST, _MOST_DAYS = 120, 20, 100_000


def runs(arguments: Sequence[str]) -> int:
    """List or remove runs. Raises ConfigError for bad usage, and when a question cannot be asked."""
    parser = argparse.ArgumentParser(prog="aeon runs", add_help=False)
    if prune := arguments[:1] == ["prune"]:
        parser.add_argument("--keep", type=int, metavar="N")
        parser.add_argument("--older-than", type=int, metavar="DAYS")
        parser.add_argument("--yes", action="store_true")
    parser.add_argument("directory", type=Path, nargs="?", default=Path(), metavar="DIR")
    as_json = not prune and "output=json" in arguments
    given = parser.parse_args(
        [text for text in arguments[prune:] if not (as_json and text == "output=json")]
    )
    folder: Path = given.directory.expanduser().absolute()
    if not folder.is_dir():
        raise ConfigError(f"{given.directory}: there is no such folder", hint="`aeon runs outputs`")
    found = find_runs(folder)
    if prune:
        return _prune(found, folder, given)
    if as_json:
        put(json.dumps(TypeAdapter(list[Listed]).dump_python(found, mode="json"), indent=2))
    else:
        put(
            "\n".join(line for run in found for line in _describe(run))
            or f"There are no runs in {given.directory}."
        )
    return DONE


def _describe(run: Listed) -> Iterator[str]:
    width = min(shutil.get_terminal_size().columns, _WIDEST)
    scores = " ".join(f"{round_down(score):.2f}" for score in run.scores.values())
    cost = "simulated" if run.synthetic else "" if run.cost is None else f"cost {run.cost:.4f}"
    yield f"{one_line(str(relative_to_here(run.directory)))}  {run.started.astimezone():%Y-%m-%d %H:%M}"
    facts = f"  {one_line(run.end):<13}  {scores:<14}  {cost:<11}  {_size(run.bytes):>7}  "
    yield facts + one_line(run.task, max(20, width - len(facts)))
    if run.is_resumable:
        yield f"  To go on: {command_of((f'resume={relative_to_here(run.directory)}',))}"


def _size(number: float) -> str:
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:.0f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"


def _prune(found: Sequence[Listed], folder: Path, given: argparse.Namespace) -> int:
    keep, days = given.keep or 0, min(given.older_than or 0, _MOST_DAYS)
    if (given.keep is None and given.older_than is None) or keep < 0 or days < 0:
        raise ConfigError(
            "which runs may go?", hint="`aeon runs prune --keep 20`, or `--older-than 30` (days)"
        )
    before = datetime.now(UTC) - timedelta(days=days)
    removed = [run for run in found[keep:] if run.started <= before and not run.may_go_on]
    stopped = [run for run in found if run not in removed and (run.is_resumable or run.may_go_on)]
    needed = {path for run in stopped for path in run.stands_on}
    removed = [run for run in removed if run.directory not in needed]
    if not removed:
        put("There is nothing to remove.")
        return DONE
    what = f"{count_noun(len(removed), 'run')}, {_size(sum(run.bytes for run in removed))}"
    if not given.yes:
        if not at_terminal():
            raise ConfigError(
                f"{what} would be removed, and nobody can be asked",
                hint="--yes removes without asking.",
            )
        more = [f"and {len(removed) - _MOST} more"] if len(removed) > _MOST else []
        say("\n".join([*(line for run in removed[:_MOST] for line in _describe(run)), *more]))
        say(f"Remove {what}? It cannot be undone. [y/N]")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            put("Nothing was removed.")
            return DONE
    for run in removed:
        try:
            if own := remove_run(run, folder):
                warn(
                    f"{relative_to_here(run.directory)} stays, for what is not of the run: {one_line(own[0].name)}"
                )
        except OSError as error:
            raise ConfigError(
                f"{run.directory}: cannot be removed: {error.strerror or error}"
            ) from None
    put(f"Removed {what}.")
    return DONE
