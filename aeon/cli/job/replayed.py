"""What a replay replays: who had answered, and when."""

from __future__ import annotations

from contextlib import closing

from aeon.config import origin
from aeon.domain.errors import AeonError, StoreFailed
from aeon.store.cassette import CassetteSource, Provenance
from aeon.store.cassette_export import provenance
from aeon.store.opening import open_source
from aeon.store.settings import StoreSettings


def recording(store: StoreSettings) -> Provenance | None:
    """The provenance of what the settings replay; None when they replay nothing, or nothing that can be read.

    The run itself says what is wrong with a recording.
    """
    if store.mode != "replay" or store.path is None:
        return None
    try:
        with closing(open_source(store.path, store.backend)) as source:
            if isinstance(source, CassetteSource):
                return source.cassette.provenance
            return provenance(source.entries(), provider=_provider(store))
    except StoreFailed:
        return None


def _provider(store: StoreSettings) -> str:
    """The kind of the provider that a run's directory names; empty where nothing is named."""
    try:
        return origin.read(store.path).provider.kind if store.path and store.path.is_dir() else ""
    except AeonError:
        return ""
