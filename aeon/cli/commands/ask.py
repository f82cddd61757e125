"""`aeon ask "TASK" [overrides]`: a run whose task is the first argument, taken as it is."""

from __future__ import annotations

from collections.abc import Sequence

from aeon.cli.commands import run
from aeon.cli.job.arguments import STANDARD_INPUT
from aeon.domain.errors import ConfigError


def main(arguments: Sequence[str]) -> int:
    """Run the task. Raises ConfigError when the first argument is no task, and for what a run refuses."""
    task, *rest = arguments or [""]
    is_flag = task.startswith("-") and task != STANDARD_INPUT and len(task.split()) == 1
    bare = next((text for text in rest if "=" not in text and not text.startswith(("-", "~"))), None)
    if not arguments or is_flag or (rest and rest[0] == bare):
        raise ConfigError(
            "aeon ask takes the task first, as one argument, then flags and overrides",
            hint='Quote it: aeon ask "name three rivers" mode=core',
        )
    if again := next((text for text in rest if text.startswith(("task=", "task_file="))), None):
        raise ConfigError(f"{again}: the task is given twice", hint="Leave one of them out.")
    return run.main([f"task={task}", *rest])
