"""Which folders a person has trusted, as they are: nothing of another one takes effect (docs/trust.md)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from aeon.config.folder_content import Content, read_content
from aeon.config.project_file import FILE, Project
from aeon.config.state import read_state, write_state
from aeon.domain.errors import ConfigError
from aeon.files.pinned import pin_folder

VARIABLE = "AEON_TRUST"
"""The hashes that this process trusts, for where nobody can be asked; separated by blanks or commas."""
_FILE = "trusted.json"


def given_hashes() -> frozenset[str]:
    """The hashes in `AEON_TRUST`."""
    return frozenset(re.split(r"[\s,]+", os.environ.get(VARIABLE, "").strip())) - {""}


def list_trusted() -> dict[str, str]:
    """The folders that the person has trusted, by their paths, and the hash of what each held then."""
    with suppress(ValueError):
        values = json.loads(read_state(_FILE) or b"{}")
        if isinstance(values, dict):
            return {str(path): str(digest) for path, digest in values.items()}
    return {}


def is_trusted(content: Content) -> bool:
    """Whether the person has trusted a folder with just this content."""
    return (
        content.digest in given_hashes()
        or list_trusted().get(str(content.folder)) == content.digest
    )


def require_trust(content: Content) -> None:
    """Raise ConfigError, with the hash, for a folder that the person has not trusted as it is."""
    if is_trusted(content):
        return
    changed = str(content.folder) in list_trusted()
    problem = "it has changed since you trusted it" if changed else "you have not trusted it yet"
    raise ConfigError(
        f"{content.named}: {problem}, so nothing of it takes effect",
        hint=f"`aeon trust {content.folder}` shows all of it and asks you; --no-project leaves it out; "
        f"where nobody can be asked: {VARIABLE}={content.digest}",
    )


def trusted_project(path: Path) -> Project:
    """The project of an `aeon.yaml`. Raises ConfigError, with the hash, unless its folder is trusted as it is."""
    content = read_content(path.parent)
    require_trust(content)
    _pin(content)
    if content.project is None:  # it was a file a moment ago
        raise ConfigError(f"{path}: cannot be read: it is gone")
    return content.project


def require_trust_of_owner(folder: Path) -> None:
    """Raise ConfigError when a folder is one that an `aeon.yaml` above it names, and that is not trusted as it is."""
    folder = folder.resolve()
    owner = next((above for above in folder.parents if (above / FILE).is_file()), None)
    if owner is None:
        return
    content = read_content(owner)
    if content.project is not None and folder in content.project.folders.values():
        require_trust(content)
        _pin(content)


def _pin(content: Content) -> None:
    """What was hashed is what is used."""
    for folder in content.project.folders.values() if content.project else ():
        begin = f"{folder.relative_to(content.folder).as_posix()}/"
        files = {
            name.removeprefix(begin): data
            for name, data in content.files.items()
            if name.startswith(begin)
        }
        pin_folder(folder, files)


def remember(content: Content) -> None:
    """Remember that the person trusts a folder with just this content. Raises ArtefactError."""
    # A folder that is gone is forgotten, so that the file stays small.
    others = {path: digest for path, digest in list_trusted().items() if Path(path).is_dir()}
    _write({**others, str(content.folder): content.digest})


def forget(folder: Path) -> None:
    """Forget a folder. Raises ConfigError when it was not trusted, ArtefactError."""
    trusted = list_trusted()
    if trusted.pop(str(folder), None) is None:
        raise ConfigError(
            f"{folder}: you have not trusted this folder", hint="`aeon trust --list` lists those."
        )
    _write(trusted)


def _write(trusted: Mapping[str, str]) -> None:
    write_state(_FILE, json.dumps(trusted, indent=2, sort_keys=True).encode() + b"\n")
