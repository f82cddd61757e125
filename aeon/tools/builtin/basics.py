"""The tools that need no settings: one that returns its input, and the time."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import Field

from aeon.domain.values import Value
from aeon.tools.function import tool
from aeon.tools.registry import Tool
from aeon.tools.settings import BuiltinSettings

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Moment(Value):
    """A point in time: ISO 8601 with its offset, the time zone, the weekday in English, seconds
    since 1970 in UTC."""

    time: str
    timezone: str
    weekday: str
    unix_seconds: int


@tool(pure=True, examples=[{"text": "hello"}])
def echo(text: Annotated[str, Field(description="The text to give back.")]) -> str:
    """Give back the text unchanged."""
    return text


@tool(examples=[{}, {"timezone": "Europe/Vienna"}])
def current_time(
    timezone: Annotated[
        str, Field(description="An IANA name such as Europe/Vienna or America/New_York.")
    ] = "UTC",
) -> Moment:
    """Tell the date and the time now, to the second, in a time zone."""
    try:
        zone = ZoneInfo(timezone)
    except (KeyError, ValueError, OSError):
        raise ValueError(
            f"there is no time zone {timezone!r}; IANA names look like Europe/Vienna"
        ) from None
    moment = datetime.now(zone).replace(microsecond=0)
    return Moment(
        time=moment.isoformat(),
        timezone=timezone,
        weekday=_WEEKDAYS[moment.weekday()],
        unix_seconds=int(moment.timestamp()),
    )


def from_settings(settings: BuiltinSettings) -> tuple[Tool, ...]:  # noqa: ARG001
    """Return `echo` and `current_time`, which need no settings."""
    return echo, current_time
