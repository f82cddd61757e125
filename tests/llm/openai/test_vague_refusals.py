"""Parameters that a server refuses without naming them: what is tried, what is believed, and what is told."""

from typing import Any

import pytest

from aeon.domain.errors import RequestRefused
from tests.llm.openai.test_negotiation import ANSWER, Start, start
from tests.support.openai_server import Failure, error
from tests.support.requests import request

__all__ = ["start"]

NO_ENDPOINT = "No endpoints found that can handle the requested parameters."


def asked(server: Any) -> list[str]:
    """Each request's form, and the first letter of each parameter that nothing depends on."""
    letters = {"reasoning_effort": "e", "temperature": "t"}
    return [
        form + "".join(f" {letter}" for name, letter in letters.items() if name in body)
        for form, body in zip(server.forms_asked, server.bodies, strict=True)
    ]


@pytest.mark.parametrize(
    "says",
    [
        error(400, '"llama3.1" does not support thinking'),
        error(400, 'think value "medium" is not supported for this model'),
        error(500, "thinking is not supported"),
        error(404, NO_ENDPOINT),
        error(400, "Invalid request"),
        Failure(400, body=""),
        Failure(422, body={"detail": "the request cannot be processed"}),
        Failure(200, body={"error": "unsupported"}),
        Failure(
            400,
            body={
                "error": {
                    "message": "must be low or high",
                    "param": "reasoning_effort",
                    "code": "value",
                }
            },
        ),
        Failure(
            422,
            body={
                "detail": [
                    {"loc": ["body", "reasoning_effort"], "type": "literal_error", "msg": "low"}
                ]
            },
        ),
    ],
)
def test_an_effort_that_is_refused_in_whatever_words_is_left_out_remembered_and_said_once(
    says: Failure, start: Start
) -> None:
    server, adapter = start({"effort": "medium"}, refuses={"reasoning_effort": says})
    for _ in range(3):
        assert adapter.complete(request()).text == ANSWER
    assert asked(server) == ["json_schema e", "json_schema", "json_schema", "json_schema"]
    [told] = adapter.findings(only_new=True)
    assert str(told).endswith(
        "takes no reasoning_effort: it is left out from now on; reasoning=none skips the trial"
    )


def test_a_temperature_that_is_refused_without_a_name_is_left_out_with_the_effort(
    start: Start,
) -> None:
    server, adapter = start(
        {"effort": "low", "temperature": 0.5},
        refuses={"temperature": error(400, "Invalid request")},
    )
    for _ in range(2):
        adapter.complete(request())
    assert asked(server) == ["json_schema e t", "json_schema", "json_schema"]


def test_a_server_that_refuses_both_without_a_name_is_sent_neither(start: Start) -> None:
    vague = error(400, "Invalid request")
    server, adapter = start(
        {"effort": "low", "temperature": 0.5},
        refuses={"temperature": vague, "reasoning_effort": vague},
    )
    adapter.complete(request())
    assert asked(server)[-1] == "json_schema"
    assert [finding.about for finding in adapter.findings()] == ["reasoning_effort", "temperature"]


def test_a_form_that_is_refused_without_a_name_leaves_the_parameters_alone(start: Start) -> None:
    server, adapter = start({"effort": "low"}, forms={"text"}, says=error(400, "Invalid request"))
    for _ in range(2):
        adapter.complete(request())
    assert asked(server) == ["json_schema e", "json_schema", "text+", "text+ e"]
    assert [finding.about for finding in adapter.findings()] == ["structured_output"]


@pytest.mark.parametrize("says", [error(400, "Invalid request"), error(404, NO_ENDPOINT)])
def test_a_form_and_an_effort_that_are_both_refused_without_a_name_are_both_found(
    says: Failure, start: Start
) -> None:
    server, adapter = start(
        {"effort": "low"}, forms={"text"}, says=says, refuses={"reasoning_effort": says}
    )
    for _ in range(2):
        assert adapter.complete(request()).text == ANSWER
    assert asked(server) == ["json_schema e", "json_schema", "text+", "text+ e", "text+"]
    assert [finding.about for finding in adapter.findings()] == [
        "reasoning_effort",
        "structured_output",
    ]


def test_a_parameter_is_found_out_in_a_form_that_was_set_too(start: Start) -> None:
    settings = {"effort": "low", "structured_output": "prompt"}
    server, adapter = start(settings, refuses={"reasoning_effort": error(400, "Invalid request")})
    for _ in range(2):
        adapter.complete(request())
    assert asked(server) == ["text+ e", "text+", "text+"]


@pytest.mark.parametrize("settings", [{"effort": "low", "temperature": 0.5}, {"effort": "low"}, {}])
@pytest.mark.parametrize("status", [400, 422])
def test_where_no_trial_helps_three_requests_are_made_and_the_first_error_says_what_to_set(
    status: int, settings: dict[str, Any], start: Start
) -> None:
    server, adapter = start(
        settings, forms=set(), says=error(status, "the model is busy being odd")
    )
    for _ in range(2):
        with pytest.raises(RequestRefused, match="busy being odd") as raised:
            adapter.complete(request())
    assert len(server.bodies) == 3 * 2
    assert "reasoning=none" in raised.value.hint
    assert "provider.structured_output=prompt" in raised.value.hint
    assert adapter.findings() == ()


def test_a_model_that_is_not_there_is_asked_for_with_its_effort_alone(start: Start) -> None:
    server, adapter = start(
        {"effort": "low"}, forms=set(), says=error(404, "no such model", "model_not_found")
    )
    with pytest.raises(RequestRefused) as raised:
        adapter.complete(request())
    assert asked(server) == ["json_schema e"]
    assert "reasoning=none" not in raised.value.hint
