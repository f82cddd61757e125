"""The runs that a run stands on: the one it resumed, the one that one resumed, and so on, found where they are now.

A resumed run that was killed early has hardly an answer of its own; what was paid for is in the runs before it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from aeon.config import origin as origins
from aeon.config.origin import Origin, ParentOrigin
from aeon.domain.errors import ConfigError, StoreFailed
from aeon.store.opening import open_source


@dataclass(frozen=True, slots=True)
class Ancestors:
    """The earlier runs of a run, nearest first: those whose answers can be read, where they are, and those that are
    gone."""

    found: tuple[ParentOrigin, ...] = ()
    gone: tuple[ParentOrigin, ...] = ()


def find_ancestors(directory: Path, origin: Origin, backend: str) -> Ancestors:
    """The runs that the run in `directory`, absolute, stands on; `backend` is the kind of their stores."""
    found: list[ParentOrigin] = []
    gone: list[ParentOrigin] = []
    waiting = [(directory, origin, link) for link in _links(origin)]
    seen = {origin.run_id}
    while waiting:
        child, of_child, link = waiting.pop(0)
        if link.run_id in seen:
            continue
        seen.add(link.run_id)
        path = _located(link, child, of_child, backend)
        if path is None:
            gone.append(link)
            continue
        found.append(ParentOrigin(path=str(path), run_id=link.run_id))
        there = origins.read(path)
        waiting += [(path, there, further) for further in _links(there)]
    return Ancestors(tuple(found), tuple(gone))


def _links(origin: Origin) -> tuple[ParentOrigin, ...]:
    return (origin.parent, *origin.ancestors) if origin.parent else ()


def _located(link: ParentOrigin, child: Path, of_child: Origin, backend: str) -> Path | None:
    """The directory of a run with its answers: where it was, where it has moved to with its child, or close by."""
    return next((path for path in _places(link, child, of_child) if _holds(path, link.run_id, backend)), None)


def _places(link: ParentOrigin, child: Path, of_child: Origin) -> Iterator[Path]:
    yield Path(link.path)
    if of_child.directory is not None:
        yield Path(os.path.normpath(child / os.path.relpath(link.path, of_child.directory)))
    for folder in dict.fromkeys((child.parent, Path(link.path).parent)):
        for pattern in (f"*/{origins.FILE}", f"../*/*/{origins.FILE}"):
            yield from (Path(os.path.normpath(path.parent)) for path in sorted(folder.glob(pattern)))


def _holds(path: Path, run_id: str, backend: str) -> bool:
    """Whether a directory is that of a run and its answers can be read."""
    try:
        values = json.loads((path / origins.FILE).read_bytes())
        if not isinstance(values, dict) or values.get("run_id") != run_id:
            return False
        origins.parse(values, str(path))
        open_source(path, backend).close()
    except (OSError, ValueError, RecursionError, ConfigError, StoreFailed):
        return False
    return True
