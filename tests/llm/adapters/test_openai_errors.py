"""The tables of failures, against the SDK that is installed."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import openai
import openai._exceptions as sdk
import pytest

from aeon.errors import LLMError
from aeon.llm.adapters.endpoint import Endpoint
from aeon.llm.adapters.openai_errors import OTHER_ERRORS, STATUS_ERRORS, translate
from aeon.llm.adapters.waiting import retry_after

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def exceptions_of_the_sdk() -> set[type[Exception]]:
    """Every exception class that the SDK publishes or defines beside those."""
    named = [*vars(openai).values(), *vars(sdk).values()]
    found = {cls for cls in named if isinstance(cls, type) and issubclass(cls, Exception)}
    return {cls for cls in found if not cls.__name__.startswith("_")}


def test_every_exception_of_the_sdk_is_in_the_tables() -> None:
    names = {cls.__name__ for cls in exceptions_of_the_sdk()}
    assert names == STATUS_ERRORS | OTHER_ERRORS.keys()


def test_the_exceptions_with_a_status_are_in_the_table_for_those() -> None:
    with_status = {cls.__name__ for cls in exceptions_of_the_sdk() if issubclass(cls, openai.APIStatusError)}
    assert with_status == STATUS_ERRORS


def test_every_entry_is_an_error_of_a_model_call() -> None:
    assert all(issubclass(kind, LLMError) for kind in OTHER_ERRORS.values())


def test_a_programming_error_is_not_made_into_a_provider_error() -> None:
    assert translate(KeyError("x"), Endpoint("http://localhost/v1", "OPENAI_API_KEY", 1.0)) is None


@pytest.mark.parametrize("shift", [90, 0, -90])
def test_a_date_to_wait_for_becomes_seconds_and_never_negative(shift: int) -> None:
    date = format_datetime(NOW + timedelta(seconds=shift), usegmt=True)
    assert retry_after({"retry-after": date}, now=NOW) == max(0, shift)


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "", "tomorrow"])
def test_a_wait_that_makes_no_sense_is_ignored(value: str) -> None:
    assert retry_after({"retry-after": value}, now=NOW) is None
