from datetime import UTC, datetime, timedelta

import pytest

from aeon.tools.builtin.basics import current_time, echo
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import ToolRegistry

CALLS = ToolInvoker(ToolRegistry([current_time, echo]))


@pytest.mark.parametrize(("asked", "hours"), [({}, 0), ({"timezone": "Asia/Tokyo"}, 9)])
def test_the_time_is_told_in_utc_or_in_the_zone_that_is_asked_for(
    asked: dict[str, str], hours: int
) -> None:
    told = CALLS.invoke("current_time", asked).output
    moment = datetime.fromisoformat(told["time"])
    assert abs(moment - datetime.now(UTC)) < timedelta(seconds=60)
    assert (moment.utcoffset(), moment.microsecond) == (timedelta(hours=hours), 0)
    assert (told["weekday"], told["unix_seconds"]) == (
        moment.strftime("%A"),
        int(moment.timestamp()),
    )
    assert told["timezone"] == asked.get("timezone", "UTC")


@pytest.mark.parametrize(
    "name", ["Mars/Olympus", "", "../../etc/passwd", "/etc/passwd", "Europe", "a\0b"]
)
def test_a_zone_that_does_not_exist_is_an_error(name: str) -> None:
    result = CALLS.invoke("current_time", {"timezone": name})
    assert (result.error_kind, "there is no time zone" in str(result.error)) == ("raised", True)


def test_echo_gives_back_what_it_is_given() -> None:
    assert CALLS.invoke("echo", {"text": "naïve ${x} {{y}}"}).text == "naïve ${x} {{y}}"
    assert CALLS.invoke("echo", {"text": 3}).error_kind == "invalid_arguments"
