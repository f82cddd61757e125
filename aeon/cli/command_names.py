"""TODO."""

from __future__ import annotations

from collections.abc import Mapping

COMMANDS: Mapping[str, str] = {
    "ask": "aeon.cli.task",
    "cassette": "aeon.cli.cassette",
    "check": "aeon.cli.check",
    "completion": "aeon.cli.completion",
    "docs": "aeon.cli.docs",
    "doctor": "aeon.cli.doctor",
    "help": "aeon.cli.help",
    "init": "aeon.cli.init",
    "plan": "aeon.cli.plan",
    "render": "aeon.cli.render",
    "schema": "aeon.cli.schema",
    "tools": "aeon.cli.tools",
    "verify": "aeon.cli.verify",
}
"""Subcommands by name: the module whose `main(arguments) -> int` runs it, imported only when it is called."""
