"""Objects of a person's own, named in the configuration as `package.module:object`."""

from __future__ import annotations

import importlib
import sys
from operator import attrgetter
from pathlib import Path
from typing import Any

from aeon.domain.errors import ConfigError
from aeon.files.stdout import redirect_prints_to_stderr


def load_object(key: str, reference: str, kind: str) -> Any:
    """Import what `reference` names; the working directory is searched last. `key` and the `kind` that is wanted are
    for the message. Raises ConfigError when it is not of that form or cannot be imported."""
    module, _, path = reference.partition(":")
    if not module or not path:
        raise ConfigError(f"{key}={reference}: write package.module:{kind}")
    # A console script does not see the folder it is started in, and that is where a person's own modules are.
    if "" not in sys.path:
        search_for_modules(Path.cwd())
    try:
        with redirect_prints_to_stderr():
            return attrgetter(path)(importlib.import_module(module))
    except (
        Exception,
        SystemExit,
    ) as error:  # importing runs the module, in which anything may happen
        raise ConfigError(
            f"{key}={reference}: cannot be imported: {type(error).__name__}: {error}"
        ) from error


def search_for_modules(folder: Path) -> None:
    """Put a folder last in `sys.path`. No other function changes that list."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
