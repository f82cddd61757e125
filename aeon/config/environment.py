"""The environment of a run: the process's own, and the variables that a `.env` file may add.

A `.env` of a trusted folder adds everything; another one, which may be a stranger's, only models'
keys.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

from aeon.config.settings import Settings
from aeon.domain.errors import ConfigError
from aeon.files.resources import resource_root
from aeon.files.text import read_regular_file

DOTENV = ".env"
_MOST_BYTES = 2**20
_KEY_OF_PRESET = re.compile(r"^api_key_env:\s*(\w+)", re.MULTILINE)
# Left out like all others, but with a warning: these variables decide where requests go.
_DECIDES_WHERE = re.compile(
    r"^(AEON|AZURE|HYDRA|OPENAI|OTEL)_|_PROXY$|_BASE_URL$|_CA_BUNDLE$|^SSL_CERT", re.IGNORECASE
)


@dataclass(frozen=True, eq=False)
class Environment(Mapping[str, str]):
    """The variables in force. `file` is the `.env` that was read, `added` are the variables taken
    from it, `withheld` its variables that are not in force, since the person has not trusted it."""

    values_by_name: Mapping[str, str]
    file: Path | None = None
    added: frozenset[str] = frozenset()
    withheld: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> str:
        return self.values_by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_name)

    def __len__(self) -> int:
        return len(self.values_by_name)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about variables that are not in force."""
        names = sorted(filter(_DECIDES_WHERE.search, self.withheld))
        if not names or self.file is None:
            return ()
        return (
            f"{', '.join(names)} of {self.file} ignored: only keys of models are read from it "
            f"until you trust it with `aeon trust {self.file.parent}`",
        )


def environment(settings: Settings | None = None, directory: Path | None = None) -> Environment:
    """Return the process environment, after the `.env` file in `directory` (the current one) has
    filled in unset variables: all of them if the person trusts that folder, else those that hold
    the key of a preset, or of the endpoints in `settings`. Raises ConfigError, without quoting the
    file: it holds keys."""
    path = (directory or Path.cwd()) / DOTENV
    if not path.exists():
        return Environment(os.environ)
    from dotenv import dotenv_values, load_dotenv  # few folders have one

    before = frozenset(os.environ)
    # The bytes that were hashed apply, not the file, which may have changed since.
    trusted = _read_trusted(path)
    if trusted is not None:
        load_dotenv(stream=StringIO(_decode(trusted, path)), override=False)
        return Environment(os.environ, path, frozenset(os.environ) - before)
    # Not interpolated: a stranger's line could put another secret where a key is expected.
    values = dotenv_values(stream=StringIO(_decode(_read(path), path)), interpolate=False)
    keys = _key_names(settings)
    missing = {
        name: value for name, value in values.items() if value is not None and name not in before
    }
    added = missing.keys() & keys
    os.environ.update({name: missing[name] for name in added})
    withheld = {name: missing[name] for name in missing.keys() - keys}
    return Environment(os.environ, path, frozenset(added), withheld)


def _read_trusted(path: Path) -> bytes | None:
    from aeon.config.folder_content import read_content
    from aeon.config.trusted_folders import is_trusted, list_trusted, read_given_hashes

    folder = path.parent.resolve()
    # Reading the content of a folder takes time, and most are not trusted.
    if not read_given_hashes() and str(folder) not in list_trusted():
        return None
    with suppress(ConfigError):
        content = read_content(folder)
        return content.files.get(DOTENV) if is_trusted(content) else None
    return None


def _read(path: Path) -> bytes:
    try:
        data = read_regular_file(path.resolve(), _MOST_BYTES)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(data) > _MOST_BYTES:
        raise ConfigError(f"{path}: cannot be read: it has more than {_MOST_BYTES} bytes")
    return data


def _decode(data: bytes, path: Path) -> str:
    problem = "a null character" if b"\0" in data else ""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = error.reason
    if problem:
        raise ConfigError(
            f"{path}: cannot be read: {problem}", hint="It must be UTF-8 text."
        ) from None
    return text


def _key_names(settings: Settings | None) -> frozenset[str]:
    presets = (resource_root() / "conf" / "provider").glob("*.yaml")
    names = {
        name
        for path in presets
        for name in _KEY_OF_PRESET.findall(path.read_text(encoding="utf-8"))
    }
    provider = settings.provider if settings is not None else None
    for endpoint in (provider, *getattr(provider, "fallbacks", ())):
        names.add(getattr(endpoint, "api_key_env", ""))
    return frozenset(names) - {""}
