"""The words of the command line that are known before any configuration is loaded: subcommands and flags."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from aeon.domain.errors import ConfigError

TEXTS = Path(__file__).parents[1] / "commands" / "texts"
GENERAL = "aeon"
COMMANDS = {
    **{
        "ask": "run",
        "batch": "batch",
        "cassette": "cassette",
        "check": "check",
        "compare": "compare",
    },
    **{
        "completion": "docs",
        "docs": "docs",
        "doctor": "provider",
        "help": "docs",
        "init": "files",
        "plan": "plan",
    },
    **{
        "inspect": "inspect",
        "render": "files",
        "runs": "runs",
        "schema": "files",
        "tools": "tools",
        "trust": "trust",
    },
    **{"verify": "provider"},
}
"""The subcommands, each with the module in `commands/` whose function of that name runs it and returns its status."""

NO_PROJECT = "--no-project"
READS_PROJECT = frozenset(
    {"ask", "batch", "check", "docs", "doctor", "help", "plan", "render", "tools", "verify"}
)
"""The subcommands that read the project file, unless they are given `--no-project`."""

FLAGS = (
    *(
        "--cfg",
        "--config-dir",
        "--config-name",
        "--config-path",
        "--help",
        "--hydra-help",
        "--info",
        "--multirun",
    ),
    *(NO_PROJECT, "--package", "--resolve", "--run", "--shell-completion", "--version"),
)
"""Every long flag of a run."""


def config_folders(arguments: Sequence[str]) -> list[Path]:
    """The folder of a person's own configuration that the arguments name, else that of a project that they trust. A
    project file that cannot be used names none: a run reports it."""
    named = [
        Path(text).expanduser()
        for flag, text in pairwise(arguments)
        if flag in ("--config-dir", "-cd", "--config-path", "-cp")
    ]
    if named or NO_PROJECT in arguments:
        return named
    from aeon.config.project_file import find_project  # slow to load

    found = find_project(Path.cwd())
    if found is None:
        return []
    from aeon.config.trusted_folders import trusted_project

    with suppress(ConfigError):
        own = trusted_project(found).config_dir
        return [own] if own else []
    return []
