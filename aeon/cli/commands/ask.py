"""`aeon ask "TASK" [overrides]`: a run whose task is the first argument, taken as it is."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from aeon.cli.commands import run
from aeon.cli.job.arguments import STANDARD_INPUT, is_override, quoted_for_shell
from aeon.domain.errors import ConfigError

_TASK_KEYS = ("task=", "task_file=")


def main(arguments: Sequence[str]) -> int:
    """Run the task. Raises ConfigError when the first argument is no task, and for what a run refuses."""
    if not arguments:
        raise ConfigError("which task?", hint='aeon ask "name three rivers"')
    task, rest = arguments[0], arguments[1:]
    if task.startswith("-") and task != STANDARD_INPUT and len(task.split()) == 1:
        raise ConfigError(
            f"{task}: the task comes first, flags and overrides after it", hint='aeon ask "..." --multirun'
        )
    bare = [task, *takewhile(lambda text: not is_override(text), rest)]
    if len(bare) > 1:
        raise ConfigError(
            f"{bare[1]}: the task is one argument", hint=f"Quote it: aeon ask {quoted_for_shell(' '.join(bare))}"
        )
    if again := next((text for text in rest if text.startswith(_TASK_KEYS)), None):
        raise ConfigError(f"{again}: the task is given twice", hint="Leave one of them out.")
    return run.main([f"task={task}", *rest])
