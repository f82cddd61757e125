from datetime import UTC, datetime

import pytest

from aeon.tools.builtin.basics import current_time_tool, echo_tool
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import ToolRegistry

MOMENT = datetime(2030, 1, 31, 23, 30, 15, 999_999, tzinfo=UTC)
CALLS = ToolInvoker(ToolRegistry([current_time_tool(lambda: MOMENT), echo_tool()]))


def test_the_time_is_told_in_utc_or_in_the_zone_that_is_asked_for() -> None:
    assert CALLS.invoke("current_time", {}).output == {
        "time": "2030-01-31T23:30:15+00:00",
        "timezone": "UTC",
        "weekday": "Thursday",
        "unix_seconds": 1_896_132_615,
    }
    there = CALLS.invoke("current_time", {"timezone": "Asia/Tokyo"}).output
    assert (there["time"], there["weekday"]) == ("2030-02-01T08:30:15+09:00", "Friday")


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "../../etc/passwd", "/etc/passwd", "Europe", "a\0b"])
def test_a_zone_that_does_not_exist_is_an_error(name: str) -> None:
    result = CALLS.invoke("current_time", {"timezone": name})
    assert (result.error_kind, "there is no time zone" in str(result.error)) == ("raised", True)


def test_without_a_clock_it_is_the_time_now() -> None:
    told = ToolInvoker(ToolRegistry([current_time_tool()])).invoke("current_time", {}).output
    assert abs(told["unix_seconds"] - datetime.now(UTC).timestamp()) < 60


def test_echo_gives_back_what_it_is_given() -> None:
    assert CALLS.invoke("echo", {"text": "naïve ${x} {{y}}"}).text == "naïve ${x} {{y}}"
    assert CALLS.invoke("echo", {"text": 3}).error_kind == "invalid_arguments"
