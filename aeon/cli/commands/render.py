"""`aeon render CALL task=...`: the prompt and the schema of a call, and the file that each part comes from."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any, get_args

from aeon.cli.job.arguments import parse
from aeon.cli.terminal.status import DONE
from aeon.config.load import environment, read_inputs, read_task
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
    given = parse(arguments[1:])
    settings = given.settings()
    task, inputs = read_task(settings) or "An example task.", read_inputs(settings)
    sys.stdout.write(_as_text(render(resolve_provider(settings, environment()), arguments[0], task, inputs)))
    return DONE


def _as_text(rendered: Any) -> str:
    parts = {"system": rendered.system, "user": rendered.user, "schema": json.dumps(rendered.schema, indent=2)}
    files = rendered.files
    return "".join(
        f"--- {part}: {files.get(part, 'made by the program')}\n{text.rstrip()}\n\n" for part, text in parts.items()
    )
