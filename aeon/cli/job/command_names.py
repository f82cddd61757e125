"""The subcommands, by name: the module of each, imported when it is called."""

from __future__ import annotations

from collections.abc import Mapping

COMMANDS: Mapping[str, str] = {
    "ask": "aeon.cli.commands.ask",
    "cassette": "aeon.cli.commands.cassette",
    "check": "aeon.cli.commands.check",
    "completion": "aeon.cli.commands.completion",
    "docs": "aeon.cli.commands.docs",
    "doctor": "aeon.cli.commands.doctor",
    "help": "aeon.cli.commands.help",
    "init": "aeon.cli.commands.init",
    "plan": "aeon.cli.commands.plan",
    "render": "aeon.cli.commands.render",
    "schema": "aeon.cli.commands.schema",
    "tools": "aeon.cli.commands.tools",
    "verify": "aeon.cli.commands.verify",
}
"""Subcommands by name: the module whose `main(arguments) -> int` runs it, imported only when it is called."""
