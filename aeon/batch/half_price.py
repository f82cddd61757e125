"""Rows whose requests go through the provider's batch interface: the place of its journal."""

from __future__ import annotations

from pathlib import Path

from aeon.config.compose.literal import Composition, quote
from aeon.config.settings import Settings
from aeon.llm.settings import EndpointSettings


def with_journal(composition: Composition, settings: Settings, place: Path) -> Composition:
    """Return the composition with the journal of the provider's batches next to `place`, unless it
    sets its own."""
    provider = settings.provider
    if not isinstance(provider, EndpointSettings) or not provider.batch or provider.batch_journal:
        return composition
    journal = quote(str(place.absolute().with_name(f"{place.name}.batches")))
    return composition.with_overrides((*composition.overrides, f"provider.batch_journal={journal}"))


def remove_journal(place: Path) -> None:
    """Remove the journal next to `place`, once every row is done."""
    place.with_name(f"{place.name}.batches").unlink(missing_ok=True)
