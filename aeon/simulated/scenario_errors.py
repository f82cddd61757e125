"""What pydantic finds in a scenario file, as lines that name the file and the line."""

from __future__ import annotations

import pydantic

from aeon.files.explain import explain
from aeon.files.located_yaml import LocatedYaml

_MOST_SHOWN = 10


def explained(error: pydantic.ValidationError, document: LocatedYaml, model: type[pydantic.BaseModel]) -> str:
    """A line for each error, in the order of the file."""
    mistakes = explain(error, document.value, model)
    found = {(mistake.position(document).line, mistake.sentence()) for mistake in mistakes}
    lines = [f"{document.path}:{line}: {text}" for line, text in sorted(found)]
    more = [f"... and {len(lines) - _MOST_SHOWN} more"] if len(lines) > _MOST_SHOWN else []
    return "\n".join([*lines[:_MOST_SHOWN], *more])
