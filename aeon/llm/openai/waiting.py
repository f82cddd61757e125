"""How long a server asks to wait, from the headers of its response. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_BEHIND_A_PROXY = "llm_provider-"  # what LiteLLM puts before the headers of the provider behind it
_RESET = "x-ratelimit-reset-"
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+\.?\d*)s)?(?:(\d+\.?\d*)ms)?")
_UNITS = (86400.0, 3600.0, 60.0, 1.0, 0.001)


def retry_after(headers: Mapping[str, str], now: datetime | None = None, *, limited: bool = False) -> float | None:
    """The seconds a server asks to wait, never negative; None if it does not say.

    From `retry-after-ms` or `Retry-After` (seconds or a date), its own or those of a provider behind a proxy; of a
    `limited` (429) response without them, from `x-ratelimit-reset-requests`, `-tokens` and their like (seconds or a
    duration), of what is used up.
    """
    given = {name.lower().removeprefix(_BEHIND_A_PROXY): value for name, value in headers.items()}
    given |= {name.lower(): value for name, value in headers.items()}
    milliseconds = _duration(given.get("retry-after-ms"))
    asked = _duration(given.get("retry-after")) if milliseconds is None else milliseconds / 1000
    if asked is None and "retry-after" in given:
        try:
            until = parsedate_to_datetime(given["retry-after"])
            asked = max(0.0, (until.astimezone(UTC) - (now or datetime.now(UTC))).total_seconds())
        except ValueError:
            asked = None
    if asked is not None or not limited:
        return asked
    names = (header.removeprefix(_RESET) for header in given if header.startswith(_RESET))
    used_up = (name for name in names if not _duration(given.get(f"x-ratelimit-remaining-{name}")))
    return max(filter(None, (_duration(given[_RESET + name]) for name in used_up)), default=None)


def _duration(text: str | None) -> float | None:
    """Seconds (7, 7.5) or a duration (6m0s)."""
    text = (text or "").strip()
    found = _DURATION.fullmatch(f"{text}s" if text[-1:].isdigit() else text) if text else None
    if found is None:
        return None
    return sum(unit * float(part or 0) for unit, part in zip(_UNITS, found.groups(), strict=True))
