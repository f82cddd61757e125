"""Rows whose requests go through the provider's batch interface: where that is noted, and what is told of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from aeon.config.compose.literal import Composition, quote
from aeon.config.settings import Settings
from aeon.llm.settings import EndpointSettings
from aeon.llm.watching import WAITS


def with_journal(composition: Composition, settings: Settings, place: Path) -> Composition:
    """The composition, with the journal of the provider's batches beside `place` unless it says where."""
    provider = settings.provider
    if not isinstance(provider, EndpointSettings) or not provider.batch or provider.batch_journal:
        return composition
    journal = quote(str(place.absolute().with_name(f"{place.name}.batches")))
    return composition.with_overrides((*composition.overrides, f"provider.batch_journal={journal}"))


def remove_journal(place: Path) -> None:
    """Remove the journal beside `place`, when every row is done."""
    place.with_name(f"{place.name}.batches").unlink(missing_ok=True)


@contextmanager
def telling(tell: Callable[[str], None], at_least: int = logging.INFO) -> Iterator[None]:
    """Give `tell` what is waited for, as it changes, while the block lasts; or only what is a warning `at_least`."""
    told = logging.getLogger(WAITS)
    handler = logging.Handler()
    handler.emit = lambda record: tell(record.getMessage())  # type: ignore[method-assign]
    level, propagates = told.level, told.propagate
    told.addHandler(handler)
    told.setLevel(at_least)
    told.propagate = False
    try:
        yield
    finally:
        told.removeHandler(handler)
        told.setLevel(level)
        told.propagate = propagates
