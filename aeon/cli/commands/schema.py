"""`aeon schema [GROUP]`: the JSON Schema of configuration files, for editors."""

from __future__ import annotations

import json
from collections.abc import Sequence

from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.streams import put
from aeon.config.json_schema import configuration_schema
from aeon.domain.errors import ConfigError


def main(arguments: Sequence[str]) -> int:
    """Print it. Raises ConfigError for a group that does not exist."""
    if len(arguments) > 1:
        raise ConfigError("aeon schema takes one group at most", hint="aeon schema ttl > ttl.schema.json")
    put(json.dumps(configuration_schema(*arguments), indent=2, ensure_ascii=False))
    return DONE
