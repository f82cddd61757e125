"""Which downgrade a refusal calls for, decided without a server."""

from dataclasses import replace
from typing import Any

import pytest

from aeon.llm.dialects.dialect import Dialect, Wire
from aeon.llm.dialects.downgrade import (
    RefusedTrial,
    Trial,
    find_guessed_downgrade,
    find_named_downgrade,
)
from aeon.llm.dialects.refusal import read_refusal
from aeon.llm.settings import OpenAIProvider
from tests.support.requests import request

NAMES_TEMPERATURE = {"message": "Unsupported parameter", "param": "temperature"}
NAMES_LIMIT = {"message": "Unsupported parameter", "param": "max_completion_tokens"}
NAMES_FORM = {"message": "response_format is not supported"}
NAMES_NOTHING = {"message": "Invalid request"}
TRIAL = Trial(Dialect())
IN_JSON_OBJECT = Dialect().in_form("json_object")


def refused(
    body: Any,
    status: int = 400,
    dialect: Dialect = TRIAL.dialect,
    *,
    was_accepted: bool = False,
    **settings: Any,
) -> RefusedTrial:
    given = {"model": "m", "temperature": 0.5, "max_tokens": 7, "effort": "low", **settings}
    wire = Wire(request(), OpenAIProvider(**given))
    return RefusedTrial(Trial(dialect), read_refusal(status, body), wire, was_accepted=was_accepted)


def test_a_named_parameter_is_left_out() -> None:
    assert find_named_downgrade(refused(NAMES_TEMPERATURE)) == Trial(
        Dialect(without=frozenset({"temperature"}))
    )


def test_a_named_limit_is_renamed_and_then_left_out() -> None:
    renamed = Dialect(renamed=True)
    assert find_named_downgrade(refused(NAMES_LIMIT)) == Trial(renamed)
    again = {"message": "Unsupported parameter", "param": "max_tokens"}
    left_out = replace(renamed, without=frozenset({"max_tokens"}))
    assert find_named_downgrade(refused(again, dialect=renamed)) == Trial(left_out)


def test_a_schema_beside_json_object_is_the_first_that_goes() -> None:
    beside = replace(IN_JSON_OBJECT, schema_beside=True)
    downgrade = find_named_downgrade(refused(NAMES_NOTHING, dialect=beside))
    assert downgrade is not None
    assert not downgrade.dialect.sends_schema_beside
    assert find_named_downgrade(refused(NAMES_NOTHING, 500, beside)) is None


def test_a_named_form_gives_way_to_the_next_until_none_is_left() -> None:
    dialect = Dialect()
    forms = []
    while downgrade := find_guessed_downgrade(refused(NAMES_FORM, dialect=dialect)):
        dialect = downgrade.dialect
        forms.append((dialect.form, dialect.schema_in_prompt))
    assert forms == [("json_object", True), ("prompt", True)]


def test_where_nothing_is_named_the_suspects_go_first_and_then_the_form() -> None:
    suspects = frozenset({"temperature", "reasoning_effort"})
    first = find_guessed_downgrade(refused(NAMES_NOTHING))
    assert first == Trial(Dialect(without=suspects), suspects)
    second = find_guessed_downgrade(replace(refused(NAMES_NOTHING), trial=first))
    assert second == Trial(first.dialect.in_form("prompt"), suspects)
    assert second.conclude(Dialect()) == Dialect().in_form("prompt")
    assert first.conclude(Dialect()) == first.dialect


def test_a_form_that_is_configured_stays() -> None:
    case = refused(NAMES_FORM, structured_output="json_schema")
    assert find_guessed_downgrade(case) is None


def test_a_schema_that_was_accepted_is_given_up_for_a_named_form_alone() -> None:
    assert find_guessed_downgrade(refused(NAMES_NOTHING, was_accepted=True)) is None
    assert find_guessed_downgrade(refused(NAMES_FORM, was_accepted=True)) == Trial(IN_JSON_OBJECT)


@pytest.mark.parametrize(
    ("body", "status"),
    [("", 500), ("Bad gateway", 502), ("slow down", 429), ("no such key", 401)],
)
def test_an_outage_a_limit_and_a_key_call_for_no_downgrade(body: str, status: int) -> None:
    assert find_named_downgrade(refused(body, status)) is None
    assert find_guessed_downgrade(refused(body, status)) is None
