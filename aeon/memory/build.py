"""MemorySettings -> a memory."""

from __future__ import annotations

import sqlite3

from aeon.domain.errors import ConfigError
from aeon.memory.in_memory import InMemory
from aeon.memory.interface import Memory
from aeon.memory.settings import MemorySettings
from aeon.memory.sqlite import SqliteMemory


def build(settings: MemorySettings, run_id: str = "") -> Memory:
    """The memory of one run, which `close` gives back. Raises ConfigError when its file cannot be used.

    Without a `memory.namespace`, the run's id is the part of the file it uses.
    """
    if settings.kind == "in_memory" or settings.path is None:
        return InMemory()
    path = settings.path.expanduser()
    try:
        return SqliteMemory(path, settings.namespace if settings.namespace is not None else run_id)
    except (OSError, sqlite3.Error) as error:
        raise ConfigError(f"memory.path={path}: cannot be used: {error}") from error


def close(memory: Memory) -> None:
    """Close what a memory holds open."""
    if isinstance(memory, SqliteMemory):
        memory.close()
