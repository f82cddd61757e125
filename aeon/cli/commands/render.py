"""`aeon render CALL task=...`: the prompt and the schema of a call, and the file that each part comes from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import get_args

from aeon.cli.job.arguments import parse
from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.streams import put
from aeon.config.load import compose_settings, environment, read_inputs, read_task
from aeon.config.provider import resolve_provider
from aeon.domain.errors import ConfigError
from aeon.domain.request import CallName


def main(arguments: Sequence[str]) -> int:
    """Print them. Raises ConfigError for an unknown call or a bad configuration, PromptError for a broken template."""
    from aeon.app.aeon import render

    calls = get_args(CallName)
    if not arguments or arguments[0] not in calls:
        wanted = f"{arguments[0]}: there is no such call" if arguments else "which call?"
        raise ConfigError(f"{wanted} (there are: {', '.join(calls)})", hint='aeon render plan task="..."')
    settings = compose_settings(parse(arguments[1:]))
    task, inputs = read_task(settings) or "An example task.", read_inputs(settings)
    shown = render(resolve_provider(settings, environment()), arguments[0], task, inputs)
    parts = {"system": shown.system, "user": shown.user, "schema": json.dumps(shown.schema, indent=2)}
    for part, text in parts.items():
        put(f"--- {part}: {shown.files.get(part, 'made by the program')}\n{text.rstrip()}\n\n")
    return DONE
