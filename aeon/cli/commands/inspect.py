"""`aeon inspect RUN`: the page of a finished run, made again from its directory; `output=json` or `output=text`: what
stands out in it."""

from __future__ import annotations

import argparse
import json
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.streams import put, say
from aeon.domain.errors import ArtefactError, ConfigError
from aeon.report.ending import describe_spent, verdict
from aeon.report.findings import find_findings
from aeon.report.page.build import write_report
from aeon.report.patterns import find_patterns
from aeon.report.record import Record, load_record
from aeon.report.words import one_line, relative_to_here

_FACTS = {
    *("run_id", "task", "synthetic", "converged", "termination_reason", "error", "scores", "assessed_pass"),
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
    if not (given.run / "result.json").is_file():
        hint = "RUN is the directory of a finished run, such as outputs/2026-11-22/17-30-00-1a2b3c."
        raise ConfigError(f"{given.run} holds no result.json", hint=hint)
    try:
        if given.form:
            put(_describe(load_record(given.run), as_json=given.form == "output=json"))
            return DONE
        path = write_report(given.run, to=given.output)
    except ArtefactError as error:
        raise ConfigError(error.message, hint=error.hint or "--output FILE writes the page elsewhere.") from error
    put(str(relative_to_here(path.absolute())))
    if given.open and not webbrowser.open(path.absolute().as_uri()):
        say(f"No browser was found. Open it yourself: {path.absolute().as_uri()}")
    return DONE


def _describe(record: Record, *, as_json: bool) -> str:
    """The run's key facts and its patterns, as JSON or in a few lines."""
    result, patterns = record.result, find_patterns(record)
    findings = find_findings(patterns)
    if as_json:
        facts = result.model_dump(mode="json", include=_FACTS)
        found = [finding.model_dump() for finding in findings]
        whole = {**facts, "findings": found, "patterns": patterns.model_dump(mode="json")}
        return json.dumps(whole, indent=2)
    head = (one_line(result.task), f"{verdict(result)} {describe_spent(result)}")
    return "\n".join((*head, *(f"  {finding.text}" for finding in findings)))
