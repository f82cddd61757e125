"""What servers ask to wait, and what is no failure of theirs."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from aeon.llm.openai.endpoint import Endpoint
from aeon.llm.openai.errors import retry_after
from aeon.llm.openai.failures import error_of_exception
from aeon.llm.settings import OpenAIProvider


def test_a_programming_error_is_not_made_into_a_provider_error() -> None:
    assert error_of_exception(KeyError("x"), Endpoint(OpenAIProvider()), 1.0) is None


@pytest.mark.parametrize("shift", [90, 0, -90])
def test_a_date_to_wait_for_becomes_seconds_and_never_negative(shift: int) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=shift), usegmt=True)
    assert retry_after({"retry-after": date}) == pytest.approx(max(0, shift), abs=5)


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "", "tomorrow"])
def test_a_wait_that_makes_no_sense_is_ignored(value: str) -> None:
    assert retry_after({"retry-after": value}) is None


LIMITED = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-remaining-tokens": "100"}


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"llm_provider-retry-after": "7"}, 7.0),
        ({"llm_provider-retry-after": "7", "retry-after": "2"}, 2.0),
        (
            {"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-reset-tokens": "9h", **LIMITED},
            360.0,
        ),
        ({"llm_provider-x-ratelimit-reset-tokens": "12ms"}, 0.012),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "1h2m3.5s"}, 3723.5),
        ({"x-ratelimit-reset-requests": "20", "x-ratelimit-remaining-requests": "5"}, None),
        ({"x-ratelimit-reset-requests": "soon"}, None),
        ({"x-ratelimit-reset-tokens-minute": "9", "x-ratelimit-remaining-tokens-minute": "0"}, 9.0),
    ],
)
def test_a_wait_that_a_proxy_hides_is_found(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, limited=True) == pytest.approx(seconds)


def test_a_server_that_fails_does_not_ask_to_wait_for_its_limits() -> None:
    assert retry_after({"x-ratelimit-reset-requests": "6m0s"}) is None
