"""A store of another kind, as one of your own would be: `store.backend=tests.support.dict_store:DictStore`."""

from __future__ import annotations

from collections.abc import Iterator

from aeon.domain.errors import StoreFailed
from aeon.store.models import Entry

STORES: dict[str, dict[str, Entry]] = {}


class DictStore:
    """Answers in a dictionary of this process."""

    def __init__(self, place: str, *, read_only: bool = False, url: str = "") -> None:
        place = url + place
        if read_only and place not in STORES:
            raise StoreFailed(f"there is no store {place}")
        self._entries = STORES.setdefault(place, {})

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
