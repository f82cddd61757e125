"""`aeon inspect RUN`: the page of a finished run, made again from its directory; `output=json` or `output=text`: what
stands out in it."""

from __future__ import annotations

import argparse
import json
import webbrowser
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.streams import put, say
from aeon.domain.errors import ArtefactError, ConfigError
from aeon.report.ending import describe_spent, headline
from aeon.report.page.build import write_report
from aeon.report.page.calls import find_critical, list_items
from aeon.report.page.causes import find_causes
from aeon.report.page.commands import find_ways
from aeon.report.patterns import find_patterns
from aeon.report.record import Record, load_record
from aeon.report.words import one_line, relative_to_here

_FACTS = {
    *(
        "run_id",
        "task",
        "synthetic",
        "converged",
        "termination_reason",
        "error",
        "scores",
        "assessed_pass",
    ),
    *("reason_codes", "explanation", "passes", "ttl", "usage", "timings"),
}
"""The fields of a result that say how it ended, and what it cost."""


def inspect(arguments: Sequence[str]) -> int:
    """Write the page of a run and print its path, or print what stands out in the run. Raises ConfigError for bad usage
    and a directory without a run that can be read, ArtefactError for a file that cannot be written."""
    parser = argparse.ArgumentParser(prog="aeon inspect", add_help=False)
    parser.add_argument("run", type=Path, metavar="RUN")
    parser.add_argument("--open", action="store_true")
    parser.add_argument("--output", type=Path, metavar="FILE")
    parser.add_argument("form", nargs="?", choices=("output=json", "output=text"))
    given = parser.parse_args(list(arguments))
    try:
        if given.form:
            put(_describe(load_record(given.run), as_json=given.form == "output=json"))
            return DONE
        path = write_report(given.run, to=given.output)
    except ArtefactError as error:
        raise ConfigError(error.message, hint=error.hint) from error
    put(str(relative_to_here(path.absolute())))
    if given.open and not webbrowser.open(path.absolute().as_uri()):
        say(f"No browser was found. Open it yourself: {path.absolute().as_uri()}")
    return DONE


def _describe(record: Record, *, as_json: bool) -> str:
    """The run's key facts, what stands out and, as JSON, all patterns."""
    result, patterns, items = record.result, find_patterns(record), list_items(record)
    causes = find_causes(record, patterns, items, find_critical(items))
    ways = find_ways(record, [(way, one.is_cause) for one in causes for way in one.ways])
    if as_json:
        facts = result.model_dump(mode="json", include=_FACTS)
        facts |= {"causes": [asdict(cause) for cause in causes], "next": ways}
        return json.dumps({**facts, "patterns": patterns.model_dump(mode="json")}, indent=2)
    lines = [one_line(result.task), f"{headline(result)} {describe_spent(result)}"]
    for cause in causes:
        lines += [
            f"- {one_line(cause.title)}",
            *(f"  {one_line(text)}" for text in (cause.words, cause.change) if text),
        ]
    return "\n".join((*lines, *(f"{purpose}: {command}" for purpose, command in ways)))
