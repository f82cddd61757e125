"""The folders that a person has trusted, with their content then: no other folder takes effect
(docs/trust.md)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from aeon.config.compose.literal import is_literal, key_of
from aeon.config.folder_content import Content, read_content, read_what_is_typed
from aeon.config.project_file import FILE, Project, find_project
from aeon.config.state import read_state, write_state
from aeon.domain.errors import ConfigError
from aeon.files.pinned import Pinned, find_closed_folder, pin, split_words
from aeon.files.resources import resource_root

VARIABLE = "AEON_TRUST"
"""The hashes that this process trusts, for where nobody can be asked; separated by blanks or
commas."""
_FILE = "trusted.json"


def read_given_hashes() -> frozenset[str]:
    """Return the hashes in `AEON_TRUST`."""
    return frozenset(re.split(r"[\s,]+", os.environ.get(VARIABLE, "").strip())) - {""}


def list_trusted() -> dict[str, str]:
    """Return the folders that the person has trusted, by their paths, with the hash of their
    content then."""
    with suppress(ValueError):
        values = json.loads(read_state(_FILE) or b"{}")
        if isinstance(values, dict):
            return {str(path): str(digest) for path, digest in values.items()}
    return {}


def is_trusted(content: Content) -> bool:
    """Check whether the person has trusted a folder with exactly this content."""
    return (
        content.digest in read_given_hashes()
        or list_trusted().get(str(content.folder)) == content.digest
    )


class UntrustedFolder(ConfigError):
    """A folder whose present content the person has not trusted; `content` would take effect."""

    content: Content


def require_trust(content: Content) -> None:
    """Raise UntrustedFolder, with the hash, for a folder whose present content the person has not
    trusted."""
    if is_trusted(content):
        return
    changed = str(content.folder) in list_trusted()
    problem = "it has changed since you trusted it" if changed else "you have not trusted it yet"
    error = UntrustedFolder(
        f"{content.named}: {problem}, so nothing of it takes effect",
        hint=f"`aeon trust {content.folder}` shows all of it and asks you; --no-project "
        f"leaves it out; where nobody can be asked: {VARIABLE}={content.digest}",
    )
    error.content = content
    raise error


def read_trusted_project(path: Path, typed: Sequence[str] = (), own: Path | None = None) -> Project:
    """Read the project of an `aeon.yaml`. From now on no other files are read as configuration, or
    imported from its folder, except those named by the overrides `typed` by the person or by their
    `own` configuration folder. Raises ConfigError; UntrustedFolder, with the hash, unless the
    folder's present content is trusted."""
    content = read_content(path.parent)
    require_trust(content)
    if content.project is None:  # it existed a moment ago
        raise ConfigError(f"{path}: cannot be read: it is gone")
    # A task may mention a file; that does not make it one that the person named.
    words = [word for text in typed if not is_literal(key_of(text)) for word in split_words(text)]
    # Unlike Path.expanduser, this leaves what names no user's home, such as a deletion, as it is.
    places = [Path(os.path.expanduser(word)).absolute() for word in words]  # noqa: PTH111
    below = [place for place in places if not content.folder.is_relative_to(place)]
    open_to = (resource_root(), *below, *([own] if own else []))
    files = {**read_what_is_typed(content, typed), **content.files}
    pin(Pinned(content.folder, files, content.folders, open_to))
    return content.project


def require_trust_of_owner(folder: Path) -> None:
    """Raise ConfigError when an `aeon.yaml` above a folder names it, and its present content is not
    trusted."""
    folder = folder.resolve()
    owner = next((above for above in folder.parents if (above / FILE).is_file()), None)
    if owner is None:
        return
    content = read_content(owner)
    if folder in content.folders:
        require_trust(content)
        pin(Pinned(content.folder, content.files, content.folders))


def pin_project_of_run(directory: Path, given: Sequence[str], recorded: Sequence[str]) -> None:
    """Before the run that was started in a directory is resumed, restrict its project, if any: from
    now on it imports only modules and starts only programs that the person has trusted, or that are
    named on today's command line, `given`. While the project's present content is trusted,
    `recorded` overrides count as given."""
    path = find_project(directory)
    # A closed folder: the project was read today, and is pinned.
    if path is None or find_closed_folder() is not None:
        return
    files: dict[str, bytes] = {}
    folder = path.parent.resolve()
    with suppress(ConfigError):  # a project that cannot be read has no trusted files
        content = read_content(folder)
        is_as_it_was = is_trusted(content)
        files = read_what_is_typed(content, recorded if is_as_it_was else given)
        files |= content.files if is_as_it_was else {}
    # The run itself names its configuration and its prompts.
    pin(Pinned(folder, files, frozenset(), open_to=(Path(folder.anchor),)))


def remember(content: Content) -> None:
    """Record that the person trusts a folder with exactly this content. Raises ArtefactError."""
    # Folders that are gone are dropped, so that the file stays small.
    others = {path: digest for path, digest in list_trusted().items() if Path(path).is_dir()}
    _write({**others, str(content.folder): content.digest})


def forget(folder: Path) -> None:
    """Stop trusting a folder. Raises ConfigError when it was not trusted, ArtefactError."""
    trusted = list_trusted()
    if trusted.pop(str(folder), None) is None:
        raise ConfigError(
            f"{folder}: you have not trusted this folder", hint="`aeon trust --list` lists those."
        )
    _write(trusted)


def _write(trusted: Mapping[str, str]) -> None:
    write_state(_FILE, json.dumps(trusted, indent=2, sort_keys=True).encode() + b"\n")
