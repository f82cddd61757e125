"""`aeon inspect RUN [--open] [--output FILE]`: the page of a finished run, made again from its directory."""

from __future__ import annotations

import argparse
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.streams import put, say
from aeon.domain.errors import ArtefactError, ConfigError
from aeon.report.page import write_report
from aeon.report.words import relative_to_here


def inspect(arguments: Sequence[str]) -> int:
    """Write the page of a run and print its path. Raises ConfigError for bad usage and a directory without a run that
    can be read, ArtefactError for a file that cannot be written."""
    parser = argparse.ArgumentParser(prog="aeon inspect", add_help=False)
    parser.add_argument("run", type=Path, metavar="RUN")
    parser.add_argument("--open", action="store_true")
    parser.add_argument("--output", type=Path, metavar="FILE")
    given = parser.parse_args(list(arguments))
    if not (given.run / "result.json").is_file():
        hint = "RUN is the directory of a finished run, such as outputs/2026-11-22/17-30-00-1a2b3c."
        raise ConfigError(f"{given.run} holds no result.json", hint=hint)
    try:
        path = write_report(given.run, to=given.output)
    except ArtefactError as error:
        raise ConfigError(error.message, hint=error.hint or "--output FILE writes the page elsewhere.") from error
    put(str(relative_to_here(path.absolute())))
    if given.open and not webbrowser.open(path.absolute().as_uri()):
        say(f"No browser was found. Open it yourself: {path.absolute().as_uri()}")
    return DONE
