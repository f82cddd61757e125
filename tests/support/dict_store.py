"""A store of another kind, as one of your own would be: `store.backend=tests.support.dict_store:DictStore`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from aeon.domain.errors import StoreFailed
from aeon.store.models import Entry

STORES: dict[Path, dict[str, Entry]] = {}


class DictStore:
    """Answers in a dictionary of this process."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        path = path.absolute()
        if read_only and path not in STORES:
            raise StoreFailed(f"there is no store {path}")
        self._entries = STORES.setdefault(path, {})

    def get(self, key: str) -> Entry | None:
        return self._entries.get(key)

    def by_content(self, content: str) -> Entry | None:
        return next(
            (entry for entry in self._entries.values() if entry.request.content == content), None
        )

    def entries(self) -> Iterator[Entry]:
        return iter(
            sorted(self._entries.values(), key=lambda entry: entry.request.path.pass_number)
        )

    def put(self, entry: Entry) -> None:
        self._entries.setdefault(entry.request.key, entry)

    def close(self) -> None:
        pass
