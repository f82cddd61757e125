"""A made plan as the text of a workflow file, with the command that runs it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from aeon.app.surroundings import Planned
from aeon.config.settings import Settings
from aeon.domain.plan import Plan
from aeon.files.resources import resource_root
from aeon.plan.workflow.write import workflow_text


def plan_text(plan: Plan, made: Planned, settings: Settings, path: Path | None, command: str) -> str:
    """The text of a workflow file; `path` is its place, None if not known, and `command` runs it."""
    lines = ["SIMULATED: no model was called, nothing here means anything."] if made.synthetic else []
    lines += ["A plan made by `aeon plan`. Change it as you like; `aeon docs workflows` explains the format. Run it:"]
    lines += [f"  {command}"]
    lines += [f"Cut short: {made.cut_short}."] if made.cut_short else []
    lines += [f"Note: {advisory.message}" for advisory in made.advisories]
    return workflow_text(plan, inputs=_inputs(settings), header=lines, schema=_schema(path))


def command_of(arguments: Sequence[str]) -> str:
    """The command line of a run with these arguments, quoted for a shell, on one line."""
    return " ".join(("python -m aeon", *map(_word, arguments)))


def _word(argument: str) -> str:
    """An argument quoted for a shell, on one line; the key of an override is not quoted."""
    key, equals, value = argument.partition("=")
    if not equals or shlex.quote(key) != key:
        key, equals, value = "", "", argument
    if value.isprintable():
        return f"{key}{equals}{shlex.quote(value) if value else ''}"
    escaped = "".join(ch if ch.isprintable() and ch not in "\\'" else _escape(ch) for ch in value)
    return f"{key}{equals}$'{escaped}'"


def _escape(ch: str) -> str:
    return f"\\{ch}" if ch in "\\'" else "".join(f"\\x{byte:02x}" for byte in os.fsencode(ch))


def _inputs(settings: Settings) -> dict[str, str]:
    files = {name: f"The contents of {path.name}." for name, path in settings.input_files.items()}
    return {**files, **dict.fromkeys(settings.inputs, "A text.")}


def _schema(out: Path | None) -> str | None:
    """The path of the format's schema, relative to the file; None when the file's place is not known."""
    if out is None:
        return None
    return Path(os.path.relpath(resource_root() / "schemas" / "workflow.json", out.resolve().parent)).as_posix()
