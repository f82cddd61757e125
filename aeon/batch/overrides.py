"""What a row of a dataset may configure: less than its person, since a dataset may be a stranger's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from aeon.config.compose.literal import key_of
from aeon.config.recompose import select_overrides
from aeon.domain.errors import ConfigError


def check_overrides(overrides: Sequence[str], config_dir: Path | None) -> None:
    """Raise ConfigError for an override that chooses a provider, starts, imports, reads or sends something, or does
    nothing in a row; what a replay may take from a cassette may be set."""
    taken, _ = select_overrides(overrides, config_dir)
    for text in overrides:
        if text not in taken or key_of(text) in ("provider", "provider.kind"):
            hint = "A row may set models, thresholds, limits and modes; all else is set on the command line."
            raise ConfigError(f"overrides: a row may not set {key_of(text)}", hint=hint)
