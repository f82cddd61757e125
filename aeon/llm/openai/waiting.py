"""How long a server asks to wait, from the headers of its response. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

BEHIND_A_PROXY = "llm_provider-"
"""What LiteLLM puts before the headers of the provider behind it."""

_RESET = "x-ratelimit-reset-"
_FIRST_EPOCH = 1e9
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:([\d.]+)s)?(?:([\d.]+)ms)?")
_UNITS = (86400.0, 3600.0, 60.0, 1.0, 0.001)


def retry_after(headers: Mapping[str, str], now: datetime | None = None, *, limited: bool = False) -> float | None:
    """The seconds a server asks to wait, never negative; None if it does not say.

    From `retry-after-ms` or `Retry-After` (seconds or a date), its own or those of a provider behind a proxy; of a
    `limited` (429) response without them, from `x-ratelimit-reset-requests`, `-tokens` and their like, of what is used
    up.
    """
    given = {name.lower().removeprefix(BEHIND_A_PROXY): value for name, value in headers.items()}
    given |= {name.lower(): value for name, value in headers.items()}
    now = now or datetime.now(UTC)
    milliseconds = _number(given.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    asked = _seconds(given.get("retry-after"), now)
    if asked is not None or not limited:
        return asked
    names = (header.removeprefix(_RESET) for header in given if header.startswith(_RESET))
    resets = [_seconds(given[_RESET + name], now) for name in names if _used_up(given, name)]
    return max((seconds for seconds in resets if seconds is not None), default=None)


def _used_up(headers: Mapping[str, str], name: str) -> bool:
    """Whether the server reports that nothing is left, or reports nothing."""
    return not _number(headers.get(f"x-ratelimit-remaining-{name}"))


def _seconds(value: str | None, now: datetime) -> float | None:
    """Seconds (7), a duration (6m0s) or a date (of HTTP, ISO 8601, or the seconds or milliseconds since 1970)."""
    if not value or not value.strip():
        return None
    if (seconds := _number(value)) is not None:
        return seconds if seconds < _FIRST_EPOCH else _until_epoch(seconds, now)
    if found := _DURATION.fullmatch(value.strip()):
        return sum(unit * (_number(part) or 0.0) for unit, part in zip(_UNITS, found.groups(), strict=True))
    until = _date(value)
    return None if until is None else max(0.0, (until - now).total_seconds())


def _until_epoch(number: float, now: datetime) -> float:
    """The seconds until a time since 1970, in seconds or in milliseconds."""
    seconds = number if number < _FIRST_EPOCH * 1000 else number / 1000
    return max(0.0, seconds - now.timestamp())


def _date(value: str) -> datetime | None:
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            date = read(value)
        except ValueError:
            continue
        return date if date.tzinfo else date.replace(tzinfo=UTC)
    return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text is not None else None
    except ValueError:
        return None
    return number if number is not None and 0 <= number < float("inf") else None
