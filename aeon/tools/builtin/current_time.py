"""What time it is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import Field

from aeon.domain.values import Value
from aeon.tools.function import tool
from aeon.tools.registry import Tool
from aeon.tools.settings import BuiltinSettings

Clock = Callable[[], datetime]


def _now() -> datetime:
    return datetime.now(UTC)


class Moment(Value):
    """A point in time: ISO 8601 with its offset, the time zone, the weekday in English, seconds since 1970 in UTC."""

    time: str
    timezone: str
    weekday: str
    unix_seconds: int


def from_settings(settings: BuiltinSettings) -> tuple[Tool, ...]:  # noqa: ARG001
    """`current_time`, which needs no settings."""
    return (current_time_tool(),)


def current_time_tool(clock: Clock = _now) -> Tool:
    """`current_time`; `clock` gives the time, with its time zone."""

    @tool(examples=[{}, {"timezone": "Europe/Vienna"}])
    def current_time(
        timezone: Annotated[str, Field(description="An IANA name such as Europe/Vienna or America/New_York.")] = "UTC",
    ) -> Moment:
        """Tell the date and the time now, to the second, in a time zone."""
        moment = clock().astimezone(_zone(timezone)).replace(microsecond=0)
        return Moment(
            time=moment.isoformat(),
            timezone=timezone,
            weekday=_WEEKDAYS[moment.weekday()],
            unix_seconds=int(moment.timestamp()),
        )

    return current_time


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"there is no time zone {name!r}; IANA names look like Europe/Vienna") from None


_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
